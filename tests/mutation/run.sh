#!/usr/bin/env bash
# Plants one fault after the other (faults.tsv) and demands that the fixtures notice each.
# usage: run.sh PROGRAM.o...    of the test programs that read fixtures
# MUTATE_CC: compiler with flags; MUTATE_LD: what links behind the objects; O: build folder.
set -uo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top" || exit 1
export VMT_TOP=$top CMOCKA_MESSAGE_OUTPUT=TAP
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

# fails OBJECT: whether a program notices, with OBJECT in the place of the one in its archive
notices() {
    local program
    for program in "${programs[@]}"; do
        $MUTATE_CC -o "$work/test" "$program" "$@" $MUTATE_LD || return 2
        timeout 120 "$work/test" >"$work/log" 2>&1 || return 0
    done
    return 1
}

verdict() { # verdict OK TEXT
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
        echo "ok $((passed + failed + skipped)) - $2"
    else
        failed=$((failed + 1))
        echo "not ok $((passed + failed + skipped)) - $2"
    fi
}

programs=("$@")
notices
[ $? -eq 1 ]
verdict $? "without a fault the fixtures pass"
while IFS=$'\t' read -r what file from to; do
    case $what in '#'* | '') continue ;; esac
    if [[ $file == *_avx2.c ]] && ! grep -qw avx2 /proc/cpuinfo; then
        skipped=$((skipped + 1))
        echo "ok $((passed + failed + skipped)) - # SKIP $what: the CPU has no AVX2"
        continue
    fi
    if ! FROM=$from TO=$to perl -0pe 'BEGIN { $f = quotemeta $ENV{FROM}; } $n += s/$f/$ENV{TO}/; END { exit($n != 1) }' \
        "$file" >"$work/fault.c"; then
        verdict 1 "$file has no such text: $from"
        continue
    fi
    if ! $MUTATE_CC -w -I"$(dirname "$file")" -c "$work/fault.c" -o "$work/fault.o"; then
        verdict 1 "$what: does not compile"
        continue
    fi
    notices "$work/fault.o"
    verdict $? "$what ($file)"
done <tests/mutation/faults.tsv
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
