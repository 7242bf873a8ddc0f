#!/usr/bin/env bash
# The verbs of a session as a person types them, on a replayed capture: start, status, snapshot, stop, record; texts,
# JSON, exit statuses.
set -uo pipefail
O=${O:-build} VMT_TOP=${VMT_TOP:-$PWD} VMTRACE=${VMTRACE:-$O/vmtrace}
case $O in /*) ;; *) O=$VMT_TOP/$O ;; esac
case $VMTRACE in /*) ;; *) VMTRACE=$VMT_TOP/$VMTRACE ;; esac
n=0
ok() { # NAME: the status of the command before decides
    local status=$?
    n=$((n + 1))
    if [ $status -eq 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; fi
}
if [ ! -x "$O/tests/tools/gen_capture" ]; then
    echo "1..1"
    echo "ok 1 # skip gen_capture is not built"
    exit 0
fi
work=$(mktemp -d)
export VMT_TOP VMTRACE_RUNTIME_DIR=$work/run
export LIBVIRT_DEFAULT_URI=test://$VMT_TOP/virt-fixtures/libvirt/node-web01.xml
trap '"$VMTRACE" stop --all -q >/dev/null 2>&1; rm -rf "$work"' EXIT
cd "$work" || exit 1
"$O/tests/tools/gen_capture" recorded.vmt >/dev/null
replay=replay:$work/recorded.vmt
cp recorded.vmt copy.vmt
# run NAME STATUS PATTERN COMMAND...: exit status, and a line of either stream
run() {
    local name=$1 status=$2 pattern=$3 got
    shift 3
    "$VMTRACE" "$@" >out 2>err </dev/null
    got=$?
    [ $got -eq "$status" ] && grep -qE -- "$pattern" out err
    ok "$name"
    if [ $got -ne "$status" ] || ! grep -qE -- "$pattern" out err; then
        sed 's/^/# /' out err
        echo "# status $got, wanted $status and /$pattern/"
    fi
}

run "status: nothing runs" 0 '^no session is running$' status
run "start: no domain is named" 2 'no domain is named' start
run "start: unknown domain" 3 "web99" start -d web99 --backend "$replay"
run "start: to standard output" 2 'vmtrace record -o -' start -d web01 --backend "$replay" -o -
run "start: unknown backend" 2 "unknown backend 'x'" start -d web01 --backend x
run "start: a backend that is not here" 5 'no backend pmu' start -d web01 --backend pmu
if [ -d /sys/kernel/tracing/events/kvm ] || [ -d /sys/kernel/debug/tracing/events/kvm ]; then
    run "start: a domain without a process" 5 "start --backend replay:FILE" start -d web01
    run "start: no such process" 3 'name the process id of a running QEMU' start --pid 999999999
fi
run "start: no such recording" 1 'No such file' start -d web01 --backend replay:nothing.vmt
echo garbage >garbage
cp recorded.vmt old.vmt
run "start: options of Intel PT alone" 2 'add --backend kvm,pt' start -d web01 --backend "$replay" --system-wide -o pt.vmt
run "start: one side of Intel PT that is not asked for" 2 'add --backend kvm,pt' start -d web01 --backend "$replay" --mode guest-only -o pt.vmt
run "start: a mode that is none" 2 'guest-only or host-only' start -d web01 --backend "$replay" --mode both
run "record: two sides" 2 'leave one of them off' record --backend "$replay" --mode guest-only --privacy host -o pt.vmt
run "record: a side that is none" 2 'guest or host' record --backend "$replay" --privacy both -o pt.vmt
run "record: what is no recording" 6 'no .vmt file' record --backend "replay:$work/garbage" -o new.vmt
[ ! -e new.vmt ]
ok "a capture that did not come up leaves no file"
run "record: --force in vain" 6 'no .vmt file' record --backend "replay:$work/garbage" -o old.vmt --force
cmp -s recorded.vmt old.vmt
ok "what --force could not replace is as it was"
mkfifo fifo
cat fifo >/dev/null &
run "record: to a FIFO in vain" 6 'no .vmt file' record --backend "replay:$work/garbage" -o fifo
[ -p fifo ]
ok "a FIFO or device stays"
wait $!
run "stop: nothing runs" 3 'no session of web01' stop -d web01

run "start" 0 '^session s-[0-9]+-[0-9]+-[0-9]+ captures web01$' start -d web01 --backend "$replay" -o live.vmt
[ "$(stat -c %a live.vmt)" = 600 ]
ok "the file is its owner's alone"
run "start: a second one" 1 'already has a session: s-' start -d web01 --backend "$replay"
run "start: the file is kept" 1 'live.vmt' start --backend "$replay" -o live.vmt
run "start: into the file of a session" 1 'a running session records into' \
    start --backend "$replay" -o live.vmt --force
run "start: over what is replayed" 1 'is the file to be replayed' \
    start --backend "$replay" -o recorded.vmt --force
cmp -s recorded.vmt copy.vmt
ok "the recording is whole"
run "status" 0 '^s-[-0-9]+  running  web01$' status
run "status of a domain" 0 '^  records  [0-9]+, of these [0-9]+ exits' status web01
"$VMTRACE" status --format json | jq -e '.schema == "vmtrace-sessions/1" and (.sessions | length) == 1 and
    .sessions[0].state == "running" and .sessions[0].domains == ["web01"] and .sessions[0].file == "'"$work"'/live.vmt"' >/dev/null
ok "status as json"
run "status as csv" 0 '^s-[-0-9]+,running,"web01",' status --format csv
run "status tells the own cost" 0 '^  cost     [0-9.]+ ms of CPU' status web01
run "list: who is recorded" 0 "^ +session s-[-0-9]+ records" list -c "$LIBVIRT_DEFAULT_URI"
"$VMTRACE" list --format json | jq -e '.domains[0].session.file == "'"$work"'/live.vmt"' >/dev/null
ok "list as json: the session"
run "status of another domain" 3 'no session of db01' status -d db01
run "snapshot" 0 '^snap.vmt \(.*goes on$' snapshot -d web01 -o snap.vmt
run "snapshot: an output is kept" 1 'snap.vmt' snapshot -d web01 -o snap.vmt
run "snapshot: into the session's file" 1 'a running session records into' snapshot -d web01 -o live.vmt --force
ln live.vmt other-name.vmt
run "snapshot: by another name" 1 'a running session records into' snapshot -d web01 -o other-name.vmt --force
rm other-name.vmt
"$VMTRACE" snapshot -d web01 -o - 2>err >snap2.vmt
head -c 8 snap2.vmt | cmp -s - <(head -c 8 snap.vmt) && grep -q '^standard output (.* goes on$' err && [ ! -e ./- ]
ok "snapshot to standard output"
run "report: the file is still being recorded" 0 'The capture is still being recorded' report live.vmt
"$VMTRACE" report live.vmt --format json >live.json
jq -e '.recording and ([.verdicts[] | select(.id == "truncated" and .severity != "note")] == [])' live.json >/dev/null
ok "report: its end is not cut off"
"$VMTRACE" stop -d web01 --format json >stop.json
[ -s stop.json ] && jq -e '.schema == "vmtrace-session-state/1" and .state == "stopped" and .records > 0 and .records_lost == 0' stop.json >/dev/null
ok "stop as json"
[ -s live.vmt ] && [ "$(jq .file_bytes stop.json)" = "$(stat -c %s live.vmt)" ]
ok "stop tells the size of the file"
"$VMTRACE" report live.vmt --format json | jq -e '.recording | not' >/dev/null
ok "report: it is over"
run "stop: it is over" 3 "its capture is $work/live.vmt" stop -d web01

run "start: a trigger that cannot be read" 2 "a trigger cannot be read at offset 7: 'exits>5T/s'" \
    start -d web01 --backend "$replay" --trigger 'exits>5T/s'
run "and what is expected" 2 'expected there: k, M, G or /s' start -d web01 --backend "$replay" --trigger 'exits>5T/s'
run "start: --before of no trigger" 2 'add --trigger EXPR' start -d web01 --backend "$replay" --before 1s
run "record: a trigger fires" 0 '^  trigger  reason=IO_INSTRUCTION>10k/s; steal>90%: fired 1 times$' \
    record -d web01 --backend "$replay" -o trigger.vmt --trigger 'reason=IO_INSTRUCTION>10k/s' --trigger 'steal>90%' \
    --before 300ms --after 100ms --duration 2400ms
ls trigger-snapshot-*.vmt >names && [ "$(wc -l <names)" = 1 ] && [ "$(stat -c %a trigger-snapshot-*.vmt)" = 600 ]
ok "and leaves a snapshot"
"$VMTRACE" script trigger.vmt --type mark | grep -q ' trigger$'
ok "the moment is a mark"
"$VMTRACE" report trigger-snapshot-*.vmt --format json |
    jq -e '[.rows[] | select(.reason_name == "IO_INSTRUCTION" and .count > 1000)] != [] and
        (.bill[0].wall_ns < 900000000) and .loss.records_lost == 0' >/dev/null
ok "of that stretch alone"

run "start to be asked by a signal" 0 'captures web01' start -d web01 --backend "$replay" -o asked.vmt
kill -USR2 "$("$VMTRACE" status --format json | jq '.sessions[0].pid')"
for _ in $(seq 500); do "$VMTRACE" status | grep -q '^  snapshot ' && break; sleep 0.01; done
run "SIGUSR2 takes a snapshot" 0 "^  snapshot 1 taken, the last is $work/asked-snapshot-[-0-9]+.vmt$" status
"$VMTRACE" report "$("$VMTRACE" status --format json | jq -r '.sessions[0].last_snapshot')" | grep -q '^web01: 2 vCPUs'
ok "which can be read"
kill -USR2 "$("$VMTRACE" status --format json | jq '.sessions[0].pid')"
"$VMTRACE" stop -d web01 --format json | jq -e '.snapshots == 2' >/dev/null
ok "one that is due at the end is taken"
[ "$(find . -name 'asked-snapshot-*.vmt' | wc -l)" = 2 ]
ok "none replaces another"

run "start without -o" 0 "^  file $work/run/data/vmtrace-web01-" start -d web01 --backend "$replay"
pid=$("$VMTRACE" status --format json | jq '.sessions[0].pid')
file=$("$VMTRACE" status --format json | jq -r '.sessions[0].file')
kill -9 "$pid"
while kill -0 "$pid" 2>/dev/null; do sleep 0.01; done
run "status after kill -9" 0 "was killed; the capture up to then is $file" status
run "status once more" 0 '^no session is running$' status
run "start and stop again" 0 'captures web01' start -d web01 --backend "$replay"
run "stop, the only one" 0 '^web01: .* exits, 0 records lost$' stop

echo precious >old.vmt
run "record --force: no such recording" 1 'No such file' record --backend replay:nothing.vmt -o old.vmt --force
[ "$(cat old.vmt)" = precious ] && [ "$(echo .old*)" = '.old*' ]
ok "the old file is still there"
head -c 4096 /dev/zero >zero
run "record --force: no capture" 6 'vmtrace: error' record --backend replay:zero -o old.vmt --force
[ "$(cat old.vmt)" = precious ] && [ "$(echo .old*)" = '.old*' ]
ok "and now as well"
run "record with a command" 0 'exits, 0 records lost$' record -d web01 --backend "$replay" -o record.vmt -- sh -c 'echo ran >ran'
[ "$(cat ran)" = ran ]
ok "the command ran"
run "record: a command that is not there" 1 'cannot run' record -d web01 --backend "$replay" -o record2.vmt -- /nonexistent
"$VMTRACE" record -d web01 --backend "$replay" -o - 2>err -- echo not here >piped.vmt
head -c 8 piped.vmt | cmp -s - <(head -c 8 record.vmt) && [ ! -e ./- ] && grep -q '^not here$' err &&
    grep -q '^web01: .* in standard output' err && [ -z "$(find run/data -name '.stdout*')" ]
ok "record to standard output"
"$VMTRACE" record -d web01 --backend "$replay" -o - -q --duration 300ms 2>err | "$VMTRACE" report -i - >out 2>&1
grep -q web01 out
ok "and into a report"
run "record: the command is ended" 0 'the capture ended before the command \(its duration is over' \
    record -d web01 --backend "$replay" -o record5.vmt --duration 100ms -- sleep 100
run "record: the command fails" 0 'the command ended with status 3$' record -d web01 --backend "$replay" -o record6.vmt -- sh -c 'exit 3'
run "record: the command is killed" 0 'signal 9 ended the command$' record -d web01 --backend "$replay" -o record7.vmt -- sh -c 'kill -9 $$'
run "record: the size limit" 0 '^  ended: the size limit of 200000 bytes is reached' \
    record -d web01 --backend "$replay" -o record8.vmt --limit 200000 --buffer 16K
run "start: the size limit" 0 'captures web01' start -d web01 --backend "$replay" --limit 200000 --buffer 16K
for _ in $(seq 500); do "$VMTRACE" status | grep -q '^no session' && break; sleep 0.01; done
run "status says why it ended" 0 'is over: the size limit of 200000 bytes is reached' status
run "and stop" 3 'is over \(the size limit of 200000 bytes is reached' stop -d web01
run "record: the newest part" 0 '^  kept: about the newest 0.2 s \(--keep\), .* of [0-9]+ exits$' \
    record -d web01 --backend "$replay" -o record9.vmt --keep 200ms
run "record for a time" 0 'record3.vmt' record -d web01 --backend "$replay" -o record3.vmt --duration 300ms
"$VMTRACE" record -d web01 --backend "$replay" -o record4.vmt >out 2>err &
pid=$!
for _ in $(seq 500); do [ -s record4.vmt ] && ls run/s-*/control >/dev/null 2>&1 && break; sleep 0.01; done
kill -INT $pid
wait $pid && grep -q 'record4.vmt' out
ok "record ends at a signal"
for fd in 0 1 2; do
    eval "\"$VMTRACE\" record -d web01 --backend $replay -o closed$fd.vmt --duration 300ms $fd>&-" >/dev/null 2>&1
    "$VMTRACE" report closed$fd.vmt --max-loss 0 >/dev/null 2>&1
    ok "record: closed descriptor $fd is not taken for the file"
done
(ulimit -f 64 && exec "$VMTRACE" record -d web01 --backend "$replay" -o small.vmt --duration 300ms) >out 2>err
grep -q 'File too large' err && "$VMTRACE" report small.vmt >/dev/null 2>&1
ok "record: ulimit -f is told, and what was written can be read"
(ulimit -f 64 && exec "$VMTRACE" record -d web01 --backend "$replay" -o small2.vmt --duration 300ms --max-loss 50) >out 2>err
[ $? -ne 0 ] && grep -q 'File too large' err
ok "record: --max-loss"
run "start: not to standard output" 2 'has no standard output' start -d web01 --backend "$replay" -o -
run "snapshot: no session" 3 'no session is running' snapshot -o -

"$VMTRACE" start -d web01 --backend "$replay" -o hung.vmt >/dev/null
pid=$("$VMTRACE" status --format json | jq '.sessions[0].pid')
kill -STOP "$pid"
run "status: a recorder that hangs" 0 'does not answer' status
run "start: beside one that hangs" 1 'already has a session' start -d web01 --backend "$replay" -o hung2.vmt
kill -CONT "$pid"
rm hung.vmt
run "stop: the file was removed" 0 'was removed while it was written' stop
echo "1..$n"
