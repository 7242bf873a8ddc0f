#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Lab P with the kernel module of vmx/kmod: vmtrace record --mode guest-only and --conceal on an
# unmodified kvm-intel. What the CPU found at each VM entry is what `vmtrace vmx plan` says, guest-only
# streams hold nothing of the host, and after the recorder's end, in order or killed, KVM's words
# stand there again.
. "${BASH_SOURCE[0]%/*}/lib.sh"
. "${BASH_SOURCE[0]%/*}/compare.sh"

lab_begin pmod
need bochs-bin xorriso jq mke2fs debugfs ldd /usr/lib/ISOLINUX/isolinux.bin \
    /usr/lib/syslinux/modules/bios/ldlinux.c32 /usr/share/bochs/BIOS-bochs-latest
need_vmtrace
bochs_env=(LD_PRELOAD="$O/ptcpu.so" PTCPU_OUT="$W/pt")
env "${bochs_env[@]}" bochs-bin --help >/dev/null 2>"$W/guard.err" </dev/null
[ $? -ne 77 ] || skip_all "$(grep -a '^ptcpu:' "$W/guard.err")"
need_kernel
build_module vmx/kmod
build_fixture exits
for program in bedlog vmxwords; do
    ${CC:-gcc} -std=c11 -D_GNU_SOURCE -O2 -static -Wall -Wextra -Werror -I"$top" \
        "$top/virt-fixtures/ptcpu/guest/$program.c" -o "$W/$program" 2>"$W/cc.log" ||
        skip_all "$program does not build as a static program: $(head -n 1 "$W/cc.log")"
done
initrd_files=("$W/kmod/vmtrace_vmx.ko" "$W/bedlog" "$W/vmxwords")
make_initrd ata_piix sd_mod kvm-intel
mkdir -p "$W/pt"

cat >"$W/env" <<'ENV'
load() { insmod /bin/vmtrace_vmx.ko || echo "LAB-ERROR insmod vmtrace_vmx"; }
words() { # words NAME: KVM's words of the VM program $vm
    vmxwords $(cd "/proc/$vm/task" && ls | grep -v "^$vm\$") | sed "s/^/LAB-WORDS $1 /"
}
traced() { # traced NAME ARGUMENT...: a scenario of which the CPU tells the truth
    bedlog begin "$1"
    scenario "$@"
    bedlog end
    sync
}
# A recorder that is killed while the VM runs, and the module unloaded and loaded meanwhile.
killed() {
    exits --halt-us 2000 --hlt 1000000 --out 4 --cpuid 0 --rdmsr 0 --samples 4 >/tmp/vm.jsonl 2>&1 &
    vm=$!
    until grep -q '"ready"' /tmp/vm.jsonl; do usleep 10000; done
    words first
    vmtrace record --pid $vm --backend pt --mode guest-only -o /tmp/killed.vmt >/tmp/killed.log 2>&1 &
    recorder=$!
    until grep -qs VMT /tmp/killed.vmt || ! kill -0 $recorder; do usleep 10000; done
    usleep 50000
    rmmod vmtrace_vmx 2>/dev/null && echo "LAB-MODULE unloaded below a recorder" || echo "LAB-MODULE in use"
    vmxwords $vm 2>&1 | sed "s/^/LAB-MODULE /"
    kill -KILL $recorder
    wait $recorder
    words killed
    rmmod vmtrace_vmx && echo "LAB-MODULE unloaded"
    kill -0 $vm && echo "LAB-MODULE the VM runs"
    load
    words loaded
    kill $vm
    wait $vm
}
SOME="--out 40 --cpuid 20 --hlt 20 --rdmsr 10 --samples 4"
scenarios() {
    vmtrace doctor --backend kvm,pt >/mnt/out/doctor-without.txt 2>&1
    vmtrace record --pid 1 --backend pt --mode guest-only -o /tmp/x.vmt >/mnt/out/without.txt 2>&1
    load
    vmtrace doctor --backend kvm,pt >/mnt/out/doctor-with.txt 2>&1
    RECORD_OPTIONS="--backend kvm,pt --mode guest-only"
    traced guestonly --vcpus 2 $SOME
    RECORD_OPTIONS="--backend kvm,pt --mode guest-only --conceal"
    traced hidden --vcpus 2 $SOME
    RECORD_OPTIONS="--backend kvm,pt --conceal"
    traced concealed $SOME
    killed
    rmmod kvm_intel && insmod /mod/kvm-intel.ko nested=0
    RECORD_OPTIONS="--backend kvm,pt --mode guest-only --system-wide"
    traced nonested --vcpus 2 $SOME
}
ENV
make_disk "$VMTRACE"
boot_bochs 300
ok $? "the machine ran to its end"
grep -a 'LAB-\|Call Trace\|BUG' "$W/serial.log" | sed 's/^/# /'
is "$(grep -a 'LAB-ERROR' "$W/serial.log")" "" "errors inside the machine"
read_disk
lab_end
