#!/usr/bin/env bash
# vmtrace export --to perfdata: perf reads what is written, and what it makes of it is what vmtrace makes of the input.
set -uo pipefail
O=${O:-build}
VMTRACE=${VMTRACE:-$O/vmtrace}
tools=$O/tests/tools
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
perf_check() { # NAME COMMAND...: needs perf
    if command -v perf >/dev/null; then check "$@"; else skip "$1" "perf is missing"; fi
}
status() { # WANTED COMMAND...
    local want=$1 got
    shift
    "$@" >"$work/out" 2>"$work/err"
    got=$?
    [ "$got" -eq "$want" ] || { echo "status $got, not $want"; cat "$work/err"; return 1; }
}
for tool in "$VMTRACE" "$tools/gen_perfdata" "$tools/gen_ptdata" "$tools/gen_ptvmt" jq; do
    command -v "$tool" >/dev/null || { echo "1..0 # skip $tool is missing"; exit 0; }
done
export_to() { # INPUT OUTPUT OPTIONS...
    local in=$1 out=$2
    shift 2
    rm -f "$out"
    "$VMTRACE" export --to perfdata -i "$in" -o "$out" "$@"
}

# ---- usage ----
check "no format: usage, and which there are" status 2 "$VMTRACE" export -i x -o y
check "... named" grep -q 'formats: perfdata' "$work/err"
check "an unknown format: usage, and which there are" status 2 "$VMTRACE" export --to pcap -i x -o y
check "... named" grep -q 'formats: perfdata' "$work/err"
check "no output: usage" status 2 "$VMTRACE" export --to perfdata -i x
check "a part of the capture: usage" status 2 "$VMTRACE" export --to perfdata -i x -o y --time 1,2
"$tools/gen_perfdata" "$work/kvm.data" --events 50000
echo kept >"$work/there"
check "an existing output is kept" status 1 "$VMTRACE" export --to perfdata "$work/kvm.data" -o "$work/there"
check "... as it was" grep -q kept "$work/there"
check "the input is no output" status 2 "$VMTRACE" export --to perfdata "$work/kvm.data" -o "$work/kvm.data" --force
mkfifo "$work/fifo"
cat "$work/fifo" >/dev/null &
check "a pipe is no output" status 2 "$VMTRACE" export --to perfdata "$work/kvm.data" -o "$work/fifo"
wait
echo "no capture" >"$work/text"
check "an input of no known format" status 6 "$VMTRACE" export --to perfdata "$work/text" -o "$work/none"
check "... leaves no output" bash -c "! [ -s '$work/none' ]"

# ---- tracepoints ----
perf_counts() { # FILE: "NAME COUNT" lines
    perf kvm -i "$1" stat report 2>&1 | awk '$2 ~ /^[0-9]+$/ && $3 ~ /%$/ {print $1, $2}' | sort
}
own_counts() {
    "$VMTRACE" report -i "$1" --by reason --format json | jq -r '.rows[] | "\(.reason_name) \(.count)"' | sort
}
same_reasons() { # INPUT EXPORTED
    own_counts "$1" >"$work/own.txt"
    perf_counts "$2" >"$work/perf.txt"
    [ -s "$work/perf.txt" ] && diff "$work/perf.txt" "$work/own.txt"
}
same_script() { # INPUT EXPORTED
    perf script -i "$1" >"$work/a.txt" 2>/dev/null
    perf script -i "$2" >"$work/b.txt" 2>"$work/err"
    [ -s "$work/a.txt" ] && [ ! -s "$work/err" ] && cmp "$work/a.txt" "$work/b.txt"
}
for options in "" "--isa svm" "--zstd" "--no-rounds"; do
    # shellcheck disable=SC2086
    "$tools/gen_perfdata" "$work/kvm.data" --events 50000 $options
    check "perf.data ${options:-as it is}: written" export_to "$work/kvm.data" "$work/out.data"
    perf_check "... perf script prints the same" same_script "$work/kvm.data" "$work/out.data"
    perf_check "... perf kvm stat report counts as we do" same_reasons "$work/kvm.data" "$work/out.data"
done
"$tools/gen_perfdata" "$work/kvm.data" --events 50000
"$tools/gen_perfdata" - --events 50000 --pipe >"$work/kvm.pipe"
check "pipe mode becomes a file" bash -c "cat '$work/kvm.pipe' | '$VMTRACE' export --to perfdata -i - -o '$work/pipe.data'"
perf_check "... with the same content" same_script "$work/kvm.data" "$work/pipe.data"
head -c $(($(stat -c %s "$work/kvm.pipe") * 2 / 3 + 1)) "$work/kvm.pipe" >"$work/cut.pipe"
rm -f "$work/cut.data"
check "cut off with --max-loss 0: 6" status 6 "$VMTRACE" export --to perfdata "$work/cut.pipe" -o "$work/cut.data" --max-loss 0
perf_check "... and perf reads what was there" bash -c "perf script -i '$work/cut.data' | wc -l | grep -qE '^[1-9][0-9]{4}'"

# ---- .vmt: kvm records and Intel PT ----
"$tools/gen_ptvmt" "$work/pt.vmt" 3
check ".vmt with Intel PT: written" export_to "$work/pt.vmt" "$work/pt.data"
# In a dump of one record perf does not see where a packet began in the record before.
"$tools/gen_ptvmt" "$work/whole.vmt" 3 1000000
check "... with each CPU's trace in one piece" export_to "$work/whole.vmt" "$work/whole.data"
check "... mode 0600" bash -c "[ \$(stat -c %a '$work/pt.data') = 600 ]"
same_kvm_exits() { # INPUT EXPORTED: perf kvm knows the tracepoints alone
    "$VMTRACE" script "$1" --type exit --format json | jq -r 'select(.source == "kvm") | .reason_name' |
        sort | uniq -c | awk '{print $2, $1}' >"$work/own.txt"
    perf_counts "$2" >"$work/perf.txt"
    [ -s "$work/perf.txt" ] && diff "$work/perf.txt" "$work/own.txt"
}
perf_check "... perf kvm stat report counts as we do" same_kvm_exits "$work/pt.vmt" "$work/pt.data"
perf_check "... perf script prints every exit with its thread's name" bash -c "
    perf script --no-itrace -i '$work/pt.data' 2>'$work/err' | grep -c 'CPU [01]/KVM .* kvm:kvm_exit:' | grep -qx 400 && ! [ -s '$work/err' ]"
perf_check "... perf script -D reads it without an error" bash -c "
    perf script -D -i '$work/whole.data' >'$work/dump.txt' 2>'$work/err' && ! grep -i 'error\|bad\|fail' '$work/err'"
perf_check "... and all of the trace" bash -c "
    ! grep 'Bad packet' '$work/dump.txt' && [ \$(grep -c ' PSB\$' '$work/dump.txt') = \
    \$('$VMTRACE' decode pt '$work/pt.vmt' --format json | grep -c '\"PSB\"') ]"
perf_check "... the host, processor and vCPUs" bash -c "
    perf report --header-only -i '$work/pt.data' | grep -q 'cpuid : GenuineIntel,6,143,8' &&
    grep -q 'tid: 6002  machine_pid: 6000  vcpu: 1' '$work/dump.txt'"
trace_packets() { "$VMTRACE" decode pt "$1" --format json | jq -c 'select(.packet and .packet != "PAD") | del(.offset, .at)'; }
check "... and back: the same packets" bash -c "$(declare -f trace_packets); VMTRACE='$VMTRACE'
    cmp <(trace_packets '$work/pt.vmt') <(trace_packets '$work/pt.data')"
events() {
    "$VMTRACE" script "$1" --format json |
        jq -c 'select(.source == "kvm") | [.type, .time_ns, .cpu, .vcpu, .tid, .reason, .guest_rip, .duration_ns]'
}
check "... and the same events" bash -c "$(declare -f events); VMTRACE='$VMTRACE'
    cmp <(events '$work/pt.vmt') <(events '$work/pt.data') && events '$work/pt.data' | wc -l | grep -qE '^[1-9][0-9]{2}'"

# ---- one side alone ----
side() { "$VMTRACE" export --to vmt --privacy "$1" "$2" -o "$3"; }
exits() { "$VMTRACE" script "$1" --type exit --format json | jq -c 'select(.source == "pt") | [.time_ns, .reason, .vector, .duration_ns] + '"$2"; }
for which in guest host; do
    nr=$([ $which = guest ] && echo 1 || echo 0)
    members=$([ $which = guest ] && echo '[.guest_rip, .guest_cr3, .qualification]' || echo '[]')
    check "$which alone: written" side $which "$work/whole.vmt" "$work/$which.vmt"
    check "... every CR3 is of that side" bash -c "'$VMTRACE' decode pt '$work/$which.vmt' --format json |
        jq -r 'select(.nr != null) | .nr' | sort -u | grep -qx $nr"
    check "... every IP is of that side" bash -c "'$VMTRACE' decode pt '$work/$which.vmt' --format json |
        jq -r 'select(.ip != null and .packet != \"SKIPPED\") | .ip' | awk '{ host = /^0xffffffffc/; if (host == $nr) exit 1 } END { if (!NR) exit 1 }'"
    check "... the same exits" bash -c "$(declare -f exits); VMTRACE='$VMTRACE'
        cmp <(exits '$work/whole.vmt' '$members') <(exits '$work/$which.vmt' '$members') && exits '$work/$which.vmt' '$members' | wc -l | grep -qE '^[1-9][0-9]{2}'"
    check "... nothing is lost" bash -c "'$VMTRACE' report '$work/$which.vmt' --format json | jq -e '.loss.bytes_skipped == 0 and .loss.overflows == 0'"
    check "... as perf.data" export_to "$work/$which.vmt" "$work/$which.data"
    perf_check "... which perf reads" bash -c "perf script -D -i '$work/$which.data' >'$work/dump.txt' 2>'$work/err' &&
        ! grep -i 'error\|bad\|fail' '$work/err' && ! grep 'Bad packet' '$work/dump.txt'"
done
check "vmt needs a side: 2" status 2 "$VMTRACE" export --to vmt "$work/whole.vmt" -o "$work/no.vmt"
check "a side goes with vmt: 2" status 2 "$VMTRACE" export --to perfdata --privacy guest "$work/whole.vmt" -o "$work/no.data"
check "an output that is there: 1" status 1 "$VMTRACE" export --to vmt --privacy guest "$work/whole.vmt" -o "$work/guest.vmt"
check "no .vmt: 6" status 6 "$VMTRACE" export --to vmt --privacy guest "$work/whole.data" -o "$work/no.vmt"

# ---- a program that perf follows instruction by instruction ----
cat >"$work/loop.s" <<'EOF'
.globl _start
_start: mov $5, %ecx
1:      nop
        dec %ecx
        jnz 1b
        mov $60, %eax
        xor %edi, %edi
        syscall
EOF
CC=${CC:-gcc}
if ! "$CC" -nostdlib -static -no-pie -o "$work/loop" "$work/loop.s" 2>"$work/err" ||
    ! readelf -lW "$work/loop" >"$work/elf.txt" 2>&1; then
    for what in thread cpu guest event; do skip "perf follows a program: $what" "no compiler for a static program"; done
else
    read -r offset vaddr len < <(awk '$1 == "LOAD" && / R E / {print $2, $3, $5}' "$work/elf.txt")
    entry=$(readelf -hW "$work/loop" | awk '/Entry point/ {print $4}')
    at() { printf '%x\n' $((entry + $1)); }
    { # one line an instruction: 5 bytes, then five times around the loop of three, then three
        at 0
        for _ in 1 2 3 4 5; do at 5; at 6; at 8; done
        at 10; at 15; at 17
    } >"$work/all.txt"
    head -n 7 "$work/all.txt" >"$work/up_to_event.txt"
    follow() { # KIND FIELDS
        "$tools/gen_ptdata" "$1" "$work/$1.data" "$work/loop" "$entry" "$offset" "$vaddr" "$len" &&
            perf script --itrace=i1ie -F "$2" -i "$work/$1.data" >"$work/$1.txt" 2>"$work/err" && [ ! -s "$work/err" ]
    }
    ips() { awk '{print $NF}' "$work/$1.txt" | cmp - "$2"; }
    perf_check "perf follows a program: a thread, no times" follow thread ip
    perf_check "... every instruction" ips thread "$work/all.txt"
    perf_check "perf follows a program: a CPU, with TSC" follow cpu comm,pid,tid,ip
    perf_check "... every instruction" ips cpu "$work/all.txt"
    perf_check "... of that program" bash -c "! grep -v 'loop *77/77' '$work/cpu.txt'"
    perf_check "perf follows a program: in a guest" follow guest comm,pid,tid,ip,machine_pid,vcpu
    perf_check "... every instruction" ips guest "$work/all.txt"
    perf_check "... of that machine and vCPU" bash -c "! grep -v 'VM: 5000 VCPU:000 *loop *77/77' '$work/guest.txt'"
    perf_check "perf follows a program: with Event Trace" follow event ip
    perf_check "... up to the event" ips event "$work/up_to_event.txt"
    perf_check "... which it names" bash -c "perf script --itrace=I -i '$work/event.data' |
        grep -q 'evt:.*cfe: VMEXIT IP: 1 vector: 0 VMXQ: 0x1f0003 VMXR: 0xa'"
    for kind in thread cpu guest event; do
        perf_check "$kind: written again, byte for byte" bash -c "
            '$VMTRACE' export --to perfdata '$work/$kind.data' -o '$work/$kind.again' && cmp '$work/$kind.data' '$work/$kind.again'"
    done
fi

# ---- a bare stream ----
data=../shared/data/pt
if [ -r $data/dynamorio-pt.bin ]; then
    bare() {
        rm -f "$work/raw.data"
        "$VMTRACE" export --to perfdata --pt-raw $data/dynamorio-pt.bin --cpu-id 6/85/4 --tsc-hz 3700000000 \
            --nom-ratio 37 --mtc-freq 3 --cpuid-15h 2,308 -o "$work/raw.data"
    }
    check "a bare stream: written" bare
    perf_check "... perf dumps its packets" bash -c "perf script -D -i '$work/raw.data' >'$work/dump.txt' 2>&1 &&
        [ \$(grep -c ' CYC 0x' '$work/dump.txt') = 545 ] && [ \$(grep -c ' MTC 0x' '$work/dump.txt') = 538 ]"
    perf_check "... and knows its processor and clock" bash -c "
        grep -q 'TSC:CTC numerator   308' '$work/dump.txt' && grep -q 'Max non-turbo ratio 37' '$work/dump.txt' &&
        perf report --header-only -i '$work/raw.data' | grep -q 'cpuid : GenuineIntel,6,85,4'"
    check "... its configuration is what the stream shows" bash -c "
        perf report --header-only -i '$work/raw.data' | grep -q 'config = 0xe603'"
else
    skip "a bare stream" "$data is absent"
fi
if [ -r $data/perf.data.intel_pt-4.14 ]; then
    check "a recording of perf: written" export_to $data/perf.data.intel_pt-4.14 "$work/real.data"
    dump() { perf script -D -i "$1" 2>/dev/null | sed "s,$1,F,g; s/^0x[0-9a-f]*@/@/; s/0x[0-9a-f]* \[/[/"; }
    perf_check "... perf script -D prints the same" bash -c "$(declare -f dump)
        cmp <(dump $data/perf.data.intel_pt-4.14) <(dump '$work/real.data')"
    perf_check "... so does perf script --itrace" bash -c "
        cmp <(perf script --itrace=e -i $data/perf.data.intel_pt-4.14 2>/dev/null) \
            <(perf script --itrace=e -i '$work/real.data' 2>/dev/null)"
else
    skip "a recording of perf" "$data is absent"
fi
echo "1..$n"
