#!/usr/bin/env bash
# Formats all sources; with --check only tells which files differ and exits 1.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=(-i)
[ "${1:-}" = "--check" ] && mode=(--dry-run --Werror)
git ls-files '*.h' '*.cpp' | xargs clang-format-14 "${mode[@]}"
