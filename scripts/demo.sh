#!/bin/sh
# demo.sh BUILD-FOLDER - the whole road once: compile the digits model, show 16 pictures with their
# predictions, then run all 256 reference images and compare with the FP32 reference.
set -eu
cd "$(dirname "$0")/.."
stack=$1/ipu-stack
package=$1/digits.ipuexe

echo "== compiling models/digits-vit.json for 64 tiles of the IPU21"
"$stack" build models/digits-vit.json --weights models/digits-vit/digits-vit.safetensors --tiles 64 -o "$package"
echo
echo "== 16 handwritten digits on the simulated IPU"
"$stack" classify "$package" models/digits-vit/images/*.png --draw --truth-in-name --top 3
echo "== all 256 reference images (cycles are simulated)"
"$stack" bench digits --package "$package"
