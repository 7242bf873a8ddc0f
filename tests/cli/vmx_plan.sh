#!/usr/bin/env bash
# vmtrace vmx plan: every fixture CPU and way of tracing against its expected text, JSON, errors.
# VMT_TEST_REGENERATE=1 rewrites the expected texts.
set -u
vmtrace=${VMTRACE:-build/vmtrace}
golden=tests/golden/vmx-plan
n=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

verdict() { # verdict OK NAME
    n=$((n + 1))
    [ "$1" = 0 ] && echo "ok $n - $2" || { echo "not ok $n - $2"; sed 's/^/# /' "$work/out"; }
}

fails() { # fails NAME STATUS PATTERN ARGUMENT...
    local name=$1 want=$2 pattern=$3 rc
    shift 3
    "$vmtrace" vmx plan "$@" >"$work/out" 2>&1
    rc=$?
    [ "$rc" = "$want" ] && grep -q -- "$pattern" "$work/out"
    verdict $? "$name"
}

for caps in virt-fixtures/caps/*.caps; do
    cpu=$(basename "$caps" .caps)
    for way in "system" "system --event-trace" "system --conceal" "guest-only --event-trace" \
        "guest-only --conceal" "host-only" "system --vm-events-only --event-trace"; do
        echo "== $way"
        # shellcheck disable=SC2086
        COLUMNS=100 "$vmtrace" vmx plan --caps "$caps" --mode $way 2>&1
        echo "== status $?"
    done >"$work/$cpu.txt"
    [ "${VMT_TEST_REGENERATE:-}" = 1 ] && cp "$work/$cpu.txt" "$golden/$cpu.txt"
    diff -u "$golden/$cpu.txt" "$work/$cpu.txt" >"$work/out" 2>&1
    verdict $? "plans for $cpu"
done

p=virt-fixtures/caps/ptcpu.caps
"$vmtrace" vmx plan --caps $p --mode guest-only --event-trace --format json >"$work/out" 2>&1 &&
    jq -e '.schema == "vmtrace-vmx-plan/1" and .works == true and (.controls | length) == 6 and
        ([.controls[] | select(.value == 1) | .bit] == [25, 18]) and
        .guest_rtit_ctl == "0x8000250d" and .root_rtit_ctl == "0x8000250c"' "$work/out" >/dev/null
verdict $? "JSON"
"$vmtrace" vmx plan --caps $p --mult 0x800000000000 >"$work/out" 2>&1 &&
    grep -q 'CPUID.15H  *EAX = 1, EBX = 73$' "$work/out" && grep -q 'PLATFORM_INFO.*  18$' "$work/out"
verdict $? "what a guest with half the TSC rate must be told"
"$vmtrace" vmx plan --caps $p --mult 3 --frac 1 --format json >"$work/out" 2>&1 &&
    jq -e '.guest_time | .cpuid_15h_eax == 1 and .cpuid_15h_ebx == 219 and .exact and .tsc_hz == null' "$work/out" >/dev/null
verdict $? "the same as JSON"
"$vmtrace" vmx plan --caps virt-fixtures/caps/amd.caps --mult 3 >"$work/out" 2>&1
grep -q 'CPUID.15H of the host gives no ratio' "$work/out"
verdict $? "the same where CPUID.15H is not known"
"$vmtrace" vmx plan >"$work/out" 2>&1
case $? in 0 | 5) true ;; *) false ;; esac
verdict $? "this machine"
fails "a mode that is none" 2 'system, guest-only or host-only' --mode both
fails "a file that is not there" 1 'cannot be opened\|No such file' --caps "$work/none"
printf 'msr 0x480 1\nmsr 0x485 zero\n' >"$work/bad"
fails "a bad line is named" 6 'line 2' --caps "$work/bad"
printf 'cpuid 0x14 0 1 2 3 0x100000000\n' >"$work/bad"
fails "a register of 33 bits" 6 'line 1' --caps "$work/bad"
head -c 2000000 /dev/zero | tr '\0' '#' >"$work/bad"
fails "a file without end" 1 'too large' --caps "$work/bad"
head -c 300 /dev/urandom >"$work/bad"
fails "no text at all" 6 'line' --caps "$work/bad"
fails "csv is not offered" 2 'text or json' --format csv
echo "1..$n"
