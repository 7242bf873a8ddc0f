#!/usr/bin/env bash
# clang-tidy, cppcheck, sizes of files and functions, shell syntax, no path of a machine.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
bad=0
fail() { echo "lint: $*" >&2; bad=1; }

mapfile -t c_files < <(git ls-files -co --exclude-standard '*.c' | grep -v '^virt-fixtures/')
mapfile -t all_files < <(git ls-files -co --exclude-standard)
for f in "${all_files[@]}"; do
    case $f in
    *.c | *.h | *.sh)
        n=$(wc -l <"$f")
        limit=600
        case $f in *_table*.c | *_rows.c) limit=900 ;; esac
        [ "$n" -le $limit ] || fail "$f has $n lines (limit $limit)"
        ;;
    esac
    case $f in *.sh) bash -n "$f" || fail "$f does not parse" ;; esac
done
# A function ends at the first line that is a closing brace alone.
for f in "${c_files[@]}"; do
    awk -v f="$f" '/^{/ {start = NR} /^}/ {if (start && NR - start > 120) {
        printf "%s:%d: function of %d lines\n", f, start, NR - start; bad = 1} start = 0}
        END {exit bad}' "$f" || fail "function above 120 lines"
done
# clang-tidy takes seconds a file: it reads the product, but for what the kernel's make builds. Tests have cppcheck, gcc's warnings and the sanitizers.
mapfile -t product < <(printf '%s\n' "${c_files[@]}" | grep -E '^(vmx|decode|host)/' | grep -v '^vmx/kmod/')
flags="-std=c11 -D_GNU_SOURCE -I. $(pkg-config --cflags libvirt libxml-2.0 jansson)"
if command -v clang-tidy >/dev/null; then
    findings=$(mktemp)
    trap 'rm -f "$findings"' EXIT
    printf '%s\n' "${product[@]}" | xargs -P "$(nproc)" -n 4 sh -c 'clang-tidy --quiet "$@" -- '"$flags"' -DVMT_VERSION="\"0\"" 2>/dev/null' lint \
        >"$findings" || fail "clang-tidy"
    grep -E 'error:|warning:' "$findings" | sort -u | head -40
else
    echo "lint: clang-tidy is not installed: skipped"
fi
if command -v cppcheck >/dev/null; then
    cppcheck --quiet --std=c11 --enable=warning,portability,performance --inline-suppr \
        --suppress=missingIncludeSystem --error-exitcode=1 -j "$(nproc)" -I. -D_GNU_SOURCE \
        -DVMT_VERSION='"0"' "${c_files[@]}" || fail "cppcheck"
else
    echo "lint: cppcheck is not installed: skipped"
fi
[ $bad -eq 0 ] && echo "lint: clean"
exit $bad
