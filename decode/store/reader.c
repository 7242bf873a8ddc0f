// SPDX-License-Identifier: LGPL-2.1-or-later
/* Chunks into items. */
#include <stdlib.h>
#include <string.h>

#include "decode/base/cursor.h"
#include "decode/store/aux.h"
#include "decode/store/hash.h"
#include "decode/store/scan.h"
#include "decode/store/seen.h"

#define RECOGNISE_WITHIN 65536u

struct vmt_store_reader {
	struct vmt_reader *reader;
	struct vmt_store_scan scan;
	struct vmt_store_seen seen;
	struct vmt_store_aux aux;
	uint64_t records_lost, overflows;
	struct vmt_ring_attr attr;
	uint64_t *ids;
	size_t ids_cap;
	char kind[VMT_STORE_KIND_MAX];
};

int vmt_store_recognise(struct vmt_reader *reader, struct vmt_diag *diag)
{
	const uint8_t *bytes, *p;
	int64_t n = vmt_reader_peek(reader, VMT_STORE_MAGIC_LEN, &bytes, diag);
	size_t len;

	if (n <= 0)
		return (int)n;
	len = (uint64_t)n < VMT_STORE_MAGIC_LEN ? (size_t)n : VMT_STORE_MAGIC_LEN;
	if (!memcmp(bytes, vmt_store_magic, len))
		return 1;
	n = vmt_reader_peek(reader, RECOGNISE_WITHIN, &bytes, diag);
	if (n < 0)
		return (int)n;
	len = (uint64_t)n < RECOGNISE_WITHIN ? (size_t)n : RECOGNISE_WITHIN;
	for (p = bytes; len - (size_t)(p - bytes) >= VMT_STORE_HEADER; p++) {
		struct vmt_store_header h;

		p = memmem(p, len - (size_t)(p - bytes), vmt_store_magic, VMT_STORE_MAGIC_LEN);
		if (!p || len - (size_t)(p - bytes) < VMT_STORE_HEADER)
			break;
		if (vmt_store_header_decode(p, &h))
			return 1;
	}
	return 0;
}

int vmt_store_open(struct vmt_store_reader **out, struct vmt_reader *reader, struct vmt_diag *diag)
{
	struct vmt_store_reader *s;
	const uint8_t *bytes;
	int known = vmt_store_recognise(reader, diag);

	if (known < 0)
		return known;
	if (!known && vmt_reader_peek(reader, 1, &bytes, NULL) == 0)
		return vmt_diag_at(diag, VMT_E_TRUNCATED, 0, "the file is empty",
				   "nothing was recorded, or it was cut off");
	if (!known)
		return vmt_diag_at(diag, VMT_E_DAMAGED, 0, "this is no .vmt file",
				   "it does not begin with the mark of one");
	s = calloc(1, sizeof(*s));
	if (!s)
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot read the file", "memory is short");
	s->reader = reader;
	vmt_store_scan_init(&s->scan, reader);
	*out = s;
	return 0;
}

struct vmt_reader *vmt_store_give_back(struct vmt_store_reader *s)
{
	struct vmt_reader *reader = s->reader;

	vmt_store_scan_free(&s->scan);
	vmt_store_seen_free(&s->seen);
	vmt_store_aux_free(&s->aux);
	free(s->ids);
	free(s);
	return reader;
}

void vmt_store_close(struct vmt_store_reader *s)
{
	if (s)
		vmt_reader_close(vmt_store_give_back(s));
}

static const enum vmt_item_type item_types[] = {
	[VMT_CHUNK_SESSION] = VMT_ITEM_SESSION,	  [VMT_CHUNK_ATTR] = VMT_ITEM_ATTR,
	[VMT_CHUNK_FORMAT] = VMT_ITEM_FORMAT,	  [VMT_CHUNK_RECORDS] = VMT_ITEM_RECORDS,
	[VMT_CHUNK_ROUND] = VMT_ITEM_ROUND,	  [VMT_CHUNK_ANCHOR] = VMT_ITEM_ANCHOR,
	[VMT_CHUNK_VCPU_TSC] = VMT_ITEM_VCPU_TSC, [VMT_CHUNK_MARK] = VMT_ITEM_MARK,
	[VMT_CHUNK_LOSS] = VMT_ITEM_LOSS,	  [VMT_CHUNK_END] = VMT_ITEM_END,
	[VMT_CHUNK_AUX] = VMT_ITEM_AUX,
};

static bool is_silent(const struct vmt_store_view *view)
{
	return view->header.type == VMT_CHUNK_FILE || view->header.type == VMT_CHUNK_INDEX ||
	       view->header.type == VMT_CHUNK_AUX_INFO;
}

static bool is_supported(const struct vmt_store_view *view)
{
	const struct vmt_store_header *h = &view->header;

	if (h->version != VMT_STORE_VERSION || (h->flags & ~VMT_STORE_FLAG_ZSTD))
		return false;
	switch (h->type) {
	case VMT_CHUNK_ANCHOR:
		return view->len % sizeof(struct vmt_anchor) == 0;
	case VMT_CHUNK_VCPU_TSC:
		return view->len % sizeof(struct vmt_vcpu_tsc) == 0;
	case VMT_CHUNK_AUX_INFO:
	case VMT_CHUNK_AUX:
		return vmt_store_aux_fits(view);
	default:
		return h->type >= VMT_CHUNK_SESSION && h->type <= VMT_CHUNK_FILE;
	}
}

/* 1; 0 when the payload does not fit its type; VMT_E_NOMEM. */
static int open_attr(struct vmt_store_reader *s, const struct vmt_store_view *view,
		     struct vmt_item *item)
{
	if (!vmt_store_attr_decode(view->payload, view->len, &s->attr, &item->nr_ids))
		return 0;
	if (item->nr_ids > s->ids_cap) {
		uint64_t *ids = realloc(s->ids, item->nr_ids * sizeof(*ids));

		if (!ids)
			return VMT_E_NOMEM;
		s->ids = ids;
		s->ids_cap = item->nr_ids;
	}
	if (item->nr_ids)
		memcpy(s->ids, view->payload + VMT_STORE_ATTR_LEN, item->nr_ids * sizeof(*s->ids));
	item->attr = &s->attr;
	item->ids = s->ids;
	return 1;
}

static int open_loss(struct vmt_store_reader *s, const struct vmt_store_view *view,
		     struct vmt_item *item)
{
	struct vmt_store_loss_info loss;

	if (!vmt_store_loss_decode(view->payload, view->len, &loss))
		return 0;
	memcpy(s->kind, loss.kind, sizeof(s->kind));
	item->lost_bytes = loss.bytes;
	item->lost_records = loss.records;
	item->lost_chunks = loss.chunks;
	item->has_lost_records = loss.has_records;
	item->loss_kind = s->kind;
	s->records_lost += loss.records;
	/* One of unknown size is in no sum, and a loss all the same. */
	if ((!loss.has_records && !loss.bytes) || !strcmp(s->kind, "overflow") ||
	    !strcmp(s->kind, "ring-full"))
		s->overflows++;
	return 1;
}

/* The bytes are read through the index. */
static void open_aux(struct vmt_store_reader *s, const struct vmt_store_view *view,
		     struct vmt_item *item)
{
	struct vmt_store_aux_head head;

	vmt_store_aux_decode(view->payload, &head);
	s->aux.extent = vmt_store_aux_extent(view);
	item->aux = &s->aux.extent;
	item->aux_idx = view->header.stream;
	item->aux_cpu = (uint32_t)view->header.cpu;
	item->aux_tid = head.tid;
	item->aux_thread = head.tid ? head.tid : UINT32_MAX;
	item->data = NULL;
	item->len = 0;
}

/* Losses that the walk for the index found: 1 an item, 0 no more. */
static int aux_loss(struct vmt_store_reader *s, struct vmt_item *item)
{
	if (s->aux.lost) {
		*item = (struct vmt_item){ .type = VMT_ITEM_LOSS,
					   .offset = vmt_reader_offset(s->reader),
					   .lost_bytes = s->aux.lost,
					   .loss_kind = "spool-full" };
		s->scan.ledger.bytes_total += s->aux.lost;
		s->scan.ledger.bytes_skipped += s->aux.lost;
		s->aux.lost = 0;
		return 1;
	}
	if (s->aux.tell_limit) {
		*item = (struct vmt_item){ .type = VMT_ITEM_LOSS,
					   .offset = vmt_reader_offset(s->reader),
					   .lost_bytes = s->aux.index.lost_bytes,
					   .loss_kind = "aux-limit" };
		s->aux.tell_limit = false;
		return 1;
	}
	return 0;
}

const struct vmt_aux_index *vmt_store_aux_index(struct vmt_store_reader *s)
{
	return &s->aux.index;
}

static void gap_item(const struct vmt_store_gap *gap, struct vmt_item *item)
{
	*item = (struct vmt_item){ .type = VMT_ITEM_LOSS,
				   .offset = gap->offset,
				   .lost_bytes = gap->bytes,
				   .lost_chunks = gap->chunks,
				   .loss_kind = gap->kind };
}

static int chunk_item(struct vmt_store_reader *s, const struct vmt_store_view *view,
		      struct vmt_item *item)
{
	struct vmt_store_gap gap = { "unsupported", view->offset,
				     vmt_store_chunk_len(&view->header), 1 };
	int ok = is_supported(view);

	if (ok) {
		*item = (struct vmt_item){ .type = item_types[view->header.type],
					   .offset = view->offset,
					   .stream = view->header.stream,
					   .data = view->payload,
					   .len = view->len };
		if (view->header.type == VMT_CHUNK_ATTR)
			ok = open_attr(s, view, item);
		else if (view->header.type == VMT_CHUNK_LOSS)
			ok = open_loss(s, view, item);
		else if (view->header.type == VMT_CHUNK_AUX)
			open_aux(s, view, item);
	}
	if (!ok) {
		vmt_store_scan_reject(&s->scan, view);
		gap_item(&gap, item);
	}
	return ok < 0 ? ok : 1;
}

/* Whether the index has to be made, from this chunk on. */
static bool wants_index(const struct vmt_store_reader *s, const struct vmt_store_view *view)
{
	return !s->aux.built && is_supported(view) &&
	       (view->header.type == VMT_CHUNK_AUX_INFO || view->header.type == VMT_CHUNK_AUX);
}

/* The next chunk or gap that makes an item: 1, 0 at the end, negative. */
static int next_item(struct vmt_store_reader *s, struct vmt_item *item, struct vmt_diag *diag)
{
	struct vmt_store_view view;
	struct vmt_store_gap gap;

	for (;;) {
		int found = vmt_store_scan_next(&s->scan, &view, &gap, diag);

		if (found == VMT_STORE_FOUND_GAP) {
			gap_item(&gap, item);
			return 1;
		}
		if (found != VMT_STORE_FOUND_CHUNK)
			return found;
		if (vmt_store_seen_before(&s->seen, view.header.type, view.payload, view.len))
			continue;
		if (is_supported(&view) && is_silent(&view))
			item->type = 0;
		else if (chunk_item(s, &view, item) < 0)
			return vmt_diag_set(diag, VMT_E_NOMEM, "cannot read the file",
					    "memory is short");
		if (wants_index(s, &view)) {
			found = vmt_store_aux_build(&s->aux, &s->scan, &view, diag);
			if (found)
				return found;
		}
		if (item->type)
			return 1;
	}
}

int vmt_store_next(struct vmt_store_reader *s, struct vmt_item *item, struct vmt_diag *diag)
{
	return aux_loss(s, item) ? 1 : next_item(s, item, diag);
}

struct vmt_ledger vmt_store_ledger(const struct vmt_store_reader *s)
{
	struct vmt_ledger ledger = s->scan.ledger;

	if (ledger.bytes_decoded >= s->aux.index.lost_bytes) {
		ledger.bytes_decoded -= s->aux.index.lost_bytes;
		ledger.bytes_skipped += s->aux.index.lost_bytes;
	}
	ledger.records_lost = s->records_lost;
	ledger.overflows = s->overflows;
	return ledger;
}

/* The chunk at an offset when it is a whole one of that type: 1 or 0. Moves the reader. */
static int chunk_at(struct vmt_reader *reader, uint64_t offset, enum vmt_chunk_type type,
		    struct vmt_store_view *view, struct vmt_diag *diag)
{
	const uint8_t *bytes;
	size_t len;
	int64_t n = vmt_reader_seek(reader, offset, diag);

	if (n < 0)
		return (int)n;
	n = vmt_reader_peek(reader, VMT_STORE_HEADER, &bytes, diag);
	if (n < (int64_t)VMT_STORE_HEADER || !vmt_store_header_decode(bytes, &view->header) ||
	    view->header.type != type || view->header.version != VMT_STORE_VERSION ||
	    view->header.flags)
		return n < 0 ? (int)n : 0;
	len = vmt_store_chunk_len(&view->header);
	n = vmt_reader_peek(reader, len, &bytes, diag);
	if (n < (int64_t)len)
		return n < 0 ? (int)n : 0;
	view->payload = bytes + view->header.header_len;
	view->len = view->header.stored_len;
	return vmt_store_hash(bytes + VMT_STORE_HEADER, len - VMT_STORE_HEADER) ==
	       view->header.payload_hash;
}

/* Finds the segment of from_ns by END and INDEX: 1 and the segment, or 0. Moves the reader. */
static int find_segment(struct vmt_reader *reader, uint64_t from_ns, struct vmt_store_segment *out,
			struct vmt_diag *diag)
{
	const uint64_t end_len = VMT_STORE_HEADER + VMT_STORE_END_LEN;
	uint64_t size = vmt_reader_size(reader);
	struct vmt_store_end_info end;
	struct vmt_store_view view;
	size_t rows;
	int ok;

	if (size < end_len)
		return 0;
	ok = chunk_at(reader, size - end_len, VMT_CHUNK_END, &view, diag);
	if (ok <= 0 || !vmt_store_end_decode(view.payload, view.len, &end) || !end.index_offset)
		return ok < 0 ? ok : 0;
	ok = chunk_at(reader, end.index_offset, VMT_CHUNK_INDEX, &view, diag);
	rows = ok > 0 ? view.len / VMT_STORE_INDEX_ROW_LEN : 0;
	for (size_t i = 0; i < rows; i++) {
		vmt_store_segment_decode(view.payload + i * VMT_STORE_INDEX_ROW_LEN, out);
		if (out->time_last_ns >= from_ns)
			break;
	}
	return ok < 0 ? ok : rows > 0;
}

int vmt_store_seek(struct vmt_store_reader *s, uint64_t from_ns, struct vmt_diag *diag)
{
	uint64_t start = vmt_reader_offset(s->reader);
	struct vmt_store_segment segment;
	int found, err;

	if (!vmt_reader_can_seek(s->reader) || s->scan.ledger.bytes_total)
		return VMT_E_UNSUPPORTED;
	found = find_segment(s->reader, from_ns, &segment, diag);
	if (found > 0)
		return vmt_store_scan_seek(&s->scan, segment.offset, segment.sequence, diag);
	err = vmt_reader_seek(s->reader, start, found < 0 ? NULL : diag);
	if (found < 0)
		return found;
	return err ? err : VMT_E_UNSUPPORTED;
}
