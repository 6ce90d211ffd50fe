#!/bin/sh
# cli_profile.sh IPU-STACK - profiles and pictures as a user makes them; runs in the project's folder.
set -e
stack=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "cli_profile: $1"; exit 1; }
wants() { grep -q -- "$2" "$1" || { cat "$1"; fail "no \"$2\" in the output"; }; }
refuses() { # status text command...
    status=$1; text=$2; shift 2
    code=0; "$@" > "$work/out" 2>&1 || code=$?
    [ "$code" = "$status" ] || { cat "$work/out"; fail "$* gave $code, not $status"; }
    wants "$work/out" "$text"
}

weights=models/digits-vit/digits-vit.safetensors
"$stack" bench digits --images 1 --profile "$work/a" > "$work/out"
wants "$work/out" "numericalTest=PASSED"
"$stack" bench digits --images 1 --profile "$work/b" --profile-source package > "$work/out"
wants "$work/out" "numericalTest=PASSED"
for key in kind kernel operation phase tile metadata:kernelSpec; do
    "$stack" profile query "$work/a" --group-by $key --limit 0 > "$work/out"
    "$stack" profile query "$work/a" --group-by $key --json > "$work/json"
    wants "$work/json" '"profileSpanCycles"'
done
"$stack" profile query "$work/a" --exchanges > "$work/out"; wants "$work/out" "horizon\|scheduled"
"$stack" profile query "$work/a" --plan > "$work/out"; wants "$work/out" "encoder/layer\[\*\]/attention/qkv"
"$stack" profile diff "$work/a" "$work/b" > "$work/out"; wants "$work/out" "^run: "
"$stack" profile export "$work/a" -o "$work/c"
"$stack" profile query "$work/a" --sort-by name > "$work/out"
"$stack" profile query "$work/c" --sort-by name > "$work/out2"
cut -c1-100 "$work/out" | sed 's/ *[0-9.]*%.*//' > "$work/1"; cut -c1-100 "$work/out2" | sed 's/ *[0-9.]*%.*//' > "$work/2"
cmp "$work/1" "$work/2" || fail "an exported profile has other groups"
"$stack" inspect "$work/a" > "$work/out"; wants "$work/out" "^profile source=simulator"
"$stack" profile render "$work/a" -o "$work/a.html"
wants "$work/a.html" "</html>"

refuses 1 "truncated\|not a profile" "$stack" profile query models/digits-vit.json
head -c 4096 "$work/a" > "$work/cut"
refuses 1 "not a profile" "$stack" profile render "$work/cut" -o "$work/x.html"
[ ! -e "$work/x.html" ] || fail "a report of a damaged profile"
refuses 1 "no kind" "$stack" profile query "$work/a" --kind thinking
refuses 1 "unknown" "$stack" profile query "$work/a" --group-by colour
refuses 1 "no step of the profile has kernel" "$stack" profile query "$work/a" --kernel gem
refuses 1 "no operation of the profile has" "$stack" profile query "$work/a" --operation nothing
refuses 1 "the profile has no phase 99" "$stack" profile query "$work/a" --phase 99
refuses 1 "the profile ends at" "$stack" profile query "$work/a" --at 10000000
refuses 1 "is not in the profile" "$stack" profile query "$work/a" --tile 1471
refuses 2 "unknown action" "$stack" profile paint "$work/a"

for mode in off overall full; do
    "$stack" build models/digits-vit.json --weights $weights --profile $mode -o "$work/$mode.ipuexe" \
        --trace-events "$work/trace.json" > /dev/null
done
wants "$work/trace.json" '"name":"place_storage"'
refuses 1 "takes no samples" "$stack" bench digits --images 1 --package "$work/off.ipuexe" --profile "$work/x" --profile-source package
"$stack" inspect "$work/full.ipuexe" --json > "$work/out"; wants "$work/out" "profile.cycles"
"$stack" bench digits --images 1 --package "$work/full.ipuexe" --profile "$work/x" > /dev/null
"$stack" profile query "$work/x" > "$work/out"; wants "$work/out" "source package"
"$stack" bench digits --images 1 --package "$work/full.ipuexe" --profile "$work/y" --profile-source simulator > /dev/null
"$stack" profile diff "$work/x" "$work/y" > "$work/out"; wants "$work/out" "+0 (+0.00%)"
refuses 1 "off, overall or full" "$stack" build models/digits-vit.json --profile much -o "$work/x.ipuexe"

"$stack" explain "$work/full.ipuexe" --stage memory --html > "$work/memory.html"; wants "$work/memory.html" "</html>"
"$stack" explain "$work/full.ipuexe" --stage memory --json --tile 3 > "$work/out"; wants "$work/out" "profile.cycles"
"$stack" explain models/digits-vit.json --stage graph --dot > "$work/out"; wants "$work/out" "^digraph"
"$stack" explain models/digits-vit.json --stage mid --dot > "$work/out"; wants "$work/out" "^digraph"
refuses 1 "no such form" "$stack" explain models/digits-vit.json --stage plan --dot
echo "cli_profile: good"
