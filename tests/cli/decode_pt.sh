#!/usr/bin/env bash
# vmtrace decode pt: bytes from the command line, bare streams, formats, ledger, exit statuses.
set -u
vmtrace=${VMTRACE:-build/vmtrace}
n=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

result() {
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
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
json "PIP with NR" '.[1] == {"offset":0,"len":8,"packet":"PIP","cr3":"0xc0a080604020","nr":1,"payload":"0xc0a08060403"}' \
    --hex '02 43 03 04 06 08 0A 0C'
json "blanks, commas and 0x between bytes" 'map(select(.packet)) | length == 2' --hex '0x99, 0x01 0x1900112233445566'
json "the first line is a header, the last one the ledger" \
    '.[0].schema == "vmtrace-packets/1" and .[-1].ledger.bytes_total == 1 and (.[-1].ledger.truncated | not)' --hex 00
json "the header names the errata of the CPU" '.[0].errata == ["BDM70","SKD022","SKL014","SKZ84"]' --cpu-id 6/0x55/4 --hex 00
json "block context" '.[1].packet == "BIP" and .[1].id == 31' --block blk4 --hex fc01020304
json "no block context" '.[1].packet == "TNT" and .[1].tnt == "TTTTTN"' --hex fc
json "a PEBS record has a line behind the packet that completes it" \
    '.[-2] == {"type":"pebs","world":"guest","ip":"0x401000","gpr":{"RAX":"0x1"}} and .[-3].packet == "FUP"' \
    --hex '0243010000000000 026381 1401000000 02b3 7d001040000000'
"$vmtrace" decode pt --hex '026381 1401000000 0233' | grep -q '^ *pebs gpr RAX=0x1$'
result $? "a PEBS record as text"
json "CFE and EVD" '.[1].type == 9 and .[1].vector == 236 and .[1].ip_bit == 0 and .[2].type == 2 and .[2].payload == "0x30"' \
    --hex '021309ec 02530230000000 00000000'
json "damage is skipped up to the next PSB" '.[2] == {"offset":2,"skipped":3,"error":"IP packet with reserved IPBytes"} and .[3].packet == "PSB"' \
    --hex "9901 ad0000 $psb"
json "a packet that is cut off" '.[-1].ledger.truncated and .[-2].skipped == 2 and .[-1].ledger.bytes_skipped == 2' --hex '00 0282'
json "errata of a processor" '.[2].error == "CYC cut short by OVF (SKD007)" and .[3].packet == "OVF"' \
    --cpu-id 6/0x5e/3 --hex '00 17 02 f3'

printf '\x02\x82%.0s' {1..8} >"$dir/raw"
printf '\x02\x23\x99\x01' >>"$dir/raw"
json "a bare stream" 'map(.packet) == [null,"PSB","PSBEND","MODE.Exec",null]' --pt-raw "$dir/raw"
"$vmtrace" decode pt --pt-raw --format json - <"$dir/raw" | jq -se '.[-1].ledger.bytes_decoded == 20' >/dev/null
result $? "standard input"
[ "$("$vmtrace" decode pt --pt-raw "$dir/raw" | head -n 1)" = "0x00000000 16 PSB" ]
result $? "text"
[ "$("$vmtrace" decode pt --pt-raw "$dir/raw" --format csv | wc -l)" = 4 ]
result $? "CSV"

# Totals of each stream of a perf.data from another machine, from the JSON alone.
sample=../shared/data/pt/perf.data.intel_pt-4.14
totals=../shared/data/pt/packet-totals.tsv
# shellcheck disable=SC2016
sums='
# 64-bit hexadecimal as 32-bit halves: jq counts in doubles
def halves: ltrimstr("0x") | ("0" * (16 - length) + .) | [.[:8], .[8:]] | map(explode
    | reduce .[] as $c (0; . * 16 + (if $c > 96 then $c - 87 else $c - 48 end)));
def add64($a; $b): ($a[1] + $b[1]) as $low
    | [($a[0] + $b[0] + ($low / 4294967296 | floor)) % 4294967296, $low % 4294967296];
def text: def digits: [range(8) as $i | . / pow(16; 7 - $i) | floor % 16] | map(if . > 9 then 87 + . else 48 + . end) | implode;
    ((.[0] | digits) + (.[1] | digits)) | sub("^0+(?=.)"; "") | "0x" + .;
def is_ip: .packet | startswith("TIP") or . == "FUP";
reduce (inputs | select(.cpu == ($cpu | tonumber))) as $l
    ({bytes: 0, packets: 0, tnt: 0, bits: 0, ips: 0, sum: [0, 0], last: [0, 0], cyc: 0, tsc: 0, tsc_sum: [0, 0], mtc: 0,
      pad: 0, pip: 0, pip_sum: [0, 0], errors: 0};
    if $l.packet == null then .errors += 1 else
        .bytes += $l.len | .packets += 1
        | if $l.packet == "TNT" then .tnt += 1 | .bits += ($l.tnt | length)
          elif $l | is_ip then .ips += 1 | (if $l.ip then .last = ($l.ip | halves) else . end) | .sum = add64(.sum; .last)
          elif $l.packet == "PSB" then .last = [0, 0]
          elif $l.packet == "CYC" then .cyc += 1
          elif $l.packet == "TSC" then .tsc += 1 | .tsc_sum = add64(.tsc_sum; $l.tsc | halves)
          elif $l.packet == "MTC" then .mtc += 1
          elif $l.packet == "PAD" then .pad += 1
          elif $l.packet == "PIP" then .pip += 1 | .pip_sum = add64(.pip_sum; $l.cr3 | halves)
              | .pip_sum = add64(.pip_sum; [0, $l.nr])
          else . end
    end)
| [.bytes, .packets, .tnt, .bits, .ips, (.sum | text), (.last | text), .cyc, .tsc, (.tsc_sum | text), .mtc, .pad, .pip,
   (.pip_sum | text), .errors] | @tsv'
if [ -r "$sample" ]; then
    "$vmtrace" decode pt "$sample" --format json >"$dir/all"
    for cpu in 0 3; do
        want=$(grep "AUXTRACE idx $cpu" "$totals" | cut -f 2-9,11-16,22)
        got=$(jq -nr --arg cpu "$cpu" "$sums" <"$dir/all")
        [ "$got" = "$want" ]
        result $? "totals of CPU $cpu of a real perf.data"
        "$vmtrace" decode pt "$sample" --format json --cpu "$cpu" >"$dir/one"
        [ "$(grep -c "\"cpu\":$cpu," "$dir/one")" = "$(grep -c "\"cpu\":$cpu," "$dir/all")" ] &&
            [ "$(grep -c '"cpu":' "$dir/one")" = "$(grep -c "\"cpu\":$cpu," "$dir/all")" ]
        result $? "--cpu $cpu"
    done
    jq -se '.[-1].ledger | .bytes_total == 149968 and .bytes_decoded == 149968 and .packets == 105109' "$dir/all" >/dev/null
    result $? "the ledger of a perf.data"
    offset=$(jq -r 'select(.packet == "PSB") | .offset' "$dir/all" | head -n 1)
    [ "$(tail -c +$((offset + 1)) "$sample" | head -c 16 | od -An -tx1 | tr -d ' \n')" = $psb ]
    result $? "offsets are those of the file"
    [ "$("$vmtrace" decode pt "$sample" | head -n 1)" = "[000] 0x000029f0 16 PSB" ]
    result $? "text of a perf.data"
    [ "$("$vmtrace" decode pt "$sample" --cpu 3 --format csv | sed -n 2p | tr -d ',')" = "3064816PSB3" ]
    result $? "CSV of a perf.data"
    status "a CPU that is not in the file" 3 "no Intel PT of CPU 9" --cpu 9 "$sample"
else
    for i in 1 2 3 4 5 6 7 8 9; do
        n=$((n + 1))
        echo "ok $n - a real perf.data, $i # SKIP no captures at ../shared/data/pt"
    done
fi

corpus=tests/fuzz/corpus
json "a .vmt: area, offsets, ledger" '.[1] == {"cpu":2,"offset":392,"len":16,"packet":"PSB"} and .[-1].ledger.bytes_total == 800' \
    "$corpus/store/aux"
json "a compressed .vmt" '.[1].packet == "PSB" and .[-1].ledger.bytes_total == 2000' "$corpus/store/aux-zstd"
json "a thread's area; the trace was stopped inside" \
    '.[1].tid == 100 and (map(select(.error == "cut off")) | length == 1) and (map(select(.packet == "PSB")) | length == 2)' \
    "$corpus/perfdata/pt-file"
json "what a snapshot repeats comes once" \
    '(map(select(.packet == "PSB")) | length == 1) and (map(select(.error == "came before")) == [{"cpu":0,"offset":1296,"skipped":40,"error":"came before"}])' \
    "$corpus/perfdata/pt-snapshot"
"$vmtrace" decode pt "$corpus/perfdata/pt-pipe" >"$dir/from-file"
"$vmtrace" decode pt - <"$corpus/perfdata/pt-pipe" | cmp -s - "$dir/from-file"
result $? "a perf.data from standard input"
cat "$corpus/perfdata/pt-pipe" | "$vmtrace" decode pt - | cmp -s - "$dir/from-file"
result $? "a perf.data from a pipe"
TMPDIR=$dir "$vmtrace" decode pt - < <(cat "$corpus/store/aux") >"$dir/from-pipe"
"$vmtrace" decode pt "$corpus/store/aux" | cmp -s - "$dir/from-pipe"
result $? "a .vmt from a pipe"
status "a file without Intel PT" 1 "no Intel PT" "$corpus/store/plain"
status "--cpu and a bare stream" 2 "--cpu chooses" --cpu 0 --pt-raw "$dir/raw"
status "an odd digit" 2 "--hex is no list of bytes" --hex 024
status "a file that is not said to be bare" 2 "--pt-raw" "$dir/raw"
status "no such block" 2 "none, blk4 or blk8" --block blk2 --hex 00
status "no such processor" 2 "family/model/stepping" --cpu-id pentium --hex 00
status "loss beyond --max-loss" 6 "" --max-loss 10 --hex 'ad00'
status "no loss" 0 "" --max-loss 0 --hex 00
echo "1..$n"
