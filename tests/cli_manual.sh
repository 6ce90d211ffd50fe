#!/bin/bash
# cli_manual.sh IPU-STACK - man page and completion know every verb and every option that --help shows; the
# page is good troff, the completion completes, and both are installed.
set -u
stack=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

"$stack" describe man >"$work/ipu-stack.1" || fail "describe man"
"$stack" describe bash >"$work/completion" || fail "describe bash"
"$stack" describe html >/dev/null 2>&1 && fail "describe html works"
sed 's/\\-/-/g; s/\\fI//g; s/\\fR//g; s/\\&//g; s/\\e/\\/g' "$work/ipu-stack.1" >"$work/plain"
. "$work/completion" || fail "the completion is no bash"

complete_line() { # words...: COMPREPLY for the last of them
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    COMPREPLY=()
    _ipu_stack
}
completes() { # word words...: it is among the answers
    local wanted=$1 word
    shift
    complete_line "$@"
    for word in "${COMPREPLY[@]}"; do [ "$word" = "$wanted" ] && return; done
    fail "$* does not complete to $wanted but: ${COMPREPLY[*]}"
}

# "  name   what it does" of a list of verbs; "  --name VALUE   what it does" of a list of options
verbs_of() { "$stack" "$@" --help | sed -n 's/^  \([a-z][a-z-]*\)  *.*/\1/p'; }
check_command() { # words of the verb
    local option count=0
    for option in $("$stack" "$@" --help | sed -n 's/^  \(-[-A-Za-z]*\)[ =[].*/\1/p'); do
        count=$((count + 1))
        [ "$option" = --help ] || grep -q -e "^\.B $option\( \|\[\|$\)" "$work/plain" || fail "man: $* $option"
        case $option in --*) completes "$option" ipu-stack "$@" "${option%?}" ;; esac
    done
    [ $count -gt 0 ] || fail "$* has no options"
}
for verb in $(verbs_of); do
    completes "$verb" ipu-stack "${verb%?}"
    grep -q "^\.B $verb$" "$work/plain" || fail "man: $verb"
    case $verb in
    bench | profile)
        for action in $(verbs_of "$verb"); do
            completes "$action" ipu-stack "$verb" "${action%?}"
            grep -q "^\.SS ipu-stack $verb .*$action" "$work/plain" || fail "man: $verb $action"
            check_command "$verb" "$action"
        done
        ;;
    *) check_command "$verb" ;;
    esac
done

completes exchange ipu-stack explain a.ipuexe --stage ex
completes json ipu-stack build --log-format = j
completes phase ipu-stack profile query x.prof --group-by ph
completes README.md ipu-stack inspect READ
completes README.md ipu-stack build --recipe READ
complete_line ipu-stack explain x --tiles ""
[ ${#COMPREPLY[@]} = 0 ] || fail "a number completes to ${COMPREPLY[*]}"

if command -v groff >/dev/null; then
    groff -man -ww -z "$work/ipu-stack.1" 2>"$work/warnings" || fail groff
    [ -s "$work/warnings" ] && { cat "$work/warnings"; fail "troff warns"; }
fi
[ "$failures" = 0 ] && echo "all good"
exit "$failures"
