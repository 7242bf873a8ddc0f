#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Lab D: the stand-in PMU intel_pt on nested AMD virtualisation. How AUX areas are captured and read:
# whole, beside tracepoints and alone, too small, overwritten, held up, killed. Not what a CPU with
# Intel PT does: that is lab P.
. "${BASH_SOURCE[0]%/*}/lib.sh"
. "${BASH_SOURCE[0]%/*}/compare.sh"

lab_begin d
need qemu-system-x86_64 jq mke2fs debugfs ldd
need_vmtrace
need_kernel
build_module virt-fixtures/standin
build_fixture exits
initrd_files=("$W/standin/vmtrace_standin.ko")
make_initrd kvm-amd

cat >"$W/env" <<'ENV'
scenarios() {
    insmod /bin/vmtrace_standin.ko || echo "LAB-ERROR insmod vmtrace_standin"
    RECORD_OPTIONS="--backend kvm,sched,pt --vm-events-only"
    scenario joined --vcpus 2 --out 300 --port 0x80 --cpuid 200 --leaf 7 --hlt 60 --rdmsr 40 --msr 0x17
    RECORD_OPTIONS="--backend pt --vm-events-only"
    scenario alone
    RECORD_OPTIONS="--backend kvm,pt --vm-events-only --pt-buffer 128K" FREEZE=1
    scenario frozen --out 3000
    RECORD_OPTIONS="--backend kvm,pt --vm-events-only --keep 1m --pt-buffer 64K" FREEZE=0
    scenario flight --out 3000
    RECORD_OPTIONS="--backend kvm,pt --vm-events-only --mode guest-only"
    scenario guest
    RECORD_OPTIONS="--backend kvm,pt --vm-events-only" KILL=1
    scenario killed
}
ENV
make_disk "$VMTRACE"
boot_qemu 120 -m 512 -append "$command_line LAB_DISK=1" \
    -drive "file=$W/disk.img,format=raw,if=none,id=d" -device nvme,drive=d,serial=1
ok $? "the machine ran to its end"
is "$(grep -a 'LAB-ERROR' "$W/serial.log")" "" "errors inside the machine"
read_disk

for s in joined alone frozen flight guest; do
    echo "# scenario $s"
    d=$W/out/$s
    is "$(cat "$d/record.status" 2>&1)" 0 "$s: vmtrace record --pid ends in order"
    read_capture "$d" "$d/exits.vmt" || continue
    is "$(report_value "$d" .exits)" "$(hist_hits "$d/hist-kvm_exit.txt" exit_reason)" \
        "$s: exits of report and of hist"
done

# What both told of an exit is one event, and they agree.
join() { report_value "$W/out/$1" '.join | "\(.only_pt) \(.only_kvm) \(.disagree_rip) \(.disagree_reason) \(.untimed)"'; }
for s in joined frozen flight guest; do
    is "$(join $s)" "0 0 0 0 0" "$s: exits of one source alone, other RIPs, other reasons, without a time"
done
d=$W/out/joined
is "$(report_value "$d" .join.joined)" "$(report_value "$d" .exits)" "joined: every exit is joined"
compare_hist "$d" pt
compare_loss "$d"
compare_truth "$d" 120

# The trace alone tells the same: exits by reason and RIP.
d=$W/out/alone
jq -r 'select(.type == "exit") | "\(.reason) \(.guest_rip)"' "$d/events.jsonl" | count_lines >"$d/by-rip.script"
hist_rows "$d/hist-kvm_exit.txt" exit_reason,guest_rip.hex >"$d/by-rip.hist"
same "$d/by-rip.script" "$d/by-rip.hist" "alone: exits by reason and RIP as hist"

# A buffer that was full is a loss that is told; what came before it is joined.
d=$W/out/frozen
is "$(report_value "$d" '.join.joined > 100 and .join.joined < .exits')" true "frozen: some exits are in the trace"
is "$(jq -r 'select(.type == "loss") | .name' "$d/events.jsonl" | sort -u)" aux-truncated "frozen: the loss"
grep -q 'TRUST events are missing' "$d/report.txt"
ok $? "frozen: the report's first screen says so"

d=$W/out/flight
is "$(report_value "$d" '.join.joined > 100 and .join.joined < .exits')" true "flight: the newest exits are in the trace"

# By filtering: the machine has no VMX controls.
compare_privacy "$W/out/guest/exits.vmt"
is "$(report_value "$W/out/guest" .join.joined)" "$(report_value "$W/out/guest" .exits)" \
    "guest: every exit is joined"

# A killed recorder: what it had written is read, and nothing in it is wrong.
d=$W/out/killed
is "$(cat "$d/record.status" 2>&1)" 137 "killed: the recorder was killed"
read_capture "$d" "$d/exits.vmt" && {
    is "$(report_value "$d" ".exits > 0 and .exits <= $(hist_hits "$d/hist-kvm_exit.txt" exit_reason)")" true \
        "killed: exits are read"
    is "$(join killed)" "0 0 0 0 0" "killed: and the sources agree"
}
lab_end
