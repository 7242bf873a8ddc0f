// SPDX-License-Identifier: LGPL-2.1-or-later
/* Invariant: cap is 0 or a power of two, and at most half of the places are taken. */
#include "decode/store/seen.h"

#include <stdlib.h>

#include "decode/store/hash.h"

#define SEEN_MAX 16384u

/* The place of a hash: where it stands, or where it would. */
static uint64_t *place(uint64_t *hashes, size_t cap, uint64_t hash)
{
	size_t i = hash & (cap - 1);

	while (hashes[i] && hashes[i] != hash)
		i = (i + 1) & (cap - 1);
	return &hashes[i];
}

static bool enlarge(struct vmt_store_seen *seen)
{
	size_t cap = seen->cap ? seen->cap * 2 : 256;
	uint64_t *hashes = calloc(cap, sizeof(*hashes));

	if (!hashes)
		return false;
	for (size_t i = 0; i < seen->cap; i++)
		if (seen->hashes[i])
			*place(hashes, cap, seen->hashes[i]) = seen->hashes[i];
	free(seen->hashes);
	seen->hashes = hashes;
	seen->cap = cap;
	return true;
}

bool vmt_store_seen_before(struct vmt_store_seen *seen, uint16_t type, const void *payload,
			   size_t len)
{
	uint64_t hash, *p;

	if (type != VMT_CHUNK_ATTR && type != VMT_CHUNK_FORMAT)
		return false;
	hash = vmt_store_hash(payload, len) + type;
	if (!hash)
		hash = 1;
	if (seen->cap && *place(seen->hashes, seen->cap, hash))
		return true;
	if (seen->nr >= SEEN_MAX || ((seen->nr + 1) * 2 > seen->cap && !enlarge(seen)))
		return false;
	p = place(seen->hashes, seen->cap, hash);
	*p = hash;
	seen->nr++;
	return false;
}

void vmt_store_seen_free(struct vmt_store_seen *seen)
{
	free(seen->hashes);
	seen->hashes = NULL;
	seen->nr = seen->cap = 0;
}
