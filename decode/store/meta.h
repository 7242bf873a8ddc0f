/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_STORE_META_H
#define VMT_STORE_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/store/store.h"

/*
 * The metadata a file must always hold: the last SESSION, ANCHOR and AUX_INFO, every ATTR and
 * FORMAT, the last VCPU_TSC of each vCPU. The writer repeats it at the start of each segment.
 */
struct vmt_store_meta_item {
	struct vmt_store_chunk chunk; /* one part: bytes */
	uint8_t *bytes;
	size_t len;
	uint64_t hash;
	bool owed;    /* has to be written before anything else */
	bool written; /* stands in the file, in some version */
};

struct vmt_store_meta {
	struct vmt_store_meta_item *items;
	size_t nr, cap;
	size_t bytes; /* of all items' chunks in the file, uncompressed */
};

#define VMT_STORE_META_MAX (64u << 20)

bool vmt_store_is_meta(enum vmt_chunk_type type);

/*
 * Remembers a copy of the chunk, in place of what it supersedes. Returns its index >= 0,
 * VMT_E_NOMEM, or VMT_E_LIMIT when more than VMT_STORE_META_MAX bytes would be held.
 */
int64_t vmt_store_meta_add(struct vmt_store_meta *meta, const struct vmt_store_chunk *chunk);

/* Marks everything as owed. */
void vmt_store_meta_owe_all(struct vmt_store_meta *meta);

/* Bytes that the owed items take in the file at most; 0 when none is owed. */
uint64_t vmt_store_meta_owed_bytes(const struct vmt_store_meta *meta);

void vmt_store_meta_free(struct vmt_store_meta *meta);

#endif
