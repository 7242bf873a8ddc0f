#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside a test bed (as /lab.sh): the VM program under a recorder, beside the kernel's own
# counting. /mnt/env has LAB_RECORDER (vmtrace, perf or none), LAB_FORMATS=1 to copy the format
# texts of the tracepoints, and a function scenarios that calls `scenario NAME ARGUMENT...` with
# the VM program's arguments. RECORD_OPTIONS are vmtrace record's; with FREEZE=1 the recorder is
# stopped (SIGSTOP) while the VM runs, with KILL=1 it is killed at its end. Each scenario leaves
# truth.jsonl, hist-*.txt, debugfs.txt and the capture in /mnt/out/NAME.
events=/sys/kernel/tracing/events
counted="kvm_exit kvm_entry kvm_pio kvm_cpuid kvm_msr kvm_userspace_exit"
LAB_RECORDER=vmtrace LAB_FORMATS=0 RECORD_OPTIONS="" FREEZE=0 KILL=0
status=0

hist() { # hist EVENT KEYS
    echo "hist:keys=$2:sort=hitcount.descending:size=4096" >>"$events/kvm/$1/trigger" ||
        echo "LAB-ERROR hist trigger $1 $2"
}

start_counting() {
    hist kvm_exit exit_reason
    hist kvm_exit exit_reason,guest_rip.hex
    hist kvm_exit vcpu_id
    hist kvm_entry vcpu_id
    hist kvm_pio port,rw
    hist kvm_cpuid function,index
    hist kvm_msr ecx,write
    hist kvm_userspace_exit reason
}

stop_counting() { # stop_counting FOLDER
    for e in $counted; do
        cat "$events/kvm/$e/hist" >"$1/hist-$e.txt"
        grep '^hist' "$events/kvm/$e/trigger" | while read -r line; do
            echo "!${line% \[*}" >>"$events/kvm/$e/trigger"
        done
    done
}

record() { # record FOLDER PID COMMAND...
    out=$1 pid=$2
    shift 2
    case $LAB_RECORDER in
    vmtrace) vmtrace record --pid "$pid" -o "$out/exits.vmt" --force $RECORD_OPTIONS -- "$@" ;;
    perf) perf record -q -a -e 'kvm:*' -e sched:sched_switch -e sched:sched_waking -m 8M \
        -o "$out/perf.data" -- "$@" ;;
    *) "$@" ;;
    esac >"$out/record.log" 2>&1
    echo $? >"$out/record.status"
}

scenario() { # scenario NAME ARGUMENT...
    out=/mnt/out/$1
    shift
    mkdir -p "$out"
    rm -f /tmp/go /tmp/end
    exits "$@" --wait /tmp/go --linger /tmp/end >"$out/truth.jsonl" 2>"$out/exits.err" &
    vm=$!
    until grep -q '"ready"' "$out/truth.jsonl" 2>/dev/null; do
        kill -0 $vm 2>/dev/null || {
            echo "LAB-ERROR the VM program: $(cat "$out/exits.err")"
            status=1
            return
        }
        usleep 10000
    done
    debugfs=$(echo /sys/kernel/debug/kvm/$vm-*)
    start_counting
    record "$out" $vm sh -c "[ $FREEZE = 0 ] || kill -STOP \$PPID
        touch /tmp/go
        until grep -q '\"done\"' $out/truth.jsonl || ! kill -0 $vm; do usleep 20000; done
        [ $FREEZE = 0 ] || kill -CONT \$PPID
        [ $KILL = 0 ] || kill -KILL \$PPID"
    touch /tmp/go # a recorder that failed at once has not let it run
    until grep -q '"done"' "$out/truth.jsonl" || ! kill -0 $vm; do
        usleep 20000
    done
    stop_counting "$out"
    for f in "$debugfs"/exits "$debugfs"/halt_*_ns "$debugfs"/vcpu*/tsc*; do
        [ -f "$f" ] && echo "${f#"$debugfs"/} $(cat "$f")"
    done >"$out/debugfs.txt"
    touch /tmp/end
    wait $vm
    echo "LAB-SCENARIO ${out##*/} recorder status $(cat "$out/record.status") $(cut -d ' ' -f 1 /proc/uptime)"
}

. /mnt/env
if [ "$LAB_FORMATS" = 1 ]; then
    mkdir -p /mnt/out/formats
    for f in $events/kvm/*/format $events/sched/sched_switch/format $events/sched/sched_waking/format; do
        e=${f%/format}
        cat "$f" >"/mnt/out/formats/${e##*/}.format"
    done
fi
scenarios
exit $status
