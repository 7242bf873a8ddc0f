#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Lab F: a program of ours with known exits directly on this machine's /dev/kvm, no QEMU, no libvirt.
# What --pid finds of it, and the records that every KVM gives, a software one too: port I/O, CPUID,
# returns to the VMM. Where KVM is a hardware one, kvm_exit is counted as well.
. "${BASH_SOURCE[0]%/*}/lib.sh"

lab_begin f
need jq
need_vmtrace
[ "$(id -u)" -eq 0 ] || skip_all "needs root"
[ -w /dev/kvm ] || skip_all "no /dev/kvm that can be used"
build_fixture exits
debugfs=$(awk '$3 == "debugfs" {print $2; exit}' /proc/mounts)
[ -n "$debugfs" ] || { mount -t debugfs nodev /sys/kernel/debug && debugfs=/sys/kernel/debug; } ||
    skip_all "debugfs cannot be mounted"
hardware=1
[ -d /sys/module/kvm_intel ] || [ -d /sys/module/kvm_amd ] || hardware=0

rm -f "$W"/go "$W"/end
"$W/exits" --vcpus 2 --wait "$W/go" --linger "$W/end" >"$W/truth.jsonl" 2>"$W/exits.err" &
vm=$!
children+=($vm)
waiting() { # waiting STATE: until the program says so or has gone
    local tries=0
    until grep -q "\"state\":\"$1\"" "$W/truth.jsonl"; do
        kill -0 $vm 2>/dev/null && [ $tries -lt 300 ] || return 1
        sleep 0.1
        tries=$((tries + 1))
    done
}
waiting ready || skip_all "KVM does not run the program: $(tail -n 1 "$W/exits.err")"

# ---- what --pid finds ----
truth() { jq -r "select(.state == \"$1\") | $2" "$W/truth.jsonl"; }
timeout 20 "$VMTRACE" list --pid $vm --format json >"$W/before.json" 2>"$W/list.err"
ok $? "list --pid"
value() { jq -r "$2" "$W/$1.json" 2>/dev/null; }
is "$(value before '.domains[0] | "\(.pid) \(.vm_fd) \(.name) \(.type)"')" "$vm $(truth ready .vm_fd) null kvm" \
    "process and VM descriptor"
is "$(value before '.domains[0].debugfs')" "$debugfs/kvm/$vm-$(truth ready .vm_fd)" "debugfs folder"
is "$(value before '.domains[0].vcpus[] | "\(.id) \(.tid) \(.tid_source)"' | tr '\n' ' ')" \
    "$(truth ready '.tids | to_entries[] | "\(.key) \(.value) thread name"' | tr '\n' ' ')" "vCPU threads"

# ---- a capture of everything it does ----
timeout 60 "$VMTRACE" record --pid $vm -o "$W/f.vmt" --force -- sh -c "touch '$W/go'
    until grep -q '\"done\"' '$W/truth.jsonl' || ! kill -0 $vm; do sleep 0.05; done" >"$W/record.log" 2>&1
status=$?
ok $status "record --pid ends with its command"
[ $status -eq 0 ] || sed 's/^/#   /' "$W/record.log"
waiting "done"
ok $? "the program ran to its end"
timeout 20 "$VMTRACE" list --pid $vm --format json >"$W/after.json" 2>"$W/list.err"
hex64() { printf '0x%x ' "$@"; }
is "$(value after '.domains[0].vcpus[].tsc_offset' | tr '\n' ' ')" \
    "$(hex64 $(cat "$debugfs/kvm/$vm-$(truth ready .vm_fd)"/vcpu[01]/tsc-offset))" "TSC offsets as debugfs says"
offset=$(cat "$debugfs/kvm/$vm-$(truth ready .vm_fd)/vcpu0/tsc-offset")
# The guest's own readings must lie between the host's readings around them, moved by that offset.
truth "done" '.vcpus[0].samples[] | "\(.before) \(.guest) \(.after)"' | while read -r before guest after; do
    [ $((guest)) -ge $((before + offset)) ] && [ $((guest)) -le $((after + offset)) ] || echo outside
done >"$W/outside.txt"
if [ -e "$debugfs/kvm/$vm-$(truth ready .vm_fd)/vcpu0/tsc-scaling-ratio" ]; then
    skip "TSC scaling hardware: the ratio is compared in lab C"
else
    is "$(wc -l <"$W/outside.txt")" 0 "guest TSC readings outside their bracket with the offset that list says"
fi
touch "$W/end"
wait $vm
unset "children[-1]"

# ---- the capture against the program's truth ----
timeout 60 "$VMTRACE" report -i "$W/f.vmt" --format json >"$W/report.json" 2>"$W/report.err"
ok $? "report reads the capture"
timeout 60 "$VMTRACE" script -i "$W/f.vmt" --format json >"$W/events.jsonl" 2>"$W/script.err"
ok $? "script reads the capture"
is "$(value report '.loss | "\(.records_lost) \(.bytes_skipped) \(.truncated)"')" "0 0 false" "nothing is lost"
events() { jq -r "$1" "$W/events.jsonl" | grep -c .; }
sum() { truth "done" "[.vcpus[] | $1] | add"; }
is "$(events 'select(.type == "note" and .name == "kvm_pio" and .key == "port:0x3f8:out") | .key')" "$(sum .outs)" \
    "writes of port 0x3f8"
is "$(events 'select(.type == "note" and .name == "kvm_cpuid" and (.key | startswith("cpuid:0x4"))) | .key')" \
    "$(sum .cpuids)" "CPUID of leaf 4"
is "$(events 'select(.type == "userspace" and .reason == 2) | .reason')" "$(sum '.outs + .samples_out + .ends')" \
    "returns to the program for I/O"
is "$(jq -r 'select(.type == "userspace") | .vcpu' "$W/events.jsonl" | sort -u | tr '\n' ' ')" "0 1 " "vCPUs of the returns"
if [ $hardware -eq 1 ]; then
    is "$(value report .exits)" "$(events 'select(.type == "exit" and (.failed_entry | not)) | .type')" "exits of report and script"
else
    is "$(value report .exits)" 0 "exits (this KVM never fires kvm_exit)"
    is "$(value report '[.verdicts[].id] | index("no-exits") != null or length > 0')" true "report says something about that"
fi
lab_end
