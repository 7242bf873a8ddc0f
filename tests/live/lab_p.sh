#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Lab P: Bochs made into a CPU with Intel PT (virt-fixtures/ptcpu). The kernel's own intel_pt driver
# records KVM guests in every way of guest_pt.sh; what it delivers is compared with what the CPU
# wrote, and decoded and compared with what the CPU did, by this project and by libipt.
. "${BASH_SOURCE[0]%/*}/lib.sh"

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

lab_begin p
guest=$top/virt-fixtures/ptcpu/guest
need bochs-bin xorriso tar zstd cmp /usr/lib/ISOLINUX/isolinux.bin \
    /usr/lib/syslinux/modules/bios/ldlinux.c32 /usr/share/bochs/BIOS-bochs-latest
need_vmtrace
bochs_env=(LD_PRELOAD="$O/ptcpu.so" PTCPU_OUT="$W/out")
env "${bochs_env[@]}" bochs-bin --help >/dev/null 2>"$W/guard.err" </dev/null
[ $? -ne 77 ] || skip_all "$(grep -a '^ptcpu:' "$W/guard.err")"
need_kernel
mkdir -p "$W/out"
for program in ptrec ptchecks; do
    ${CC:-gcc} -std=c11 -D_GNU_SOURCE -O2 -static -Wall -Wextra -Werror -I"$top" \
        "$guest/$program.c" "$guest/vm.c" "$guest/output.c" -o "$W/$program" 2>"$W/cc.log" ||
        skip_all "$program does not build as a static program: $(head -n 1 "$W/cc.log")"
done
build_fixture exits
"$guest/kvm-pt-mode.sh" "$kernel" "$W/kvm-intel-pt.ko" || skip_all "kvm-intel.ko has no pt_mode"
"$images/initramfs.sh" -k "$kernel" -o "$W/initrd.gz" -i "$images/init" -m msr -m kvm-intel \
    -f "$W/exits" -f "$W/ptrec" -f "$W/ptchecks" -f "$W/kvm-intel-pt.ko:/kvm-intel-pt.ko" -f "$top/tests/live/guest_pt.sh:/lab.sh"
boot_bochs 250
ok $? "the machine ran to its end"
is "$(grep -ac '^LAB-PTREC .* status 0 ' "$W/serial.log")" \
    "$(grep -c '^ *ptrec ' "$top/tests/live/guest_pt.sh")" "recordings made"
for want in "event_trace 1" "psb_periods 3f" "num_address_ranges 2" "tsc_art_ratio 292:2"; do
    grep -qa "^LAB-PMU $want" "$W/serial.log"
    ok $? "the driver shows $want"
done
is "$(grep -ac '^LAB-CHECK .* good' "$W/serial.log") of $(grep -ac '^LAB-CHECK ' "$W/serial.log")" \
    "45 of 45" "refusals of illegal settings"
grep -a '^LAB-CHECK .* bad' "$W/serial.log" | sed 's/^/#   /'
compare_aux
"$top/tests/tools/ptcpu-pack.sh" "$W/out" "$W/pack.tar.zst"
ok $? "the recordings are packed"
tap_of "$O/tests/golden/test_ptcpu" "$W/pack.tar.zst"
tap_of "$O/tests/golden/test_ptcpu_libipt" "$W/pack.tar.zst"
lab_end
