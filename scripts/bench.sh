#!/usr/bin/env bash
# Measures the kernels against this machine's peaks and prints the tables of the README.
#
# Usage: bench.sh [--full] [--best] [options of matmul_bench...]
#   (nothing)  one matrix, all weight formats, 1 and 512 activation rows, a part of the attention cases: about a minute
#   --full     all matrices and activation rows, all attention cases: several minutes
#   --best     tables from the best runs, for a machine that others use meanwhile
# HK_KERNELS picks the kernel level, HK_BENCH_BUILD another build folder than build/release. The figures behind the
# tables stay in build/bench.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${HK_BENCH_BUILD:-build/release}
out=build/bench
matmul=(--quick)
attention=(--benchmark_min_time=0.05 --benchmark_filter='/f16/head:128/group:(1|4)/depth:(1024|16384)/')
table=()
while [ $# -gt 0 ]; do
  case "$1" in
    --full)
      matmul=()
      attention=(--benchmark_min_time=0.1)
      ;;
    --best) table=(--best) ;;
    *) break ;;
  esac
  shift
done
for program in matmul_bench attention_bench; do
  if [ ! -x "$build/bench/$program" ]; then
    echo "bench.sh: $build/bench/$program is not there; 'make bench' builds and runs it" >&2
    exit 1
  fi
done

mkdir -p "$out"
"$build/bench/matmul_bench" "${matmul[@]}" --json "$out/matmul.jsonl" "$@" >&2
"$build/bench/attention_bench" "${attention[@]}" --benchmark_out="$out/attention.json" --benchmark_out_format=json >&2
python3 scripts/bench_table.py "$out/matmul.jsonl" "$out/attention.json" "${table[@]}"
