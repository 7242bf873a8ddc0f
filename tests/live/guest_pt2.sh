#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside two emulated CPUs with Intel PT (as /lab.sh).
ptrec --config 0x8000e601 --vm 20 --long twoevents
ptrec --config 0xe601 --vm 20 twosystem
ptrec --config 0xe601 twobig exits --vcpus 2 --out 10 --cpuid 5 --hlt 5 --rdmsr 5 --samples 4
