#!/usr/bin/env bash
# Fails when an archive imports a symbol that its row of layers.tsv does not allow.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
O=${O:-build}
case $O in /*) ;; *) O=$top/$O ;; esac
bad=0 seen=0

archive() { echo "$O/lib/lib$(sed 's#^decode/##; s#/#-#g' <<<"$1").a"; }
defined() { { nm --defined-only -g "$1" 2>/dev/null || true; } | awk 'NF == 3 {print $3}' | sort -u; }
always='_GLOBAL_OFFSET_TABLE_|__stack_chk_fail|__(memcpy|memset|memmove|strcpy|strcat|snprintf|vsnprintf|fprintf|vfprintf)_chk|__assert_fail|abort'

while IFS=$'\t' read -r name uses symbols; do
    [[ $name == \#* || -z $name ]] && continue
    lib=$(archive "$name")
    [ -f "$lib" ] || continue
    seen=$((seen + 1))
    allowed=$(for u in $name $uses; do defined "$(archive "$u")"; done | sort -u)
    extra=$(nm -u "$lib" | awk 'NF == 2 {print $2}' | sort -u | comm -23 - <(echo "$allowed") |
        grep -vxE "$symbols|$always" || true)
    if [ -n "$extra" ]; then
        bad=1
        echo "check-layers: $name imports what it may not:" $extra >&2
    fi
done < <(sed 's/\t\t/\t \t/' "$top/tests/lint/layers.tsv")
[ "$seen" -gt 0 ] || { echo "check-layers: no archive found in $O" >&2; exit 1; }
[ "$bad" -eq 0 ] && echo "check-layers: $seen archives keep to their rows"
exit "$bad"
