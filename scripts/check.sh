#!/usr/bin/env bash
# Everything beyond `make test`: formatting, sanitizers, fuzzing, kernels of other CPUs under emulation, gcc.
# Usage: check.sh [format|emulated|fast|fuzz|asan|tsan|gcc ...]   (default: the first four, which fit the hour that
# continuous integration has)
#   fast: the fast tests, with the kernels of the generic level, under the address and undefined-behaviour sanitizers, in
#         the build of the fuzzers; asan: more tests and levels
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install-packages.sh check
steps=("$@")
[ ${#steps[@]} -eq 0 ] && steps=(format emulated fast fuzz)

launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)

# sanitized PRESET TESTS...: builds the test programs (without "test_") for a preset and runs them.
sanitized() {
  local preset=$1
  shift
  cmake --preset "$preset" "${launcher[@]}" >/dev/null
  cmake --build "build/$preset" --target "${@/#/test_}"
  ctest --test-dir "build/$preset" --output-on-failure -R "^($(IFS='|'; echo "$*"))\$"
}

export HK_FAST_TESTS=1  # sanitizers and emulators leave out what only repeats with larger sizes
for step in "${steps[@]}"; do
  echo "== check: $step"
  case "$step" in
    format) scripts/format.sh --check ;;
    fast) sanitized fuzz kernels tokenizer engine_container ;;
    asan)
      scripts/install-packages.sh sanitize
      sanitized asan kernels tokenizer engine_container engine_runtime engine_generate models cli cli_chat cli_line_editor
      ;;
    tsan)
      scripts/install-packages.sh sanitize
      # the installed TBB is not instrumented: what it synchronises is told to the sanitizer in this file
      # (and the sanitizer's own memory would count as the program's in the tests of memory figures and page faults)
      GTEST_FILTER=-ProcessMemory.*:PageFaults.* TSAN_OPTIONS="suppressions=$PWD/tests/support/tsan.supp" sanitized tsan engine_runtime engine_generate models
      ;;
    fuzz) scripts/fuzz.sh ;;
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
