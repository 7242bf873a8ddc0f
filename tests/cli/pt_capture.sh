#!/usr/bin/env bash
# report and script of captures with Intel PT of several CPUs, alone and beside kvm's tracepoints.
set -uo pipefail
O=${O:-build}
VMTRACE=${VMTRACE:-$O/vmtrace}
gen=$O/tests/tools/gen_ptfleet
real=../shared/data/pt/perf.data.intel_pt-4.14
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
for tool in "$VMTRACE" "$gen" jq; do
    command -v "$tool" >/dev/null || { echo "1..0 # skip $tool is missing"; exit 0; }
done

report() { "$VMTRACE" report --format json "$@" 2>"$work/err" | jq -e "$filter"; }
lines() { "$VMTRACE" script --format json "$@" 2>"$work/err" | jq -se "$filter"; }
fails() { # STATUS TEXT COMMAND...
    local want=$1 text=$2 got
    shift 2
    "$@" >"$work/out" 2>"$work/err"
    got=$?
    [ "$got" -eq "$want" ] && grep -q -- "$text" "$work/err"
}

read -r all pt kvm both < <("$gen" "$work/both.data" --seed 11 --lose-kvm 30 --wrong-rip 20)
filter=".exits == $all and .join.joined == $both and .join.only_pt == $pt - $both and .join.only_kvm == 0 and
    .join.disagree_rip > 0 and .join.disagree_reason == 0 and .concealed == false and .loss.bytes_skipped == 0"
check "each exit once, and what was joined" report "$work/both.data"
filter='[.[] | select(.type == "exit")] | length == '"$all"' and all(.[]; .source == "pt" and .host_tsc != null and
    .guest_rip != null and .vmcs != null and .reason != null)'
check "exits have what PT tells" lines "$work/both.data"
filter='.[-1] | .type == "join" and .joined == '"$both"
check "the last line counts the join" lines "$work/both.data"
check "-v says the join" bash -c "'$VMTRACE' script -v '$work/both.data' | tail -n 1 | grep -q 'exits joined'"
check "the report says the join" bash -c "'$VMTRACE' report '$work/both.data' | tr -s ' \n' ' ' | grep -q 'exits joined'"
filter='[.[] | select(.time_ns != null) | .time_ns] | . == sort'
check "one axis, in order" lines "$work/both.data"
filter='.exits < '"$all"' and .exits > 0 and .join.joined < '"$both"' + 1'
check "a window" report "$work/both.data" --time 20%,60%

"$gen" "$work/piped.data" --seed 11 --lose-kvm 30 --wrong-rip 20 --pipe >/dev/null
filter=".exits == $all and .join.joined == $both"
check "through a pipe" bash -c "'$VMTRACE' report --format json -i - <'$work/piped.data' | jq -e '$filter'"

read -r all pt kvm both < <("$gen" "$work/pt.data" --seed 12 --no-tracepoints)
filter=".exits == $all and .join == null and .concealed == false and .start_ns < .stop_ns and (.bill | length) == 6"
check "PT and context switches alone" report "$work/pt.data"
filter='[.[] | select(.type == "exit")] | length == '"$all"' and (map(select(.tid == null)) | length) < 10 and
    (map(select(.duration_ns == null)) | length) < 20'
check "threads and durations over all CPUs" lines "$work/pt.data"
filter=".exits > 0 and .exits < $all"
check "a window of PT alone" report "$work/pt.data" --time 50%,100%
filter='[.[] | select(.type == "exit" and .vmcs == "0x1bff6d000")] | length > 10 and
    all(.[]; .domain == "web01" and .vcpu == 7)'
check "--vm names a VMCS" lines "$work/pt.data" --vm 0x1bff6d000,offset=0,name=web01,vcpu=7
filter='[.[] | select(.type == "exit" and .domain == "web01")] | length > 10'
check "--vm and --domain" lines "$work/pt.data" --vm 0x1bff6d000,name=web01 --domain web01

read -r all pt kvm both < <("$gen" "$work/hidden.data" --seed 13 --conceal)
filter=".exits == $all and .concealed == true and .join.joined == 0 and .join.only_pt == 0"
check "a concealed guest: exits of the tracepoints" report "$work/hidden.data"
check "and it is said" bash -c "'$VMTRACE' report '$work/hidden.data' | tr -s ' \n' ' ' | grep -q 'it is concealed'"

read -r all pt kvm both < <("$gen" "$work/lossy.data" --seed 14 --overflow 10)
filter=".exits == $all and .loss.overflows > 0 and ([.verdicts[] | select(.id == \"loss\")] | length) == 1"
check "packets that are lost" report "$work/lossy.data"

"$O/tests/tools/gen_perfdata" "$work/kvm.data" --events 1000
check "--vm where there is no PT" fails 2 "the input has none" "$VMTRACE" report --vm any,offset=0 "$work/kvm.data"
if [ -r "$real" ]; then
    filter='.exits == 0 and .concealed == null and .join == null and .loss.bytes_skipped == 0 and
        (.verdicts | map(.id) == ["no-exits"]) and .verdicts[0].severity == "note"'
    check "a recording without machines" report "$real"
else
    n=$((n + 1))
    echo "ok $n - a recording without machines # skip $real is missing"
fi
echo "1..$n"
