#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Lab P with two CPUs, each with its own Intel PT: two vCPUs, recorded system-wide.
. "${BASH_SOURCE[0]%/*}/lib.sh"
. "${BASH_SOURCE[0]%/*}/pt.sh"

lab_begin p2
prepare_pt
"$images/initramfs.sh" -k "$kernel" -o "$W/initrd.gz" -i "$images/init" -m kvm-intel \
    -f "$W/exits" -f "$W/ptrec" -f "$top/tests/live/guest_pt2.sh:/lab.sh"
BOCHS_CPUS=2 boot_bochs 400
ok $? "the machine ran to its end"
check_recordings "$top/tests/live/guest_pt2.sh"
lab_end
