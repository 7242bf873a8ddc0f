#!/usr/bin/env bash
# Installs the Debian packages that a target needs and that are missing. Root, or a user with sudo.
# usage: deps.sh build|check|labs|bench|fuzz
set -euo pipefail

build="gcc make pkg-config libvirt-dev libxml2-dev libzstd-dev libjansson-dev libxxhash-dev libelf-dev"
check="$build libcmocka-dev libipt-dev libzydis-dev jq linux-perf mandoc"
declare -A sets=(
    [build]="$build"
    [check]="$check"
    [bench]="$check"
    [fuzz]="$build clang libclang-rt-14-dev"
    [labs]="$check libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients qemu-system-x86 seabios
        busybox-static cpio kmod e2fsprogs bochs bochsbios vgabios isolinux syslinux-common xorriso
        zstd"
)

want=${1:-build}
[ -n "${sets[$want]:-}" ] || { echo "deps.sh: no such set: $want" >&2; exit 2; }
missing=()
for p in ${sets[$want]}; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=""
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
        echo "deps.sh: missing packages: ${missing[*]}" >&2
        echo "deps.sh: install them as root: apt-get install ${missing[*]}" >&2
        exit 1
    }
    as_root=sudo
fi
echo "installing: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
for try in 1 2 3; do
    if { $as_root apt-get update -qq && $as_root apt-get install -y -qq --no-install-recommends \
        "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
        exit 0
    fi
    [ "$try" -lt 3 ] && sleep 5
done
tail -n 20 "$log" >&2
exit 1
