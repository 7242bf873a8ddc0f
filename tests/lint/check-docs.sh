#!/usr/bin/env bash
# Every verb has a man page and help that name each of its options; the pages and documents are sound.
set -uo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
O=${O:-build}
case $O in /*) ;; *) O=$top/$O ;; esac
bad=0
fail() { echo "check-docs: $*" >&2; bad=1; }
plain() { MANWIDTH=100 mandoc -T ascii "$1" 2>/dev/null | sed 's/.\x08//g'; }

while read -r kind a b; do
    case $kind in
    verb)
        [ -s "$O/man/vmtrace-$a.1" ] || fail "verb $a has no man page"
        "$O/vmtrace" "$a" --help | grep "usage: vmtrace $a" >/dev/null || fail "verb $a has no help"
        grep -q "vmtrace-$a 1" "$O/man/vmtrace.1" || fail "vmtrace(1) does not name $a"
        ;;
    option)
        plain "$O/man/vmtrace-$a.1" | grep -- "--$b" >/dev/null || fail "vmtrace-$a(1) does not name --$b"
        "$O/vmtrace" "$a" --help | grep -- "--$b" >/dev/null || fail "$a --help does not name --$b"
        grep -q -- "--$b" "$O/completion/vmtrace" || fail "completion does not name --$b"
        ;;
    global)
        plain "$O/man/vmtrace.1" | grep -- "--$a" >/dev/null || fail "vmtrace(1) does not name --$a"
        ;;
    esac
done < <("$O/tests/tools/gen_docs" names)
# Options are told in the same words in the pages and in --help.
for words in 'text, json or csv' 'TSC offset and scaling'; do
    plain "$O/man/vmtrace.1" | grep -F " $words" >/dev/null || fail "vmtrace(1) does not say '$words'"
done
for m in "$O"/man/*.[1-9]; do
    mandoc -T lint -W error "$m" >/dev/null || fail "$(mandoc -T lint -W error "$m" | head -3)"
    # What mdoc puts for an argument that is not given.
    plain "$m" | grep -F 'file ...' >/dev/null && fail "$m has an Ar without an argument"
    grep -q '^@[A-Z]*@$' "$m" && fail "$m has an unfilled placeholder"
done
bash -n "$O/completion/vmtrace" || fail "completion does not parse"
for d in README.md LICENSE CONTRIBUTING.md SECURITY.md docs/ARCHITECTURE.md docs/FORMAT.md docs/THREATS.md \
    docs/RELIABILITY.md docs/PERFORMANCE.md; do
    [ -s "$top/$d" ] || fail "$d is missing"
done
[ "$(wc -l <"$top/docs/ARCHITECTURE.md")" -le 80 ] || fail "docs/ARCHITECTURE.md is longer than a page"
[ $bad -eq 0 ] && echo "check-docs: every verb and option has its page"
exit $bad
