#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the emulated CPU with Intel PT (as /lab.sh): one recording after another; each leaves
# its streams and its truth with the bed. perf config bits: pt 0, cyc 1, mtc 9, tsc 10,
# noretcomp 11, branch 13, mtc_period 17:14, psb_period 27:24, event 31.
pmu=/sys/bus/event_source/devices/intel_pt
for f in nr_addr_filters max_nonturbo_ratio tsc_art_ratio caps/*; do
    echo "LAB-PMU ${f#caps/} $(cat $pmu/$f 2>/dev/null)"
done
for f in $pmu/caps/*; do
    echo "LAB-PMU ${f##*/} $(cat "$f")"
done
recordings() {
    ptrec --config 0xe601 --vm 6 system
    ptrec --config 0x8000e601 --vm 6 --long events
    ptrec --config 0x8000c601 --vm 6 --long nobranch
    ptrec --config 0xe603 --vm 6 cycles
    ptrec --config 0x8000e601 --vm 12 --khz 1749956 --long half
    ptrec --config 0x8000e601 --vm 6 --long --conceal concealed
    ptrec --guest-only 0x8000250d --vm 40 --long guestonly
    ptrec --guest-only 0x8000250d --vm 40 --conceal guestconceal
    ptrec --config 0x8000e601 --overflow 20000 --vm 6 overflow
    ptrec --config 0xe601 --pages 2 --no-drain --vm 6 lost
    ptrec --config 0xe601 --pages 4 --snapshot --vm 6 snapshot
    ptrec --config 0x8000e601 --user --vm 6 user
    ptrec --config 0xe601 --filter 'filter 0xffffffff81a00000/0x200000' --vm 6 filter
    ptrec --config 0xee01 --watermark 65536 --pages 64 big exits --out 40 --cpuid 20 --hlt 20 --rdmsr 20 --samples 8
}
recordings
