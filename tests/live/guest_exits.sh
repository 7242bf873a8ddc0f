#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside a test bed (as /lab.sh): the VM program under vmtrace (or perf), beside the kernel's
# own counting, and leaves truth.jsonl, hist-*.txt, debugfs.txt and the capture in /mnt/out.
# /mnt/env may set EXITS (arguments of the VM program), LAB_RECORDER (vmtrace, perf or none) and
# LAB_FORMATS=1 (copy the tracepoints' format texts).
out=/mnt/out
events=/sys/kernel/tracing/events
EXITS="" LAB_RECORDER=vmtrace LAB_FORMATS=0
[ -f /mnt/env ] && . /mnt/env

wait_for() { # wait_for TEXT FILE PID: until the file has the text; fails when the process is gone
    until grep -q "$1" "$2" 2>/dev/null; do
        kill -0 "$3" 2>/dev/null || return 1
        usleep 20000
    done
}

# shellcheck disable=SC2086
exits $EXITS --wait /tmp/go --linger /tmp/end >$out/truth.jsonl 2>$out/exits.err &
vm=$!
wait_for '"ready"' $out/truth.jsonl $vm || {
    echo "LAB-ERROR the VM program failed: $(cat $out/exits.err)"
    exit 1
}
debugfs=$(echo /sys/kernel/debug/kvm/$vm-*)
for f in "$debugfs"/vcpu*/tsc* "$debugfs"/vcpu*/pid; do
    [ -f "$f" ] && echo "${f#"$debugfs"/} $(cat "$f")"
done >$out/debugfs-before.txt
if [ "$LAB_FORMATS" = 1 ]; then
    mkdir -p $out/formats
    for f in $events/kvm/*/format $events/sched/sched_switch/format $events/sched/sched_waking/format; do
        event=${f%/format}
        cat "$f" >"$out/formats/${event##*/}.format"
    done
fi

hist() { # hist EVENT KEYS: one file per event and keys
    echo "hist:keys=$2:sort=hitcount.descending:size=4096" >>"$events/kvm/$1/trigger" ||
        echo "LAB-ERROR hist trigger $1 $2"
}
hist kvm_exit exit_reason
hist kvm_exit exit_reason,guest_rip
hist kvm_pio port,rw
hist kvm_cpuid function,index
hist kvm_msr ecx,write
hist kvm_entry vcpu_id
hist kvm_userspace_exit reason

cat >/tmp/run.sh <<'RUN'
touch /tmp/go
until grep -q '"done"' /mnt/out/truth.jsonl || ! kill -0 "$1"; do usleep 20000; done
RUN
case $LAB_RECORDER in
vmtrace) vmtrace record --pid $vm -o $out/exits.vmt --force -- sh /tmp/run.sh $vm >$out/record.log 2>&1 ;;
perf)
    perf record -q -a -e 'kvm:*' -e sched:sched_switch -e sched:sched_waking -m 8M \
        -o $out/perf.data -- sh /tmp/run.sh $vm >$out/record.log 2>&1
    ;;
none) sh /tmp/run.sh $vm >$out/record.log 2>&1 ;;
esac
echo "LAB-RECORD $? $(tail -n 2 $out/record.log | tr '\n' ' ')"

for e in kvm_exit kvm_pio kvm_cpuid kvm_msr kvm_entry kvm_userspace_exit; do
    cat $events/kvm/$e/hist >$out/hist-$e.txt
done
for f in "$debugfs"/* "$debugfs"/vcpu*/*; do
    [ -f "$f" ] && echo "${f#"$debugfs"/} $(cat "$f" 2>/dev/null | head -n 1)"
done >$out/debugfs.txt
touch /tmp/end
wait $vm
