#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the emulated CPU with Intel PT (as /lab.sh): Debian's perf on its disk.
d=/mnt/out
perf record -q -B -N -e intel_pt//u -o $d/user.data -- \
    exits --out 20 --cpuid 5 --hlt 5 --rdmsr 5 --samples 4 >$d/user.log 2>&1
echo "LAB-PERF user $?"
perf record -q -B -N -a -m 1M,8M -e intel_pt/event,psb_period=0/k -e kvm:kvm_exit -e kvm:kvm_entry \
    -o $d/system.data -- exits --out 20 --cpuid 5 --hlt 5 --rdmsr 5 --samples 4 >$d/system.log 2>&1
echo "LAB-PERF system $?"
