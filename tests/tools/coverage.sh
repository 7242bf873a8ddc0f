#!/usr/bin/env bash
# Line coverage of each folder after `make coverage` has run the tests.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
O=${O:-build-cov}
case $O in /*) ;; *) O=$top/$O ;; esac
cd "$top"
for d in vmx decode/* host/*; do
    mapfile -t data < <(find "$O/$d" -maxdepth 1 -name '*.gcda' 2>/dev/null)
    [ ${#data[@]} -gt 0 ] || continue
    gcov -n "${data[@]}" 2>/dev/null | awk -v d="$d" '
        /^File/ {own = index($2, d "/") > 0}
        own && /^Lines executed/ {split($2, a, ":"); sub("%", "", a[2]); n += $4; hit += $4 * a[2] / 100; own = 0}
        END {if (n) printf "%-20s %6d lines %6.1f %%\n", d, n, 100 * hit / n}'
done
