#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside lab B's machine: libvirt with the KVM domain web01, a Linux that runs knock.c. The
# capture is bounded by the domain's pause: it is started paused, and counted and captured from its
# resume to its suspend, so both see every exit. In between it is suspended for a second. Leaves all
# in $LAB_OUT.
# $LAB_OUT/env gives KERNEL, INITRD, O, VMTRACE, RECORDER (vmtrace or perf), LAB_CACHE and, for
# vmtrace, MODULE: the stand-in for Intel PT.
set -uo pipefail
out=$LAB_OUT
events=/sys/kernel/tracing/events
set -a
. "$out/env"
set +a
S=/run/lab W=/run/lab # as libvirtd.sh wants them
mkdir -p $W
export LIBVIRT_DEFAULT_URI=qemu:///system
. "${BASH_SOURCE[0]%/*}/libvirtd.sh"
say() { echo "LAB-STEP $(cut -d ' ' -f 1 /proc/uptime) $*"; }

fail() {
    echo "LAB-ERROR $*"
    cp $W/libvirtd.log "$out/" 2>/dev/null
    exit 1
}

rm -f /usr/bin/qemu-system-i386 # of the overlay only: halves libvirt's probe
private_folders || fail "private folders"
[ -d "$out/capabilities" ] && mkdir -p /var/cache/libvirt/qemu &&
    cp -r "$out/capabilities" /var/cache/libvirt/qemu/
start_libvirtd || fail "libvirtd does not start"
cp -r /var/cache/libvirt/qemu/capabilities "$out/" 2>/dev/null
say "libvirtd runs"

cat >$W/web01.xml <<XML
<domain type='kvm'>
  <name>web01</name>
  <uuid>4dea22b3-1d52-4d8f-a2a5-6f2c1b0c9a0b</uuid>
  <memory unit='MiB'>128</memory>
  <vcpu>1</vcpu>
  <os>
    <type arch='x86_64' machine='q35'>hvm</type>
    <kernel>$KERNEL</kernel>
    <initrd>$INITRD</initrd>
    <cmdline>$CMDLINE</cmdline>
  </os>
  <features><acpi/></features>
  <cpu mode='host-passthrough' check='none' migratable='off'/>
  <clock offset='utc'/>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <serial type='file'><source path='$W/web01.serial'/></serial>
    <controller type='usb' model='none'/>
    <memballoon model='none'/>
  </devices>
</domain>
XML
virsh -q define $W/web01.xml || fail "define web01"
virsh -q start --paused web01 || fail "start web01"
say "web01 is paused"

hist() {
    echo "hist:keys=$2:sort=hitcount.descending:size=4096" >>"$events/kvm/$1/trigger" ||
        echo "LAB-ERROR hist trigger $1 $2"
}
hist kvm_exit exit_reason
hist kvm_exit exit_reason,guest_rip.hex
hist kvm_exit vcpu_id
hist kvm_pio port,rw
hist kvm_cpuid function,index
hist kvm_msr ecx,write
hist kvm_entry vcpu_id
hist kvm_userspace_exit reason

case $RECORDER in
vmtrace)
    "$VMTRACE" list --format json >"$out/list.json" 2>"$out/list.err"
    insmod "$MODULE" || fail "insmod $MODULE"
    "$VMTRACE" start --domain web01 --backend kvm,sched,pt --vm-events-only -o "$out/web01.vmt" --force \
        >"$out/start.txt" 2>&1 || fail "vmtrace start: $(cat "$out/start.txt")"
    ;;
perf)
    perf record -q -a -e 'kvm:*' -e sched:sched_switch -e sched:sched_waking -m 8M \
        -o "$out/perf.data" >"$out/record.log" 2>&1 &
    recorder=$!
    sleep 4
    ;;
esac
say "capture runs"
virsh -q resume web01 || fail "resume web01"
poll 60 grep -q LAB-INIT $W/web01.serial || fail "web01 does not boot: $(tail -c 300 $W/web01.serial)"
virsh -q suspend web01 && sleep 1 && virsh -q resume web01 ||
    fail "suspend and resume web01"
poll 120 grep -q KNOCK-DONE $W/web01.serial || fail "web01 does not finish: $(tail -c 300 $W/web01.serial)"
virsh -q suspend web01 || fail "suspend web01"
say "web01 is paused again"
case $RECORDER in
vmtrace)
    "$VMTRACE" status --format json >"$out/status.json" 2>"$out/status.err"
    "$VMTRACE" stop --domain web01 >"$out/stop.txt" 2>&1 ||
        echo "LAB-ERROR vmtrace stop: $(cat "$out/stop.txt")"
    ;;
perf)
    kill -INT $recorder
    wait $recorder
    ;;
esac
for e in kvm_exit kvm_pio kvm_cpuid kvm_msr kvm_entry kvm_userspace_exit; do
    cat $events/kvm/$e/hist >"$out/hist-$e.txt"
done
for f in /sys/kernel/debug/kvm/*-*/vcpu0/tsc* /sys/kernel/debug/kvm/*-*/exits; do
    [ -f "$f" ] && echo "${f#/sys/kernel/debug/kvm/*/} $(cat "$f")"
done >"$out/debugfs.txt"
cp $W/web01.serial "$out/web01.serial"
cp /run/libvirt/qemu/web01.xml "$out/web01-status.xml" 2>/dev/null
say "captured"
end_domain
stop_libvirtd
cp $W/libvirtd.log "$out/" 2>/dev/null
true
