#!/bin/sh
# report_chromium.sh IPU-STACK TEST-PROFILE-REPORT - opens reports in headless Chromium, drives them
# (report_driver.js), and wants no console error, sums that agree and every action to work.
# Zooming is held to 30 frames a second at any time; the first paint to 2 s when nothing else runs.
# Skips (77) without Chromium. The second argument makes the page of a million samples.
set -e
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$browser" ] || { echo "no Chromium: skipped"; exit 77; }
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

drive() { # page: prints what the driver found; fails on any complaint
    quiet=$(awk -v cores="$(nproc)" '{ print $1 < cores ? "true" : "false" }' /proc/loadavg)
    { cat "$1"; echo "<script>const QUIET = $quiet;"; cat "$here/report_driver.js"; echo "</script>"; } > "$work/driven.html"
    "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync \
        --user-data-dir="$work/browser" --window-size=1600,1000 --enable-logging=stderr --v=0 \
        --dump-dom "file://$work/driven.html" \
        > "$work/dom" 2> "$work/console"
    if grep -E "CONSOLE|Uncaught" "$work/console"; then echo "$1: console output"; return 1; fi
    grep -o 'data-driven="[^"]*"' "$work/dom" | sed 's/&quot;/"/g'
    grep -q 'data-ok="true"' "$work/dom" || { echo "$1: sums differ"; return 1; }
    grep -q 'data-driven="{&quot;failures&quot;:\[\],' "$work/dom" || { echo "$1: failures"; return 1; }
}

"$1" bench digits --images 1 --profile "$work/digits.ipuprof" > /dev/null
"$1" profile render "$work/digits.ipuprof" -o "$work/digits.html"
drive "$work/digits.html"
IPU_REPORT_OUT="$work/million.html" "$2" > /dev/null
drive "$work/million.html"
