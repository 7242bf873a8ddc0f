/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SYMBOLS_KALLSYMS_H
#define VMT_SYMBOLS_KALLSYMS_H

#include <stddef.h>
#include <stdint.h>

#include "decode/base/diag.h"

/*
 * Symbols of a guest kernel from the text of /proc/kallsyms ("ffffffff81000000 T _text [module]").
 * Hostile text: lines of any length, at most 64 MiB and 4 Mi symbols; addresses that are all zero
 * (kptr_restrict) are refused with a cure. Names are cut at 128 bytes and unprintable ones
 * replaced.
 */
struct vmt_kallsyms;

int vmt_kallsyms_read(struct vmt_kallsyms **out, const char *path, struct vmt_diag *diag);
void vmt_kallsyms_free(struct vmt_kallsyms *symbols);
size_t vmt_kallsyms_count(const struct vmt_kallsyms *symbols);

/* Text symbol that covers addr and the distance to it; NULL when there is none. */
const char *vmt_kallsyms_find(const struct vmt_kallsyms *symbols, uint64_t addr, uint64_t *offset);

#endif
