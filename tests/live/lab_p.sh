#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Lab P: Bochs made into a CPU with Intel PT (virt-fixtures/ptcpu). The kernel's own intel_pt driver
# records KVM guests in every way of guest_pt.sh; what it delivers is compared with what the CPU
# wrote, and decoded and compared with what the CPU did, by this project and by libipt.
. "${BASH_SOURCE[0]%/*}/lib.sh"
. "${BASH_SOURCE[0]%/*}/pt.sh"

lab_begin p
prepare_pt
need readelf objcopy
"$guest/kvm-pt-mode.sh" "$kernel" "$W/kvm-intel-pt.ko" || skip_all "kvm-intel.ko has no pt_mode"
"$images/initramfs.sh" -k "$kernel" -o "$W/initrd.gz" -i "$images/init" -m msr -m kvm-intel \
    -f "$W/exits" -f "$W/ptrec" -f "$W/ptchecks" -f "$W/kvm-intel-pt.ko:/kvm-intel-pt.ko" \
    -f "$top/tests/live/guest_pt.sh:/lab.sh"
boot_bochs 250
ok $? "the machine ran to its end"
for want in "event_trace 1" "psb_periods 3f" "num_address_ranges 2" "tsc_art_ratio 292:2"; do
    grep -qa "^LAB-PMU $want" "$W/serial.log"
    ok $? "the driver shows $want"
done
is "$(grep -ac '^LAB-CHECK .* good' "$W/serial.log") of $(grep -ac '^LAB-CHECK ' "$W/serial.log")" \
    "45 of 45" "refusals of illegal settings"
grep -a '^LAB-CHECK .* bad' "$W/serial.log" | sed 's/^/#   /'
check_recordings "$top/tests/live/guest_pt.sh"

# Fixed counter 0 counted about as many instructions as were traced.
counted=$(sed -nE 's/^LAB-PTREC big .* instructions ([0-9]+).*/\1/p' "$W/serial.log")
traced=$(sed -nE 's/^# big.cpu0.truth: ([0-9]+) instructions/\1/p' "$W/test_ptcpu_libipt.tap")
if [ -n "$traced" ]; then
    [ $((counted * 100)) -gt $((traced * 95)) ] && [ $((counted * 100)) -lt $((traced * 105)) ]
    ok $? "the fixed counter of instructions: $counted counted, $traced traced"
else
    skip "the fixed counter of instructions: no libipt"
fi
lab_end
