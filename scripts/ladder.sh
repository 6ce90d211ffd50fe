#!/bin/sh
# ladder.sh - no folder of src/ includes a folder above it, and only the header named like the folder is
# included from outside (base has an umbrella of several). The ladder is that of docs/ARCHITECTURE.md.
set -u
cd "$(dirname "$0")/.."
ladder="base isa target as obj sim tensor graph models kernel plan mid tile exchange place emit package compile device profile cli"
bad=0
rank() {
    n=0
    for folder in $ladder; do
        n=$((n + 1))
        [ "$folder" = "$1" ] && { echo "$n"; return; }
    done
    echo 99
}
for folder in $ladder; do
    own=$(rank "$folder")
    for pair in $(grep -ho '^#include "[a-z]*/[a-z_]*\.[a-z]*"' "src/$folder"/*.[ch] "src/$folder"/*.cpp 2>/dev/null |
        sed 's/#include "//; s/"//' | sort -u); do
        other=${pair%%/*}
        [ "$other" = "$folder" ] && continue
        [ "$other" = ipu ] && continue
        if [ "$(rank "$other")" -ge "$own" ]; then
            echo "ladder: src/$folder includes $pair, which stands above it"
            bad=1
        fi
        [ "$pair" = "$other/$other.h" ] || [ "$other" = base ] || [ "$other" = schemas ] || {
            echo "ladder: src/$folder includes $pair, which is not $other's public header"
            bad=1
        }
    done
done
exit $bad
