/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PT_TEXT_H
#define VMT_SUPPORT_PT_TEXT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Bytes of a PT stream from words, one a packet, members behind colons, numbers hexadecimal:
 *   psb psbend ovf pad stop          pip:NR:CR3  vmcs:POINTER  mode:BYTE
 *   tip:IP pge:IP pgd:IP fup:IP      "-" for a suppressed IP, else all 8 bytes
 *   tnt:TNNT                         oldest first
 *   tsc:N tma:CTC:FC mtc:N cyc:N cbr:N
 *   cfe:NAME[:VECTOR]                IP=0; "cfe+" the same with IP=1
 *   evd:q:N evd:r:N evd:p:N          VMXQ, VMXR, PFA
 *   raw:BYTES
 * Returns the length; aborts on a word that it does not know, or when size is too small.
 */
size_t vmt_pt_text(const char *text, uint8_t *out, size_t size);

#endif
