#!/bin/sh
# Builds the kernels for four vector widths with the check, and runs it: here, or for another processor.
#   native/check.sh [compiler] [command that runs its programs]
set -e
cd "$(dirname "$0")"
compiler=${1:-g++}
[ $# -eq 0 ] || shift
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
for width in 8 16 32 64; do
  "$compiler" -O2 -std=c++17 -Wall -Wno-psabi -DLINTRA_ISA=w$width -DLINTRA_VECTOR_BYTES=$width \
    -DLINTRA_TILE_ROWS=4 -DLINTRA_TILE_COLS=6 -c kernel.cpp -o "$build/w$width.o"
done
"$compiler" -O2 -std=c++17 -Wall check.cpp "$build"/w*.o -static -o "$build/check"
"$@" "$build/check"
