/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PT_ENGINES_H
#define VMT_SUPPORT_PT_ENGINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads bytes as PT packets with the scalar engine and the one that this CPU runs: full, skimming,
 * and careful, with batches of several sizes, going on at the next PSB where bytes are damaged.
 * False when packets, counts or positions differ, or the scalar one is not vmt_pt_next; `where`
 * then gets the place.
 */
bool vmt_pt_engines_agree(const uint8_t *bytes, size_t len, char *where, size_t size);

#endif
