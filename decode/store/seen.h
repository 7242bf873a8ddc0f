/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_STORE_SEEN_H
#define VMT_STORE_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/store/layout.h"

/* Which ATTRs and FORMATs were there already; zero-initialise. Holds at most 16384 of them. */
struct vmt_store_seen {
	uint64_t *hashes; /* open addressing, 0 = free */
	size_t nr, cap;
};

/*
 * Whether the payload of an ATTR or FORMAT was given before; it is noted. Other types, and what
 * finds no place in the table, count as new.
 */
bool vmt_store_seen_before(struct vmt_store_seen *seen, uint16_t type, const void *payload,
			   size_t len);
void vmt_store_seen_free(struct vmt_store_seen *seen);

#endif
