#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Lab P with the kernel module of vmx/kmod: vmtrace record --mode guest-only and --conceal on an
# unmodified kvm-intel. What the CPU found at each VM entry is what `vmtrace vmx plan` says, guest-only
# streams hold nothing of the host, and after the recorder's end, in order or killed, KVM's words
# stand there again.
. "${BASH_SOURCE[0]%/*}/lib.sh"
. "${BASH_SOURCE[0]%/*}/compare.sh"

lab_begin pmod
need jq mke2fs debugfs ldd
need_ptcpu "$W/pt"
build_module vmx/kmod
build_fixture exits
for program in bedlog vmxwords; do
    ${CC:-gcc} -std=c11 -D_GNU_SOURCE -O2 -static -Wall -Wextra -Werror -I"$top" \
        "$top/virt-fixtures/ptcpu/guest/$program.c" -o "$W/$program" 2>"$W/cc.log" ||
        skip_all "$program does not build as a static program: $(head -n 1 "$W/cc.log")"
done
initrd_files=("$W/kmod/vmtrace_vmx.ko" "$W/bedlog" "$W/vmxwords")
make_initrd ata_piix sd_mod kvm-intel

cat >"$W/env" <<'ENV'
load() { insmod /bin/vmtrace_vmx.ko || echo "LAB-ERROR insmod vmtrace_vmx"; }
words() { # words NAME: KVM's words of the VM program $vm
    vmxwords $(cd "/proc/$vm/task" && ls | grep -v "^$vm\$") | sed "s/^/LAB-WORDS $1 /"
}
traced() { # traced NAME ARGUMENT...: a scenario of which the CPU tells the truth
    bedlog begin "$1"
    scenario "$@"
    bedlog end
    sync
}
# A recorder that is killed while the VM runs, and the module unloaded and loaded meanwhile.
killed() {
    exits --out 1000000 --cpuid 0 --hlt 0 --rdmsr 0 --samples 4 >/tmp/vm.jsonl 2>&1 &
    vm=$!
    until grep -qs '"ready"' /tmp/vm.jsonl; do usleep 1000; done
    words first
    vmtrace record --pid $vm --backend pt --mode guest-only -o /tmp/killed.vmt >/tmp/killed.log 2>&1 &
    recorder=$!
    until grep -qs VMT /tmp/killed.vmt || ! kill -0 $recorder; do usleep 1000; done
    rmmod vmtrace_vmx 2>/dev/null && echo "LAB-MODULE unloaded below a recorder" || echo "LAB-MODULE in use"
    kill -KILL $recorder
    wait $recorder
    words killed
    rmmod vmtrace_vmx && echo "LAB-MODULE unloaded"
    kill -0 $vm && echo "LAB-MODULE the VM runs"
    load
    words loaded
    kill $vm
    wait $vm
}
SOME="--out 40 --cpuid 20 --hlt 20 --rdmsr 10 --samples 4"
scenarios() {
    load
    RECORD_OPTIONS="--backend kvm,pt --mode guest-only"
    traced guestonly --vcpus 2 $SOME
    RECORD_OPTIONS="--backend kvm,pt --conceal"
    traced concealed $SOME
    killed
    rmmod kvm_intel && insmod /mod/kvm-intel.ko nested=0
    RECORD_OPTIONS="--backend pt --mode guest-only --conceal --system-wide"
    traced hidden --vcpus 2 $SOME
}
ENV
make_disk "$VMTRACE"
boot_bochs 400
ok $? "the machine ran to its end"
grep -a '^LAB-\(WORDS\|MODULE\|ERROR\)\|Call Trace' "$W/serial.log" | sed 's/^/#   /'
is "$(grep -acE 'LAB-ERROR|Call Trace|BUG:' "$W/serial.log")" 0 "errors inside the machine"
read_disk

# The six controls as planned at every VM entry, and IA32_RTIT_CTL but for PSBFreq.
compare_plan() { # compare_plan NAME ENTRIES OPTION...
    local name=$1 entries=$2
    shift 2
    "$VMTRACE" vmx plan --event-trace --caps "$top/virt-fixtures/caps/ptcpu.caps" --format json "$@" \
        >"$W/$name.plan"
    "$O/tests/tools/ptcpu_controls" "$W/pt/$name.cpu0.truth" >"$W/$name.controls"
    is "$(jq -s 'map(.entries) | add' "$W/$name.controls")" "$entries" "$name: VM entries of the CPU and of the kernel"
    is "$(jq -s --slurpfile plan "$W/$name.plan" '[.[] | . as $row | $plan[0].controls[] |
        ({"secondary processor-based": $row.secondary, "VM-exit": $row.exit, "VM-entry": $row.entry}[.word] /
            pow(2; .bit) | floor) % 2 == .value] | all and length >= 6' "$W/$name.controls")" true \
        "$name: the controls in force at each VM entry are those of vmx plan"
}
entries() { hist_hits "$W/out/$1/hist-kvm_entry.txt" vcpu_id; }
compare_plan guestonly "$(entries guestonly)" --mode guest-only
compare_plan concealed "$(entries concealed)" --conceal
compare_plan hidden "$(entries hidden)" --mode guest-only --conceal
for name in guestonly hidden; do
    # 8000250DH: EventEn, BranchEn, TSCEn, ToPA, User, OS, TraceEn; PSBFreq is perf's own.
    is "$(jq -s '[.[] | (.guest_ctl - 2147493133) / 16777216 | . == floor and . < 16] | all' "$W/$name.controls")" \
        true "$name: IA32_RTIT_CTL in the guest"
    is "$(jq -s '[.[] | .host_ctl % 2 == 0] | all' "$W/$name.controls")" true "$name: TraceEn is 0 at each VM entry"
done

for name in guestonly concealed hidden; do
    d=$W/out/$name
    is "$(cat "$d/record.status" 2>&1)" 0 "$name: vmtrace record --pid ends in order"
    read_capture "$d" "$d/exits.vmt" || continue
    "$VMTRACE" decode pt "$d/exits.vmt" --format json >"$d/packets.jsonl"
    [ $name = hidden ] && continue # it has no exits
    is "$(report_value "$d" .exits)" "$(hist_hits "$d/hist-kvm_exit.txt" exit_reason)" "$name: exits of report and of hist"
    compare_truth "$d" 12
done
for name in guestonly hidden; do # the guest has 128 KiB
    is "$(jq -s '[.[].ip | strings] | length > 100 and all(test("^0x1?[0-9a-f]{1,4}$"))' "$W/out/$name/packets.jsonl")" true "$name: every address is the guest's"
done
is "$(grep -c '"packet":"\(CFE\|EVD\)"\|"nr":1' "$W/out/hidden/packets.jsonl")" 0 "hidden: CFE, EVD, and PIP with NR=1"
is "$(report_value "$W/out/concealed" .concealed)" true "concealed: recognised as concealed"
for want in "guestonly guest-only false" "concealed system true" "hidden guest-only true"; do
    read -r name mode conceal <<<"$want"
    is "$(report_value "$W/out/$name" '.pt | "\(.mode) \(.conceal) \(.means) \(.entries_with_controls)"')" \
        "$mode $conceal vmx-controls $(entries $name)" "$name: what the report says of the means"
    is "$(report_value "$W/out/$name" '[.verdicts[] | select(.id == "pt-controls") | .text] | join(" ")')" "" \
        "$name: differences from the plan"
done
is "$(report_value "$W/out/guestonly" '.join | "\(.only_kvm) \(.disagree_rip) \(.disagree_reason)"')" "0 0 0" \
    "guestonly: exits without trace, other RIPs, other reasons"

# KVM's own words before, after a recorder that was killed, and after the module was loaded anew.
words() { sed -nE "s/^LAB-WORDS $1 //p" "$W/serial.log" | tr -d '\r'; }
[ -n "$(words first)" ]
ok $? "KVM's words are read: $(words first)"
is "$(words killed)" "$(words first)" "KVM's words after the recorder was killed"
is "$(words loaded)" "$(words first)" "KVM's words after the module was unloaded and loaded"
is "$(sed -nE 's/^LAB-MODULE //p' "$W/serial.log" | tr -d '\r' | paste -sd,)" "in use,unloaded,the VM runs" \
    "unloading below a recorder, after its end, below a VM"
lab_end
