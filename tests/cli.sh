#!/bin/sh
# cli.sh COMMAND - the verbs as a user meets them: what they print, their exit status, bad input.
. "$(dirname "$0")/expect.sh"
weights=models/digits-vit/digits-vit.safetensors

expect 2 "usage" "$stack"
expect 0 "usage" "$stack" --help
expect 2 "unknown verb" "$stack" frobnicate
for verb in build run classify bench inspect explain as dis link obj sim kernel; do
    expect 0 "usage" "$stack" $verb --help
done
expect 2 "missing" "$stack" build
expect 2 "unknown option" "$stack" build x.json --nonsense
expect 2 "bad value" "$stack" build x.json --tiles 1473
expect 1 "No such file" "$stack" build "$work/none.json"

# build is the same on one thread and two, with and without the kernel cache
expect 0 "tiles=64" "$stack" build models/digits-vit.json --weights $weights -o "$work/a.ipuexe" --threads 1
expect 0 "tiles=64" "$stack" build models/digits-vit.json --weights $weights -o "$work/b.ipuexe" --threads 2
cmp -s "$work/a.ipuexe" "$work/b.ipuexe" || fail "packages of one and two threads differ"

expect 0 "encoder/layer" "$stack" inspect "$work/a.ipuexe"
expect 0 "tilesUsed" "$stack" inspect "$work/a.ipuexe" --json
for stage in graph plan mid tile memory exchange code; do
    expect 0 "." "$stack" explain "$work/a.ipuexe" --stage $stage
    cp "$work/out" "$work/from-package"
    expect 0 "." "$stack" explain models/digits-vit.json --stage $stage --weights $weights
    cmp -s "$work/out" "$work/from-package" || fail "explain --stage $stage differs between package and model"
done
# Workloads of products are models too: their packages explain themselves.
expect 0 "numericalTest=NOT_RUN" "$stack" bench mlp --rows 64 --inner 128 --hidden 256 --blocks 2 --tiles 32 --no-run --package "$work/mlp.ipuexe"
expect 0 "block1/down" "$stack" explain "$work/mlp.ipuexe" --stage plan
expect 0 "horizon" "$stack" explain "$work/mlp.ipuexe" --stage exchange
# Plans can be pinned; what cannot be is named, with what would help.
mlp="bench mlp --rows 64 --inner 128 --hidden 256 --blocks 1 --tiles 32 --no-run --show-plan"
expect 0 "block0/up .*gemm-grid 2 x 8 x 2" "$stack" $mlp --plan-constraint 'block0/up:grid=2x8x2,*:swapped=no'
expect 0 "NOT_RUN" "$stack" $mlp --plan-constraint '*:inner=1'
grep -q "gemm-grid .* x 1, " "$work/out" || fail "an inner part of 1 is not kept"
expect 1 "block0/up: nothing keeps to block0/up:grid=7x7x7.*nearest grid" "$stack" $mlp --plan-constraint 'block0/up:grid=7x7x7'
expect 1 "no product is called that; one is block0/up" "$stack" $mlp --plan-constraint 'none:rows=1'
expect 1 "yes or no is expected" "$stack" $mlp --plan-constraint '*:swapped=2'
expect 1 "the key is grid" "$stack" $mlp --plan-constraint '*:size=2'
expect 1 "is expected" "$stack" $mlp --plan-constraint 'block0/up'
# What a search found is kept, used again, and never mixed up with another search.
state="bench mlp --rows 64 --inner 128 --hidden 256 --blocks 1 --tiles 32 --no-run --plan-state $work/state.json"
expect 0 "predictedCycles=" "$stack" $state
first=$(grep -o "predictedCycles=[0-9]*" "$work/out")
expect 0 "read search state" "$stack" $state -v
grep -q "$first" "$work/out" || fail "a kept search state gives another plan"
expect 1 "the state of another search" "$stack" $state --plan-constraint '*:inner=1'
head -c 1000 "$work/state.json" >"$work/cut" && mv "$work/cut" "$work/state.json"
expect 1 "state.json:1:" "$stack" $state
expect 1 "stage must be" "$stack" explain "$work/a.ipuexe" --stage nothing

# a recipe printed as JSON is followed to the same package
"$stack" explain models/digits-vit.json --stage plan --json >"$work/recipe.json"
expect 0 "tiles=64" "$stack" build models/digits-vit.json --weights $weights --recipe "$work/recipe.json" -o "$work/c.ipuexe"
cmp -s "$work/a.ipuexe" "$work/c.ipuexe" || fail "the recipe gives another package"

expect 0 "00-8.png 8 " "$stack" classify "$work/a.ipuexe" models/digits-vit/images/00-8.png
expect 1 "No such file" "$stack" classify "$work/a.ipuexe" "$work/none.png"
expect 1 "is not given" "$stack" run "$work/a.ipuexe"

# raw input, .npy output; ten runs are the same run
head -c 9408 /dev/zero >"$work/x.raw"
expect 0 "cycles=" "$stack" run "$work/a.ipuexe" --input vit.image.patches="$work/x.raw" --output logits="$work/y.npy"
cp "$work/out" "$work/first"
cp "$work/y.npy" "$work/first.npy"
expect 0 "cycles=" "$stack" run "$work/a.ipuexe" --input vit.image.patches="$work/x.raw" --output logits="$work/y.npy" --repeat 10 --threads 1
cmp -s "$work/y.npy" "$work/first.npy" || fail "outputs differ between runs"
[ "$(sed 's/hostSeconds.*//' "$work/first")" = "$(sed 's/hostSeconds.*//' "$work/out")" ] || fail "cycles differ between runs"
expect 1 "has 5 bytes" sh -c "printf 12345 >$work/short; $stack run $work/a.ipuexe --input vit.image.patches=$work/short"

# damaged files
head -c 100000 "$work/a.ipuexe" >"$work/cut.ipuexe"
expect 1 "cut.ipuexe" "$stack" run "$work/cut.ipuexe"
expect 1 "cut.ipuexe" "$stack" inspect "$work/cut.ipuexe"
head -c 1000000 $weights >"$work/cut.safetensors"
expect 1 "cut.safetensors" "$stack" build models/digits-vit.json --weights "$work/cut.safetensors" -o "$work/d.ipuexe"
printf '{"name": "x", ' >"$work/bad.json"
expect 1 "bad.json:" "$stack" build "$work/bad.json"
head -c 100 models/digits-vit/images/00-8.png >"$work/cut.png"
expect 1 "cut.png" "$stack" classify "$work/a.ipuexe" "$work/cut.png"

[ "$failures" = 0 ] && echo "all good"
exit "$failures"
