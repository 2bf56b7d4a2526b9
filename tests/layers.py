"""Checks that includes only point down the layers of docs/architecture.md, and that every file says its purpose first.

Usage: layers.py SOURCE_FOLDER
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])

# What each folder may include besides itself. A folder that is not listed here does not exist in the house.
MAY_INCLUDE = {
    "base": set(),
    "kernels": set(),
    "tokenizer": {"base"},
    "engine/container": {"base", "kernels", "tokenizer"},
    "engine/runtime": {"base", "kernels"},
    "engine/generate": {"base", "kernels", "tokenizer", "engine/container", "engine/runtime"},
    "models": {"base", "kernels", "engine/container", "engine/runtime", "engine/generate"},
    "cli": {"base", "kernels", "tokenizer", "engine/container", "engine/runtime", "engine/generate", "models"},
}
TOP_LEVEL = {name.split("/")[0] for name in MAY_INCLUDE}


def layer_of(path):
    parts = pathlib.PurePosixPath(path).parts
    if parts[0] == "engine":
        return "/".join(parts[:2])
    return parts[0]


problems = []
checked = 0
for folder in sorted(TOP_LEVEL):
    for path in sorted((root / folder).rglob("*")):
        if path.suffix not in {".h", ".cpp"}:
            continue
        checked += 1
        name = path.relative_to(root).as_posix()
        layer = layer_of(name)
        text = path.read_text(encoding="utf-8")
        if not text.startswith("// "):
            problems.append(f"{name}: the first line does not say the file's purpose")
        if layer not in MAY_INCLUDE:
            problems.append(f"{name}: {layer} is not a folder of the house")
            continue
        for number, line in enumerate(text.splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not match:
                continue
            target = match.group(1)
            if not (root / target).exists():
                problems.append(f"{name}:{number}: {target} is not a path from the source root")
                continue
            other = layer_of(target)
            if other != layer and other not in MAY_INCLUDE[layer]:
                problems.append(f"{name}:{number}: {layer} must not include {other} ({target})")
if checked < 20:
    problems.append(f"only {checked} files found below {root}: wrong folder?")
if problems:
    sys.exit("\n".join(problems))
print(f"{checked} files, all includes point down")
