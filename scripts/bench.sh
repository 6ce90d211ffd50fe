#!/bin/sh
# bench.sh BUILD-FOLDER - every benchmark of bench/ in turn, key=value lines on standard output.
set -eu
cd "$(dirname "$0")/.."
build=$1
ninja -C "$build" >/dev/null
for program in "$build"/bench_*; do
    [ -x "$program" ] && [ -f "$program" ] && "$program"
done
sh bench/digits.sh "$build"
for pattern in gather scatter shift all-to-all all-gather random; do
    "$build/ipu-stack" bench exchange --pattern $pattern
done
"$build/ipu-stack" bench siglip-mlp --weights replicated --io free
