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

status "an odd digit" 2 "--hex is no list of bytes" --hex 024
status "a file that is not said to be bare" 2 "--pt-raw" "$dir/raw"
status "no such block" 2 "none, blk4 or blk8" --block blk2 --hex 00
status "no such processor" 2 "family/model/stepping" --cpu-id pentium --hex 00
status "loss beyond --max-loss" 6 "" --max-loss 10 --hex 'ad00'
status "no loss" 0 "" --max-loss 0 --hex 00
echo "1..$n"
