#!/bin/sh
# lint.sh - formatting, the ladder of includes, cppcheck and clang-tidy over our own code. Prints what is
# wrong; exit status 1 when anything is.
set -u
cd "$(dirname "$0")/.."
bad=0

git ls-files 'src/*.c' 'src/*.h' 'include/*.h' 'tests/*.c' 'tests/*.h' 'bench/*.c' |
    xargs clang-format --dry-run --Werror 2>/tmp/lint.$$ || { grep -c error: /tmp/lint.$$; bad=1; }
rm -f /tmp/lint.$$

scripts/ladder.sh || bad=1

test -f build/compile_commands.json || cmake -S . -B build -G Ninja >/dev/null
cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr \
    --suppress=missingIncludeSystem --suppress=unknownMacro --suppress=normalCheckLevelMaxBranches \
    --error-exitcode=1 -I src -I include -j "$(nproc)" src || bad=1
git ls-files 'src/*.c' | xargs -n 8 -P "$(nproc)" clang-tidy --quiet -p build --extra-arg=-Wno-unknown-warning-option 2>/dev/null | grep -E 'warning:|error:' && bad=1
exit $bad
