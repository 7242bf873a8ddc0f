#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the emulated CPU with Intel PT (as /lab.sh): one recording after another; each leaves
# its streams and its truth with the bed. perf config bits: pt 0, cyc 1, mtc 9, tsc 10,
# noretcomp 11, branch 13, mtc_period 17:14, psb_period 27:24, event 31.
pmu=/sys/bus/event_source/devices/intel_pt
for f in $pmu/nr_addr_filters $pmu/max_nonturbo_ratio $pmu/tsc_art_ratio $pmu/caps/*; do
    echo "LAB-PMU ${f##*/} $(cat "$f")"
done
recordings() {
    ptrec --config 0xe601 --vm 30 system
    ptrec --config 0x8000e601 --vm 30 --long events
    ptrec --config 0x8000c601 --vm 30 --long nobranch
    ptrec --config 0xe603 --vm 30 cycles
    ptrec --config 0x8000e601 --vm 30 --khz 1749956 --long half
    ptrec --config 0x8000e601 --vm 30 --long --conceal concealed
    ptrec --guest-only 0x8000250d --vm 40 --long guestonly
    ptrec --guest-only 0x8000250d --vm 40 --conceal guestconceal
    ptrec --guest-only 0x8000258d --vm 40 --long guestcr3
    ptrec --guest-only 0x8000250d --vm 40 --khz 1749956 --long guesthalf
    ptrec --config 0x8000e601 --overflow 20000 --vm 30 overflow
    ptrec --config 0xe601 --pages 4 --no-drain --vm 60 lost
    ptrec --config 0xe601 --pages 4 --snapshot --vm 30 snapshot
    ptrec --config 0x8000e601 --user --vm 30 user
    ptrec --config 0xe601 --filter 'filter 0xffffffff81a00000/0x200000' --vm 30 filter
    ptrec --config 0xe601 --filter 'stop 0xffffffff81c00be0/0x10' --vm 30 tracestop
    ptrec --config 0x8000e601 biginject exits --halt-us 2000 --hlt 8 --out 4 --cpuid 0 --rdmsr 0 --samples 4
    ptrec --config 0xee01 --watermark 65536 --pages 64 big \
        sh -c 'for i in 1 2; do exits --out 40 --cpuid 20 --hlt 20 --rdmsr 20 --samples 8; done'
}
recordings
ptchecks
rmmod kvm_intel
insmod /kvm-intel-pt.ko # KVM's host-guest mode
ptrec --vm 1 --self selfconceal
