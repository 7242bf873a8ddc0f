#!/usr/bin/env bash
# Runs every TAP test program and script and closes with "N passed, N failed, N skipped".
# O: build folder; SANO: ASan+UBSan build folder (optional, its programs run as well).
# VMT_TESTS: regular expression that selects tests by path.
set -uo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
O=${O:-build}
cd "$top" || exit 1
case $O in /*) ;; *) O=$top/$O ;; esac
case ${SANO:-} in /* | "") ;; *) SANO=$top/$SANO ;; esac
export O VMT_TOP=$top VMTRACE=$O/vmtrace
export CMOCKA_MESSAGE_OUTPUT=TAP
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=0}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# run NAME SECONDS COMMAND...
run() {
    local name=$1 seconds=$2 status ok notok skip plan
    shift 2
    [[ $name =~ ${VMT_TESTS:-.} ]] || return 0
    timeout -k 5 "$seconds" "$@" >"$log" 2>&1 </dev/null
    status=$?
    # cmocka writes a skipped test as "not ok N # SKIP".
    skip=$(grep -acE '^(not )?ok .*# *(SKIP|skip)' "$log")
    ok=$(grep -aE '^ok ' "$log" | grep -acvE '# *(SKIP|skip)')
    notok=$(grep -aE '^not ok ' "$log" | grep -acvE '# *(SKIP|skip)')
    plan=$(LC_ALL=C sed -nE 's/^1\.\.([0-9]+).*/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
    if [ $((ok + notok + skip)) -lt 1 ] || [ $((ok + notok + skip)) -ne "$plan" ] ||
        { [ "$status" -ne 0 ] && [ "$notok" -eq 0 ]; }; then
        notok=$((notok + 1))
        echo "FAIL $name: status $status, $((ok + skip)) of $plan planned results seen"
    fi
    passed=$((passed + ok)) failed=$((failed + notok)) skipped=$((skipped + skip))
    printf '%-52s %5d ok %3d failed %3d skipped\n' "$name" "$ok" "$notok" "$skip"
    grep -aE '^(not )?ok .*# *(SKIP|skip)' "$log" | sed 's/^/    /'
    [ "$notok" -gt 0 ] && sed 's/^/    | /' "$log" | tail -n 60
    return 0
}

for b in "$O" ${SANO:-}; do
    tag=""
    [ "$b" = "${SANO:-}" ] && tag=" (asan+ubsan)"
    for t in "$b"/tests/{unit,prop,golden,fault}/test_*; do
        [ -x "$t" ] && [[ $t != *.* ]] && run "${t#"$b"/}$tag" 300 "$t"
    done
    for f in "$b"/tests/fuzz/fuzz_*; do
        [ -x "$f" ] && [[ $f != *.* ]] || continue
        n=${f##*/fuzz_}
        run "${f#"$b"/}$tag" 300 "$f" --tap "tests/fuzz/corpus/$n"
    done
done
for t in tests/{unit,golden,fault,cli}/*.sh; do
    [ -x "$t" ] && run "$t" 300 "$t"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
