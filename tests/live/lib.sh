# SPDX-License-Identifier: LGPL-2.1-or-later
# Shared by the labs: TAP, work folders, emulators with hard timeouts, and the comparison of a
# capture with the truth. Source it, then call lab_begin. Every emulator started here is ended by
# its own process id when the lab ends.
set -uo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
O=${O:-build}
case $O in /*) ;; *) O=$top/$O ;; esac
VMTRACE=${VMTRACE:-$O/vmtrace}
images=$top/virt-fixtures/images
tests_done=0
tests_failed=0
children=()

# lab_begin NAME: an empty work folder $W under $O/labs; what a lab leaves there is for inspection.
lab_begin() {
    lab=$1
    W=$O/labs/$lab
    rm -rf "$W"
    mkdir -p "$W"
    trap lab_cleanup EXIT
    trap 'exit 143' TERM INT
}

lab_cleanup() {
    local pid
    for pid in "${children[@]}"; do
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    rm -f "$W"/*.img "$W"/*.iso "$W"/initrd*.gz "$W/exits" "$W/knock"
}

ok() { # ok STATUS DESCRIPTION
    tests_done=$((tests_done + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $tests_done - $lab: $2"
    else
        tests_failed=$((tests_failed + 1))
        echo "not ok $tests_done - $lab: $2"
    fi
}

is() { # is GOT WANT DESCRIPTION
    if [ "$1" = "$2" ]; then
        ok 0 "$3 = $2"
    else
        ok 1 "$3"
        echo "#   got    '$1'"
        echo "#   wanted '$2'"
    fi
}

skip() { # skip REASON: one test that cannot be made here
    tests_done=$((tests_done + 1))
    echo "ok $tests_done - $lab # SKIP $1"
}

skip_all() {
    skip "$1"
    lab_end
}

lab_end() {
    echo "1..$tests_done"
    exit $((tests_failed > 0))
}

need() { # need PROGRAM_OR_FILE...
    local what
    for what; do
        case $what in
        /*) [ -e "$what" ] || skip_all "$what is missing" ;;
        *) command -v "$what" >/dev/null || skip_all "$what is not installed" ;;
        esac
    done
}

# Sets $kernel to the folder of the cloud kernel, or skips the lab.
need_kernel() {
    need cpio modprobe depmod busybox dpkg-deb
    kernel=$("$images/kernel.sh" 2>"$W/kernel.err") || skip_all "no kernel: $(tail -n 1 "$W/kernel.err")"
}

need_root() {
    [ "$(id -u)" -eq 0 ] || skip_all "needs root: $1"
}

need_vmtrace() {
    [ -x "$VMTRACE" ] && return
    ok 1 "$VMTRACE is built"
    lab_end
}

# build_fixture NAME: virt-fixtures/vm/NAME.c as the static program $W/NAME.
build_fixture() {
    ${CC:-gcc} -std=c11 -D_GNU_SOURCE -O2 -static -Wall -Wextra -Werror \
        "$top/virt-fixtures/vm/$1.c" -o "$W/$1" -lpthread 2>"$W/cc.log" ||
        skip_all "$1.c does not build as a static program: $(head -n 1 "$W/cc.log")"
}

# build_module FOLDER: the kernel module of that folder, in $W/NAME, or skips the lab.
build_module() {
    "$images/module.sh" "$kernel" "$top/$1" "$W/${1##*/}" >"$W/module.log" 2>&1
    case $? in
    0) ;;
    3) skip_all "$(tail -n 1 "$W/module.log")" ;;
    *)
        ok 1 "the module $1 builds: $(tail -n 1 "$W/module.log")"
        lab_end
        ;;
    esac
}

bochs_env=() # NAME=VALUE of bochs-bin alone
command_line="console=ttyS0 quiet mitigations=off tsc=reliable cryptomgr.notests panic=-1"

initrd_files=() # further files for make_initrd, in /bin

# need_ptcpu FOLDER: the emulated CPU with Intel PT (virt-fixtures/ptcpu) writes there; skips the lab
# where its library refuses, or a kernel or a program is missing.
need_ptcpu() {
    need bochs-bin xorriso /usr/lib/ISOLINUX/isolinux.bin \
        /usr/lib/syslinux/modules/bios/ldlinux.c32 /usr/share/bochs/BIOS-bochs-latest
    need_vmtrace
    bochs_env=(LD_PRELOAD="$O/ptcpu.so" PTCPU_OUT="$1")
    env "${bochs_env[@]}" bochs-bin --help >/dev/null 2>"$W/guard.err" </dev/null
    [ $? -ne 77 ] || skip_all "$(grep -a '^ptcpu:' "$W/guard.err")"
    need_kernel
    mkdir -p "$1"
}

# make_initrd MODULE...: busybox, the modules, the VM program and guest_exits.sh in $W/initrd.gz.
make_initrd() {
    local modules=() m
    for m in "${initrd_files[@]}"; do
        modules+=(-f "$m")
    done
    for m; do
        modules+=(-m "$m")
    done
    "$images/initramfs.sh" -k "$kernel" -o "$W/initrd.gz" -i "$images/init" "${modules[@]}" \
        -f "$W/exits" -f "$top/tests/live/guest_exits.sh:/lab.sh"
}

# make_disk PROGRAM...: an ext4 image $W/disk.img with the programs' closures in /sys, $W/env and
# an empty folder /out.
make_disk() {
    local tree=$W/disk size
    mkdir -p "$tree/out"
    "$images/closure.sh" "$tree/sys" "$@"
    cp "$W/env" "$tree/env"
    size=$(($(du -sm "$tree" | cut -f 1) * 5 / 4 + 64))
    mke2fs -q -F -t ext4 -O ^has_journal -E lazy_itable_init=0 -d "$tree" "$W/disk.img" "${size}M" >/dev/null
    rm -rf "$tree"
}

# The host's root for a machine with a vhost-user-fs device on $W/vfs.sock; it ends with QEMU.
start_virtiofsd() {
    /usr/lib/qemu/virtiofsd --socket-path="$W/vfs.sock" -o source=/ -o sandbox=chroot -o cache=always \
        >"$W/virtiofsd.log" 2>&1 </dev/null &
    children+=($!)
    local tries=0
    until [ -S "$W/vfs.sock" ] || [ $tries -ge 50 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
}

# Copies /out of the disk image to $W/out.
read_disk() {
    rm -rf "$W/out"
    debugfs -R "rdump /out $W" "$W/disk.img" >"$W/debugfs.log" 2>&1
}

# boot_qemu SECONDS [ARGUMENT]...: TCG with SVM until power-off. Status 0 when LAB-END was seen.
# LABS_SLOW=N multiplies every timeout, for a machine that is slow or busy.
boot_qemu() {
    local seconds=$(($1 * ${LABS_SLOW:-1}))
    shift
    rm -f "$W/serial.log"
    timeout -k 5 "$seconds" qemu-system-x86_64 -M q35 -accel tcg,thread=multi,tb-size=512 \
        -cpu EPYC,+svm -smp 1 -kernel "$kernel/vmlinuz" -initrd "$W/initrd.gz" -nodefaults \
        -display none -serial "file:$W/serial.log" -no-reboot "$@" >"$W/qemu.log" 2>&1 </dev/null &
    children+=($!)
    wait $!
    unset "children[-1]"
    grep -qa '^LAB-END' "$W/serial.log"
}

# The Bochs binary is started by one lab at a time at least a second after another: two that start
# in the same instant sometimes die with SIGSEGV (139), which is no result.
boot_bochs() { # boot_bochs SECONDS
    local seconds=$(($1 * ${LABS_SLOW:-1})) status tries=0
    local disk=()
    [ ! -e "$W/disk.img" ] || disk=("$W/disk.img")
    "$images/bochs.sh" "$W" "$kernel/vmlinuz" "$W/initrd.gz" \
        "$command_line nokaslr LAB_DISK=${#disk[@]}" "${disk[@]}"
    while :; do
        rm -f "$W/serial.log"
        exec 8>"${TMPDIR:-/tmp}/vmtrace-bochs-start.lock"
        flock -w 30 8
        timeout -k 5 "$seconds" env "${bochs_env[@]}" bochs-bin -q -f "$W/bochs.rc" -rc "$W/bochs.cmd" \
            >"$W/bochs.out" 2>&1 </dev/null 8>&- &
        children+=($!)
        sleep 1
        exec 8>&-
        wait "${children[-1]}"
        status=$?
        unset "children[-1]"
        tries=$((tries + 1))
        [ $status -eq 139 ] && [ $tries -lt 3 ] || break
    done
    grep -qa '^LAB-END' "$W/serial.log" # its exit status is not 0 after a good run either
}
