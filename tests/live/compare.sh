# SPDX-License-Identifier: LGPL-2.1-or-later
# Compares a capture with the truth of the program that caused the exits and with the kernel's own
# hist triggers of the same run. Sourced after lib.sh.

# hist_rows FILE KEYS: "value... count" a line, sorted, of the histogram over these keys.
hist_rows() {
    awk -v keys="$2" '
        /trigger info: hist:keys=/ {on = index($0, "hist:keys=" keys ":") > 0}
        on && /^\{/ {
            gsub(/[{},]/, " ")
            line = ""
            for (i = 2; i <= NF; i += 2)
                line = line (i > 2 ? " " : "") (index($(i - 1), "guest_rip") ? "0x" $i : $i)
            print line
        }' "$1" | LC_ALL=C sort
}

# hist_count FILE KEYS VALUES: the count of one row, 0 when there is none.
hist_count() {
    hist_rows "$1" "$2" | awk -v want="$3 " 'index($0, want) == 1 {n += $NF} END {print n + 0}'
}

hist_hits() { # hist_hits FILE KEYS
    hist_rows "$1" "$2" | awk '{n += $NF} END {print n + 0}'
}

# count_lines: "value... count" of equal lines on standard input, sorted.
count_lines() {
    LC_ALL=C sort | uniq -c | awk '{n = $1; $1 = ""; print substr($0, 2) " " n}' | LC_ALL=C sort
}

same() { # same FILE_GOT FILE_WANTED DESCRIPTION: equal and not empty
    if [ -s "$2" ] && cmp -s "$1" "$2"; then
        ok 0 "$3 ($(wc -l <"$2") kinds)"
    else
        ok 1 "$3"
        diff "$1" "$2" | head -n 12 | sed 's/^/#   /'
    fi
}

# read_capture FOLDER FILE.vmt: report.json and events.jsonl in the folder. Fails when there is
# nothing to compare: the caller then leaves the other comparisons out.
read_capture() {
    if [ ! -s "$2" ] || [ ! -s "$1/hist-kvm_exit.txt" ]; then
        ok 1 "capture and hist are there"
        tail -n 3 "$1"/record.log "$1"/start.txt 2>/dev/null | sed 's/^/#   /'
        return 1
    fi
    "$VMTRACE" report -i "$2" --format json >"$1/report.json" 2>"$1/report.err"
    ok $? "vmtrace report reads the capture"
    "$VMTRACE" script -i "$2" --format json >"$1/events.jsonl" 2>"$1/script.err"
    ok $? "vmtrace script reads the capture"
    "$VMTRACE" report -i "$2" >"$1/report.txt" 2>>"$1/report.err"
    [ -s "$1/report.json" ] && [ -s "$1/events.jsonl" ]
}

report_value() { # report_value FOLDER JQ_EXPRESSION
    jq -r "$2" "$1/report.json" 2>/dev/null
}

# What report and script say is what the kernel counted itself.
compare_hist() { # compare_hist FOLDER [SOURCE]
    local d=$1 source=${2:-kvm} hits
    hits=$(hist_hits "$d/hist-kvm_exit.txt" exit_reason)
    is "$(report_value "$d" '.exits + .failed_entries')" "$hits" "exits of report and of hist"
    is "$(report_value "$d" .entries)" "$(hist_hits "$d/hist-kvm_entry.txt" vcpu_id)" \
        "entries of report and of hist"
    is "$(jq -r 'select(.type == "exit") | .source' "$d/events.jsonl" | count_lines)" "$source $hits" \
        "events of script, by source"
    report_value "$d" '.rows | group_by(.reason)[] | "\(.[0].reason) \(map(.count) | add)"' |
        LC_ALL=C sort >"$d/by-reason.report"
    hist_rows "$d/hist-kvm_exit.txt" exit_reason >"$d/by-reason.hist"
    same "$d/by-reason.report" "$d/by-reason.hist" "report by reason as hist"
    jq -r 'select(.type == "exit") | "\(.reason) \(.guest_rip)"' "$d/events.jsonl" | count_lines \
        >"$d/by-rip.script"
    hist_rows "$d/hist-kvm_exit.txt" exit_reason,guest_rip.hex >"$d/by-rip.hist"
    same "$d/by-rip.script" "$d/by-rip.hist" "script by reason and RIP as hist"
    jq -r 'select(.type == "exit") | "\(.vcpu)"' "$d/events.jsonl" | count_lines >"$d/by-vcpu.script"
    hist_rows "$d/hist-kvm_exit.txt" vcpu_id >"$d/by-vcpu.hist"
    same "$d/by-vcpu.script" "$d/by-vcpu.hist" "script by vCPU as hist"
    jq -r 'select(.type == "exit" and .key != null) | .key | select(startswith("msr:")) |
        split(":") | "\(.[1]) \(if .[2] == "w" then 1 else 0 end)"' "$d/events.jsonl" |
        count_lines >"$d/by-msr.script"
    hist_rows "$d/hist-kvm_msr.txt" ecx,write | while read -r ecx write count; do
        printf '0x%x %s %s\n' "$ecx" "$write" "$count"
    done | LC_ALL=C sort >"$d/by-msr.hist"
    same "$d/by-msr.script" "$d/by-msr.hist" "script by MSR and direction as hist"
}

# A capture of the guest's side alone: no packet has an address or a CR3 that is not of the VM
# program's, whose code lies below 64 KiB and which does not use CR3.
compare_privacy() { # compare_privacy FILE.vmt
    "$VMTRACE" decode pt "$1" --format json >"${1%.vmt}.packets"
    is "$(jq -r 'select(.ip != null) | .ip' "${1%.vmt}.packets" | grep -cE '^0x[0-9a-f]{1,4}$' |
        awk '{print ($1 > 100)}')" 1 "guest addresses in the trace"
    is "$(jq -r 'select(.ip != null) | .ip' "${1%.vmt}.packets" | grep -vE '^0x[0-9a-f]{1,4}$')" "" \
        "other addresses in the trace"
    is "$(jq -r 'select(.cr3 != null) | .cr3' "${1%.vmt}.packets" | sort -u)" 0x0 "CR3s in the trace"
}

# A capture that lost nothing says so, and its sums balance.
compare_loss() { # compare_loss FOLDER
    is "$(report_value "$1" '.loss | [.records_lost, .overflows, .bytes_skipped, .truncated,
        .bytes_total == .bytes_decoded + .bytes_skipped, .bytes_total > 0] | map(tostring) | join(" ")')" \
        "0 0 0 false true true" "loss ledger (lost, overflows, skipped, truncated, balanced, any)"
    is "$(report_value "$1" '[.bill[] | .wall_ns == .guest_ns + .exits_ns + .userspace_ns +
        .halt_poll_ns + .halted_ns + .preempted_ns + .stopped_ns + .residual_ns] | all and length > 0')" \
        true "each vCPU's bill sums to its wall time"
}

# key_row FOLDER KEY: "count rip" of the report's row, summed over reasons.
key_row() {
    report_value "$1" "[.rows[] | select(.key == \"$2\")] |
        \"\(map(.count) | add // 0) \(.[0].guest_rip)\""
}

# The programmed exits of exits.c, with sub-keys and RIPs, each vCPU. HLT_REASON: 12 or 120.
compare_truth() { # compare_truth FOLDER HLT_REASON
    local d=$1 hlt=$2 truth key rip count
    truth=$(grep '"done"' "$d/truth.jsonl")
    jq -r --argjson hlt "$hlt" '. as $t | .vcpus[] | . as $v |
        ["port:\($t.port):out", .out_rip, .outs], ["port:\($t.sample_port):out", .sample_rip, .samples_out],
        ["port:\($t.end_port):out", .end_rip, .ends], ["cpuid:\($t.leaf)/0x0", .cpuid_rip, .cpuids],
        ["msr:\($t.msr):r", .rdmsr_rip, .rdmsrs], ["reason:\($hlt)", .hlt_rip, .hlts] |
        "\($v.id) \(.[0]) \(.[1]) \(.[2])"' <<<"$truth" | grep -v ' 0$' | LC_ALL=C sort >"$d/by-key.truth"
    jq -r --argjson hlt "$hlt" 'select(.type == "exit") |
        if .reason == $hlt then .key = "reason:\($hlt)" else . end |
        select(.key != null) | select(.key | startswith("gpa:") or startswith("vec:") | not) |
        "\(.vcpu) \(.key) \(.guest_rip)"' "$d/events.jsonl" | count_lines >"$d/by-key.script"
    same "$d/by-key.script" "$d/by-key.truth" "script by vCPU, key and RIP as the program did"
    [ "$(jq '.vcpus | length' <<<"$truth")" -eq 1 ] || return
    while read -r _ key rip count; do
        case $key in
        reason:*) is "$(report_value "$d" "[.rows[] | select(.reason == $hlt)] |
            \"\(map(.count) | add // 0) \(.[0].guest_rip)\"")" "$count $rip" "report row of $key" ;;
        *) is "$(key_row "$d" "$key")" "$count $rip" "report row of $key" ;;
        esac
    done <"$d/by-key.truth"
}

debugfs_value() { # debugfs_value FOLDER NAME: "" when the kernel has no such file
    awk -v name="$2" '$1 == name {print $2}' "$1/debugfs.txt"
}

# The bill's halted and halt-polling time is what KVM itself summed up, within a fifth: KVM takes its
# times closer to the halt than the tracepoints do, and counts the way from the wake-up to a CPU as
# halted, which the bill has as preempted.
compare_halts() { # compare_halts FOLDER
    local kvm
    kvm=$(awk '$1 ~ /^halt_(wait|poll_success|poll_fail)_ns$/ {n += $2} END {printf "%d", n}' "$1/debugfs.txt")
    is "$(report_value "$1" "([.bill[] | .halted_ns + .halt_poll_ns] | add) as \$halted |
        ([.bill[].preempted_ns] | add) as \$preempted |
        \$halted > 0 and \$halted < $kvm * 1.2 and \$halted + \$preempted > $kvm * 0.8")" true \
        "halted time of the bill and of KVM's counters"
    echo "#   bill $(report_value "$1" '[.bill[] | .halted_ns, .halt_poll_ns] | map(tostring) | join(" + ")') ns, KVM $kvm ns"
}

# The TSC map of vCPU 0 in the capture is debugfs's, and guest TSCs that the guest itself read lie
# between the converted host TSCs of before and after.
compare_tsc() { # compare_tsc FOLDER FILE.vmt
    local d=$1 vmt=$2 ratio frac truth values low high guest good=0 all=0
    ratio=$(debugfs_value "$d" vcpu0/tsc-scaling-ratio)
    frac=$(debugfs_value "$d" vcpu0/tsc-scaling-ratio-frac-bits)
    "$VMTRACE" tsc show -i "$vmt" --format json >"$d/tsc-show.json" 2>"$d/tsc.err"
    is "$(jq -r '[.maps[] | select(.vcpu == 0)][-1].offset' "$d/tsc-show.json")" \
        "$(printf '0x%x' "$(debugfs_value "$d" vcpu0/tsc-offset)")" "TSC offset of the capture and of debugfs"
    if [ -n "$ratio" ]; then
        is "$(jq -r '[.maps[] | select(.vcpu == 0)][-1] | "\(.multiplier) \(.frac)"' "$d/tsc-show.json")" \
            "$(printf '0x%x' "$ratio") $frac" "TSC ratio and fraction bits of the capture and of debugfs"
    else
        is "$(jq -r '[.maps[] | select(.vcpu == 0)][-1].ratio' "$d/tsc-show.json")" 1 \
            "TSC ratio where the kernel has no scaling"
    fi
    truth=$(grep '"done"' "$d/truth.jsonl")
    mapfile -t values < <(jq -r '.vcpus[0].samples[] | .before, .after' <<<"$truth")
    "$VMTRACE" tsc convert --to guest -i "$vmt" --vcpu 0 "${values[@]}" >"$d/tsc-convert.txt" 2>>"$d/tsc.err"
    while read -r guest && read -r low <&3 && read -r high <&3; do
        all=$((all + 1))
        # Bash counts modulo 2^64, as the guest's clock does: only differences are compared.
        [ $((guest - low)) -ge 0 ] && [ $((high - guest)) -ge 0 ] && good=$((good + 1))
    done < <(jq -r '.vcpus[0].samples[].guest' <<<"$truth") 3<"$d/tsc-convert.txt"
    is "$good of $all" "$(jq '.vcpus[0] | "\(.samples_out) of \(.samples_out)"' -r <<<"$truth")" \
        "guest TSC readings inside the bracket of tsc convert"
    compare_host_tsc "$d" "$truth"
}

# Where the capture can tell host TSCs: each sample's OUT exit lies in the bracket of its KVM_RUN.
compare_host_tsc() { # compare_host_tsc FOLDER TRUTH
    local d=$1 port good=0 all=0 host error before after
    port=$(jq -r .sample_port <<<"$2")
    jq -r --arg key "port:$port:out" 'select(.type == "exit" and .vcpu == 0 and .key == $key) |
        "\(.host_tsc) \(.host_tsc_error)"' "$d/events.jsonl" >"$d/sample-exits.txt"
    if grep -q null "$d/sample-exits.txt"; then
        skip "host TSCs of exits: the bed's perf clock cannot be converted (cap_user_time_zero is 0)"
        return
    fi
    while read -r host error && read -r before after <&3; do
        all=$((all + 1))
        [ $((host + error - before)) -ge 0 ] && [ $((after + error - host)) -ge 0 ] && good=$((good + 1))
    done <"$d/sample-exits.txt" 3< <(jq -r '.vcpus[0].samples[] | "\(.before) \(.after)"' <<<"$2")
    is "$good of $all" "$(jq -r '.vcpus[0] | "\(.samples_out) of \(.samples_out)"' <<<"$2")" \
        "host TSCs of sample exits inside the bracket of their KVM_RUN"
}
