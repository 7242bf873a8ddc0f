#!/usr/bin/env bash
# Runs libFuzzer targets one after the other on their corpora, what is new going to $O/corpus, and
# says at the end which of them found something; status 1 then. Findings stand under $O/findings.
# usage: fuzz.sh SECONDS TARGET...
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
O=${O:-build}
seconds=$1
shift
failed=()
for target; do
    name=${target##*/}
    corpus=tests/fuzz/corpus/${name#fuzz_}
    log=$O/corpus/$name.log
    mkdir -p "$O/corpus/$name" "$O/findings"
    [ -d "$corpus" ] && seeds=("$corpus") || seeds=()
    "$target" -max_total_time="$seconds" -rss_limit_mb=512 -timeout=10 \
        -artifact_prefix="$O/findings/$name-" "$O/corpus/$name" "${seeds[@]}" >"$log" 2>&1
    status=$?
    printf '%-24s %s\n' "$name" "$(grep -aE '^Done|DONE' "$log" | tail -n 1)"
    [ $status -eq 0 ] && continue
    failed+=("$name")
    grep -aE 'ERROR|SUMMARY|runtime error|ALARM|Test unit written|^ +#[0-9]+ .* in ' "$log" | head -n 30
done
echo "$(($# - ${#failed[@]})) passed, ${#failed[@]} failed${failed[*]:+: ${failed[*]}}"
[ ${#failed[@]} -eq 0 ]
