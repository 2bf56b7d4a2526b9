#!/usr/bin/env bash
# Everything beyond `make test`: formatting, sanitizers on the fast tests, kernels of other CPUs under emulation, gcc.
# Usage: check.sh [format|asan|tsan|emulated|gcc ...]   (default: all)
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install-packages.sh check
steps=("$@")
[ ${#steps[@]} -eq 0 ] && steps=(format asan tsan emulated gcc)

launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)

# Builds for a preset and runs the tests whose names match.
sanitized() {
  cmake --preset "$1" "${launcher[@]}" >/dev/null
  cmake --build "build/$1"
  ctest --test-dir "build/$1" --output-on-failure -R "$2"
}

for step in "${steps[@]}"; do
  echo "== check: $step"
  case "$step" in
    format) scripts/format.sh --check ;;
    asan) HK_FAST_TESTS=1 sanitized asan '.' ;;
    tsan) HK_FAST_TESTS=1 TSAN_OPTIONS="suppressions=$PWD/tests/support/tsan.supp" sanitized tsan '^(engine_runtime|engine_generate|models)$' ;;
    emulated) scripts/emulate.sh ;;
    gcc)
      cmake --preset gcc "${launcher[@]}" -DHK_BUILD_TESTS=OFF -DHK_BUILD_BENCH=OFF >/dev/null
      cmake --build build/gcc
      HK_KERNELS=generic build/gcc/cli/hk-run chat demo/hinoki.hk --temp 0 -p "What is the capital of France?" | grep -q Paris
      ;;
    *)
      echo "unknown check: $step" >&2
      exit 2
      ;;
  esac
done
