#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Fetches Debian's cloud kernel of the day and unpacks it (nothing is installed). Prints the folder
# that then holds vmlinuz, version and lib/modules/VERSION with module dependencies.
# usage: kernel.sh
# VMT_LAB_CACHE: cache folder (default: /var/cache/vmtrace-labs for root, else ~/.cache/vmtrace-labs).
# Exit status 3, with the reason on stderr, when no kernel can be had.
set -euo pipefail

if [ "$(id -u)" -eq 0 ]; then
    cache=${VMT_LAB_CACHE:-/var/cache/vmtrace-labs}
else
    cache=${VMT_LAB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vmtrace-labs}
fi
mkdir -p "$cache"

# An older kernel of the cache is as good a test bed as today's.
fall_back() {
    local newest
    newest=$(find "$cache" -maxdepth 2 -name complete -printf '%T@ %h\n' | sort -n | tail -n 1)
    if [ -z "$newest" ]; then
        echo "kernel.sh: $*" >&2
        exit 3
    fi
    echo "${newest#* }"
    exit 0
}

exec 9>"$cache/lock"
flock -w 300 9 || fall_back "another lab holds $cache/lock for 300 s"

# The ABI number changes with every security update, so the metapackage names the package.
resolve() {
    apt-cache depends linux-image-cloud-amd64 2>/dev/null |
        awk '/Depends: linux-image-/ {print $2; exit}'
}
fetch() {
    rm -rf "$work"
    mkdir -p "$work/deb" "$work/root"
    (cd "$work/deb" && apt-get download "$1" >"$cache/apt.log" 2>&1 9>&-)
}

work=$cache/unpack
package=$(resolve)
if [ -z "$package" ] || { [ ! -e "$cache/$package/complete" ] && ! fetch "$package"; }; then
    apt-get update -qq >"$cache/apt.log" 2>&1 9>&- || true
    package=$(resolve)
    [ -n "$package" ] || fall_back "apt knows no linux-image-cloud-amd64 (is a mirror reachable?)"
    [ -e "$cache/$package/complete" ] || fetch "$package" ||
        fall_back "apt-get download $package: $(tail -n 1 "$cache/apt.log")"
fi
dir=$cache/$package
if [ ! -e "$dir/complete" ]; then
    version=${package#linux-image-}
    dpkg-deb -x "$work"/deb/*.deb "$work/root"
    depmod -b "$work/root" "$version"
    rm -rf "$dir"
    mkdir "$dir"
    mv "$work/root/boot/vmlinuz-$version" "$dir/vmlinuz"
    mv "$work/root/lib" "$dir/lib"
    echo "$version" >"$dir/version"
    touch "$dir/complete"
fi
rm -rf "$work"
echo "$dir"
