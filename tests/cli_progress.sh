#!/bin/sh
# cli_progress.sh IPU-STACK - what a build says while it works: a ticking line on a terminal and nothing on a
# pipe, log lines as JSON, spans for a trace viewer. Runs in the project's folder.
set -u
stack=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
build="$stack build models/digits-vit.json --tiles 800 -o $work/a.ipuexe"

$build >"$work/out" 2>"$work/err" || fail build
[ -s "$work/err" ] && fail "something on a pipe: $(head -c 200 "$work/err")"

if command -v script >/dev/null; then
    script -qec "$build" "$work/terminal" </dev/null >/dev/null || fail "build on a terminal"
    tr '\r' '\n' <"$work/terminal" | sed 's/\x1b\[K//' >"$work/lines"
    for stage in "[0-9]*\.[0-9] s  2/14  construct plan  [0-9.]* s" "14/14  write package"; do
        grep -q "$stage" "$work/lines" || fail "no line with $stage"
    done
    grep -q "construct plan .* %" "$work/lines" || fail "the plan does not say how far it is"
    [ "$(grep -o '[0-9.]* s  2/14  construct plan' "$work/lines" | sort -u | wc -l)" -gt 1 ] || fail "the clock does not tick"
    [ "$(grep -c "^package=" "$work/lines")" = 1 ] || fail "the result does not stand alone"
    script -qec "$build -v" "$work/terminal" </dev/null >/dev/null
    grep -q "2/14" "$work/terminal" && fail "line and log at once"
else
    echo "no script(1): the terminal is not tried"
fi

$build --log-format json >/dev/null 2>"$work/json" || fail "build with a log"
[ "$(wc -l <"$work/json")" -gt 15 ] || fail "few lines of log"
grep -v -q '^{"time":"[-0-9T:.]*Z","level":"[A-Z]*","span":"[^"]*","message":"[^"]*".*}$' "$work/json" && fail "a line that is no JSON object"
grep -q '"message":"close","seconds":"[0-9.]*"' "$work/json" || fail "no span closes"

$build --trace-events "$work/trace" >/dev/null || fail "build with trace events"
head -n 1 "$work/trace" | grep -q '^\[$' && tail -n 1 "$work/trace" | grep -q '^\]$' || fail "the trace is no array"
grep -q '"name":"construct_plan","ph":"X"' "$work/trace" || fail "no span in the trace"
"$stack" build models/digits-vit.json --trace-events "$work" -o "$work/b" >/dev/null 2>"$work/err" && fail "a folder as trace"
grep -q "Is a directory" "$work/err" || fail "$(cat "$work/err")"

[ "$failures" = 0 ] && echo "all good"
exit "$failures"
