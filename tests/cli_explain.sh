#!/bin/sh
# cli_explain.sh IPU-STACK - explain as a user meets it: narrowing in every stage and form, figures of the
# plan's steps, two programs compared, graphs for Graphviz. Runs in the project's folder.
. "$(dirname "$0")/expect.sh"

model=models/digits-vit.json
weights=models/digits-vit/digits-vit.safetensors
"$stack" build $model --weights $weights -o "$work/a.ipuexe" >/dev/null || fail build
"$stack" build $model --weights $weights --no-pairs --tiles 48 -o "$work/b.ipuexe" >/dev/null || fail build

# every stage has both forms; --op and --tile narrow each of them; what does not exist is an error
for stage in graph plan mid tile memory exchange code; do
    for form in "" --json; do
        expect 0 "head/logits" "$stack" explain "$work/a.ipuexe" --stage $stage $form
        whole=$(wc -c <"$work/out")
        if [ $stage != memory ] && [ $stage != exchange ]; then
            expect 0 "map/mlp/up" "$stack" explain "$work/a.ipuexe" --stage $stage $form --op map/mlp/up
            lacks "head/logits"
        else
            expect 0 "head/logits" "$stack" explain "$work/a.ipuexe" --stage $stage $form --op head/logits
        fi
        [ "$(wc -c <"$work/out")" -lt "$whole" ] || fail "--op does not narrow $stage $form"
        expect 0 "." "$stack" explain "$work/a.ipuexe" --stage $stage $form --tile 63
        case $stage in # memory and code show one tile anyway, an exchange the tile's messages
        graph | plan | mid | tile) [ "$(wc -c <"$work/out")" -lt "$whole" ] || fail "--tile does not narrow $stage $form" ;;
        esac
        expect 1 "has no such operation" "$stack" explain "$work/a.ipuexe" --stage $stage $form --op map/mlp/upp
        expect 1 "the program has 64 tiles" "$stack" explain "$work/a.ipuexe" --stage $stage $form --tile 64
    done
done
expect 1 "    map/mlp/up/bias" "$stack" explain $model --stage graph --op map/mlp/upp
expect 0 "the operation before it does it" "$stack" explain $model --stage tile --op head/logits/bias
expect 0 "// step [0-9]*, map/mlp/up: call" "$stack" explain $model --stage code --op map/mlp/up --tile 3
expect 0 "\"text\": \"setzi" "$stack" explain $model --stage code --json
expect 0 '"messages":\[{"start":' "$stack" explain $model --stage exchange --json --tile 0

# a step of the plan: cycles in all and in exchange, memory of both kinds, bytes of rows
expect 0 "standard interleaved" "$stack" explain $model --stage plan
awk '/^steps of the program/ { on = 1; next }
     on && $NF ~ /^[0-9]+$/ && $1 ~ /^[0-9]+$/ { cycles += $(NF-4) * $(NF-5); exchange += $(NF-3) * $(NF-5); rows += $NF; n++ }
     on && /sum, all executions/ { exit !(n > 40 && cycles == $(NF-2) && exchange == $(NF-1) && rows == $NF) }' "$work/out" ||
    fail "the steps do not add up"
for key in '"total"' '"exchange"' '"standard"' '"interleaved"' '"rowBytes"'; do
    expect 0 "$key" "$stack" explain $model --stage plan --json --op head/logits
done

# two programs
expect 0 "^run .*%" "$stack" explain "$work/b.ipuexe" --against "$work/a.ipuexe"
for word in "^operation .*cycles .*exchange .*row bytes" "^kernel .*executions" "^peak standard memory" \
    "^code of exchange rows" "kernel variants that are new" "^tiles  *64  *48"; do
    grep -q -e "$word" "$work/out" || { fail "explain --against: no $word"; cat "$work/out"; }
done
expect 0 '"variantsNew"' "$stack" explain "$work/b.ipuexe" --against "$work/a.ipuexe" --json
expect 0 "^9 the same" "$stack" explain "$work/a.ipuexe" --against $model
lacks "%"
expect 0 "head/logits" "$stack" explain "$work/b.ipuexe" --against "$work/a.ipuexe" --op head/logits --json
lacks "map/mlp"
expect 1 "has no such operation" "$stack" explain "$work/b.ipuexe" --against "$work/a.ipuexe" --op nothing
expect 1 "without --stage" "$stack" explain "$work/b.ipuexe" --against "$work/a.ipuexe" --stage plan
expect 1 "No such file" "$stack" explain "$work/b.ipuexe" --against "$work/none.ipuexe"

# Graphviz: every line is one of the few forms that are used, every edge has both its nodes
for arguments in "--stage graph" "--stage mid" "--stage graph --op map/mlp/up" "--stage mid --tile 3"; do
    expect 0 "^digraph" "$stack" explain $model $arguments --dot
    awk 'BEGIN { name = "[a-z]+[0-9]+"; text = "\"([^\"\\\\]|\\\\[\"\\\\n])*\""
                 value = "([a-z]+|" text ")"; list = " \\[[a-z]+=" value "(, [a-z]+=" value ")*\\]" }
         $0 ~ "^ *" name list ";$" { node[$1] = 1; next }
         $0 ~ "^ *" name " -> " name "(" list ")?;$" { sub(/;$/, "", $3); from[++n] = $1; to[n] = $3; next }
         /^digraph [a-z_]+ {$/ || /^ *subgraph cluster[0-9]+ {$/ { depth++; next }
         /^ *}$/ { depth--; next }
         /^ *label=".*";$/ || /^  node \[fontname="sans-serif"\];$/ { next }
         { print "no Graphviz: " $0; bad = 1 }
         END { for (i = 1; i <= n; i++) if (!(from[i] in node) || !(to[i] in node)) { print "edge from or to nowhere: " from[i] " " to[i]; bad = 1 }
               exit bad || depth || n < 2 }' "$work/out" || fail "explain $arguments --dot"
    if command -v dot >/dev/null; then
        dot -Tcanon "$work/out" -o "$work/canon" || fail "dot does not read $arguments"
    fi
done
expect 1 "no such form" "$stack" explain $model --stage plan --dot
expect 1 "no such form" "$stack" explain $model --stage graph --html

[ "$failures" = 0 ] && echo "all good"
exit "$failures"
