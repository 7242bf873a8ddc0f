#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Lab C: kvm-intel on the VMX that Bochs emulates, a guest at half the host's TSC rate, vmtrace
# beside it. Exits, sub-keys and RIPs as in lab B-light, and the TSC maths to the last unit.
. "${BASH_SOURCE[0]%/*}/lib.sh"
. "${BASH_SOURCE[0]%/*}/compare.sh"

lab_begin c
need bochs-bin xorriso jq mke2fs debugfs ldd /usr/lib/ISOLINUX/isolinux.bin \
    /usr/lib/syslinux/modules/bios/ldlinux.c32 /usr/share/bochs/BIOS-bochs-latest
need_vmtrace
need_kernel
build_fixture exits
make_initrd ata_piix sd_mod kvm-intel

cat >"$W/env" <<'ENV'
scenarios() { scenario half --tsc-khz 1749956; }
ENV
make_disk "$VMTRACE"
boot_bochs 180
ok $? "the machine ran to its end"
read_disk

d=$W/out/half
is "$(cat "$d/record.status" 2>&1)" 0 "vmtrace record --pid ends in order"
read_capture "$d" "$d/exits.vmt" || lab_end
compare_hist "$d"
compare_loss "$d"
compare_truth "$d" 12
is "$(debugfs_value "$d" vcpu0/tsc-scaling-ratio)" 140737488355328 "TSC ratio of a half-rate guest"
compare_tsc "$d" "$d/exits.vmt"
lab_end
