#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Lab A: a real libvirtd and a QEMU domain without KVM (TCG): how a domain and its threads are found,
# and a session that lives through pause, resume, reset, a restart of libvirtd and the end.
. "${BASH_SOURCE[0]%/*}/lib.sh"
. "${BASH_SOURCE[0]%/*}/libvirtd.sh"
enter_namespace a

start_libvirtd
ok $? "libvirtd runs without systemd"
define_domain qemu "<cpu mode='custom' match='exact' check='none'><model fallback='allow'>Nehalem</model></cpu>" \
    >"$W/define.log" 2>&1
ok $? "web01 is defined"

# ---- shut off ----
list_json --all
is "$(list_value '.domains[] | select(.name) | "\(.name) \(.state) \(.pid) \(.trace | length)"')" "web01 shut off null 0" \
    "list --all shows it shut off"
timeout 20 "$VMTRACE" start -d web01 -o "$W/off.vmt" >"$W/off.out" 2>&1
is $? 3 "start refuses a domain that is shut off, exit status"
timeout 20 "$VMTRACE" list -d wbe01 >"$W/near.out" 2>&1
is $? 3 "a wrong name, exit status"
check "the wrong name's error shows the near one" grep -q web01 "$W/near.out"

# ---- running: every fact against libvirt's and QEMU's own word ----
virsh -q start web01 >"$W/start.log" 2>&1
ok $? "web01 starts"
list_json -d web01
qemu=$(cat /run/libvirt/qemu/web01.pid)
is "$(list_value '.domains[0].pid')" "$qemu" "QEMU's pid"
is "$(list_value '.domains[0] | "\(.type) \(.state) \(.pid_source) \(.vm_fd)"')" "qemu running pid file null" "type, state, source"
is "$(list_value '.domains[0].trace | join(",")')" sched "what can be traced of it"
is "$(list_value '.domains[0] | "\(.agent) \(.agent_connected)"')" "true false" "its agent channel"
is "$(list_value '.domains[0].vcpus[] | "\(.id) \(.tid) \(.tid_source)"' | tr '\n' ' ')" \
    "$(for t in /proc/"$qemu"/task/*; do
        sed -n "s#^CPU \([0-9]*\)/TCG\$#\1 ${t##*/} thread name#p" "$t/comm"
    done | sort -n | tr '\n' ' ')" "vCPU threads by name"
is "$(list_value '.domains[0].threads[] | select(.role == "emulator") | .tid')" "$qemu" "the emulator thread"
is "$(list_value '[.domains[0].threads[] | select(.role == "iothread" and .name == "IO iothread1")] | length')" 1 "the iothread"
check "finding it has not tainted it" sh -c "! virsh dominfo web01 | grep -q custom-monitor; \
    ! grep -q custom-monitor /run/libvirt/qemu/web01.xml"
list_value '.domains[0].vcpus[] | "\(.id) \(.tid)"' >"$W/by-name.txt"
virsh qemu-monitor-command web01 '{"execute":"query-cpus-fast"}' |
    jq -r '.return[] | "\(."cpu-index") \(."thread-id")"' >"$W/by-qmp.txt"
check "QEMU's monitor says the same threads" cmp "$W/by-name.txt" "$W/by-qmp.txt"
list_json -d web01 --monitor
is "$(list_value '[.domains[0].vcpus[].tid_source] | unique | join(" ")')" monitor "--monitor asks QEMU"
list_value '.domains[0].vcpus[] | "\(.id) \(.tid)"' >"$W/by-monitor.txt"
check "--monitor gives the same threads" cmp "$W/by-name.txt" "$W/by-monitor.txt"
timeout 20 "$VMTRACE" doctor -d web01 --format json >"$W/doctor.json" 2>"$W/doctor.err"
is $? 5 "doctor: no kvm tracing of an emulated CPU, exit status"
is "$(jq -r '.domains[0].checks[] | select(.status == "blocked") | .id' "$W/doctor.json")" type "what blocks it"

# ---- a session through everything that happens to a domain ----
timeout 60 "$VMTRACE" start -d web01 --backend sched -o "$W/a.vmt" --force >"$W/session.out" 2>&1
status=$?
ok $status "start --backend sched"
[ $status -eq 0 ] || sed 's/^/#   /' "$W/session.out"
timeout 20 "$VMTRACE" status --format json >"$W/status.json" 2>&1
is "$(jq -r '.sessions[] | "\(.state) \(.domains | join(","))"' "$W/status.json" 2>&1)" "running web01" "status"
timeout 20 "$VMTRACE" start -d web01 -o "$W/second.vmt" >"$W/second.out" 2>&1
[ $? -ne 0 ]
ok $? "a second session of the same domain is refused"
step() { # step COMMAND...: and time for its events
    timeout 30 "$@" >>"$W/steps.log" 2>&1 || echo "failed: $*" >>"$W/steps.log"
    sleep 1
}
step virsh suspend web01
step virsh resume web01
step virsh reset web01
sleep 2 # the firmware's own reset events come late
pid=$(libvirtd_pid)
kill -STOP "$pid"
timeout 20 "$VMTRACE" list -d web01 >"$W/hung.out" 2>&1
is $? 1 "list with a libvirtd that hangs, exit status"
check "the error says that libvirt does not answer" grep -q 'no answer within 3000 ms' "$W/hung.out"
kill -CONT "$pid"
sleep 1
stop_libvirtd
sleep 1
start_libvirtd
ok $? "libvirtd starts again"
sleep 5 # the watch tries at most 4 s apart
step virsh destroy web01
ended() { ! "$VMTRACE" status --format json | jq -e '.sessions[] | select(.state == "running")'; }
poll 20 ended
ok $? "the session ends with its only domain"
grep '^failed' "$W/steps.log" | sed 's/^/#   /'

timeout 60 "$VMTRACE" script -i "$W/a.vmt" --type mark --format json >"$W/marks.jsonl" 2>"$W/script.err"
ok $? "script reads the capture"
is "$(jq -r 'select(.type == "mark") | .name' "$W/marks.jsonl" | grep -v '^capture-' | tr '\n' ' ')" \
    "paused resumed reset connection-lost connection-back stopped " "each event once, in order"
timeout 60 "$VMTRACE" report -i "$W/a.vmt" --format json >"$W/report.json" 2>"$W/report.err"
ok $? "report reads the capture"
is "$(jq -r '.loss | "\(.truncated) \(.bytes_skipped)"' "$W/report.json")" "false 0" "it is whole: truncated, bytes skipped"
list_json --all
is "$(list_value '.domains[] | select(.name) | "\(.name) \(.state)"')" "web01 shut off" "list after the end"
lab_end
