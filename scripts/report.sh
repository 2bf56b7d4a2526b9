#!/usr/bin/env bash
# Measures whole models of made-up weights beside this machine's peaks: prompts, generation, depth, threads, sequences.
#
# Usage: report.sh [--depth N] [SHAPE:TYPE...]
#   (nothing)   smol-135m, qwen3-0.6b, llama-1b and llama-8b in common formats; some 20 minutes and 8 GB of disk for a while
#   --depth N   generation also after N positions (default 16384; 0: not at all)
# Shapes are the presets of make_model. The models are written to build/report, measured and removed again.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${HK_BENCH_BUILD:-build/release}
depth=16384
models=()
while [ $# -gt 0 ]; do
  case "$1" in
    --depth)
      depth=$2
      shift
      ;;
    --*)
      echo "report.sh: there is no option $1" >&2
      exit 2
      ;;
    *) models+=("$1") ;;
  esac
  shift
done
[ ${#models[@]} -eq 0 ] && models=(smol-135m:q8_0 qwen3-0.6b:q8_0 llama-1b:q4_k llama-8b:q4_k)
for program in bench/make_model bench/model_bench cli/hk-run; do
  if [ ! -x "$build/$program" ]; then
    echo "report.sh: $build/$program is not there; 'make report' builds and runs it" >&2
    exit 1
  fi
done

threads=$(nproc)
out=build/report
mkdir -p "$out"
for model in "${models[@]}"; do
  shape=${model%%:*} type=${model##*:}
  file=$out/$shape-$type.hk
  trap 'rm -f "$file"' EXIT
  "$build/bench/make_model" "$shape" "$file" --type "$type" >&2
  echo
  echo "### $shape, $type"
  echo
  # threads take turns, so that a machine that slows down does so for both
  "$build/cli/hk-run" bench "$file" -p 512 -n 64 -d 0 -t "1,$threads" -r 6
  echo
  # beside its matrices alone
  "$build/bench/model_bench" "$file" -t "1,$threads"
  if [ "$depth" -ne 0 ]; then
    echo
    "$build/cli/hk-run" bench "$file" -p 0 -n 32 -d "$depth" -t "$threads" -r 3
  fi
  echo
  "$build/cli/hk-run" bench "$file" -p 0 -n 32 --batch 1,8,32 -t "$threads" -r 3
  rm -f "$file"
done
