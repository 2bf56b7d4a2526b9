#!/usr/bin/env python3
"""Writes kernels/quant/codebooks.cpp from the published codebook text files.

    scripts/generate_codebooks.py FOLDER [OUTPUT]

FOLDER holds the *.txt tables and MANIFEST (sha256sum format), which is verified first. OUTPUT defaults to
kernels/quant/codebooks.cpp of this source tree. Nothing is written when a hash, a shape or a value is wrong.
"""
import hashlib
import pathlib
import sys

# C++ name, file, rows, values a row, values allowed
GRIDS = [
    ("kIQ2XXSGrid", "iq2xxs_grid.txt", 256, 8, {8, 25, 43}),
    ("kIQ2XSGrid", "iq2xs_grid.txt", 512, 8, {8, 25, 43}),
    ("kIQ2SGrid", "iq2s_grid.txt", 1024, 8, {8, 25, 43}),
    ("kIQ1SGrid", "iq1s_grid.txt", 2048, 8, {-1, 0, 1}),
    ("kIQ3XXSGrid", "iq3xxs_grid.txt", 256, 4, {4, 12, 20, 28, 36, 44, 52, 62}),
    ("kIQ3SGrid", "iq3s_grid.txt", 512, 4, set(range(1, 16, 2))),
]
# Bit of each element's level number in a packed point: the even elements in the low byte, the odd ones in the high byte.
PACKED_BITS = {8: [0, 8, 2, 10, 4, 12, 6, 14], 4: [0, 8, 4, 12]}
LINE_WIDTH = 120


def fail(sentence):
    sys.exit("generate_codebooks.py: " + sentence)


def verify_manifest(folder):
    listed = set()
    for line in (folder / "MANIFEST").read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        digest, name = line.split()
        listed.add(name)
        found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        if found != digest:
            fail(f"{name} has sha256 {found}, MANIFEST says {digest}")
    return listed


def read_rows(folder, listed, name):
    if name not in listed:
        fail(f"{name} is not listed in MANIFEST")
    lines = (folder / name).read_text().splitlines()
    return [[int(word) for word in line.split()] for line in lines if line.strip() and not line.startswith("#")]


def read_flat(folder, listed, name, count):
    values = [value for row in read_rows(folder, listed, name) for value in row]
    if len(values) != count:
        fail(f"{name} holds {len(values)} values, expected {count}")
    return values


def pack(row):
    """Element j in byte j of a little-endian integer; negative values in two's complement."""
    return sum((value & 0xFF) << (8 * j) for j, value in enumerate(row))


def pack_levels(row, levels):
    """Sixteen bits: which of the levels, in rising order, each element has."""
    return sum(levels.index(value) << bit for value, bit in zip(row, PACKED_BITS[len(row)]))


def wrap(words):
    lines, line = [], " "
    for word in words:
        if len(line) + len(word) + 2 > LINE_WIDTH:
            lines.append(line)
            line = " "
        line += " " + word + ","
    return "\n".join(lines + [line])


def array(kind, name, count, words):
    return f"alignas(64) const {kind} {name}[{count}] = {{\n{wrap(words)}\n}};\n"


def two_arrays(kind, name, count, words):
    return (f"alignas(64) const {kind} {name}[2][{count}] = {{\n{{\n{wrap(words[:count])}\n}}, {{\n"
            f"{wrap(words[count:])}\n}}\n}};\n")


def main():
    if len(sys.argv) not in (2, 3):
        fail("usage: generate_codebooks.py FOLDER [OUTPUT]")
    folder = pathlib.Path(sys.argv[1])
    root = pathlib.Path(__file__).resolve().parent.parent
    output = pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else root / "kernels" / "quant" / "codebooks.cpp"
    listed = verify_manifest(folder)

    parts = []
    for name, file, count, width, allowed in GRIDS:
        rows = read_rows(folder, listed, file)
        if len(rows) != count or any(len(row) != width for row in rows):
            fail(f"{file} is not {count} rows of {width} values")
        if any(value not in allowed for row in rows for value in row):
            fail(f"{file} holds a value outside {sorted(allowed)}")
        if len({tuple(row) for row in rows}) != count:
            fail(f"{file} holds a grid point twice")
        kind = "std::uint64_t" if width == 8 else "std::uint32_t"
        parts.append(array(kind, name, count, [f"0x{pack(row):0{2 * width}X}" for row in rows]))
        levels = sorted(allowed)
        packed = name.replace("Grid", "Packed")
        words = [pack_levels(row, levels) for row in rows]
        parts.append(array("std::uint16_t", packed, count, [f"0x{word:04X}" for word in words]))
        if name != "kIQ1SGrid":
            planes = [word & 0xFF for word in words] + [word >> 8 for word in words]
            planes = [f"0x{byte:02X}" for byte in planes]
            parts.append(two_arrays("std::uint8_t", name.replace("Grid", "Planes"), count, planes))

    signs = read_flat(folder, listed, "ksigns.txt", 128)
    if signs != [i | (bin(i).count("1") & 1) << 7 for i in range(128)]:
        fail("ksigns.txt breaks the parity rule")
    if read_flat(folder, listed, "kmask.txt", 8) != [1 << j for j in range(8)]:
        fail("kmask.txt is not the powers of two")
    parts.append(array("std::uint8_t", "kSigns", 128, [f"0x{value:02X}" for value in signs]))
    for name, file in (("kIQ4NLValues", "iq4nl_values.txt"), ("kE2M1Values", "e2m1_values.txt")):
        values = read_flat(folder, listed, file, 16)
        if any(not -127 <= value <= 127 for value in values):
            fail(f"{file} holds a value outside -127..127")
        parts.append(array("std::int8_t", name, 16, [str(value) for value in values]))

    output.write_text(
        "// Codebook tables of the grid, nonlinear and FP4 formats. Generated by scripts/generate_codebooks.py; do not edit.\n"
        '#include "kernels/quant/codebooks.h"\n\n'
        "namespace hk::kernels {\n\n// clang-format off\n"
        + "\n".join(parts)
        + "// clang-format on\n\n}  // namespace hk::kernels\n"
    )
    print(f"{output}: {len(parts)} tables")


if __name__ == "__main__":
    main()
