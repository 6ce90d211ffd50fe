# expect.sh - what the tests of the command share; they read it with their first line of work. Leaves: $stack,
# the command; $work, a folder that goes away; the project's folder as the current one; failures counted.
set -u
stack=$1
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export IPU_STACK_CACHE=$work/cache
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}
# expect STATUS PATTERN COMMAND...: exit status, and a pattern in what is printed (both streams; "": any)
expect() {
    status=$1 pattern=$2
    shift 2
    "$@" >"$work/out" 2>&1
    got=$?
    [ "$got" = "$status" ] || { fail "$* gave $got, not $status"; head -20 "$work/out"; }
    [ -z "$pattern" ] || grep -q -e "$pattern" "$work/out" || { fail "$* does not print $pattern"; head -20 "$work/out"; }
}
# lacks PATTERN: not in the last output
lacks() {
    ! grep -q -e "$1" "$work/out" || { fail "prints $1"; grep -e "$1" "$work/out" | head -3; }
}
