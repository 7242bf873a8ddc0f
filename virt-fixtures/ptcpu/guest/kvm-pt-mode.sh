#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A copy of kvm-intel.ko that gives Intel PT to guests (KVM's host-guest mode): its pt_mode, no
# module parameter in Debian's kernel, is 1 in it. It has no signature; kernels that do not enforce
# signatures load it.
# usage: kvm-pt-mode.sh KERNELDIR OUT.ko       KERNELDIR: what kernel.sh printed
set -euo pipefail
module=$(find "$1/lib/modules" -name 'kvm-intel.ko' | head -n 1)
read -r value section < <(readelf -sW "$module" | awk '$8 == "pt_mode" {print $2, $7}')
offset=$(readelf -SW "$module" | sed 's/^ *\[ *//; s/\]//' | awk -v n="$section" '$1 == n {print $5}')
objcopy "$module" "$2" # leaves out the signature, which follows the ELF file
moved=$(readelf -SW "$2" | sed 's/^ *\[ *//; s/\]//' | awk -v n="$section" '$1 == n {print $5}')
[ -n "$offset" ] && [ -n "$moved" ]
printf '\001' | dd of="$2" bs=1 seek=$((16#$moved + 16#$value)) conv=notrunc status=none
