/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SYMBOLS_KALLSYMS_H
#define VMT_SYMBOLS_KALLSYMS_H

#include <stddef.h>
#include <stdint.h>

#include "decode/base/diag.h"

/*
 * Symbols of a guest kernel from the text of /proc/kallsyms ("ffffffff81000000 T _text [module]").
 * Hostile text: lines of any length, at most 64 MiB and 4 Mi symbols; addresses that are all zero
 * (kptr_restrict) are refused with a cure. Names are cut at 128 bytes and unprintable characters
 * replaced. A symbol of a module is named "name [module]".
 */
struct vmt_kallsyms;

/*
 * Reads a file ("-": standard input). Errors: those of vmt_reader_open; VMT_E_DAMAGED when no line
 * is one of kallsyms; VMT_E_PERMISSION when all addresses are zero; VMT_E_LIMIT; VMT_E_NOMEM. Free
 * with vmt_kallsyms_free.
 */
int vmt_kallsyms_read(struct vmt_kallsyms **out, const char *path, struct vmt_diag *diag);

/* The same from a text in memory, which is not kept. */
int vmt_kallsyms_from_text(struct vmt_kallsyms **out, const void *text, size_t len,
			   struct vmt_diag *diag);
void vmt_kallsyms_free(struct vmt_kallsyms *symbols);
/* How many text symbols there are. */
size_t vmt_kallsyms_count(const struct vmt_kallsyms *symbols);

/*
 * Text symbol that covers addr and the distance to it (offset may be NULL); NULL when there is
 * none. A symbol reaches to the next symbol of any kind, at most 1 MiB: kallsyms has no sizes. Of
 * several at one address the global one with the fewest leading underscores is given.
 */
const char *vmt_kallsyms_find(const struct vmt_kallsyms *symbols, uint64_t addr, uint64_t *offset);

#endif
