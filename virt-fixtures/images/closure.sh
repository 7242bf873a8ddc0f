#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Copies dynamically linked programs with every shared library that they load into a folder, for a
# machine without a root file system: FOLDER/bin holds the programs, FOLDER/lib the libraries and
# the loader. The init script of this folder links /lib64 and /lib/x86_64-linux-gnu to FOLDER/lib.
# usage: closure.sh FOLDER PROGRAM...
set -euo pipefail

folder=$1
shift
mkdir -p "$folder/bin" "$folder/lib"
for program; do
    install -m 755 "$program" "$folder/bin/"
    # "name => path (address)" or "path (address)"; the vDSO has no path.
    ldd "$program" | awk '{for (i = 1; i <= NF; i++) if ($i ~ /^\//) {print $i; break}}' |
        while read -r library; do
            [ -e "$folder/lib/${library##*/}" ] || cp -L "$library" "$folder/lib/"
        done
done
