#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs the labs in two lanes side by side (one per core), each with a hard timeout, and closes with
# "N passed, N failed, N skipped"; status 0 when none failed. A lab prints TAP; its serial log and
# artefacts stay under $O/labs/NAME. Nothing that it starts stays.
# O: build folder. LABS: regular expression that selects labs by name (a, a2, b, blight, c, d, f, p, p2, pmod, pperf, prec).
# LABS_SLOW=N multiplies every timeout. Root, or a user with sudo; without, some labs are skipped.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
O=${O:-build}
case $O in /*) ;; *) O=$top/$O ;; esac
export O VMTRACE=${VMTRACE:-$O/vmtrace}

if [ "$(id -u)" -ne 0 ] && command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    exec sudo -n env O="$O" VMTRACE="$VMTRACE" LABS="${LABS:-}" LABS_SLOW="${LABS_SLOW:-1}" "$0"
fi

# Lane, name, hard timeout in seconds: at least three times what the lab takes on two free cores,
# retry included. An emulated machine never shares its lane's core with another.
labs="
1 f 60
1 a 180
1 a2 90
1 b 300
1 blight 120
2 c 240
1 d 240
2 p 300
1 pperf 300
2 prec 600
2 p2 600
1 pmod 600
"

logs=$O/labs/logs
mkdir -p "$logs"
rm -f "$logs"/*

# run_lab NAME SECONDS: TAP to NAME.tap, "status seconds" to NAME.result.
run_lab() {
    local name=$1 limit=$(($2 * ${LABS_SLOW:-1})) began=$SECONDS status
    echo "# lab $name: started"
    timeout -k 15 "$limit" "$here/lab_$name.sh" >"$logs/$name.tap" 2>"$logs/$name.err" </dev/null
    status=$?
    echo "$status $((SECONDS - began))" >"$logs/$name.result"
    {
        echo "# lab $name: status $status after $((SECONDS - began)) s"
        sed 's/^/    /' "$logs/$name.tap"
        [ $status -eq 0 ] || tail -n 20 "$logs/$name.err" | sed 's/^/    # stderr: /'
    } >"$logs/$name.text"
    cat "$logs/$name.text" # in one piece: the other lane prints as well
}

selected() { [[ $1 =~ ^(${LABS:-.*})$ ]]; }

run_lane() {
    local lane name limit
    while read -r lane name limit; do
        [ "$lane" = "$1" ] && selected "$name" && run_lab "$name" "$limit"
    done <<<"$labs"
}

# Once, before both lanes ask for it; without a kernel the labs that need one say so and skip.
timeout 240 "$top/virt-fixtures/images/kernel.sh" >/dev/null 2>&1

pids=()
stop() {
    kill "${pids[@]}" 2>/dev/null
    wait
    exit 143
}
trap stop TERM INT
run_lane 1 &
pids+=($!)
run_lane 2 &
pids+=($!)
wait "${pids[@]}"

passed=0 failed=0 skipped=0
while read -r _ name limit; do
    [ -n "$name" ] && selected "$name" || continue
    read -r status seconds <"$logs/$name.result" || status=none
    skip=$(grep -ciE '^ok .*# *skip' "$logs/$name.tap")
    ok=$(($(grep -cE '^ok ' "$logs/$name.tap") - skip))
    notok=$(grep -cE '^not ok ' "$logs/$name.tap")
    plan=$(sed -nE 's/^1\.\.([0-9]+).*/\1/p' "$logs/$name.tap" | head -n 1)
    if [ $((ok + notok + skip)) -ne "${plan:-0}" ] || [ "${plan:-0}" -eq 0 ] ||
        { [ "$status" != 0 ] && [ "$notok" -eq 0 ]; }; then
        notok=$((notok + 1))
        [ "$status" = 124 ] || [ "$status" = 137 ] && echo "FAIL $name: hard timeout of $limit s"
        echo "FAIL $name: status $status, $((ok + skip)) of ${plan:-no} planned results seen"
    fi
    passed=$((passed + ok)) failed=$((failed + notok)) skipped=$((skipped + skip))
    printf 'lab %-10s %4d ok %3d failed %3d skipped %5s s\n' "$name" "$ok" "$notok" "$skip" "$seconds"
done <<<"$labs"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
