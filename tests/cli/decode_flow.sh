#!/usr/bin/env bash
# vmtrace decode pt --flow: instructions, blocks, calls; code by --elf and --raw; a real stream.
set -u
vmtrace=${VMTRACE:-build/vmtrace}
top=$(cd "$(dirname "$0")/../.." && pwd)
data=$top/../shared/data/pt
n=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

result() {
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}
skipped() {
    n=$((n + 1))
    echo "ok $n - $1 # SKIP $2"
}

bytes() { # HEX FILE
    local hex=${1// /} i
    for ((i = 0; i < ${#hex}; i += 2)); do printf '%b' "\\x${hex:i:2}"; done >"$2"
}

# json NAME FILTER ARGUMENTS...: a jq filter over all lines that must give true
json() {
    local name=$1 filter=$2
    shift 2
    "$vmtrace" decode pt --format json "$@" 2>/dev/null | jq -se "$filter" >/dev/null
    result $? "$name"
}

# status NAME STATUS TEXT ARGUMENTS...: exit status and a text in the error
status() {
    local name=$1 want=$2 text=$3 got rc
    shift 3
    got=$("$vmtrace" decode pt "$@" 2>&1 >/dev/null)
    rc=$?
    [ "$rc" -eq "$want" ] && [[ $got == *"$text"* ]]
    result $? "$name"
}

psb=02820282028202820282028202820282
# MODE.Exec 64, PSBEND, TIP.PGE 1000
start="$psb 9901 0223 71001000000000"
# call 1010; ret; ... 1010: jz +0; ret
bytes 'e80b000000c3909090909090909090907400c3' "$dir/code"
# TNT N T, FUP 1005, TIP.PGD
bytes "$start 0a 7d051000000000 01" "$dir/stream"
run=(--pt-raw "$dir/stream" --raw "$dir/code@0x1000")

"$vmtrace" decode pt --flow "${run[@]}" >"$dir/text"
diff - "$dir/text" <<'END'
host                     - # enabled -> 0x1000
host  0x1000  e8 0b 00 00 00  call
host  0x1010  74 00  jcc
host  0x1012  c3  ret
host                     - # disabled 0x1005
flow: 3 instructions in 3 blocks; 0 errors, 0 packets without a place
ledger: 36 bytes = 36 decoded + 0 skipped; 0 overflows; complete
END
result $? "instructions as text"
json "instructions" 'map(select(.type == "insn") | .ip) == ["0x1000","0x1010","0x1012"] and .[0].schema == "vmtrace-flow/1"
    and .[2].bytes == "e8 0b 00 00 00" and .[2].class == "call" and .[2].mode == 64' --flow=insn "${run[@]}"
json "blocks" 'map(select(.type == "block")) | length == 3 and .[0].next_ip == "0x1010" and .[2].count == 1' --flow=block "${run[@]}"
json "calls with depth" 'map(select(.type == "call") | [.class, .depth, .next_ip]) == [["call",0,"0x1010"],["ret",0,"0x1005"]]' \
    --flow=call "${run[@]}"
json "the ledger and counts" '.[-1] | .ledger.bytes_decoded == 36 and .flow == {"instructions":3,"blocks":3,"branches":2,"errors":0,
    "lost_packets":0,"entries":0,"exits":0,"failed_entries":0}' --flow "${run[@]}"
"$vmtrace" decode pt --flow "${run[@]}" - <"$dir/stream" >/dev/null 2>&1
[ $? = 2 ]
result $? "one input"
"$vmtrace" decode pt --flow --pt-raw --raw "$dir/code@0x1000" - <"$dir/stream" | cmp -s - "$dir/text"
result $? "standard input"

json "no code" 'map(select(.event == "error")) | length == 1 and .[0].name == "no code is known at this address" and .[0].ip == "0x1000"
    and .[0].offset == 27' --flow --pt-raw "$dir/stream"
json "code of guests is not the host's" 'map(select(.event == "error")) | length == 1' --flow --pt-raw "$dir/stream" \
    --raw "$dir/code@0x1000,guest"
json "later code counts from its TSC on" 'map(select(.event == "error")) | length == 1' --flow --pt-raw "$dir/stream" \
    --raw "$dir/code@0x1000,host,from=0x100"
json "code of an address space" 'map(select(.event == "error")) | length == 1' --flow --pt-raw "$dir/stream" \
    --raw "$dir/code@0x1000,cr3=0x2000,vmcs=0x3000"

# 31 bytes over a jump to itself.
bytes 'ebfe' "$dir/self"
bytes "$psb 99010223 71001000000000 19000000" "$dir/stream31"
[ "$(stat -c %s "$dir/stream31")" = 31 ]
result $? "31 bytes"
timeout 10 "$vmtrace" decode pt --flow --pt-raw "$dir/stream31" --raw "$dir/self@0x1000" >/dev/null
result $? "a jump to itself ends at once"
bytes "$psb 99010223 71001000000000 2d0020" "$dir/streamtip"
json "a loop without a packet is an error" 'map(select(.event == "error"))[0].name == "the code loops where the trace goes on"' \
    --flow --pt-raw "$dir/streamtip" --raw "$dir/self@0x1000"

status "an unknown detail" 2 "insn, block or call" --flow=lines "${run[@]}"
status "raw code without an address" 2 "FILE@ADDR" --flow --pt-raw "$dir/stream" --raw "$dir/code"
status "a place that is none" 2 "host, guest" --flow --pt-raw "$dir/stream" --raw "$dir/code@0x1000,guests"
status "code without --flow" 2 "code for --flow" "${run[@]}"
status "no CSV" 2 "text or json" --flow --format csv "${run[@]}"
status "a file that is not there" 1 "$dir/none" --flow --pt-raw "$dir/stream" --raw "$dir/none@0"
status "a file that is no ELF" 6 "" --flow --pt-raw "$dir/stream" --elf "$dir/code"
status "neither .vmt nor perf.data" 2 "--pt-raw" --flow "$dir/code"

if [ -r "$data/dynamorio-pt.bin" ]; then
    real=(--pt-raw "$data/dynamorio-pt.bin" --cpu-id 6/85/4 --mtc-freq 3 --nom-ratio 37 --cpuid-15h 2,308)
    json "a real stream: exactly its 8 instructions" 'map(select(.type == "insn") | .ip) == ["0x401000","0x401005","0x40100a","0x401014",
        "0x401019","0x40101b","0x401020","0x401025"] and .[-1].flow.errors == 0' --flow "${real[@]}" --elf "$data/dynamorio-hello"
    json "the same with the file at another place" '.[-1].flow.instructions == 0 and .[-1].flow.errors > 0' --flow "${real[@]}" \
        --elf "$data/dynamorio-hello@0x500000"
    json "the same with its load address given" '.[-1].flow.instructions == 8' --flow "${real[@]}" --elf "$data/dynamorio-hello@0x400000"
else
    skipped "a real stream" "no ../shared/data/pt"
fi
if [ -r "$data/perf.data.intel_pt-4.14" ]; then
    json "a perf.data without its code: every area has errors, every byte is decoded" '.[-1].ledger.bytes_skipped == 0 and
        (map(select(.event == "error")) | length > 0)' --flow -i "$data/perf.data.intel_pt-4.14"
else
    skipped "a perf.data" "no ../shared/data/pt"
fi
echo "1..$n"
