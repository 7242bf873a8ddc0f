// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Any bytes read as a perf.data, as a file and as a pipe. Each byte is in the ledger once, what
 * LOSS items name are the skipped bytes, RECORDS are whole ring records, and the number of items is
 * bounded by the input. Each byte of Intel PT in the index comes out in one piece.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decode/analyze/pt_pieces.h"
#include "decode/base/cursor.h"
#include "decode/perfdata/perfdata.h"
#include "decode/ring/ring.h"
#include "tests/support/memory_file.h"
#include "tests/support/store_sample.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

static void check_records(const struct vmt_item *item)
{
	size_t at = 0;

	require(item->len > 0);
	while (at < item->len) {
		uint16_t size;

		require(item->len - at >= 8);
		size = vmt_load_u16(item->data + at + 6);
		require(size >= 8 && size % 8 == 0 && size <= item->len - at);
		require(vmt_load_u32(item->data + at) < VMT_RING_USER_FIRST);
		at += size;
	}
}

static void check_item(const struct vmt_item *item, uint64_t *sum, uint64_t *lost)
{
	switch (item->type) {
	case VMT_ITEM_RECORDS:
		check_records(item);
		break;
	case VMT_ITEM_FORMAT:
		for (size_t i = 0; i < item->len; i++)
			*sum += item->data[i];
		break;
	case VMT_ITEM_ATTR:
		*sum += item->attr->sample_type;
		for (size_t i = 0; i < item->nr_ids; i++)
			*sum += item->ids[i];
		break;
	case VMT_ITEM_LOSS:
		require(item->loss_kind != NULL);
		*lost += item->lost_bytes;
		break;
	case VMT_ITEM_AUX:
		require(!item->data && item->aux->len <= INT64_MAX);
		break;
	case VMT_ITEM_VCPU_LINK:
		require(item->len && item->len % sizeof(struct vmt_vcpu_link) == 0);
		break;
	default:
		require(item->type == VMT_ITEM_ROUND || item->type == VMT_ITEM_END);
	}
}

static void check_area(const struct vmt_aux_index *index, size_t nr, size_t size)
{
	const struct vmt_aux_area *area = &index->areas[nr];
	struct vmt_pt_pieces *pieces = vmt_pt_pieces_new(index, nr);
	struct vmt_pt_piece piece;
	uint64_t want = 0, got = 0;
	int more;

	require(pieces && area->nr_extents);
	for (size_t i = 0; i < area->nr_extents; i++) {
		const struct vmt_aux_extent *e = &area->extents[i];

		require(e->len && e->at <= size && e->len <= size - e->at);
		want += e->len;
	}
	while ((more = vmt_pt_pieces_next(pieces, &piece, NULL)) == 1) {
		require(piece.bytes ? piece.len && !piece.skipped : piece.skipped && piece.why);
		got += piece.len + piece.skipped;
	}
	require(more == 0 && got == want);
	vmt_pt_pieces_free(pieces);
}

static void read_all(struct vmt_reader *reader, size_t size)
{
	const struct vmt_aux_index *index;
	struct vmt_perfdata *perf;
	struct vmt_item item;
	struct vmt_ledger l;
	uint64_t sum = 0, lost = 0;
	size_t items = 0;
	int more;

	if (vmt_perfdata_open(&perf, reader, NULL) != 0) {
		vmt_reader_close(reader);
		return;
	}
	while ((more = vmt_perfdata_next(perf, &item, NULL)) == 1) {
		check_item(&item, &sum, &lost);
		require(++items <= size * 1024 + 16);
	}
	require(more == 0 && vmt_perfdata_next(perf, &item, NULL) == 0);
	l = vmt_perfdata_ledger(perf);
	require(l.bytes_total == l.bytes_decoded + l.bytes_skipped);
	require(l.bytes_skipped == lost);
	require(l.bytes_total == size);
	index = vmt_perfdata_aux(perf);
	for (size_t i = 0; i < index->nr_areas; i++)
		check_area(index, i, size);
	vmt_perfdata_close(perf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vmt_reader *reader;

	if (vmt_reader_from_fd(&reader, vmt_memory_file(data, size), NULL, NULL) != 0)
		abort();
	read_all(reader, size);
	read_all(vmt_sample_reader(data, size), size);
	return 0;
}
