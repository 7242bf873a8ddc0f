#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Builds a small initramfs: busybox, kernel modules in loading order, and named files.
# usage: initramfs.sh -k KERNELDIR -o OUT.gz -i INIT [-m MODULE]... [-f FILE[:PATH]]...
#   KERNELDIR  what kernel.sh printed
#   INIT       script that becomes /init; it finds the order of modules in /mod/order
#   MODULE     loaded with everything that it depends on, in the order given. Note that nothing
#              depends on virtio_pci: name it in every virtio guest.
#   FILE       copied to PATH (default /bin/NAME)
set -euo pipefail

kernel="" out="" init=""
modules=() files=()
while getopts k:o:i:m:f: option; do
    case $option in
    k) kernel=$OPTARG ;;
    o) out=$OPTARG ;;
    i) init=$OPTARG ;;
    m) modules+=("$OPTARG") ;;
    f) files+=("$OPTARG") ;;
    *) exit 2 ;;
    esac
done
[ -n "$kernel" ] && [ -n "$out" ] && [ -n "$init" ] || {
    echo "initramfs.sh: -k, -o and -i are needed" >&2
    exit 2
}
version=$(cat "$kernel/version")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

mkdir -p "$root"/{bin,dev,proc,sys,tmp,run,mnt,mod,etc}
cp "$(command -v busybox)" "$root/bin/busybox"
# The list names busybox itself; a link of that name would replace the program.
for applet in $("$root/bin/busybox" --list | grep -vx busybox); do
    ln -s busybox "$root/bin/$applet"
done
install -m 755 "$init" "$root/init"
: >"$root/mod/order"
for m in "${modules[@]}"; do
    modprobe -d "$kernel" -S "$version" --show-depends "$m" | while read -r verb path _; do
        [ "$verb" = insmod ] || continue
        name=${path##*/}
        grep -qx "$name" "$root/mod/order" && continue
        cp "$path" "$root/mod/$name"
        echo "$name" >>"$root/mod/order"
    done
done
for f in "${files[@]}"; do
    to=${f#*:}
    [ "$to" = "$f" ] && to=/bin/${f##*/}
    install -D "${f%%:*}" "$root$to"
done
(cd "$root" && find . -print0 | LC_ALL=C sort -z | cpio -o -0 -H newc --quiet) | gzip -1 >"$out.tmp"
mv "$out.tmp" "$out"
