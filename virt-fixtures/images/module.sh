#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Builds a kernel module for the cloud kernel that kernel.sh unpacked; headers are fetched into its
# folder, nothing is installed.
# usage: module.sh KERNEL SOURCES OUTPUT    (SOURCES has a Kbuild file; OUTPUT is a folder, made anew)
# Exit status 3, with the reason on stderr, when the headers cannot be had or the compiler is missing.
set -euo pipefail

kernel=$1 sources=$2 output=$3
version=$(cat "$kernel/version")
headers=$kernel/headers

refuse() {
    echo "module.sh: $*" >&2
    exit 3
}

fetch() {
    local work=$kernel/headers.work flavour=${version##*-}
    rm -rf "$work" "$headers"
    mkdir -p "$work/deb" "$work/root"
    (cd "$work/deb" && apt-get download "linux-headers-$version" \
        "linux-headers-${version%-*-"$flavour"}-common" "linux-kbuild-$(cut -d . -f 1,2 <<<"$version")" \
        >"$kernel/headers.log" 2>&1 9>&-) ||
        refuse "apt-get download of linux-headers-$version: $(tail -n 1 "$kernel/headers.log")"
    for deb in "$work"/deb/*.deb; do
        dpkg-deb -x "$deb" "$work/root"
    done
    # The flavour's Makefile and links name the folder of the others as if it were installed.
    sed -i "s#^include /usr/src/#include $headers/usr/src/#" \
        "$work/root/usr/src/linux-headers-$version/Makefile"
    mv "$work/root" "$headers"
    rm -rf "$work"
    touch "$headers/complete"
}

exec 9>"$kernel/headers.lock"
flock -w 300 9 || refuse "another lab holds $kernel/headers.lock for 300 s"
[ -e "$headers/complete" ] || fetch
compiler=$(sed -n 's/^CONFIG_CC_VERSION_TEXT="\([^ ]*\).*/\1/p' "$headers/usr/src/linux-headers-$version/.config")
command -v "${compiler#x86_64-linux-gnu-}" >/dev/null || refuse "$compiler is not installed"

rm -rf "$output"
mkdir -p "$output"
cp "$sources"/* "$output"
make -C "$headers/usr/src/linux-headers-$version" M="$output" modules >"$output/build.log" 2>&1 || {
    tail -n 20 "$output/build.log" >&2
    exit 1
}
