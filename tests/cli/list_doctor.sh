#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# list and doctor on libvirt's test driver: text, JSON, CSV, exit status.
set -uo pipefail
top=${VMT_TOP:-$(cd "$(dirname "$0")/../.." && pwd)}
VMTRACE=${VMTRACE:-$top/build/vmtrace}
case $top in /*) ;; *) top=$PWD/$top ;; esac
uri=test://$top/virt-fixtures/libvirt/node-web01.xml
W=$(mktemp -d)
trap 'rm -rf "$W"' EXIT
n=0 failed=0
ok() {
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $n - $2"
    else
        failed=$((failed + 1))
        echo "not ok $n - $2"
        sed 's/^/# /' "$W/out" "$W/err"
    fi
}
# run STATUS ARGUMENT...: output in $W/out and $W/err; true when the exit status is this one.
run() {
    local want=$1
    shift
    "$VMTRACE" "$@" >"$W/out" 2>"$W/err" </dev/null
    [ $? -eq "$want" ]
}
json() { jq -e "$1" "$W/out" >/dev/null; }
has() { grep -q -- "$1" "$W/${2:-out}"; }

run 0 list -c "$uri" && has '^ Id ' && has '^ 1 .*web01 .*running' && ! has db01
ok $? "list shows running domains"
run 0 list -c "$uri" --all && has '^ - .*db01 .*shut off'
ok $? "list --all shows the others too"
COLUMNS=80 run 0 list -c "$uri" --all -v && [ "$(LC_ALL=C.UTF-8 awk '{print length($0)}' "$W/out" | sort -n | tail -n 1)" -le 80 ]
ok $? "list -v fits 80 columns"
COLUMNS=200 run 0 list -c "$uri" --all && has '^ Id   Name  State  .* Trace$' && has '^ 1    web01 running  .* replay$'
ok $? "list at 200 columns: names as wide as the longest"
run 0 list -c "$uri" --all --format json &&
    json '.schema == "vmtrace-list/1" and (.domains | length) == 2' &&
    json '.domains[1] | .name == "web01" and .id == 1 and .pid == null and .pid_source == null and
        .agent == true and .trace == ["replay"] and (.vcpus | length) == 2 and
        .vcpus[1].host_cpu == 1 and .vcpus[1].tid == null and .vcpus[1].tsc_offset == null' &&
    json '.domains[0] | .name == "db01" and .id == null and .state == "shut off" and .trace == []'
ok $? "list as JSON: unknown is null"
run 0 list -c "$uri" --vcpu 1 --format json && json '.domains[0].vcpus | length == 1 and .[0].id == 1'
ok $? "list --vcpu"
run 0 list -c "$uri" --all --format csv && [ "$(wc -l <"$W/out")" -eq 4 ] && has '^1,web01,' &&
    [ "$(awk -F, '{print NF}' "$W/out" | sort -u)" = 17 ]
ok $? "list as CSV: a line a vCPU"
for what in web01 1 4dea22b3-1d52-4d8f-a2a5-6f2c1b0c9a01; do
    run 0 list -c "$uri" -d "$what" && has web01
    ok $? "a domain by $what"
done
run 3 list -c "$uri" -d wbe01 && has "error: no domain 'wbe01'" err && has 'near it: web01' err && [ ! -s "$W/out" ]
ok $? "a missing domain: exit status 3, near names"
run 1 list -c 'qemu+unix:///system?socket=/nonexistent/sock' -d web01 && has '^vmtrace: error: libvirt' err &&
    [ "$(wc -l <"$W/err")" -eq 2 ]
ok $? "no libvirt: exit status 1, cause and cure"
run 3 list --pid 4194303 && has 'no process 4194303' err
ok $? "a missing process: exit status 3"
run 3 list --pid $$ && has 'runs no KVM virtual machine' err
ok $? "a process without KVM: exit status 3"
run 0 list -c "$uri" -o "$W/list" && [ -s "$W/list" ] && run 1 list -c "$uri" -o "$W/list" &&
    run 0 list -c "$uri" -o "$W/list" --force
ok $? "list -o keeps an existing file unless --force"

"$VMTRACE" doctor -c "$uri" --format json >"$W/out" 2>"$W/err"
status=$?
if [ $status -eq 0 ]; then
    json '.kvm_traceable and .blocked_by == null'
else
    [ $status -eq 5 ] && json '(.kvm_traceable | not) and .blocked_by != null'
fi
ok $? "doctor: exit status 0 or 5, as its document says ($status)"
json '.schema == "vmtrace-doctor/1" and ([.host[].id] | index("tracefs") != null) and
    ([.host[] | select(.status == "blocked" or .status == "warn") | .cure != null] | all)' &&
    json '.host[] | select(.id == "libvirt") | .status == "ok"'
ok $? "doctor: whatever is not well has a cure"
"$VMTRACE" doctor -c "$uri" >"$W/out" 2>"$W/err"
[ $? -eq $status ] && has '^host$' && has '^kvm tracing is ' &&
    [ "$(LC_ALL=C.UTF-8 awk '{print length($0)}' "$W/out" | sort -n | tail -n 1)" -le 80 ]
ok $? "doctor as text fits 80 columns"
run 5 doctor -c "$uri" -d web01 --format json && json '.domains[0].name == "web01" and
    (.domains[0].checks[] | select(.id == "type") | .status == "blocked") and .blocked_by != null'
ok $? "doctor -d: a test domain cannot be traced, exit status 5"
run 5 doctor -c "$uri" -d web01 --format csv && has '^where,id,status' && has '^web01,type,blocked,1,'
ok $? "doctor as CSV"
if [ -e /sys/bus/event_source/devices/intel_pt ]; then
    "$VMTRACE" doctor -c "$uri" --backend kvm,pt --format json >"$W/out" 2>"$W/err"
    json '[.host[].id] | index("pt-vmx") != null and index("pt-free") != null'
else
    run 5 doctor -c "$uri" --backend pt --format json && json '.blocked_by != null and (.traceable | not)' &&
        run 5 doctor -c "$uri" --backend pt && has '^pt tracing is blocked: '
fi
ok $? "doctor --backend pt: what blocks Intel PT"
run 2 doctor -c "$uri" --backend kvm,nope && has 'a list of kvm, sched and pt' err
ok $? "doctor --backend: an unknown name, exit status 2"
run 3 doctor -c "$uri" -d nope && has "no domain 'nope'" err
ok $? "doctor -d: a missing domain, exit status 3"
echo "1..$n"
[ "$failed" -eq 0 ]
