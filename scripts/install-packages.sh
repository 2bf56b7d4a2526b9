#!/usr/bin/env bash
# Installs the Debian packages that building, testing or checking needs; does nothing when all are there.
# Usage: install-packages.sh build|test|check|sanitize|bench   (each includes "build", and "sanitize" "check")
set -euo pipefail

build=(clang-19 lld-19 cmake ninja-build pkg-config python3 libtbb-dev libpcre2-dev libutf8proc-dev
  nlohmann-json3-dev libcli11-dev libfmt-dev libssl-dev)
# the SentencePiece library is the oracle of our own SPM tokenizer; tmux types at the chat, pgrep (procps) finds it,
# parallel runs shards
test=(libgtest-dev libzstd-dev libsentencepiece-dev ccache tmux procps parallel)
# qemu-user runs the kernels of CPUs this machine is not; the cross compiler builds those of ARM
check=("${test[@]}" g++ clang-format-14 clang-tidy-14 libclang-rt-19-dev qemu-user g++-aarch64-linux-gnu googletest libbenchmark-dev)
# names functions in reports, and for the suppressions of the thread sanitizer
sanitize=(llvm-19)
bench=(libbenchmark-dev)

case "${1:-build}" in
  build) packages=("${build[@]}") ;;
  test) packages=("${build[@]}" "${test[@]}") ;;
  check) packages=("${build[@]}" "${check[@]}") ;;
  sanitize) packages=("${build[@]}" "${check[@]}" "${sanitize[@]}") ;;
  bench) packages=("${build[@]}" "${bench[@]}") ;;
  *)
    echo "usage: $0 build|test|check|sanitize|bench" >&2
    exit 2
    ;;
esac

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

run=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "These packages are missing and need root to install: ${missing[*]}" >&2
    exit 1
  fi
  run=(sudo)
fi
echo "Installing: ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
"${run[@]}" apt-get update -qq
"${run[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
