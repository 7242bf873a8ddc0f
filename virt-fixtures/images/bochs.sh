#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes the boot ISO and the configuration of a Bochs machine with VMX (model corei7_skylake_x).
# usage: bochs.sh FOLDER VMLINUZ INITRD COMMANDLINE [DISK]
# BOCHS_CPUS: number of CPUs (default 1).
# Leaves FOLDER/boot.iso, FOLDER/bochs.rc and FOLDER/bochs.cmd; the serial port goes to
# FOLDER/serial.log. Run: bochs-bin -q -f FOLDER/bochs.rc -rc FOLDER/bochs.cmd </dev/null
set -euo pipefail

cpus=1
[ "${BOCHS_CPUS:-1}" = 1 ] || cpus="$BOCHS_CPUS:1:1, quantum=16"
folder=$1 vmlinuz=$2 initrd=$3 command_line=$4 disk=${5:-}
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir "$tree/isolinux"
cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 "$tree/isolinux/"
cp "$vmlinuz" "$tree/vmlinuz"
cp "$initrd" "$tree/initrd.gz"
cat >"$tree/isolinux/isolinux.cfg" <<CONFIG
DEFAULT l
PROMPT 0
LABEL l
KERNEL /vmlinuz
INITRD /initrd.gz
APPEND $command_line
CONFIG
xorriso -as mkisofs -quiet -b isolinux/isolinux.bin -c isolinux/boot.cat -no-emul-boot \
    -boot-load-size 4 -boot-info-table -o "$folder/boot.iso" "$tree" 2>"$folder/xorriso.log"

{
    cat <<CONFIG
display_library: rfb, options="timeout=0"
megs: 512
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=cdrom, path=$folder/boot.iso, status=inserted
CONFIG
    [ -z "$disk" ] || echo "ata0-slave: type=disk, mode=flat, path=$disk, cylinders=0"
    cat <<CONFIG
boot: cdrom
com1: enabled=1, mode=file, dev=$folder/serial.log
cpu: model=corei7_skylake_x, count=$cpus, ips=50000000, reset_on_triple_fault=0
clock: sync=none, time0=946684800
plugin_ctrl: speaker=0, gameport=0, parallel=0, es1370=0, sb16=0
sound: waveoutdrv=dummy
log: $folder/bochs.log
panic: action=fatal
error: action=ignore
info: action=ignore
debug: action=ignore
CONFIG
} >"$folder/bochs.rc"
echo c >"$folder/bochs.cmd" # Debian's program always starts in its debugger
