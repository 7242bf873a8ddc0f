#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Lab P with vmtrace as the recorder: inside the emulated CPU with Intel PT, on the kernel's own
# driver, `vmtrace record --backend kvm,pt` beside the VM program. Exits, reasons, sub-keys and RIPs
# of the joined capture are those that the kernel counted and the program made.
. "${BASH_SOURCE[0]%/*}/lib.sh"
. "${BASH_SOURCE[0]%/*}/compare.sh"

# The tracepoint's count, reason and RIP, each exit told by the trace as well.
compare_joined() { # compare_joined FOLDER
    local d=$1 hits
    hits=$(hist_hits "$d/hist-kvm_exit.txt" exit_reason)
    is "$(report_value "$d" .exits)" "$hits" "exits of report and of hist"
    is "$(report_value "$d" '.join | "\(.only_kvm) \(.disagree_rip) \(.disagree_reason)"')" "0 0 0" \
        "exits without trace, other RIPs, other reasons"
    is "$(jq -r 'select(.type == "exit") | .source' "$d/events.jsonl" | count_lines)" "pt $hits" \
        "events of script, by source"
    jq -r 'select(.type == "exit") | "\(.reason) \(.guest_rip)"' "$d/events.jsonl" | count_lines \
        >"$d/by-rip.script"
    hist_rows "$d/hist-kvm_exit.txt" exit_reason,guest_rip.hex >"$d/by-rip.hist"
    same "$d/by-rip.script" "$d/by-rip.hist" "script by reason and RIP as hist"
}

lab_begin prec
need jq mke2fs debugfs ldd
need_ptcpu "$W/pt"
build_fixture exits
make_initrd ata_piix sd_mod kvm-intel

cat >"$W/env" <<'ENV'
scenarios() {
    RECORD_OPTIONS="--backend kvm,sched,pt"
    scenario threads
    sync
    RECORD_OPTIONS="--backend kvm,pt --system-wide"
    scenario wide
    sync
    RECORD_OPTIONS="--backend kvm,pt --vm-events-only"
    scenario cheap
    sync
    RECORD_OPTIONS="--backend kvm,pt --mode guest-only"
    scenario guest
    sync
    RECORD_OPTIONS="--backend kvm,pt --keep 1m --pt-buffer 128K"
    scenario flight
    sync
    RECORD_OPTIONS="--backend pt --pt-buffer 128K"
    scenario small
    sync
}
ENV
make_disk "$VMTRACE"
boot_bochs 400
ok $? "the machine ran to its end"
read_disk
for name in threads wide cheap guest; do
    d=$W/out/$name
    is "$(cat "$d/record.status" 2>&1)" 0 "$name: vmtrace record --pid ends in order"
    read_capture "$d" "$d/exits.vmt" || continue
    compare_joined "$d"
    compare_loss "$d"
    compare_truth "$d" 12
done
compare_privacy "$W/out/guest/exits.vmt"
d=$W/out/flight
is "$(cat "$d/record.status" 2>&1)" 0 "flight: vmtrace record --pid ends in order"
if read_capture "$d" "$d/exits.vmt"; then
    hits=$(hist_hits "$d/hist-kvm_exit.txt" exit_reason)
    # What stands before the first time that is known in the buffer has none to be joined by.
    is "$(jq -s '[.[] | select(.type == "exit" and .time_ns != null)] | length' "$d/events.jsonl")" "$hits" \
        "flight: exits with a time, of script and of hist"
    # Exits before that are no loss of the trace: it did not cover them.
    joined=$(report_value "$d" .join.joined)
    [ "$joined" -gt 0 ] && [ "$joined" -lt "$hits" ]
    ok $? "flight: the newest exits are told by the trace as well: $joined of $hits"
    is "$(report_value "$d" '.join | "\(.only_kvm) \(.only_pt) \(.disagree_rip) \(.disagree_reason)"')" \
        "0 0 0 0" "flight: and agree"
    is "$("$VMTRACE" decode pt "$d/exits.vmt" --format json | tail -n 1 | jq '.ledger.bytes_total > 100000')" true \
        "flight: the buffer's trace is in the file"
fi
d=$W/out/small
is "$(cat "$d/record.status" 2>&1)" 0 "small: vmtrace record --pid ends in order"
"$VMTRACE" report -i "$d/exits.vmt" --format json >"$d/report.json" 2>"$d/report.err"
ok $? "small: vmtrace report reads the capture"
is "$(report_value "$d" '.loss | .bytes_total == .bytes_decoded + .bytes_skipped')" true \
    "small: the sums balance"
lab_end
