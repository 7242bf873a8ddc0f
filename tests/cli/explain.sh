#!/usr/bin/env bash
# vmtrace explain: what each kind of question answers.
set -u
vmtrace=${VMTRACE:-build/vmtrace}
n=0

# says NAME STATUS PATTERN COMMAND...: exit status and a line that matches
says() {
    local name=$1 status=$2 want=$3 got rc
    shift 3
    got=$("$vmtrace" explain "$@" 2>&1)
    rc=$?
    n=$((n + 1))
    if [ "$rc" -eq "$status" ] && grep -qE -- "$want" <<<"$got"; then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name"
        printf '# status %s (want %s), no %s in\n' "$rc" "$status" "$want"
        sed 's/^/# /' <<<"$got"
    fi
}

# json NAME STATUS FILTER COMMAND...: a jq filter that must give true
json() {
    local name=$1 status=$2 filter=$3 got rc
    shift 3
    got=$("$vmtrace" explain --format json "$@" 2>/dev/null)
    rc=$?
    n=$((n + 1))
    if [ "$rc" -eq "$status" ] && jq -e "$filter" <<<"$got" >/dev/null; then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name"
        printf '# status %s (want %s), not %s:\n' "$rc" "$status" "$filter"
        sed 's/^/# /' <<<"$got"
    fi
}

says "csv" 0 '^"exit:48","exit:48","exit","true","EPT_VIOLATION",' exit:48 --format csv
says "csv has a header" 0 '^query,what,kind,known,name,title,details$' msr:0x10 --format csv
says "alone: what can be asked" 0 'exit:svm:0x400'
says "VMX exit by number" 0 '^exit:48  EPT_VIOLATION$' exit:48
says "VMX exit by name" 0 '^exit:48  EPT_VIOLATION$' exit:EPT_VIOLATION
says "VMX exit with flags" 0 'flags +FAILED_VMENTRY' exit:0x80000021
says "SVM exit by number" 0 '^exit:svm:0x400  npf$' exit:svm:0x400
says "SVM exit by name" 0 '^exit:svm:0x400  npf$' exit:npf
says "a name that both have" 0 'exit:svm:0x72 .*cpuid' exit:cpuid
says "an unknown exit, in hex" 1 '^exit:0x56  unknown' exit:86
says "an unknown exit that SVM has" 1 'on AMD it is npf' exit:0x400
says "an unknown SVM exit" 1 '^exit:svm:0x500  unknown' exit:svm:0x500
says "MSR" 0 '^msr:0x6e0  IA32_TSC_DEADLINE$' msr:0x6e0
says "MSR with access" 0 'access +write' msr:0x6e0:w
says "MSR by name" 0 '^msr:0x6e0  ' msr:IA32_TSC_DEADLINE
says "an unknown MSR" 1 '^msr:0x12345  unknown' msr:0x12345
says "port" 0 '^port:0x608  ACPI PM timer$' port:0x608
says "port by name" 0 '^port:0x3f8  COM1$' port:COM1
says "a port beyond 16 bits" 1 'unknown' port:0x10000
says "address and register" 0 'register +timer initial count' gpa:0xfee00380
says "exception" 0 '^vec:14  #PF$' vec:14
says "interrupt of Linux" 0 'local APIC timer' vec:236
says "return to the VMM" 0 '^user:2  KVM_EXIT_IO$' user:2
says "CPUID leaf" 0 '^cpuid:0x4/0x0  deterministic cache' cpuid:0x4/0x0
says "hypercall of KVM" 0 '^hypercall:0x5  KVM_HC_KICK_CPU$' hypercall:5
says "hypercall of Hyper-V" 0 '^hv:0x5c  HVCALL_POST_MESSAGE$' hv:0x5c
says "control register" 0 'page tables' cr:3
says "APIC register" 0 '^apic:0x300  ICR low$' apic:0x300
says "qualification, VMX" 0 'OUT 0x3f8, 1 byte, DX' qual:30:0x3f80000
says "qualification by name" 0 'OUT 0x3f8, 1 byte, DX' qual:IO_INSTRUCTION:0x3f80000
says "qualification with interruption information" 0 '#PF at 0x1000' qual:0:0x1000:0x80000b0e
says "qualification with error code" 0 '#PF at 0x1000, write, user, protection' \
    qual:0:0x1000:0x80000b0e:7
says "qualification, SVM" 0 'WRMSR' qual:svm:0x7c:1
says "qualification, SVM by name" 0 'write at 0xfee00380' qual:npf:0x100000006:0xfee00380
says "a qualification of no reason" 1 'UNKNOWN_0x63' qual:99:1
says "a bare number may be much" 0 'exit:svm:0x30 .*write_dr0' 48
says "a bare name" 0 '^exit:svm:0x400  npf$' npf
says "a part of a name" 0 '^msr:0x6e0  IA32_TSC_DEADLINE' deadline
says "an unknown name" 1 'unknown' surely-nothing
says "an unknown kind" 2 "does not know the kind 'foo:1'" foo:1
says "a kind without a number" 2 "'msr:' names nothing" msr:
says "a negative number" 2 "'exit:-1' is no number in C syntax" exit:-1
says "a number that is not C" 2 "'port:08' is no number" port:08
says "a number and more" 2 "'12x' is no number" 12x
says "nothing at all" 2 'names nothing' ''
says "a qualification without its value" 2 'as in qual:30' qual:30
says "a qualification that is no number" 2 'as in qual:30' qual:30:x
says "advice for a clock's port" 0 'advice +Linux guest: clocksource=tsc' port:0x608
says "advice for a port, read or written" 0 'advice +Writes to port 0x80' port:0x80
says "advice for an address" 0 'advice +Linux guest: clocksource=tsc' gpa:0xfed000f0
says "a finding" 0 '^finding:halt-poll  KVM spins' finding:halt-poll
says "a finding, bare" 0 '^finding:rip-loop  ' rip-loop
says "an unknown finding" 1 'unknown' finding:what
says "a vector in a list" 0 '^  vec:48 +external interrupt or IPI$' 48
says "several questions, one unknown" 1 '^vec:14  #PF$' exit:86 vec:14
says "no control characters" 1 '^a\?b  unknown' $'a\033b'
json "json: exit" 0 '.schema == "vmtrace-explain/1" and (.results[0] |
    .known and .isa == "vmx" and .reason == 33 and .reason_flags == "0x80000000" and
    .reason_name == "INVALID_STATE" and .query == "exit:0x80000021")' exit:0x80000021
json "json: unknown" 1 '.results[0] | (.known | not) and .name == null and .reason == 86 and
    .reason_name == "UNKNOWN_0x56"' exit:86
json "json: key" 0 '.results | length == 2 and .[0].number == "0x6e0" and .[1].kind == "hv"' \
    msr:0x6e0 hv:0x5c
json "json: qualification" 0 '.results[0] | .qualification == "0x3f80000" and
    .text == "OUT 0x3f8, 1 byte, DX"' qual:30:0x3f80000

n=$((n + 1))
text=$("$vmtrace" explain exit:48 exit:svm:0x400 0 48 timer msr:0x6e0 vec:236 user:10)
long=$(awk 'length($0) > 80' <<<"$text")
if [ "$(wc -l <<<"$text")" -gt 50 ] && [ -z "$long" ]; then
    echo "ok $n - lines of at most 80 columns"
else
    echo "not ok $n - lines of at most 80 columns"
    sed 's/^/# /' <<<"$long"
fi
echo "1..$n"
