#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Lab P with Debian's perf: `perf record -e intel_pt//` on the emulated CPU with Intel PT. perf
# decodes its own user-space recording without an error, and the exits of a system-wide one are
# those of the tracepoints in the same file.
. "${BASH_SOURCE[0]%/*}/lib.sh"

lab_begin pperf
need mke2fs debugfs ldd perf jq
need_ptcpu "$W"
build_fixture exits
mkdir -p "$W/symfs/bin"
cp "$W/exits" "$W/symfs/bin/"
"$images/initramfs.sh" -k "$kernel" -o "$W/initrd.gz" -i "$images/init" -m ata_piix -m sd_mod \
    -m kvm-intel -f "$W/exits" -f "$top/tests/live/guest_pperf.sh:/lab.sh"
: >"$W/env"
make_disk "$(command -v perf)"
boot_bochs 250
ok $? "the machine ran to its end"
read_disk
is "$(grep -a '^LAB-PERF' "$W/serial.log" | tr -d '\r' | tr '\n' ' ')" "LAB-PERF user 0 LAB-PERF system 0 " \
    "perf record ends in order"

perf script -i "$W/out/user.data" --symfs "$W/symfs" --itrace=e >"$W/errors.txt" 2>"$W/perf.err"
is "$(grep -c 'instruction trace error' "$W/errors.txt")" 0 "errors of perf over its user-space recording"
instructions=$(perf script -i "$W/out/user.data" --symfs "$W/symfs" --itrace=i1i -F ip 2>>"$W/perf.err" | wc -l)
[ "$instructions" -gt 10000 ]
ok $? "perf follows the user-space flow"
echo "#   $instructions instructions"

exits=$(perf script -i "$W/out/system.data" --no-itrace -F event 2>>"$W/perf.err" | grep -c kvm_exit)
[ "$exits" -gt 20 ]
ok $? "exits were recorded"
is "$(perf script -i "$W/out/system.data" -D 2>>"$W/perf.err" | grep -ac ' EVD Type 0x02 ')" "$exits" \
    "exits in perf's packets and in the tracepoints"
"$VMTRACE" decode pt "$W/out/system.data" >"$W/packets.txt" 2>"$W/vmtrace.err"
is "$(grep -c 'name=VMXR' "$W/packets.txt")" "$exits" "exits in the packets and in the tracepoints"
lab_end
