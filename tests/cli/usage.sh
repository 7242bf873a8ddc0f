#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# How the command line is refused: what is near, what ends options, lines that fit the terminal.
set -uo pipefail
top=${VMT_TOP:-$(cd "$(dirname "$0")/../.." && pwd)}
VMTRACE=${VMTRACE:-$top/build/vmtrace}
n=0 failed=0

# says NAME STATUS PATTERN ARGUMENT...: exit status, and a line of output that matches
says() {
    local name=$1 status=$2 want=$3 got rc
    shift 3
    got=$("$VMTRACE" "$@" 2>&1 </dev/null)
    rc=$?
    n=$((n + 1))
    if [ "$rc" -eq "$status" ] && grep -qE -- "$want" <<<"$got"; then
        echo "ok $n - $name"
    else
        failed=1
        echo "not ok $n - $name"
        printf '# status %s (want %s), no %s in\n' "$rc" "$status" "$want"
        sed 's/^/# /' <<<"$got"
    fi
}

says "a slip of the finger" 2 "did you mean 'vmtrace report'" rport
says "the nearest verb" 2 "did you mean 'vmtrace start'" startt
for verb in import top x; do
    says "$verb: nothing is near" 2 '^  vmtrace --help lists the verbs$' "$verb"
done
says "-- ends options" 0 '^5$' tsc convert --to guest --offset 0 -- 5
says "a file that looks like an option" 1 "error: .*--force" report -- --force
says "setup: nothing named" 2 '--pt-mode system or --pt-mode host-guest' setup
says "setup: unknown mode" 2 "unknown PT mode 'guest'" setup --pt-mode guest
says "two inputs" 2 'error: --input is given twice' report -i a -i b

# On a terminal of 40 columns the cure is broken at spaces; elsewhere it is one line.
n=$((n + 1))
if command -v script >/dev/null; then
    got=$(script -qec "stty cols 40; exec '$VMTRACE' report --vcpu x" /dev/null </dev/null | tr -d '\r')
    if [ "$(wc -l <<<"$got")" -ge 3 ] && ! tail -n +2 <<<"$got" | grep -qE '.{41}|^   |^[^ ]'; then
        echo "ok $n - a cure fits the terminal"
    else
        failed=1
        echo "not ok $n - a cure fits the terminal"
        sed 's/^/# /' <<<"$got"
    fi
else
    echo "ok $n - a cure fits the terminal # SKIP no script(1)"
fi
n=$((n + 1))
if [ "$("$VMTRACE" report --vcpu x 2>&1 | wc -l)" -eq 2 ]; then
    echo "ok $n - elsewhere a cure is one line"
else
    failed=1
    echo "not ok $n - elsewhere a cure is one line"
fi

echo "1..$n"
exit $failed
