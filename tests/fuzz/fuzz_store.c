// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Any bytes read as a .vmt: once as they are, once with the checksums made right, so that what
 * stands behind them is reached. Each byte is in the ledger once, payloads are bounded and inside
 * of what was given, and the number of items is bounded by the input. Intel PT is read through its
 * index in full.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decode/store/hash.h"
#include "decode/store/layout.h"
#include "tests/support/store_sample.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

static void check_item(const struct vmt_item *item, size_t size, uint64_t *sum)
{
	require(item->len <= VMT_CHUNK_PAYLOAD_MAX && item->offset <= size);
	require((uintptr_t)item->data % 8 == 0);
	for (size_t i = 0; i < item->len; i += item->len / 16 + 1)
		*sum += item->data[i];
	for (size_t i = 0; i < item->nr_ids; i++)
		*sum += item->ids[i];
	if (item->type == VMT_ITEM_LOSS)
		require(item->loss_kind && strlen(item->loss_kind) < VMT_STORE_KIND_MAX);
	if (item->type == VMT_ITEM_ANCHOR)
		require(item->len % sizeof(struct vmt_anchor) == 0);
}

static void read_trace(const struct vmt_aux_index *index, uint64_t *sum)
{
	uint8_t bytes[4096];
	size_t done;

	for (size_t i = 0; i < index->nr_areas; i++) {
		const struct vmt_aux_area *area = &index->areas[i];

		for (size_t k = 0; k < area->nr_extents; k++) {
			const struct vmt_aux_extent *e = &area->extents[k];
			size_t len = e->len < sizeof(bytes) ? (size_t)e->len : sizeof(bytes);

			require(e->len && e->len <= VMT_STORE_AUX_MAX);
			require(index->read(index->source, e, e->len - len, bytes, len, &done,
					    NULL) == 0);
			require(done == len);
			*sum += bytes[0];
		}
	}
}

static void read_all(const uint8_t *data, size_t size)
{
	struct vmt_reader *reader = vmt_sample_reader(data, size);
	struct vmt_store_reader *store;
	struct vmt_item item;
	struct vmt_ledger l;
	uint64_t sum = 0;
	size_t items = 0;
	int more;

	if (vmt_store_open(&store, reader, NULL) != 0) {
		vmt_reader_close(reader);
		return;
	}
	while ((more = vmt_store_next(store, &item, NULL)) == 1) {
		check_item(&item, size, &sum);
		require(++items <= size / 40 + 4);
	}
	require(more == 0);
	read_trace(vmt_store_aux_index(store), &sum);
	l = vmt_store_ledger(store);
	require(l.bytes_total == l.bytes_decoded + l.bytes_skipped && l.bytes_total <= size);
	vmt_store_close(store);
}

/* Makes the checksums of each chunk right; its lengths and everything else stay as they are. */
static void repair(uint8_t *bytes, size_t size)
{
	for (size_t at = 0; size - at >= VMT_STORE_HEADER; at++) {
		uint8_t *p = memmem(bytes + at, size - at, vmt_store_magic, VMT_STORE_MAGIC_LEN);
		uint16_t header_len;
		uint32_t stored_len;
		uint64_t hash;
		size_t len;

		if (!p || size - (size_t)(p - bytes) < VMT_STORE_HEADER)
			return;
		at = (size_t)(p - bytes);
		memcpy(&header_len, p + 14, sizeof(header_len));
		memcpy(&stored_len, p + 48, sizeof(stored_len));
		len = header_len + vmt_store_padded(stored_len);
		if (header_len >= VMT_STORE_HEADER && len <= size - at) {
			hash = vmt_store_hash(p + VMT_STORE_HEADER, len - VMT_STORE_HEADER);
			memcpy(p + 64, &hash, sizeof(hash));
		}
		hash = vmt_store_hash(p, VMT_STORE_HEADER - 8);
		memcpy(p + 72, &hash, sizeof(hash));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	read_all(data, size);
	copy = malloc(size ? size : 1);
	require(copy != NULL);
	if (size)
		memcpy(copy, data, size);
	repair(copy, size);
	read_all(copy, size);
	free(copy);
	return 0;
}
