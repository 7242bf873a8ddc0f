#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Lab A2: a libvirt domain of type kvm on this machine's own /dev/kvm: its descriptors, its debugfs
# folder, its TSC, its counters, and a capture of its tracepoints. Whatever KVM this is: a software
# one (kvm_pvm) never fires kvm_exit, which doctor says and the capture shows.
. "${BASH_SOURCE[0]%/*}/lib.sh"
. "${BASH_SOURCE[0]%/*}/libvirtd.sh"
[ -w /dev/kvm ] || { lab=a2 && skip_all "no /dev/kvm that can be used"; }
enter_namespace a2
debugfs=$(awk '$3 == "debugfs" {print $2; exit}' /proc/mounts)
[ -n "$debugfs" ] || { mount -t debugfs nodev /sys/kernel/debug && debugfs=/sys/kernel/debug; } ||
    skip_all "debugfs cannot be mounted"

start_libvirtd
ok $? "libvirtd runs without systemd"
define_domain kvm "<cpu mode='host-passthrough' check='none' migratable='off'>
    <feature policy='disable' name='arch-capabilities'/></cpu>" >"$W/define.log" 2>&1
ok $? "web01 is defined"
if ! timeout 60 virsh -q start web01 >"$W/start.log" 2>&1; then
    skip "KVM does not run this domain: $(tail -n 1 "$W/start.log")"
    lab_end
fi
qemu=$(cat /run/libvirt/qemu/web01.pid)

# ---- facts against the files themselves ----
fd=$(ls -l "/proc/$qemu/fd" | sed -n 's/.* \([0-9]*\) -> anon_inode:kvm-vm$/\1/p' | head -n 1)
folder=$debugfs/kvm/$qemu-$fd
list_json -d web01
is "$(list_value '.domains[0] | "\(.pid) \(.pid_source) \(.vm_fd) \(.debugfs)"')" "$qemu pid file $fd $folder" \
    "process, VM descriptor, debugfs folder"
is "$(list_value '.domains[0].vcpus[] | "\(.id) \(.tid) \(.tid_source)"' | tr '\n' ' ')" \
    "$(for v in "$folder"/vcpu*; do echo "${v##*vcpu} $(cat "$v/pid") thread name"; done | sort -n | tr '\n' ' ')" \
    "vCPU threads by name are those of debugfs"
hex() { printf '0x%x' "$1"; }
is "$(list_value '.domains[0].vcpus[] | "\(.id) \(.tsc_offset) \(.tsc_source)"' | tr '\n' ' ')" \
    "$(for v in "$folder"/vcpu*; do echo "${v##*vcpu} $(hex "$(cat "$v/tsc-offset")") debugfs"; done | sort -n | tr '\n' ' ')" \
    "TSC offsets are those of debugfs"
if [ -e "$folder/vcpu0/tsc-scaling-ratio" ]; then
    want="$(hex "$(cat "$folder/vcpu0/tsc-scaling-ratio")") $(cat "$folder/vcpu0/tsc-scaling-ratio-frac-bits")"
else
    want="0x1 0"
fi
is "$(list_value '.domains[0].vcpus[0] | "\(.tsc_ratio) \(.tsc_frac)"')" "$want" "TSC ratio (0x1 0: no scaling hardware)"
for name in "kvm-pit/$qemu" "kvm-nx-lpage-re"; do
    grep -qsx "$name" /proc/[0-9]*/comm "/proc/$qemu"/task/*/comm || continue
    check "the helper thread $name is found" jq -e --arg n "$name" \
        '.domains[0].threads[] | select(.name | startswith($n))' "$W/list.json"
done
timeout 20 "$VMTRACE" list --pid "$qemu" --format json >"$W/pid.json" 2>"$W/pid.err"
is "$(jq -c '[.domains[0].vcpus[].tid]' "$W/pid.json")" "$(list_value '[.domains[0].vcpus[].tid] | tojson')" \
    "--pid finds the same threads without libvirt"
is "$(jq -r '.domains[0] | "\(.name) \(.pid_source)"' "$W/pid.json")" "null --pid" "--pid says how"
mkdir -p "$S/hidden" && mount --bind "$S/hidden" "$debugfs/kvm" && {
    list_json -d web01
    is "$(list_value '.domains[0].vcpus[] | "\(.tid != null) \(.tsc_offset)"' | sort -u)" "true null" \
        "without debugfs threads are found, offsets are null"
    umount "$debugfs/kvm"
}

# ---- what doctor says ----
timeout 20 "$VMTRACE" doctor -d web01 --format json >"$W/doctor.json" 2>"$W/doctor.err"
is $? 0 "doctor: kvm can be traced, exit status"
doctor_says() { jq -r --arg id "$1" '.host[] | select(.id == $id) | .cause' "$W/doctor.json"; }
if ! cat "$debugfs/kvm/exits" >/dev/null 2>"$W/exits.err" && grep -q 'not permitted' "$W/exits.err"; then
    check "doctor tells counters that lockdown refuses from missing ones" grep -q EPERM <(doctor_says debugfs)
fi
if timeout 20 virsh domstats web01 --vcpu 2>/dev/null | grep -q '\.exits\.'; then
    check "libvirt has KVM's counters" grep -qE '^[0-9]+ by libvirt, [0-9]+ exits' \
        <(jq -r '.domains[0].checks[] | select(.id == "counters") | .cause' "$W/doctor.json")
fi
software=0
[ -d /sys/module/kvm_intel ] || [ -d /sys/module/kvm_amd ] || software=1
if [ $software -eq 1 ]; then
    check "doctor says that kvm_exit may never fire here" grep -q 'never fire' <(doctor_says kvm)
fi

# ---- a capture ----
timeout 60 "$VMTRACE" start -d web01 --backend kvm,sched -o "$W/a2.vmt" --force >"$W/session.out" 2>&1
status=$?
ok $status "start"
[ $status -eq 0 ] || sed 's/^/#   /' "$W/session.out"
timeout 30 virsh -q reset web01 >"$W/reset.log" 2>&1 # the firmware runs again: port I/O without end
sleep 3
timeout 30 "$VMTRACE" stop -d web01 >"$W/stop.out" 2>&1
ok $? "stop"
timeout 120 "$VMTRACE" report -i "$W/a2.vmt" --format json >"$W/report.json" 2>"$W/report.err"
ok $? "report reads the capture"
is "$(jq -r '.loss | "\(.bytes_total == .bytes_decoded + .bytes_skipped) \(.truncated)"' "$W/report.json")" "true false" \
    "every byte is accounted for"
timeout 120 "$VMTRACE" script -i "$W/a2.vmt" --format json >"$W/events.jsonl" 2>"$W/script.err"
ok $? "script reads the capture"
is "$(jq -r 'select(.type == "mark") | .name' "$W/events.jsonl" | grep -cx reset)" 1 "one reset is one mark"
check "the guest's returns to QEMU are there" grep -q '"type":"userspace"' "$W/events.jsonl"
check "events carry domain and vCPU" jq -e -n '[inputs | select(.type == "userspace")] |
    (length > 0) and all(.domain == "web01" and (.vcpu == 0 or .vcpu == 1))' "$W/events.jsonl"
if [ $software -eq 0 ]; then
    check "exits are there" jq -e '.exits > 0' "$W/report.json"
fi
virsh -q destroy web01 >/dev/null 2>&1
lab_end
