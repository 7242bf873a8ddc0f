#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Lab B-light: kvm-amd nested in QEMU's TCG, a VM whose exits are known exactly, vmtrace beside it.
# Report and script must say what the program did and what the kernel's hist triggers counted.
. "${BASH_SOURCE[0]%/*}/lib.sh"
. "${BASH_SOURCE[0]%/*}/compare.sh"

lab_begin blight
need qemu-system-x86_64 jq mke2fs debugfs ldd
need_vmtrace
need_kernel
build_fixture exits
make_initrd kvm-amd

cat >"$W/env" <<'ENV'
scenarios() {
    scenario one
    scenario halts --halt-us 2000 --out 20 --hlt 100
    RECORD_OPTIONS="--buffer 64K" FREEZE=1
    scenario frozen --out 3000 --cpuid 0 --hlt 0 --rdmsr 0
    RECORD_OPTIONS="" FREEZE=0
    scenario two --vcpus 2 --out 300 --port 0x80 --cpuid 200 --leaf 7 --hlt 60 --rdmsr 40 --msr 0x17
}
ENV
make_disk "$VMTRACE"
boot_qemu 90 -m 512 -append "$command_line LAB_DISK=1" \
    -drive "file=$W/disk.img,format=raw,if=none,id=d" -device nvme,drive=d,serial=1
ok $? "the machine ran to its end"
read_disk

for s in one halts two; do
    echo "# scenario $s"
    d=$W/out/$s
    is "$(cat "$d/record.status" 2>&1)" 0 "vmtrace record --pid ends in order"
    read_capture "$d" "$d/exits.vmt" || continue
    compare_hist "$d"
    compare_loss "$d"
    compare_truth "$d" 120
    [ $s = two ] || compare_tsc "$d" "$d/exits.vmt"
    [ $s != halts ] || compare_halts "$d"
done
is "$(head -n 14 "$W/out/one/report.txt" | grep -cE 'port:0x3f8:out|0x1025' | awk '{print ($1 >= 2)}')" 1 \
    "the instruction behind the storm is on the first screen of the report"
is "$(hist_count "$W/out/one/hist-kvm_exit.txt" exit_reason 114)" 500 "CPUID exits by the kernel's count"
is "$(report_value "$W/out/two" '.bill | map(.vcpu) | sort | map(tostring) | join(" ")')" "0 1" "bills of both vCPUs"

# A recorder that is held up loses records: the capture counts them, and says so.
echo "# scenario frozen"
d=$W/out/frozen
read_capture "$d" "$d/exits.vmt" && {
    hits=$(hist_hits "$d/hist-kvm_exit.txt" exit_reason)
    is "$(report_value "$d" ".exits < $hits and .loss.records_lost > 0 and
        .exits + .loss.records_lost >= $hits")" true "what a held-up recorder lost is counted"
    echo "#   $(report_value "$d" '"\(.exits) exits, \(.loss.records_lost) records lost"'), hist $hits"
    "$VMTRACE" report -i "$d/exits.vmt" --max-loss 0 >"$d/max-loss.txt" 2>&1
    is $? 6 "exit status of --max-loss 0"
    head -n 25 "$d/report.txt" | grep -qi 'lost'
    ok $? "the first screen says that records were lost"
}
lab_end
