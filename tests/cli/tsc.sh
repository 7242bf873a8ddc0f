#!/usr/bin/env bash
# vmtrace tsc convert: values, formats, exit statuses.
set -u
vmtrace=${VMTRACE:-build/vmtrace}
n=0

# is NAME STATUS STDOUT COMMAND...: exact output and exit status
is() {
    local name=$1 status=$2 want=$3 got rc
    shift 3
    got=$("$vmtrace" "$@" 2>/dev/null)
    rc=$?
    n=$((n + 1))
    if [ "$rc" -eq "$status" ] && [ "$got" = "$want" ]; then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name"
        printf '# status %s (want %s)\n' "$rc" "$status"
        diff <(echo "$want") <(echo "$got") | sed 's/^/# /'
    fi
}

# says NAME STATUS TEXT COMMAND...: exit status and a text in the error
says() {
    local name=$1 status=$2 want=$3 got rc
    shift 3
    got=$("$vmtrace" "$@" 2>&1 >/dev/null)
    rc=$?
    n=$((n + 1))
    if [ "$rc" -eq "$status" ] && [[ $got == "vmtrace: error: "*"$want"* ]]; then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name"
        printf '# status %s (want %s): %s\n' "$rc" "$status" "$got"
    fi
}

# json NAME STATUS FILTER COMMAND...: a jq filter that must give true
json() {
    local name=$1 status=$2 filter=$3 got rc
    shift 3
    got=$("$vmtrace" "$@" --format json 2>/dev/null)
    rc=$?
    n=$((n + 1))
    if [ "$rc" -eq "$status" ] && jq -e "$filter" <<<"$got" >/dev/null; then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name"
        printf '# status %s (want %s), not %s:\n' "$rc" "$status" "$filter"
        sed 's/^/# /' <<<"$got"
    fi
}

map=(--offset -2995683791 --mult 140737488355328)
is "host to guest" 0 18446744072211787208 tsc convert --to guest "${map[@]}" 2995838767
is "guest to host" 0 "2995838766 2995838767" \
    tsc convert --to host "${map[@]}" 18446744072211787208
is "a line per value" 0 $'18446744072211787208\n18446744070713867825' \
    tsc convert --to guest "${map[@]}" 2995838767 0
is "options may follow the values" 0 18446744072211787208 \
    tsc convert 2995838767 --to guest "${map[@]}"
is "C syntax" 0 $'32\n8\n10' tsc convert --to guest --offset 0 0x20 010 10
is "mult defaults to 1<<frac" 0 18446744073709551615 tsc convert --to guest --offset -1 0
is "mult defaults to 1<<frac, frac 32" 0 7 tsc convert --to guest --offset 2 --frac 32 5
is "frac 32" 0 4 tsc convert --to guest --frac 32 --mult 2147483648 9
is "ratio 2 skips guest values" 1 $'2 2\n-\n3 3' \
    tsc convert --to host --mult 562949953421312 4 5 6
is "a guest TSC may be written negative" 0 "4 4" tsc convert --to host --offset -5 -1
is "no value maps to a multiplier of 0" 1 - tsc convert --to host --mult 0 5
is "the last host value" 0 "18446744073709551615 18446744073709551615" \
    tsc convert --to host --offset 1 0
json "json, guest" 0 '. == {"schema":"vmtrace-tsc/1","values":[
    {"input":"0xb29110af","guest_tsc":"0xffffffffa6ba0688"}]}' \
    tsc convert --to guest "${map[@]}" 0xb29110af
json "json, host" 1 '.values == [{"input":"0x4","first":"0x2","last":"0x2"},
    {"input":"0x5","first":null,"last":null}]' \
    tsc convert --to host --mult 562949953421312 4 5
is "csv" 1 $'input,first,last\n4,2,2\n5,,' \
    tsc convert --format csv --to host --mult 562949953421312 4 5
says "no map" 2 "needs a TSC map" tsc convert --to guest 5
says "no direction" 2 "--to" tsc convert --offset 1 5
says "a wrong direction" 2 "--to" tsc convert --to moon --offset 1 5
says "no value" 2 "VALUE" tsc convert --to guest --offset 1
says "no number" 2 "5x" tsc convert --to guest --offset 1 5x
says "beyond 64 bits" 2 "18446744073709551616" tsc convert --to guest --offset 1 18446744073709551616
says "a negative host TSC" 2 "-5" tsc convert --to guest --offset 1 -5
says "frac beyond 63" 2 "frac" tsc convert --to guest --offset 1 --frac 64 5
says "two maps" 2 "two TSC maps" tsc convert --to guest --offset 1 -i x.vmt 5
says "no such file" 1 "x.vmt" tsc convert --to guest -i /nonexistent/x.vmt 5
says "no capture to show" 2 "capture" tsc show
says "neither convert nor show" 2 "convert or show" tsc compute
says "not a capture" 6 "" tsc show -i /etc/passwd
echo "1..$n"
