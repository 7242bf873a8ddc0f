// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/store/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t vmt_store_hash(const void *bytes, size_t len)
{
	return XXH3_64bits(bytes, len);
}

uint64_t vmt_store_hash_parts(const struct iovec *parts, int n)
{
	XXH3_state_t state;

	if (n == 1)
		return XXH3_64bits(parts[0].iov_base, parts[0].iov_len);
	XXH3_INITSTATE(&state);
	XXH3_64bits_reset(&state);
	for (int i = 0; i < n; i++)
		XXH3_64bits_update(&state, parts[i].iov_base, parts[i].iov_len);
	return XXH3_64bits_digest(&state);
}
