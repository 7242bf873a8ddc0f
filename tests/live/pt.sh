# SPDX-License-Identifier: LGPL-2.1-or-later
# Shared by the labs on the emulated CPU with Intel PT (virt-fixtures/ptcpu). Source it after lib.sh.

guest=$top/virt-fixtures/ptcpu/guest

# prepare_pt: the emulated CPU and the programs that run inside; skips the lab where there is none.
prepare_pt() {
    local program
    need tar zstd cmp
    need_ptcpu "$W/out"
    for program in ptrec ptchecks; do
        ${CC:-gcc} -std=c11 -D_GNU_SOURCE -O2 -static -Wall -Wextra -Werror -I"$top" \
            "$guest/$program.c" "$guest/vm.c" "$guest/output.c" -o "$W/$program" 2>"$W/cc.log" ||
            skip_all "$program does not build as a static program: $(head -n 1 "$W/cc.log")"
    done
    build_fixture exits
}

# tap_of PROGRAM PACK: the results of a test program as results of this lab.
tap_of() {
    local line
    CMOCKA_MESSAGE_OUTPUT=TAP "$1" "$2" >"$W/${1##*/}.tap" 2>&1
    grep -q '^1\.\.[1-9]' "$W/${1##*/}.tap"
    ok $? "${1##*/} has run"
    while read -r line; do
        case $line in
        "ok "*"# SKIP"* | "not ok "*"# SKIP"*) skip "${1##*/}: ${line#* - }" ;;
        "ok "*) ok 0 "${1##*/}: ${line#* - }" ;;
        "not ok "*) ok 1 "${1##*/}: ${line#* - }" ;;
        esac
    done < <(grep -aE '^(not )?ok ' "$W/${1##*/}.tap")
    grep -aE '^# |transition' "$W/${1##*/}.tap" | head -n 40 | sed 's/^/#   /'
}

# The AUX area of each recording is what the CPU wrote, but for a snapshot's, which ends in it.
compare_aux() {
    local pt aux name same=0 all=0
    for pt in "$W"/out/*.pt; do
        aux=${pt%.pt}.aux
        name=${pt##*/}
        all=$((all + 1))
        case $name in
        self*) head -c "$(stat -c %s "$pt")" "$aux" | cmp -s - "$pt" ;;
        snapshot*) tail -c "$(stat -c %s "$pt")" "$aux" | cmp -s - "$pt" ;;
        *) cmp -s "$pt" "$aux" ;;
        esac && same=$((same + 1)) || echo "#   ${name%.pt}: AUX bytes differ"
    done
    is "$same of $all" "$all of $all" "AUX bytes as the CPU wrote them"
}

# check_recordings SCRIPT: every recording of the script that ran inside, against AUX area and truth.
check_recordings() {
    local program
    is "$(grep -ac '^LAB-PTREC .* status 0 ' "$W/serial.log")" "$(grep -c '^ *ptrec ' "$1")" \
        "recordings made"
    compare_aux
    "$top/tests/tools/ptcpu-pack.sh" "$W/out" "$W/pack.tar.zst"
    ok $? "the recordings are packed"
    for program in "$O"/tests/golden/test_ptcpu*; do
        [ -x "$program" ] && [[ ${program##*/} != *.* ]] && tap_of "$program" "$W/pack.tar.zst"
    done
}
