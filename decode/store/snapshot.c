// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdlib.h>
#include <string.h>

#include "decode/io/output.h"
#include "decode/store/aux.h"
#include "decode/store/scan.h"
#include "decode/store/seen.h"
#include "decode/store/writer.h"

struct copy {
	const struct vmt_store_snapshot *options;
	const struct vmt_store_edit *edit; /* NULL: none */
	uint8_t *records;		   /* a chunk that is edited */
	struct vmt_store_writer *to;
	struct vmt_store_seen seen;
	bool front_moves; /* the source has keep_ns: its front may vanish while it is read */
	bool front_cut;	  /* what the recorder dropped, or what lies before from_ns */
	bool has_records; /* some were copied */
	bool round_due;	  /* some were copied since the last ROUND */
};

static bool in_window(const struct copy *c, const struct vmt_store_header *h)
{
	if (h->time_last_ns && h->time_last_ns < c->options->from_ns)
		return false;
	return !c->options->to_ns || h->time_first_ns <= c->options->to_ns;
}

static bool wanted(struct copy *c, const struct vmt_store_view *view)
{
	const struct vmt_store_header *h = &view->header;
	struct vmt_store_file_info info;

	if (h->version != VMT_STORE_VERSION || (h->flags & ~VMT_STORE_FLAG_ZSTD))
		return false;
	switch (h->type) {
	case VMT_CHUNK_FILE:
		c->front_moves =
			vmt_store_file_decode(view->payload, view->len, &info) && info.keep;
		return false;
	case VMT_CHUNK_RECORDS:
	case VMT_CHUNK_AUX:
	case VMT_CHUNK_LOSS:
	case VMT_CHUNK_MARK:
		c->front_cut |= h->time_last_ns && h->time_last_ns < c->options->from_ns;
		return in_window(c, h);
	case VMT_CHUNK_ROUND:
		return c->round_due;
	case VMT_CHUNK_INDEX:
	case VMT_CHUNK_END:
		return false;
	default:
		return vmt_store_is_appendable(h->type) &&
		       !vmt_store_seen_before(&c->seen, h->type, view->payload, view->len);
	}
}

static int edit_trace(struct copy *c, const struct vmt_store_view *view, struct vmt_diag *diag)
{
	const struct vmt_store_header *h = &view->header;
	struct vmt_aux_area area = { .idx = h->stream, .cpu = (uint32_t)h->cpu };
	struct vmt_store_trace trace = { .time_first_ns = h->time_first_ns,
					 .time_last_ns = h->time_last_ns };
	struct vmt_store_aux_head head;

	if (!vmt_store_aux_fits(view))
		return 0;
	vmt_store_aux_decode(view->payload, &head);
	area.pid = head.pid;
	area.tid = head.tid;
	trace.aux_offset = head.aux_offset;
	trace.reference = head.reference;
	trace.restart = head.restart;
	trace.parts[0] = (struct vmt_store_part){ view->payload + VMT_STORE_AUX_HEAD,
						  view->len - VMT_STORE_AUX_HEAD };
	return c->edit->trace(c->edit->context, c->to, &area, &trace, diag);
}

static int edit_info(struct copy *c, const struct vmt_store_view *view, struct vmt_diag *diag)
{
	struct vmt_pt_info info;

	if (!vmt_store_aux_fits(view))
		return 0;
	vmt_store_aux_info_decode(view->payload, &info);
	return c->edit->info(c->edit->context, &info, diag);
}

static int edit_records(struct copy *c, struct vmt_store_chunk *chunk, struct vmt_diag *diag)
{
	struct vmt_store_part *part = &chunk->parts[0];

	if (!c->records)
		c->records = malloc(VMT_CHUNK_PAYLOAD_MAX);
	if (!c->records)
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot copy the capture",
				    "memory is short");
	memcpy(c->records, part->bytes, part->len);
	part->bytes = c->records;
	part->len = c->edit->records(c->edit->context, c->records, part->len);
	return part->len ? vmt_store_append(c->to, chunk, diag) : 0;
}

/* 1: the chunk is not the edit's. */
static int edit_chunk(struct copy *c, const struct vmt_store_view *view,
		      struct vmt_store_chunk *chunk, struct vmt_diag *diag)
{
	int err;

	switch (chunk->type) {
	case VMT_CHUNK_AUX:
		return edit_trace(c, view, diag);
	case VMT_CHUNK_AUX_INFO:
		err = edit_info(c, view, diag);
		return err ? err : 1;
	case VMT_CHUNK_RECORDS:
		return edit_records(c, chunk, diag);
	default:
		return 1;
	}
}

static int append_loss(struct copy *c, const struct vmt_store_loss_info *info,
		       struct vmt_diag *diag)
{
	uint8_t payload[VMT_STORE_LOSS_LEN + VMT_STORE_KIND_MAX];
	struct vmt_store_chunk chunk = {
		.type = VMT_CHUNK_LOSS, .stream = VMT_STORE_ANY_STREAM, .cpu = -1, .nr_parts = 1
	};

	chunk.parts[0] = (struct vmt_store_part){ payload, vmt_store_loss_encode(info, payload) };
	return vmt_store_append(c->to, &chunk, diag);
}

/* The copy begins later than its session: readers are told as they are by a hole in the file. */
static int tell_cut(struct copy *c, struct vmt_diag *diag)
{
	struct vmt_store_loss_info info = { 0 };

	if (!c->front_cut || c->has_records)
		return 0;
	vmt_store_kind_copy(info.kind, "keep", strlen("keep"));
	return append_loss(c, &info, diag);
}

static int copy_chunk(struct copy *c, const struct vmt_store_view *view, struct vmt_diag *diag)
{
	const struct vmt_store_header *h = &view->header;
	struct vmt_store_chunk chunk = { .type = (enum vmt_chunk_type)h->type,
					 .stream = h->stream,
					 .cpu = h->cpu,
					 .time_first_ns = h->time_first_ns,
					 .time_last_ns = h->time_last_ns,
					 .nr_parts = 1,
					 .parts = { { view->payload, view->len } } };

	int err = 0;

	if (!wanted(c, view))
		return 0;
	if (chunk.type == VMT_CHUNK_RECORDS || chunk.type == VMT_CHUNK_AUX) {
		err = tell_cut(c, diag);
		c->has_records = c->round_due = true;
	} else if (chunk.type == VMT_CHUNK_ROUND) {
		c->round_due = false;
	}
	if (!err && c->edit) {
		err = edit_chunk(c, view, &chunk, diag);
		if (err <= 0)
			return err;
		err = 0;
	}
	return err ? err : vmt_store_append(c->to, &chunk, diag);
}

static int copy_gap(struct copy *c, const struct vmt_store_gap *gap, struct vmt_diag *diag)
{
	struct vmt_store_loss_info info = { .bytes = gap->bytes, .chunks = gap->chunks };

	c->front_cut |= !strcmp(gap->kind, "keep");
	if (!strcmp(gap->kind, "truncated") || !strcmp(gap->kind, "after-end") ||
	    !strcmp(gap->kind, "keep") || (c->front_moves && !c->has_records))
		return 0;
	vmt_store_kind_copy(info.kind, gap->kind, strlen(gap->kind));
	return append_loss(c, &info, diag);
}

static int need_store(struct vmt_reader *reader, struct vmt_diag *diag)
{
	int known = vmt_store_recognise(reader, diag);

	if (known > 0)
		return 0;
	return known ? known
		     : vmt_diag_at(diag, VMT_E_DAMAGED, 0, "this is no .vmt file",
				   "it does not begin with the mark of one");
}

/* Up to the size the source has now: a writer that is faster than the copy would hold it forever.
 */
static int copy_all(struct copy *c, struct vmt_reader *reader, struct vmt_diag *diag)
{
	uint64_t size = vmt_reader_size(reader);
	struct vmt_store_scan scan;
	struct vmt_store_view view;
	struct vmt_store_gap gap;
	int found, err = 0;

	vmt_store_scan_init(&scan, reader);
	while (!err && (found = vmt_store_scan_next(&scan, &view, &gap, diag)) != 0) {
		if (found < 0)
			err = found;
		else if (found == VMT_STORE_FOUND_GAP)
			err = copy_gap(c, &gap, diag);
		else if (size && view.offset >= size)
			break;
		else
			err = copy_chunk(c, &view, diag);
	}
	vmt_store_scan_free(&scan);
	vmt_store_seen_free(&c->seen);
	free(c->records);
	return err;
}

int vmt_store_copy(struct vmt_reader *reader, struct vmt_store_writer *to,
		   const struct vmt_store_edit *edit, struct vmt_diag *diag)
{
	const struct vmt_store_snapshot all = { 0 };
	struct copy c = { .options = &all, .edit = edit, .to = to };
	int err = need_store(reader, diag);

	if (!err)
		err = copy_all(&c, reader, diag);
	return err ? err : edit->end(edit->context, to, diag);
}

static int snapshot_from(struct vmt_reader *reader, const char *to_path,
			 const struct vmt_store_snapshot *options, struct vmt_store_totals *totals,
			 struct vmt_diag *diag)
{
	struct copy c = { .options = options };
	int err = need_store(reader, diag);

	if (!err)
		err = vmt_store_create_late(&c.to, to_path, &options->store, diag);
	if (err)
		return err;
	err = copy_all(&c, reader, diag);
	if (totals)
		*totals = vmt_store_totals(c.to);
	if (!err)
		return vmt_store_finish(c.to, diag);
	vmt_store_discard(c.to);
	return err;
}

int vmt_store_snapshot(const char *from_path, const char *to_path,
		       const struct vmt_store_snapshot *options, struct vmt_store_totals *totals,
		       struct vmt_diag *diag)
{
	struct vmt_reader *reader;
	int err = vmt_reader_open(&reader, from_path, options->store.ops, diag);

	if (err)
		return err;
	err = snapshot_from(reader, to_path, options, totals, diag);
	vmt_reader_close(reader);
	return err;
}
