#!/usr/bin/env bash
# report, script and decode kvm on the embedded capture: documents that jq reads, sums that balance, and the
# instruction behind the exits on the first screen.
set -uo pipefail
O=${O:-build}
VMTRACE=${VMTRACE:-$O/vmtrace}
gen=$O/tests/tools/gen_capture
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
n=0
check() { # NAME COMMAND...
    local name=$1
    shift
    n=$((n + 1))
    if "$@" >"$work/log" 2>&1; then echo "ok $n - $name"; else
        echo "not ok $n - $name"
        sed 's/^/# /' "$work/log" | head -n 20
    fi
}
status() { # WANTED COMMAND...
    local want=$1 got
    shift
    "$@" >"$work/out" 2>"$work/err"
    got=$?
    [ "$got" -eq "$want" ] || { echo "status $got, not $want"; cat "$work/err"; return 1; }
}
doc() { jq -e "$1" "$work/report.json"; }
lines() { jq -es "$1" "$work/events.jsonl"; }

for tool in "$VMTRACE" "$gen" jq; do
    command -v "$tool" >/dev/null || { echo "1..0 # skip $tool is missing"; exit 0; }
done
"$gen" "$work/web01.vmt" || { echo "1..1"; echo "not ok 1 - gen_capture"; exit 1; }
"$gen" --kallsyms "$work/kallsyms"
"$VMTRACE" report -i "$work/web01.vmt" --format json >"$work/report.json"
"$VMTRACE" script "$work/web01.vmt" --format json >"$work/events.jsonl"

check "report: the keys of the contract" doc '[.schema, .exits, .entries, .failed_entries, .loss, .vms, .rows,
    .bill, .storms, .verdicts] | all(. != null)'
check "report: schema" doc '.schema == "vmtrace-report/1"'
check "report: bytes balance" doc '.loss | .bytes_total == .bytes_decoded + .bytes_skipped'
check "report: rows sum to exits and failed entries" doc '([.rows[].count] | add) == .exits + .failed_entries'
check "report: rows by total time" doc '[.rows[].total_ns // 0] | . == (sort | reverse)'
check "report: each bill sums to its wall time" doc 'all(.bill[]; .wall_ns == .guest_ns + .exits_ns +
    .userspace_ns + .halt_poll_ns + .halted_ns + (.preempted_ns // 0) + .stopped_ns + .residual_ns)'
check "report: percentiles are in order" doc 'all(.rows[] | select(.p50_ns != null);
    .min_ns <= .p50_ns and .p50_ns <= .p95_ns and .p95_ns <= .p99_ns and .p99_ns <= .max_ns)'
check "report: 64-bit values are hexadecimal text" doc 'all(.rows[]; (.guest_rip // "0x0" | test("^0x[0-9a-f]+$")) and
    (.reason_flags // "0x0" | test("^0x[0-9a-f]+$")))'
check "report: verdicts, worst first" doc '[.verdicts[].severity | {note: 0, warn: 1, critical: 2}[.]] |
    . == (sort | reverse)'
check "report --by vcpu keeps the sum" bash -c "'$VMTRACE' report '$work/web01.vmt' --by vcpu --format json |
    jq -e --argjson n \"\$(jq '.exits + .failed_entries' '$work/report.json')\" '([.rows[].count] | add) == \$n'"
check "report: the same from a pipe" bash -c "'$VMTRACE' report -i - --format json <'$work/web01.vmt' |
    jq -S 'del(.loss)' | cmp - <(jq -S 'del(.loss)' '$work/report.json')"
rip=$(jq -r '[.rows[] | select(.failed_entry | not)] | max_by(.count).guest_rip // empty' "$work/report.json")
check "report: the instruction of most exits is on the first screen" bash -c "'$VMTRACE' report '$work/web01.vmt' \
    --guest-kallsyms '$work/kallsyms' | head -n 24 | grep -F -- '${rip:-none}'"
check "report: no line is wider than 80 columns" bash -c "! '$VMTRACE' report '$work/web01.vmt' --bill --storms |
    grep -E '.{81}'"
check "report: no colour in a pipe, colour when asked" bash -c "! '$VMTRACE' report '$work/web01.vmt' | grep -q $'\\033' &&
    '$VMTRACE' report '$work/web01.vmt' --color always | grep -q $'\\033'"
check "report: csv has a line a row" bash -c "[ \$('$VMTRACE' report '$work/web01.vmt' --format csv | wc -l) -eq \
    \$((\$(jq '.rows | length' '$work/report.json') + 1)) ]"
check "script: a header, then events" lines '.[0].type == "header" and .[0].schema == "vmtrace-events/1"'
check "script: as many exits as the report says" lines "([.[] | select(.type == \"exit\" and (.failed_entry | not))] |
    length) == $(jq .exits "$work/report.json")"
check "script: every key of an exit" lines 'all(.[] | select(.type == "exit"); has("source") and has("cpu") and
    has("domain") and has("vcpu") and has("vmcs") and has("host_tsc") and has("host_tsc_error") and has("time_ns") and
    has("isa") and has("reason") and has("reason_flags") and has("reason_name") and has("qualification") and
    has("vector") and has("key") and has("guest_rip") and has("guest_symbol") and has("guest_cr3") and
    has("duration_ns") and has("duration_tsc") and has("nested") and has("failed_entry"))'
check "script: in order of time" lines '[.[] | .time_ns // empty] | . == sort'
check "script --type" bash -c "'$VMTRACE' script '$work/web01.vmt' --type entry --format json | tail -n +2 |
    jq -es 'all(.[]; .type == \"entry\")'"
check "script -o keeps what is there" status 0 "$VMTRACE" script "$work/web01.vmt" -o "$work/events.txt"
check "script -o refuses an existing file" status 1 "$VMTRACE" script "$work/web01.vmt" -o "$work/events.txt"
check "script -o --force replaces it" status 0 "$VMTRACE" script "$work/web01.vmt" -o "$work/events.txt" --force
cp "$work/web01.vmt" "$work/self.vmt"
ln "$work/self.vmt" "$work/link.vmt"
for verb in report script "decode kvm"; do
    check "$verb -o INPUT --force is refused" status 2 "$VMTRACE" $verb "$work/self.vmt" -o "$work/self.vmt" --force
    check "$verb -o: by another name as well" status 2 "$VMTRACE" $verb "$work/self.vmt" -o "$work/link.vmt" --force
done
check "report -i - -o INPUT --force is refused" bash -c "'$VMTRACE' report -i - -o '$work/self.vmt' --force \
    <'$work/self.vmt'; [ \$? -eq 2 ]"
check "report -o: symbols are no output" status 2 "$VMTRACE" report "$work/self.vmt" --guest-kallsyms \
    "$work/kallsyms" -o "$work/kallsyms" --force
check "the inputs are as they were" cmp "$work/web01.vmt" "$work/self.vmt"
check "decode kvm: the ledger balances" bash -c "'$VMTRACE' decode kvm '$work/web01.vmt' --format json | tail -n 1 |
    jq -e '.ledger | .bytes_total == .bytes_decoded + .bytes_skipped and .records > 0'"
check "decode kvm: offset and length on every line" bash -c "'$VMTRACE' decode kvm '$work/web01.vmt' --format json |
    jq -es '.[0].schema == \"vmtrace-records/1\" and .[-1].type == \"ledger\" and (.[1:-1] | all(.[]; has(\"offset\") and (has(\"len\") or has(\"skipped\"))))'"
check "no such domain: 3" status 3 "$VMTRACE" report "$work/web01.vmt" -d nobody
check "no such vCPU: 3, and which are there" bash -c "'$VMTRACE' report '$work/web01.vmt' --vcpu 9 2>'$work/err'
    [ \$? -eq 3 ] && grep -q 'no vCPU 9' '$work/err' && grep -q 'it has: 0, 1' '$work/err'"
check "no such process: 3, and which are there" bash -c "'$VMTRACE' report '$work/web01.vmt' --pid 1 2>'$work/err'
    [ \$? -eq 3 ] && grep -q 'no process 1' '$work/err' && grep -q 'it has: [0-9]' '$work/err'"
check "report --vcpu: the others are not silent" bash -c "! '$VMTRACE' report '$work/web01.vmt' --vcpu 1 |
    grep -q 'had no event'"
check "report --time: times from the capture's start" bash -c "'$VMTRACE' report '$work/web01.vmt' --time 1,3 --storms |
    grep -A 2 '^STORMS' | tail -n 1 | grep -E '^ +1\.[45][0-9]* s +2\.5'"
check "script: time 0 does not depend on --type" bash -c "line=\$('$VMTRACE' script '$work/web01.vmt' --type userspace |
    head -n 1) && '$VMTRACE' script '$work/web01.vmt' | grep -xF \"\$line\""
check "report --by: no key is cut, no empty column" bash -c "! '$VMTRACE' report '$work/web01.vmt' \
    --by reason,key,rip,vcpu | grep -E '(port|msr|gpa|vec):[^ ]*~' && ! '$VMTRACE' report '$work/web01.vmt' --by rip |
    grep -E 'any reason|100.0 % of them\)\$' | grep -v instruction:"
check "script --type names the bad word" bash -c "'$VMTRACE' script '$work/web01.vmt' --type exit,foo 2>&1 |
    grep -q \"'foo' is no type of event\""
check "script --fail-on is refused: 2" status 2 "$VMTRACE" script "$work/web01.vmt" --fail-on note
check "two inputs: 2" status 2 "$VMTRACE" report -i "$work/web01.vmt" -i "$work/web01.vmt"
check "wrong --by: 2" status 2 "$VMTRACE" report "$work/web01.vmt" --by colour
check "wrong --type: 2" status 2 "$VMTRACE" script "$work/web01.vmt" --type exit,colour
check "--fail-on note finds something: 10" status 10 "$VMTRACE" report "$work/web01.vmt" --fail-on note
check "--max-loss 0 on a whole file: 0" status 0 "$VMTRACE" report "$work/web01.vmt" --max-loss 0
head -c $(($(stat -c %s "$work/web01.vmt") * 2 / 3)) "$work/web01.vmt" >"$work/cut.vmt"
check "cut off: reported, not refused" status 0 "$VMTRACE" report "$work/cut.vmt"
check "cut off with --max-loss 0: 6" status 6 "$VMTRACE" report "$work/cut.vmt" --max-loss 0
check "--max-loss: an error and the limit" bash -c "grep -q '^vmtrace: error: .* lost$' '$work/err' &&
    grep -q '^  more than --max-loss 0 allows' '$work/err'"
head -c -5000 "$work/web01.vmt" | dd of="$work/hurt.vmt" status=none
printf XXXXXXXX | dd of="$work/hurt.vmt" bs=1 seek=$(($(stat -c %s "$work/web01.vmt") / 2)) conv=notrunc status=none
check "script --type loss says the kind and the bytes" bash -c "'$VMTRACE' script '$work/hurt.vmt' --type loss --format json |
    jq -es '[.[] | select(.type == \"loss\")] | any(.name == \"damaged\" and .lost_bytes > 0)' &&
    '$VMTRACE' script '$work/hurt.vmt' --type loss | grep -E 'loss +damaged [0-9]+ bytes'"
echo hello >"$work/text"
check "neither .vmt nor perf.data: 6" status 6 "$VMTRACE" report "$work/text"
check "a full disk is an error" status 1 "$VMTRACE" script "$work/web01.vmt" -o /dev/full
check "a reader that goes is none" bash -c "set -o pipefail; '$VMTRACE' script '$work/web01.vmt' 2>'$work/err' |
    head -n 1 >/dev/null; [ ! -s '$work/err' ]"
echo "1..$n"
