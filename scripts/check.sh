#!/bin/sh
# check.sh [long] - all tests: release build, then the tests once more under AddressSanitizer and
# UndefinedBehaviorSanitizer. The last line is "N passed, N failed".
set -u
cd "$(dirname "$0")/.."
jobs=$(nproc)
passed=0
failed=0

configure() { # folder, options...
    folder=$1
    shift
    cmake -S . -B "$folder" -G Ninja "$@" >"$folder.log" 2>&1 && ninja -C "$folder" >>"$folder.log" 2>&1 || {
        tail -n 40 "$folder.log"
        echo "check: the build in $folder failed"
        echo "$passed passed, $((failed + 1)) failed"
        exit 1
    }
}

run_tests() { # folder, ctest options...
    folder=$1
    shift
    out=$(ctest --test-dir "$folder" -j "$jobs" --output-on-failure --timeout 900 "$@" 2>&1)
    echo "$out"
    line=$(echo "$out" | grep -E '^[0-9]+% tests passed')
    total=$(echo "$line" | sed 's/.*out of \([0-9]*\).*/\1/')
    lost=$(echo "$line" | sed 's/.*, \([0-9]*\) tests failed.*/\1/')
    passed=$((passed + ${total:-0} - ${lost:-0}))
    failed=$((failed + ${lost:-1}))
}

mkdir -p build
label="-LE long" # make check-long runs everything, in both builds
sanitize_label="-LE long|nosanitize"
[ "${1:-}" = long ] && label="" && sanitize_label=""
configure build -DCMAKE_BUILD_TYPE=Release
run_tests build $label
configure build-sanitize -DCMAKE_BUILD_TYPE=Debug -DIPU_SANITIZE=ON
run_tests build-sanitize $sanitize_label

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
