#!/usr/bin/env bash
# Builds the fuzz targets and runs each for some seconds from its seeds; fails at the first finding.
# Usage: fuzz.sh [SECONDS [TARGET...]]   (default: 20, all targets)
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install-packages.sh check
seconds=${1:-20}
targets=("${@:2}")
[ ${#targets[@]} -eq 0 ] && targets=(tokenizer jinja json requests container)

launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
cmake --preset fuzz "${launcher[@]}" >/dev/null
cmake --build build/fuzz --target make_seeds "${targets[@]/#/fuzz_}"
build/fuzz/tests/fuzz/make_seeds build/fuzz/seeds

cd build/fuzz
for target in "${targets[@]}"; do
  mkdir -p "corpus/$target"  # what earlier runs found is gone on with
  echo "-- fuzz $target: $seconds s"
  # 8 KiB hold every mechanism; a single input may take 10 s under the sanitizers before it counts as endless
  "tests/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=10 -max_len=8192 -rss_limit_mb=2048 -verbosity=0 \
    -artifact_prefix="finding-$target-" "corpus/$target" "seeds/$target"
done
