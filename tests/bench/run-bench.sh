#!/usr/bin/env bash
# Speed and memory, against peers measured in the same run: `vmtrace report` over a perf.data of kvm events and
# `perf kvm stat report` on the same file (alternating, warm cache, medians; the counts a reason must be equal), peak
# memory for an input through a pipe, then every bench_* program. Fails when totals differ or memory exceeds 64 MiB.
# usage: run-bench.sh [--markdown]
#   VMT_BENCH_EVENTS  kvm events a file (2000000)     VMT_BENCH_RUNS  runs of each program (5)
#   VMT_BENCH_CPUS    files to make, by their CPUs ("4 16 64 128")
#   VMT_BENCH_BIG     1: 10 GB through the pipe, else 1 GB
set -uo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
O=${O:-build}
cd "$top" || exit 1
case $O in /*) ;; *) O=$top/$O ;; esac
export VMT_TOP=$top
vmtrace=${VMTRACE:-$O/vmtrace}
gen=$O/tests/tools/gen_perfdata
measure=$O/tests/tools/measure
events=${VMT_BENCH_EVENTS:-2000000}
runs=${VMT_BENCH_RUNS:-5}
cpus=${VMT_BENCH_CPUS:-4 16 64 128}
markdown=0
[ "${1:-}" = --markdown ] && markdown=1
work=$(mktemp -d -p "${TMPDIR:-/tmp}")
trap 'rm -rf "$work"' EXIT
table=$work/table
failed=0

say() { [ "$markdown" -eq 1 ] || echo "$*"; }
fail() {
    echo "bench: FAILED: $*" >&2
    failed=1
}
row() { printf '| %s | %s | %s | %s |\n' "$@" >>"$table"; }
median() { sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; } # of the lines on standard input
wall_us() { awk '{print $1}' "$1" | median; }
cpu_us() { awk '{print $2 + $3}' "$1" | median; }
peak_kib() { awk '$4 > m {m = $4} END {print m}' "$1"; }
seconds() { awk -v us="$1" 'BEGIN {printf "%.3f s", us / 1e6}'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN {printf "%.1f", a / b}'; }

# perf prints its table on standard error.
perf_counts() { awk '$2 ~ /^[0-9]+$/ && $3 ~ /%$/ {print $1, $2}' "$1" | sort; }
own_counts() { jq -r '.rows[] | "\(.reason_name) \(.count)"' "$1" | sort; }

report_against_perf() { # CPUS
    local file=$work/kvm.data n=$1 name
    name="report, $1 CPUs, $events kvm events"
    "$gen" "$file" --events "$events" --cpus "$n" || { fail "$name: gen_perfdata"; return; }
    cat "$file" >/dev/null
    rm -f "$work/own" "$work/perf"
    for _ in $(seq "$runs"); do
        "$measure" "$work/own" "$vmtrace" report -i "$file" >/dev/null || { fail "$name: vmtrace"; return; }
        if command -v perf >/dev/null; then
            "$measure" "$work/perf" perf kvm -i "$file" stat report >"$work/perf.txt" 2>&1 ||
                { fail "$name: perf"; return; }
        fi
    done
    "$vmtrace" report -i "$file" --by reason --format json >"$work/own.json"
    own_counts "$work/own.json" >"$work/own.counts"
    local own_wall own_cpu
    own_wall=$(wall_us "$work/own") own_cpu=$(cpu_us "$work/own")
    if [ ! -s "$work/perf" ]; then
        say "$name: vmtrace $(seconds "$own_wall"); perf is missing, nothing to compare"
        row "$name" "$(seconds "$own_wall")" "-" "-"
        return
    fi
    perf_counts "$work/perf.txt" >"$work/perf.counts"
    if [ ! -s "$work/perf.counts" ] || ! diff "$work/perf.counts" "$work/own.counts" >"$work/diff"; then
        cat "$work/diff" >&2
        fail "$name: the counts a reason differ from perf kvm stat report's"
    fi
    local perf_wall perf_cpu exits
    perf_wall=$(wall_us "$work/perf") perf_cpu=$(cpu_us "$work/perf")
    exits=$(awk '{n += $2} END {print n}' "$work/own.counts")
    say "$name, $(stat -c %s "$file") bytes, $exits exits in $(wc -l <"$work/own.counts") reasons, equal counts:"
    say "  vmtrace report        $(seconds "$own_wall") wall, $(seconds "$own_cpu") CPU, $(peak_kib "$work/own") KiB"
    say "  perf kvm stat report  $(seconds "$perf_wall") wall, $(seconds "$perf_cpu") CPU, $(peak_kib "$work/perf") KiB"
    say "  ratio                 $(ratio "$perf_wall" "$own_wall") by wall time, $(ratio "$perf_cpu" "$own_cpu") by CPU time"
    row "$name (CPU time, median of $runs)" "$(seconds "$own_cpu")" "$(seconds "$perf_cpu")" \
        "$(ratio "$perf_cpu" "$own_cpu")"
    row "the same, peak memory" "$(($(peak_kib "$work/own") / 1024)) MiB" "$(($(peak_kib "$work/perf") / 1024)) MiB" \
        "$(ratio "$(peak_kib "$work/perf")" "$(peak_kib "$work/own")")"
}

memory_through_a_pipe() {
    local gigabytes=1 n
    [ "${VMT_BENCH_BIG:-0}" = 1 ] && gigabytes=10
    n=$((gigabytes * 10200000)) # records of 98 bytes
    rm -f "$work/big"
    "$gen" - --pipe --events "$n" --cpus 16 | "$measure" "$work/big" "$vmtrace" report -i - --format json >"$work/big.json" ||
        fail "report of $gigabytes GB through a pipe"
    local peak bytes
    peak=$(peak_kib "$work/big") bytes=$(jq .loss.bytes_total "$work/big.json")
    jq -e '.loss | .bytes_skipped == 0 and .bytes_total == .bytes_decoded' "$work/big.json" >/dev/null ||
        fail "bytes of the pipe were skipped"
    [ "$bytes" -ge $((gigabytes * 980000000)) ] || fail "only $bytes bytes came through the pipe"
    [ "$peak" -le 65536 ] || fail "$peak KiB for $bytes bytes through a pipe: more than 64 MiB"
    say "report of $bytes bytes through a pipe: peak $peak KiB, $(seconds "$(cpu_us "$work/big")") CPU"
    row "report of $(awk -v b="$bytes" 'BEGIN {printf "%.1f", b / 1e9}') GB through a pipe, peak memory" \
        "$((peak / 1024)) MiB" "64 MiB allowed" "-"
}

# Rows of bench_pt's ratios: "row WHAT | OWN | PEER | RATIO".
pt_rows() { sed -n 's/^  row /| /p' >>"$table"; }

# perf's packet decoder out of Debian's linux-source package (in /usr/src), built for
# this run alone. VMT_BENCH_PERF_PT: such an object that was built before.
build_perf_pt() {
    [ -z "${VMT_BENCH_PERF_PT:-}" ] || return 0
    local tar folder=tools/perf/util/intel-pt-decoder
    tar=$(find /usr/src -maxdepth 1 -name 'linux-source-*.tar.xz' | sort -V | tail -n 1)
    if [ -z "$tar" ]; then
        say "perf's PT decoder: skipped, the package linux-source is not installed"
        return 0
    fi
    mkdir -p "$work/perf-pt/linux"
    tar -xJf "$tar" -C "$work/perf-pt" --strip-components=1 --wildcards "*/$folder/intel-pt-pkt-decoder.*" ||
        { fail "unpacking $tar"; return 0; }
    echo '#define __fallthrough __attribute__((fallthrough))' >"$work/perf-pt/linux/compiler.h"
    "${CC:-gcc}" -O2 -w -D_GNU_SOURCE -shared -fPIC -I"$work/perf-pt" -I"$work/perf-pt/$folder" -I"$top" \
        "$work/perf-pt/$folder/intel-pt-pkt-decoder.c" tests/bench/perf_peer.c -o "$work/perf_peer.so" ||
        { fail "building perf's PT decoder"; return 0; }
    export VMT_BENCH_PERF_PT=$work/perf_peer.so
}

programs() {
    build_perf_pt
    for b in "$O"/tests/bench/bench_*; do
        [ -x "$b" ] && [[ $b != *.* ]] || continue
        if ! timeout 1200 "$b" >"$work/out" 2>&1; then
            fail "${b##*/}"
            cat "$work/out" >&2
        fi
        say "== ${b##*/}"
        [ "$markdown" -eq 1 ] || cat "$work/out"
        # store DIR write N MB/s cp N MB/s ratio N …
        [ "${b##*/}" = bench_store ] && awk '$3 == "write" && $4 != "zstd" {
            printf "| .vmt write in %s against cp | %s MB/s | %s MB/s | %s |\n", $2, $4, $7, $10}' "$work/out" >>"$table"
        [ "${b##*/}" = bench_pt ] && pt_rows <"$work/out"
        [ "${b##*/}" = bench_kvm_decode ] && awk '/join  .*ns.record/ {own = $3}
            /memcpy  / {printf "| kvm records, parse to join, against memcpy | %s ns | %s ns | %.2f |\n", own, $3, $3 / own}' \
            "$work/out" >>"$table"
        [ "${b##*/}" = bench_flow ] && awk -F'flow, |: | M instructions/s, libipt blocks | M/s |ratio ' '/^flow, / {name = $2}
            /vmtrace .*libipt/ {sub(/.*vmtrace /, "", $1)
                printf "| instruction flow, %s | %s M/s | %s M/s | %s |\n", name, $1, $2, $4}' "$work/out" >>"$table"
        # pt_drain DIR: N CPU s, memcpy + hash + write N CPU s, ratio N, …
        [ "${b##*/}" = bench_pt_drain ] && awk '$6 == "memcpy" {
            printf "| Intel PT area to .vmt in %s against memcpy, hash, write | %s CPU s | %s CPU s | %s |\n",
                substr($2, 1, length($2) - 1), $3, $11, substr($15, 1, length($15) - 1)}' "$work/out" >>"$table"
        # insn: own N M/s Zydis N M/s ratio N
        [ "${b##*/}" = bench_insn ] && awk '$2 == "own" && $5 == "Zydis" {
            printf "| x86 instructions, length and class, against Zydis | %s M/s | %s M/s | %s |\n", $3, $6, $9}' \
            "$work/out" >>"$table"
    done
}

for tool in "$vmtrace" "$gen" "$measure" jq; do
    command -v "$tool" >/dev/null || { echo "bench: $tool is missing" >&2; exit 1; }
done
for n in $cpus; do report_against_perf "$n"; done
memory_through_a_pipe
programs
if [ "$markdown" -eq 1 ]; then
    echo "| what | vmtrace | peer | ratio |"
    echo "| --- | --- | --- | --- |"
    cat "$table"
fi
exit "$failed"
