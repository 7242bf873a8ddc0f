// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/store/meta.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/cursor.h"
#include "decode/store/hash.h"
#include "decode/store/layout.h"

bool vmt_store_is_meta(enum vmt_chunk_type type)
{
	switch (type) {
	case VMT_CHUNK_SESSION:
	case VMT_CHUNK_ATTR:
	case VMT_CHUNK_FORMAT:
	case VMT_CHUNK_ANCHOR:
	case VMT_CHUNK_VCPU_TSC:
	case VMT_CHUNK_AUX_INFO:
		return true;
	default:
		return false;
	}
}

static size_t file_len(size_t payload)
{
	return VMT_STORE_HEADER + vmt_store_padded(payload);
}

static uint8_t *gather(const struct vmt_store_chunk *chunk, size_t *len)
{
	uint8_t *bytes, *p;

	*len = 0;
	for (unsigned int i = 0; i < chunk->nr_parts; i++)
		*len += chunk->parts[i].len;
	bytes = p = malloc(*len ? *len : 1);
	for (unsigned int i = 0; p && i < chunk->nr_parts; i++) {
		if (chunk->parts[i].len)
			memcpy(p, chunk->parts[i].bytes, chunk->parts[i].len);
		p += chunk->parts[i].len;
	}
	return bytes;
}

/* The item that the new bytes stand in for: the same text, or the last of a kind with one. */
static struct vmt_store_meta_item *superseded(struct vmt_store_meta *meta, enum vmt_chunk_type type,
					      const uint8_t *bytes, size_t len, uint64_t hash)
{
	for (size_t i = 0; i < meta->nr; i++) {
		struct vmt_store_meta_item *item = &meta->items[i];

		if (item->chunk.type != type)
			continue;
		if (type != VMT_CHUNK_ATTR && type != VMT_CHUNK_FORMAT)
			return item;
		if (item->hash == hash && item->len == len && !memcmp(item->bytes, bytes, len))
			return item;
	}
	return NULL;
}

static bool same_vcpu(const uint8_t *a, const uint8_t *b)
{
	const size_t at = offsetof(struct vmt_vcpu_tsc, domain);

	return !memcmp(a + at, b + at, 2 * sizeof(uint32_t));
}

/*
 * Puts the rows of `old` whose vCPU is not among the new ones in front of the new ones. Returns
 * the new bytes, or NULL when memory is short; `bytes` is freed in either case.
 */
static uint8_t *merge_vcpus(const struct vmt_store_meta_item *old, uint8_t *bytes, size_t *len)
{
	const size_t row = sizeof(struct vmt_vcpu_tsc);
	uint8_t *merged = malloc(old->len + *len + 1);
	size_t used = 0;

	for (size_t i = 0; merged && i + row <= old->len; i += row) {
		bool replaced = false;

		for (size_t j = 0; j + row <= *len && !replaced; j += row)
			replaced = same_vcpu(old->bytes + i, bytes + j);
		if (replaced)
			continue;
		memcpy(merged + used, old->bytes + i, row);
		used += row;
	}
	if (merged) {
		memcpy(merged + used, bytes, *len);
		*len += used;
	}
	free(bytes);
	return merged;
}

static struct vmt_store_meta_item *new_item(struct vmt_store_meta *meta)
{
	if (meta->nr == meta->cap) {
		size_t cap = meta->cap ? meta->cap * 2 : 64;
		struct vmt_store_meta_item *items = realloc(meta->items, cap * sizeof(*items));

		if (!items)
			return NULL;
		meta->items = items;
		meta->cap = cap;
	}
	memset(&meta->items[meta->nr], 0, sizeof(meta->items[0]));
	return &meta->items[meta->nr++];
}

int64_t vmt_store_meta_add(struct vmt_store_meta *meta, const struct vmt_store_chunk *chunk)
{
	struct vmt_store_meta_item *item;
	size_t len;
	uint8_t *bytes = gather(chunk, &len);
	uint64_t hash;

	if (!bytes)
		return VMT_E_NOMEM;
	hash = vmt_store_hash(bytes, len);
	item = superseded(meta, chunk->type, bytes, len, hash);
	if (item && chunk->type == VMT_CHUNK_VCPU_TSC) {
		bytes = merge_vcpus(item, bytes, &len);
		if (!bytes)
			return VMT_E_NOMEM;
	}
	if (len > VMT_CHUNK_PAYLOAD_MAX || meta->bytes + file_len(len) > VMT_STORE_META_MAX) {
		free(bytes);
		return VMT_E_LIMIT;
	}
	if (!item)
		item = new_item(meta);
	if (!item) {
		free(bytes);
		return VMT_E_NOMEM;
	}
	if (item->bytes)
		meta->bytes -= file_len(item->len);
	meta->bytes += file_len(len);
	free(item->bytes);
	item->bytes = bytes;
	item->len = len;
	item->hash = hash;
	item->chunk = *chunk;
	item->chunk.nr_parts = 1;
	item->chunk.parts[0] = (struct vmt_store_part){ bytes, len };
	return item - meta->items;
}

void vmt_store_meta_owe_all(struct vmt_store_meta *meta)
{
	for (size_t i = 0; i < meta->nr; i++)
		meta->items[i].owed = true;
}

uint64_t vmt_store_meta_owed_bytes(const struct vmt_store_meta *meta)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < meta->nr; i++)
		if (meta->items[i].owed)
			bytes += file_len(meta->items[i].len);
	return bytes;
}

void vmt_store_meta_free(struct vmt_store_meta *meta)
{
	for (size_t i = 0; i < meta->nr; i++)
		free(meta->items[i].bytes);
	free(meta->items);
	memset(meta, 0, sizeof(*meta));
}
