#!/usr/bin/env bash
# Runs every TAP test program and script, JOBS at a time (default: one a core), and closes with
# "N passed, N failed, N skipped".
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
seconds=300 # a test that runs longer is killed

# One line a test: name, command and arguments, with tabs between.
list() {
    local b tag t
    for b in "$O" ${SANO:-}; do
        tag=""
        [ "$b" = "${SANO:-}" ] && tag=" (asan+ubsan)"
        for t in "$b"/tests/{unit,prop,golden,fault}/test_*; do
            [ -x "$t" ] && [[ $t != *.* ]] && printf '%s\t%s\n' "${t#"$b"/}$tag" "$t"
        done
        for t in "$b"/tests/fuzz/fuzz_*; do
            [ -x "$t" ] && [[ $t != *.* ]] &&
                printf '%s\t%s\t--tap\t%s\n' "${t#"$b"/}$tag" "$t" "tests/fuzz/corpus/${t##*/fuzz_}"
        done
    done
    for t in tests/{unit,golden,fault,cli}/*.sh; do
        [ -x "$t" ] && printf '%s\t%s\n' "$t" "$t"
    done
}

# What is said of one test: its counts, its skips with their reasons, its output if it failed.
run() { # run NAME COMMAND...
    local name=$1 log=$work/$BASHPID.log status ok notok skip plan
    shift
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
    printf '%-52s %5d ok %3d failed %3d skipped\n' "$name" "$ok" "$notok" "$skip"
    grep -aE '^(not )?ok .*# *(SKIP|skip)' "$log" | sed 's/^/    /'
    [ "$notok" -gt 0 ] && sed 's/^/    | /' "$log" | tail -n 60
    rm -f "$log"
    echo "$ok $notok $skip" >>"$work/sums"
}

if [ "${1:-}" = --run ]; then # --run LINE, one line of the list
    IFS=$'\t' read -r -a fields <<<"$2"
    text=$(run "${fields[@]}")
    flock "$work/sums" printf '%s\n' "$text" # in one piece: others print as well
    exit 0
fi

work=$(mktemp -d)
export work
trap 'rm -rf "$work"' EXIT
: >"$work/sums"
list | VMT_TESTS=${VMT_TESTS:-.} awk -F'\t' '$1 ~ ENVIRON["VMT_TESTS"]' >"$work/list"
xargs -r -d '\n' -n 1 -P "${JOBS:-$(nproc)}" -a "$work/list" "$0" --run
awk -v tests="$(wc -l <"$work/list")" '{p += $1; f += $2; s += $3}
    END {
        if (NR != tests) {
            f += tests - NR
            print "FAIL: " tests - NR " tests ended without a result"
        }
        printf "%d passed, %d failed, %d skipped\n", p, f, s
        exit !(f == 0 && p > 0)
    }' "$work/sums"
