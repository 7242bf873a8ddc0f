#!/usr/bin/env bash
# perf.data: what perf itself records here is read to the last record, and of a kvm recording the counts a reason
# equal those of `perf kvm stat report`.
set -uo pipefail
O=${O:-build}
VMTRACE=${VMTRACE:-$O/vmtrace}
gen=$O/tests/tools/gen_perfdata
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
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
skip() {
    n=$((n + 1))
    echo "ok $n - $1 # skip $2"
}
status() { # WANTED COMMAND...
    local want=$1 got
    shift
    "$@" >"$work/out" 2>"$work/err"
    got=$?
    [ "$got" -eq "$want" ] || { echo "status $got, not $want"; cat "$work/err"; return 1; }
}

for tool in "$VMTRACE" "$gen" jq; do
    command -v "$tool" >/dev/null || { echo "1..0 # skip $tool is missing"; exit 0; }
done

# ---- what perf records on this machine ----
record() { # OUTPUT OPTIONS...
    local out=$1
    shift
    timeout 60 perf record -q -a -e sched:sched_switch "$@" -o "$out" -- sleep 0.3
}
same_count() { # FILE: as many sched_switch as perf script prints, and every byte read
    local perf own
    perf=$(perf script -i "$1" 2>/dev/null | wc -l)
    "$VMTRACE" decode kvm "$1" --format json >"$work/records.jsonl" || return 1
    own=$(grep -c '"event":"sched_switch"' "$work/records.jsonl")
    echo "perf script: $perf lines, decode kvm: $own"
    [ "$perf" -gt 0 ] && [ "$perf" -eq "$own" ] && tail -n 1 "$work/records.jsonl" |
        jq -e '.ledger | .bytes_skipped == 0 and .bytes_total == .bytes_decoded and (.truncated | not)'
}
if ! command -v perf >/dev/null; then
    why="perf is missing"
elif ! record "$work/file.data" >"$work/log" 2>&1 || [ ! -s "$work/file.data" ]; then
    why="perf record cannot run here: $(head -n 1 "$work/log")"
else
    why=""
fi
if [ -n "$why" ]; then
    for what in file zstd pipe killed; do skip "perf record: $what" "$why"; done
else
    check "perf record: every sample of a file" same_count "$work/file.data"
    record "$work/zstd.data" -z >/dev/null 2>&1
    check "perf record -z: every sample" same_count "$work/zstd.data"
    record - >"$work/pipe.data" 2>/dev/null
    check "perf record -o -: every sample" same_count "$work/pipe.data"
    # killed: data.size is 0 and the formats, which perf writes last, are missing
    perf record -q -a -e sched:sched_switch -o "$work/killed.data" -- sleep 20 >/dev/null 2>&1 &
    pid=$!
    for _ in $(seq 50); do
        [ "$(stat -c %s "$work/killed.data" 2>/dev/null || echo 0)" -gt 100000 ] && break
        sleep 0.1
    done
    kill -9 "$pid"
    wait "$pid" 2>/dev/null
    check "perf record, killed: refused with the cause" status 6 "$VMTRACE" report -i "$work/killed.data"
    check "perf record, killed: the cure names another way" grep -q 'record' "$work/err"
fi

# ---- kvm records, against perf kvm stat report ----
perf_counts() { # FILE: "NAME COUNT" lines
    perf kvm -i "$1" stat report 2>&1 | awk '$2 ~ /^[0-9]+$/ && $3 ~ /%$/ {print $1, $2}' | sort
}
own_counts() {
    "$VMTRACE" report -i "$1" --by reason --format json | jq -r '.rows[] | "\(.reason_name) \(.count)"' | sort
}
same_reasons() { # FILE
    perf_counts "$1" >"$work/perf.txt"
    own_counts "$1" >"$work/own.txt"
    [ -s "$work/perf.txt" ] && diff "$work/perf.txt" "$work/own.txt"
}
for isa in vmx svm; do
    for options in "" "--zstd" "--no-rounds" "--cpus 32"; do
        # shellcheck disable=SC2086
        "$gen" "$work/kvm.data" --events 50000 --isa $isa $options
        if command -v perf >/dev/null; then
            check "kvm, $isa ${options:-file}: counts of perf kvm stat report" same_reasons "$work/kvm.data"
        else
            skip "kvm, $isa ${options:-file}: counts of perf kvm stat report" "perf is missing"
        fi
    done
done
"$gen" "$work/kvm.data" --events 50000
own_counts "$work/kvm.data" >"$work/file.txt"
for options in "--pipe" "--pipe --zstd"; do
    # shellcheck disable=SC2086
    "$gen" - --events 50000 $options >"$work/kvm.pipe"
    check "kvm, $options: as the file" bash -c "cat '$work/kvm.pipe' | '$VMTRACE' report -i - --by reason --format json |
        jq -r '.rows[] | \"\(.reason_name) \(.count)\"' | sort | diff - '$work/file.txt'"
done
check "file mode through a pipe: refused with a cure" bash -c "! cat '$work/kvm.data' |
    '$VMTRACE' report -i - 2>'$work/err' && grep -q 'perf record -o -' '$work/err'"
size=$(stat -c %s "$work/kvm.pipe")
head -c $((size * 2 / 3 + 1)) "$work/kvm.pipe" >"$work/cut.pipe"
check "cut off: reported, truncated" bash -c "'$VMTRACE' report -i '$work/cut.pipe' --format json |
    jq -e '.loss.truncated and .exits > 1000 and .loss.bytes_total == .loss.bytes_decoded + .loss.bytes_skipped'"
check "cut off with --max-loss 0: 6" status 6 "$VMTRACE" report -i "$work/cut.pipe" --max-loss 0
check "script: in order of time" bash -c "'$VMTRACE' script -i '$work/kvm.data' --format json | tail -n +2 |
    jq -es '[.[] | .time_ns // empty] | length > 10000 and . == sort'"
"$gen" - --pipe --events 2000 >"$work/whole.pipe" 2>/dev/null
{ # PERF_RECORD_LOST of 7 with an id and a time of zeros, as perf writes at its end
    cat "$work/whole.pipe"
    printf '\2\0\0\0\0\0\70\0\1\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0'
    head -c 32 /dev/zero
} >"$work/lost.pipe"
check "a loss without a time moves no start" bash -c "
    start() { '$VMTRACE' report -i - --format json | jq -c '[.start_ns, .stop_ns]'; }
    [ \"\$(start <'$work/whole.pipe')\" = \"\$(start <'$work/lost.pipe')\" ] &&
    '$VMTRACE' report -i - --format json <'$work/lost.pipe' | jq -e '.loss.records_lost == 7'"
echo "1..$n"
