#!/usr/bin/env bash
# Runs the kernel tests of CPUs this machine is not: x86 without AVX2, with AVX2 only, and ARM with and without dot products.
# Usage: emulate.sh [x86] [arm]   (default: both)
set -euo pipefail
cd "$(dirname "$0")/.."
launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)

export HK_FAST_TESTS=1
wanted=" ${*:-x86 arm} "
if [[ $wanted == *" x86 "* ]]; then
  cmake --preset release "${launcher[@]}" -DHK_BUILD_TESTS=ON >/dev/null
  cmake --build build/release --target test_kernels hk-run
  for cpu in Nehalem Haswell; do
    echo "-- x86, $cpu"
    qemu-x86_64 -cpu $cpu build/release/tests/test_kernels --gtest_brief=1
  done
  # the whole program must start and answer on a CPU without AVX
  echo "-- hk-run, Nehalem"
  qemu-x86_64 -cpu Nehalem build/release/cli/hk-run chat demo/hinoki.hk --temp 0 -p "What is the capital of France?" | grep Paris
fi
if [[ $wanted == *" arm "* ]]; then
  cmake --preset kernels-arm "${launcher[@]}" >/dev/null
  cmake --build build/kernels-arm
  for cpu in cortex-a72 max; do  # without and with dot products
    echo "-- ARM, $cpu"
    qemu-aarch64 -cpu $cpu build/kernels-arm/tests/test_kernels --gtest_brief=1
  done
fi
