"""Checks that the object files of ISA levels define no weak symbol.

A weak (inline) function compiled for AVX-512 could be merged by the linker into baseline code and crash an older CPU.
Usage: level_objects.py BUILD_FOLDER [NM]
"""
import pathlib
import subprocess
import sys

build = pathlib.Path(sys.argv[1])
nm = sys.argv[2] if len(sys.argv) > 2 else "nm"
objects = sorted(build.glob("kernels/CMakeFiles/hk_kernels_*.dir/**/*.o"))
if not objects:
    sys.exit(f"no level objects below {build}: nothing was checked")
levels = {path.parts[path.parts.index("CMakeFiles") + 1] for path in objects}
bad = []
for path in objects:
    for line in subprocess.run([nm, "-C", str(path)], check=True, capture_output=True, text=True).stdout.splitlines():
        kind = line[17:18]
        if kind in "WwVvu":
            # an undefined weak reference ('w' without address) is no definition
            if line[:16].strip():
                bad.append(f"{path.relative_to(build)}: {line[19:]}")
if bad:
    sys.exit("weak symbols in level objects:\n  " + "\n  ".join(bad))
print(f"{len(objects)} objects of {len(levels)} levels define no weak symbol")
