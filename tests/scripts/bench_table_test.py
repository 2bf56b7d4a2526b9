"""scripts/bench_table.py on made-up results: cells, spreads, missing cases, broken input.

Usage: bench_table_test.py SOURCE_FOLDER
"""
import json
import pathlib
import subprocess
import sys
import tempfile

script = pathlib.Path(sys.argv[1]) / "scripts" / "bench_table.py"


def figure(median, lowest=None, highest=None):
    return {"median": median, "lowest": lowest or median, "highest": highest or median, "runs": 5}


def peaks(scale):
    return {"int8_dot": figure(500 * scale), "f32_fma": figure(125 * scale), "bf16_dot": None,
            "read": figure(20 * scale, 19 * scale, 25 * scale)}


def matmul(name, n, threads, **more):
    return {"kind": "matmul", "format": name, "level": "avx2", "threads": threads, "rows": 64, "cols": 256, "n": n,
            "gbs": figure(10, 9, 11), "gmacs": figure(300, 290, 310), "of_read": figure(0.5), "best_of_read": 0.55,
            "of_peak": figure(0.6), "best_of_peak": 0.62, "peak": "int8_dot", **more}


def render(lines, attention=None, *options):
    with tempfile.TemporaryDirectory() as folder:
        matrices = pathlib.Path(folder) / "m.jsonl"
        matrices.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
        command = [sys.executable, str(script), str(matrices), *options]
        if attention is not None:
            path = pathlib.Path(folder) / "a.json"
            path.write_text(json.dumps(attention))
            command.append(str(path))
        return subprocess.run(command, capture_output=True, text=True, check=False)


MACHINE = {"kind": "machine", "cpu": "Some CPU", "cores": 4, "last_level_cache": 32 << 20}
ROOFLINES = [{"kind": "roofline", "level": "avx2", "threads": 1, "one": peaks(1), "all": peaks(1)},
             {"kind": "roofline", "level": "avx2", "threads": 4, "one": peaks(1), "all": peaks(3)}]
CASES = [matmul("q4_k", 1, 1), matmul("q4_k", 512, 1), matmul("q4_k", 8, 1), matmul("q4_k", 1, 4, of_read=figure(0.9, 0.7, 1)),
         matmul("bf16", 512, 4, peak="f32_fma", of_bf16_dot=figure(0.25), best_of_bf16_dot=0.3)]
ATTENTION = {"context": {"roofline": json.dumps(ROOFLINES[1])},
             "benchmarks": [{"run_name": "decode/f16/head:128/group:4/depth:4096/threads:4/real_time", "GB/s": 30.0,
                             "GMAC/s": 75.0}]}

good = render([MACHINE, *ROOFLINES, *CASES], ATTENTION)
assert good.returncode == 0, good.stderr
rows = good.stdout.splitlines()
for expected in [
        "Some CPU, 4 cores, last-level cache 32 MiB",
        "| avx2 | 4 | 1500 GMAC/s | none | 375 GMAC/s | 60.0 GB/s |",
        "| Format | Decode, 1 thread | Tile, 1 thread | Decode, 4 threads | Tile, 4 threads |",
        "| q4_k | 50 % of read, 10.0 GB/s | 60 % of int8, 300 GMAC/s | 90 % of read (70–100), 10.0 GB/s | – |",
        "| bf16 | – | – | – | 60 % of f32, 25 % of bf16, 300 GMAC/s |",
        "| decode | f16 | 128 | 4 | 4096 | 4 | 50 % of read, 30.0 GB/s | 20 % of f32, 75 GMAC/s |"]:
    assert expected in rows, f"missing: {expected}\n{good.stdout}"

best = render([MACHINE, *ROOFLINES, *CASES], ATTENTION, "--best").stdout
assert "| q4_k | 55 % of read, 11.0 GB/s | 62 % of int8, 310 GMAC/s | 55 % of read, 11.0 GB/s | – |" in best, best
assert "| 40 % of read, 30.0 GB/s | 20 % of f32" in best, best

for broken, attention, sentence in [
        ([MACHINE, "{half\n"], None, "m.jsonl, line 2: not JSON"),
        ([MACHINE], None, "names no machine or no peaks"),
        ([MACHINE, *ROOFLINES], {"benchmarks": []}, "is no output of attention_bench")]:
    outcome = render(broken, attention)
    assert outcome.returncode == 1 and sentence in outcome.stderr, outcome
assert render([MACHINE, *ROOFLINES], None, "--worst").returncode != 0
print("tables are as expected")
