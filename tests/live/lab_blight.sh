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
    scenario two --vcpus 2 --out 300 --port 0x80 --cpuid 200 --leaf 7 --hlt 60 --rdmsr 40 --msr 0x17
}
ENV
make_disk "$VMTRACE"
boot_qemu 60 -m 512 -append "$command_line LAB_DISK=1" \
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
is "$(head -n 14 "$W/out/one/report.txt" | grep -c -e 'port:0x3f8:out' -e 0x1025 | awk '{print $1 > 1}')" 1 \
    "the instruction behind the storm is on the first screen of the report"
is "$(hist_count "$W/out/one/hist-kvm_exit.txt" exit_reason 114)" 500 "CPUID exits by the kernel's count"
is "$(report_value "$W/out/two" '.bill | map(.vcpu) | sort | map(tostring) | join(" ")')" "0 1" "bills of both vCPUs"
lab_end
