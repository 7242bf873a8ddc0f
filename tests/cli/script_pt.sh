#!/usr/bin/env bash
# vmtrace script and report of a bare PT stream: VMs, times, gaps, exit statuses.
set -u
vmtrace=${VMTRACE:-build/vmtrace}
n=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

result() {
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}

# json NAME FILTER VERB ARGUMENTS...: a jq filter over all lines that must give true
json() {
    local name=$1 filter=$2 verb=$3
    shift 3
    "$vmtrace" "$verb" --pt-raw --format json "$@" 2>/dev/null | jq -se "$filter" >/dev/null
    result $? "$name"
}

# status NAME STATUS TEXT VERB ARGUMENTS...: exit status and a text in the error
status() {
    local name=$1 want=$2 text=$3 got rc
    shift 3
    got=$("$vmtrace" "$@" 2>&1 >/dev/null)
    rc=$?
    [ "$rc" -eq "$want" ] && [[ $got == *"$text"* ]]
    result $? "$name"
}

# bytes FILE HEX...: a file of these bytes
bytes() {
    local file=$1
    shift
    printf '%b' "$(tr -d ' ' <<<"$*" | sed 's/../\\x&/g')" >"$file"
}

psb='02820282028202820282028202820282'
# PSB+ (TSC 200000H, VMCS 1BFF6A000H, root), TSC, VM entry; exit by OUT 3F8H at 200200H; entry again
status_root='19 0000200000 0000 02c8 6aff1b0000 0243 002b0a010000 02031500 9901 7d305039c0ffff 0223'
entry='02138700 3d3050 0243 013412000000 4d00010081'
exit='025301 0000f80300000000 025302 1e00000000000000 02130800 3d0601 0243 002b0a010000 4d405039c0'
bytes "$dir/a.pt" "$psb $status_root 19 0001200000 0000 $entry 19 0002100000 0000 $exit 19 0003200000 0000" \
    "$entry 19 0004100000 0000"
vm=0x1bff6a000,offset=-0x100000,name=web01,vcpu=1

json "an exit in full" 'map(select(.type=="exit")) == [{"type":"exit","source":"pt","cpu":null,"domain":"web01","vcpu":1,
    "tid":null,"vmcs":"0x1bff6a000","host_tsc":"0x200200","host_tsc_error":256,"time_ns":2097664,"isa":"vmx","reason":30,
    "reason_flags":"0x0","reason_name":"IO_INSTRUCTION","qualification":"0x3f80000","info2":null,"intr_info":null,
    "error_code":null,"vector":null,"key":"port:0x3f8:out","guest_rip":"0xffffffff81000106","guest_symbol":null,
    "guest_cr3":"0x1234000","cpl":null,"duration_ns":256,"duration_tsc":"0x100","userspace_ns":null,"halt_poll_ns":null,
    "blocked_ns":null,"preempted_ns":null,"nested":null,"failed_entry":false,"concealed_rip":false}]' \
    script "$dir/a.pt" --vm $vm --tsc-hz 1000000000
json "no rate, no nanoseconds" 'map(select(.type=="exit"))[0] | .time_ns == null and .duration_ns == null and .host_tsc == "0x200200"' \
    script "$dir/a.pt" --vm $vm
json "the non-turbo ratio gives a rate" 'map(select(.type=="exit"))[0].duration_ns == 128' script "$dir/a.pt" --vm $vm --nom-ratio 20
json "leaf 15H gives a rate" 'map(select(.type=="exit"))[0].duration_ns == 64' \
    script "$dir/a.pt" --vm $vm --cpuid-15h 1,160,25000000
json "without a map the guest's TSC is no time" 'map(select(.type=="exit"))[0] | .host_tsc == "0x200100" and .host_tsc_error == 512' \
    script "$dir/a.pt"
json "a row of the report" '.[0] | .exits == 1 and .entries == 2 and (.concealed | not) and .rows[0].total_ns == 256
    and .rows[0].key == "port:0x3f8:out" and .loss.bytes_skipped == 0 and .vms[0].name == "web01"' \
    report "$dir/a.pt" --vm $vm --tsc-hz 1000000000
json "another domain's events are left out" 'map(select(.type=="exit")) == []' \
    script "$dir/a.pt" --vm $vm --vm 0x5000,name=db01 --domain db01
json "a part of the time" 'map(select(.type)) | length == 2' script "$dir/a.pt" --vm $vm --tsc-hz 1000000000 --time 0.0000005,

bytes "$dir/gap.pt" "$psb $status_root $entry 02f3 $psb $status_root"
json "a change across a loss is a gap" 'map(.type) == ["header","entry","loss","gap"]' script "$dir/gap.pt"
bytes "$dir/root.pt" "$psb $status_root 06 06"
json "a VM that is named and not seen is concealed" '.[0].concealed == true' report "$dir/root.pt" --vm $vm
json "without one it is not known" '.[0].concealed == null' report "$dir/root.pt"

status "a bare stream without --pt-raw" 6 "needs --pt-raw" script "$dir/a.pt" --vm $vm
status "a VM that is no VM" 2 "VMCS,offset=N" script --pt-raw "$dir/a.pt" --vm web01
status "a domain that is not there" 3 "web02" script --pt-raw "$dir/a.pt" --vm $vm --domain web02
status "damage beyond --max-loss" 6 "" script --pt-raw <(printf '\xad\x00') --max-loss 1
echo "1..$n"
