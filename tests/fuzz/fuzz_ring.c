/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as attrs and records: the first byte says how many attrs follow (24 bytes each), the
 * rest is a ring. Members must stay inside their record, and reading must always come forward.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/cursor.h"
#include "decode/ring/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct vmt_ring_record *r, const uint8_t *bytes, int result)
{
	if (result != r->size || r->body < bytes || r->body_len + 8 > result)
		abort();
	if (r->body + r->body_len > bytes + result)
		abort();
	if (r->raw &&
	    (r->raw < r->body || r->raw_len > r->body_len || r->raw + r->raw_len > bytes + result))
		abort();
}

static void read_ring(const struct vmt_ring_set *set, const uint8_t *bytes, size_t len)
{
	struct vmt_ring_record r;
	size_t at = 0;
	int index;

	while (at < len) {
		int result = vmt_ring_parse(set, bytes + at, len - at, &r, &index);

		if (index < -1 || index >= (int)vmt_ring_set_count(set))
			abort();
		if (result > 0)
			check(&r, bytes + at, result);
		else if (result == 0)
			abort();
		at += result > 0 ? (size_t)result : 8;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vmt_cursor c = vmt_cursor_of(data, size);
	struct vmt_ring_set *set = vmt_ring_set_new();
	unsigned int nr_attrs = vmt_cursor_u8(&c) % 8;
	size_t len;
	uint8_t *ring;

	if (!set)
		return 0;
	for (unsigned int i = 0; i < nr_attrs; i++) {
		struct vmt_ring_attr attr = { .type = 2 };
		uint64_t ids[2];

		attr.sample_type = vmt_cursor_u64(&c);
		attr.flags = vmt_cursor_u8(&c) & 1 ? VMT_RING_FLAG_SAMPLE_ID_ALL : 0;
		attr.read_format = vmt_cursor_u8(&c);
		ids[0] = vmt_cursor_u64(&c);
		ids[1] = vmt_cursor_u16(&c);
		vmt_ring_set_add(set, &attr, ids, vmt_cursor_u32(&c) % 3);
	}
	len = vmt_cursor_left(&c);
	ring = malloc(len ? len : 1);
	if (!ring)
		abort();
	memcpy(ring, c.pos, len);
	read_ring(set, ring, len);
	free(ring);
	vmt_ring_set_free(set);
	return 0;
}
