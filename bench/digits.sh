#!/bin/sh
# digits.sh BUILD-FOLDER - figures of the digits model as key=value lines: build with an empty kernel cache
# and one image, each on one core (taskset), then the accuracy run on all cores.
set -eu
cd "$(dirname "$0")/.."
stack=$1/ipu-stack
weights=models/digits-vit/digits-vit.safetensors
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT

IPU_STACK_CACHE=$cache taskset -c 0 "$stack" build models/digits-vit.json --weights $weights --tiles 64 \
    --threads 1 -o "$cache/digits.ipuexe"
taskset -c 0 "$stack" bench digits --package "$cache/digits.ipuexe" --images 16 --threads 1
"$stack" bench digits --package "$cache/digits.ipuexe"
