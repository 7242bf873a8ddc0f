#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packs the recordings of the emulated CPU with Intel PT as tests/golden/ptcpu holds them: a tar
# archive, zstd with a window over all of it, since recordings of one run share their code pages.
# usage: ptcpu-pack.sh FOLDER OUT.tar.zst [EXCLUDED-PATTERN]...
set -euo pipefail
folder=$1 out=$2
shift 2
exclude=()
for pattern; do
    exclude+=(--exclude="$pattern")
done
case $out in /*) ;; *) out=$PWD/$out ;; esac
cd "$folder"
tar --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mtime=@0 "${exclude[@]}" \
    -cf - -- *.truth *.pt *.aux *.side >"$out.tar"
zstd -q -f -19 --long=27 "$out.tar" -o "$out"
rm "$out.tar"
