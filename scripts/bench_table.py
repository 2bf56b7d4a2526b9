#!/usr/bin/env python3
"""Renders what the benches measured as the Markdown tables of the README.

Usage: bench_table.py MATMUL.jsonl [ATTENTION.json] [--best]

MATMUL.jsonl: from matmul_bench --json. ATTENTION.json: from attention_bench --benchmark_format=json.
--best: the best run against the best limit instead of the median fraction, for a machine that was not quiet.
"""
import json
import sys

DECODE_ROWS = 1
PEAKS = {"int8_dot": "int8", "f32_fma": "f32"}


def fail(sentence):
    sys.exit(f"bench_table.py: {sentence}")


def read_lines(path):
    records = []
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    records.append(json.loads(line))
                except ValueError as error:
                    fail(f"{path}, line {number}: not JSON ({error})")
    except OSError as error:
        fail(f"cannot read {path}: {error.strerror}")
    return records


def percent(record, key, best):
    value = record["best_" + key] if best else record[key]["median"]
    return f"{100 * value:.0f} %"


def spread(record, key, best):
    """Only where the runs disagree by more than a tenth, so that a quiet machine's table stays short."""
    fraction = record[key]
    if best or fraction["highest"] - fraction["lowest"] <= 0.1 * fraction["median"]:
        return ""
    return f" ({100 * fraction['lowest']:.0f}–{100 * fraction['highest']:.0f})"


def measured(value):
    return "none" if value is None or value["runs"] == 0 else f"{value['median']:.0f}"


def peaks_table(rooflines):
    lines = ["| Level | Threads | int8 dot | bf16 dot | f32 multiply-add | Read |", "|---|--:|--:|--:|--:|--:|"]
    for roofline in rooflines:
        peaks = roofline["one"] if roofline["threads"] == 1 else roofline["all"]
        lines.append(
            f"| {roofline['level']} | {roofline['threads']} | {measured(peaks['int8_dot'])} GMAC/s "
            f"| {measured(peaks['bf16_dot'])} GMAC/s | {measured(peaks['f32_fma'])} GMAC/s "
            f"| {peaks['read']['median']:.1f} GB/s |".replace("none GMAC/s", "none"))
    return lines


def unique(values):
    return list(dict.fromkeys(values))


def matmul_tables(records, best):
    """One table a level and matrix: formats down, threads and kinds of work across."""
    lines = []
    for level in unique(r["level"] for r in records):
        of_level = [r for r in records if r["level"] == level]
        threads = sorted({r["threads"] for r in of_level})
        for shape in unique((r["rows"], r["cols"]) for r in of_level):
            rows = [r for r in of_level if (r["rows"], r["cols"]) == shape]
            decode = {(r["format"], r["threads"]): r for r in rows if r["n"] == DECODE_ROWS}
            tile_n = max(r["n"] for r in rows)
            tiles = {(r["format"], r["threads"]): r for r in rows if r["n"] == tile_n and tile_n > DECODE_ROWS}
            lines += ["", f"Level {level}, matrix of {shape[0]} x {shape[1]}; decode is 1 activation row, tile {tile_n}.", ""]
            heads = ["Format"]
            for count in threads:
                name = "1 thread" if count == 1 else f"{count} threads"
                heads += [f"Decode, {name}", f"Tile, {name}"]
            lines += ["| " + " | ".join(heads) + " |", "|---|" + "--:|" * (len(heads) - 1)]
            for name in unique(r["format"] for r in rows):
                cells = [name]
                for count in threads:
                    cells.append(decode_cell(decode.get((name, count)), best))
                    cells.append(tile_cell(tiles.get((name, count)), best))
                lines.append("| " + " | ".join(cells) + " |")
    return lines


def decode_cell(record, best):
    if record is None:
        return "–"
    speed = record["gbs"]["highest" if best else "median"]
    return f"{percent(record, 'of_read', best)} of read{spread(record, 'of_read', best)}, {speed:.1f} GB/s"


def tile_cell(record, best):
    if record is None:
        return "–"
    speed = record["gmacs"]["highest" if best else "median"]
    text = f"{percent(record, 'of_peak', best)} of {PEAKS[record['peak']]}{spread(record, 'of_peak', best)}"
    if "of_bf16_dot" in record:
        text += f", {percent(record, 'of_bf16_dot', best)} of bf16"
    return f"{text}, {speed:.0f} GMAC/s"


def attention_table(path, best):
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        cases, roofline = content["benchmarks"], json.loads(content["context"]["roofline"])
    except OSError as error:
        fail(f"cannot read {path}: {error.strerror}")
    except (ValueError, KeyError, TypeError) as error:
        fail(f"{path} is no output of attention_bench --benchmark_format=json ({error})")
    # with repetitions there are medians: they alone count
    if any(case.get("run_type") == "aggregate" for case in cases):
        cases = [case for case in cases if case.get("aggregate_name") == "median"]
    lines = ["| Attention | Cache | Head | Group | Depth | Threads | Keys and values | Arithmetic |",
             "|---|---|--:|--:|--:|--:|--:|--:|"]
    for case in cases:
        work, cache, *rest = case["run_name"].split("/")
        fields = dict(part.split(":") for part in rest if ":" in part)
        peaks = roofline["one" if fields["threads"] == "1" else "all"]
        read, f32 = (peaks[kind]["highest" if best else "median"] for kind in ("read", "f32_fma"))
        lines.append(
            f"| {work} | {cache} | {fields['head']} | {fields['group']} | {fields['depth']} | {fields['threads']} "
            f"| {100 * case['GB/s'] / read:.0f} % of read, {case['GB/s']:.1f} GB/s "
            f"| {100 * case['GMAC/s'] / f32:.0f} % of f32, {case['GMAC/s']:.0f} GMAC/s |")
    return lines


def main(arguments):
    best = "--best" in arguments
    paths = [a for a in arguments if not a.startswith("-")]
    if not 1 <= len(paths) <= 2 or any(a.startswith("-") and a != "--best" for a in arguments):
        sys.exit(__doc__)
    records = read_lines(paths[0])
    by_kind = {kind: [r for r in records if r.get("kind") == kind] for kind in ("machine", "roofline", "matmul")}
    if not by_kind["machine"] or not by_kind["roofline"]:
        fail(f"{paths[0]} is no output of matmul_bench --json: it names no machine or no peaks")
    machine = by_kind["machine"][0]
    lines = [f"{machine['cpu'] or 'Unknown CPU'}, {machine['cores']} cores, "
             f"last-level cache {machine['last_level_cache'] >> 20} MiB", ""]
    lines += peaks_table(by_kind["roofline"])
    lines += matmul_tables(by_kind["matmul"], best)
    if len(paths) == 2:
        lines += ["", *attention_table(paths[1], best)]
    print("\n".join(lines))


main(sys.argv[1:])
