// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: what a reader of the file needs first is in it first. Losses that are known and
 * metadata that is owed go out before the next chunk, or that chunk is refused as well.
 */
#include "decode/store/writer.h"

#include <stdlib.h>
#include <string.h>

#include "decode/io/diagf.h"
#include "decode/io/sys.h"

#ifndef VMT_VERSION
#define VMT_VERSION "0"
#endif

#define GUARD_BYTES (16u << 20)
#define GUARD_NS    250000000u

static void writer_free(struct vmt_store_writer *w)
{
	vmt_store_meta_free(&w->meta);
	free(w->segments.rows);
	free(w->zstd_bytes);
	ZSTD_freeCCtx(w->zstd);
	free(w);
}

static int put_file_chunk(struct vmt_store_writer *w, struct vmt_diag *diag)
{
	struct vmt_store_file_info info = { .keep = w->options.keep_ns != 0,
					    .keep_ns = w->options.keep_ns };
	uint8_t payload[VMT_STORE_FILE_LEN];
	struct vmt_store_chunk chunk = { .type = VMT_CHUNK_FILE,
					 .cpu = -1,
					 .nr_parts = 1,
					 .parts = { { payload, sizeof(payload) } } };
	const char *writer = "vmtrace " VMT_VERSION;
	int err;

	memcpy(info.writer, writer,
	       strlen(writer) < sizeof(info.writer) ? strlen(writer) : sizeof(info.writer) - 1);
	vmt_store_file_encode(&info, payload);
	err = vmt_store_put(w, &chunk, diag);
	w->head = w->at;
	return err;
}

int vmt_store_create_late(struct vmt_store_writer **out, const char *path,
			  const struct vmt_store_options *options, struct vmt_diag *diag)
{
	struct vmt_store_writer *w;
	int err;

	if (options->limit_bytes && options->limit_bytes < VMT_STORE_LIMIT_MIN)
		return vmt_diag_printf(diag, VMT_E_USAGE, 0, "give a larger limit",
				       "a size limit of %llu bytes is too small (at least %u)",
				       (unsigned long long)options->limit_bytes,
				       VMT_STORE_LIMIT_MIN);
	w = calloc(1, sizeof(*w));
	if (!w)
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot create a capture file",
				    "memory is short");
	w->options = *options;
	w->file_id = options->file_id ? options->file_id : vmt_io_random();
	err = vmt_output_open(&w->out, path, options->force, options->ops, diag);
	if (err) {
		writer_free(w);
		return err;
	}
	err = put_file_chunk(w, diag);
	if (err) {
		vmt_store_discard(w);
		return err;
	}
	if (options->keep_ns && !vmt_store_can_punch(w)) {
		w->totals.keep_unsupported = true;
		vmt_diag_printf(
			diag, VMT_E_UNSUPPORTED, 0,
			"this file system cannot punch holes: the file grows until its size limit",
			"old records cannot be dropped from %s", path);
	}
	vmt_store_segment_begin(w);
	*out = w;
	return 0;
}

int vmt_store_commit(struct vmt_store_writer *w, struct vmt_diag *diag)
{
	return vmt_output_commit(&w->out, diag);
}

int vmt_store_create(struct vmt_store_writer **out, const char *path,
		     const struct vmt_store_options *options, struct vmt_diag *diag)
{
	int err = vmt_store_create_late(out, path, options, diag);

	if (err)
		return err;
	err = vmt_store_commit(*out, diag);
	if (err)
		vmt_store_discard(*out);
	return err;
}

static bool free_space_refuses(struct vmt_store_writer *w)
{
	uint64_t now, bytes;

	if (!w->options.min_free_bytes || w->out.is_device)
		return false;
	now = vmt_io_monotonic_ns();
	if (w->guard_ns && now - w->guard_ns < GUARD_NS &&
	    (w->guard_refuses || w->at - w->guard_at < GUARD_BYTES))
		return w->guard_refuses;
	w->guard_ns = now;
	w->guard_at = w->at;
	w->guard_refuses =
		w->out.ops->free_bytes(w->out.fd, &bytes) == 0 && bytes < w->options.min_free_bytes;
	return w->guard_refuses;
}

/* Whether `need` bytes may be written; drops old segments of a ring to make it so. */
static int check_room(struct vmt_store_writer *w, uint64_t need, struct vmt_diag *diag)
{
	uint64_t limit = w->options.limit_bytes;

	while (limit && w->at - w->totals.dropped_bytes + need + VMT_STORE_RESERVE > limit) {
		if (vmt_store_segments_drop_oldest(w))
			continue;
		w->refusal = "size-limit";
		return vmt_diag_printf(
			diag, VMT_E_FULL, 0,
			"give a larger --limit, or --keep to hold the newest part only",
			"the size limit of %llu bytes is reached", (unsigned long long)limit);
	}
	if (free_space_refuses(w)) {
		w->refusal = "free-space";
		return vmt_diag_printf(diag, VMT_E_FULL, 0,
				       "free space on the file system: writing goes on by itself",
				       "less than %llu bytes are free on the file system",
				       (unsigned long long)w->options.min_free_bytes);
	}
	return vmt_store_reserve(w, need, diag);
}

static uint64_t pending_len(const struct vmt_store_writer *w)
{
	return w->nr_pending *
	       (uint64_t)(VMT_STORE_HEADER + VMT_STORE_LOSS_LEN + VMT_STORE_KIND_MAX);
}

static int put_owed(struct vmt_store_writer *w, struct vmt_diag *diag)
{
	for (size_t i = 0; i < w->meta.nr; i++) {
		int err;

		if (!w->meta.items[i].owed)
			continue;
		err = vmt_store_put(w, &w->meta.items[i].chunk, diag);
		if (err)
			return err;
		w->meta.items[i].owed = false;
		w->meta.items[i].written = true;
	}
	return 0;
}

/* Writes what has to stand before the next chunk of chunk_len bytes, if there is room for all. */
static int settle(struct vmt_store_writer *w, uint64_t chunk_len, struct vmt_diag *diag)
{
	uint64_t owed = vmt_store_meta_owed_bytes(&w->meta);
	bool at_start = w->segments.payload_from == w->at;
	int err = check_room(w, pending_len(w) + owed + chunk_len, diag);

	if (!err)
		err = vmt_store_put_pending(w, diag);
	if (!err && owed)
		err = put_owed(w, diag);
	if (!err && at_start)
		w->segments.payload_from = w->at;
	return err;
}

/* After a chunk: the next segment, if it is time. What cannot be written of it stays owed. */
static void turn_segment(struct vmt_store_writer *w, const struct vmt_store_chunk *chunk,
			 struct vmt_diag *diag)
{
	if (!vmt_store_segment_due(w, chunk->type == VMT_CHUNK_ROUND))
		return;
	vmt_store_segment_begin(w);
	if (settle(w, 0, NULL) == 0)
		vmt_store_segments_drop(w, diag);
}

static int check_chunk(const struct vmt_store_chunk *chunk, size_t *len, struct vmt_diag *diag)
{
	*len = 0;
	if (!vmt_store_is_appendable(chunk->type) || chunk->nr_parts > 4)
		return vmt_diag_set(diag, VMT_E_USAGE, "a chunk of this type cannot be appended",
				    "an error in the program");
	for (unsigned int i = 0; i < chunk->nr_parts; i++) {
		if (chunk->parts[i].len > VMT_CHUNK_PAYLOAD_MAX - *len)
			return vmt_diag_set(diag, VMT_E_LIMIT, "a chunk is larger than 16 MiB",
					    "give smaller parts");
		*len += chunk->parts[i].len;
	}
	return 0;
}

static int append_meta(struct vmt_store_writer *w, const struct vmt_store_chunk *chunk, size_t len,
		       struct vmt_diag *diag)
{
	int64_t index = vmt_store_meta_add(&w->meta, chunk);
	struct vmt_store_meta_item *item;
	int err;

	if (index < 0)
		return vmt_diag_set(diag, (enum vmt_err)index,
				    "the capture's metadata cannot be kept",
				    "memory is short, or there is more than 64 MiB of it");
	item = &w->meta.items[index];
	if (item->owed) /* goes out with whatever else is owed */
		return settle(w, 0, diag);
	err = settle(w, VMT_STORE_HEADER + vmt_store_padded(len), diag);
	if (!err)
		err = vmt_store_put(w, chunk, diag);
	item->owed = err != 0;
	item->written = item->written || !err;
	return err;
}

/* A chunk that was refused: what it says, or that it is missing, waits as a loss. */
static void note_failed(struct vmt_store_writer *w, const struct vmt_store_chunk *chunk)
{
	struct vmt_store_loss_info info;

	if (chunk->type == VMT_CHUNK_LOSS && chunk->nr_parts == 1 &&
	    vmt_store_loss_decode(chunk->parts[0].bytes, chunk->parts[0].len, &info))
		vmt_store_pend(w, &info, chunk->stream, chunk->time_first_ns, chunk->time_last_ns);
	else
		vmt_store_pend_chunk(w, chunk);
}

int vmt_store_append(struct vmt_store_writer *w, const struct vmt_store_chunk *chunk,
		     struct vmt_diag *diag)
{
	size_t len;
	int err = check_chunk(chunk, &len, diag);

	if (err)
		return err;
	if (vmt_store_is_meta(chunk->type))
		return append_meta(w, chunk, len, diag);
	err = settle(w, VMT_STORE_HEADER + vmt_store_padded(len), diag);
	if (!err)
		err = vmt_store_put(w, chunk, diag);
	if (err) {
		note_failed(w, chunk);
		return err;
	}
	if (chunk->type == VMT_CHUNK_RECORDS || chunk->type == VMT_CHUNK_ROUND ||
	    chunk->type == VMT_CHUNK_AUX) {
		vmt_store_segment_note(w, chunk);
		turn_segment(w, chunk, diag);
	}
	return 0;
}

struct vmt_store_totals vmt_store_totals(const struct vmt_store_writer *w)
{
	struct vmt_store_totals totals = w->totals;

	totals.file_bytes = w->at;
	totals.refusal = w->refusal;
	return totals;
}

static int put_end(struct vmt_store_writer *w, uint64_t index_offset, struct vmt_diag *diag)
{
	struct vmt_store_end_info end = {
		.chunks = w->totals.chunks,
		.records_bytes = w->records_bytes,
		.time_first_ns = w->segments.first_ns,
		.time_last_ns = w->segments.newest_ns,
		.lost_chunks = w->totals.lost_chunks,
		.lost_bytes = w->totals.lost_bytes,
		.lost_records = w->totals.lost_records,
		.index_offset = index_offset,
	};
	uint8_t payload[VMT_STORE_END_LEN];
	struct vmt_store_chunk chunk = { .type = VMT_CHUNK_END,
					 .cpu = -1,
					 .nr_parts = 1,
					 .parts = { { payload, sizeof(payload) } } };

	vmt_store_end_encode(&end, payload);
	return vmt_store_put(w, &chunk, diag);
}

/* Metadata that never found room is a loss; what is owed as a repetition only is none. */
static void pend_unwritten(struct vmt_store_writer *w)
{
	for (size_t i = 0; i < w->meta.nr; i++)
		if (!w->meta.items[i].written)
			vmt_store_pend_chunk(w, &w->meta.items[i].chunk);
}

int vmt_store_finish(struct vmt_store_writer *w, struct vmt_diag *diag)
{
	int err, sync_err;

	if (settle(w, 0, NULL) != 0)
		pend_unwritten(w);
	err = vmt_store_put_pending(w, diag);
	/* Without room for the losses there is no END either: it would say that all is told. */
	if (!err)
		err = put_end(w, vmt_store_index(w), diag);
	vmt_store_release(w);
	sync_err = vmt_output_finish(&w->out, diag);
	writer_free(w);
	return err ? err : sync_err;
}

void vmt_store_abandon(struct vmt_store_writer *w)
{
	if (!w)
		return;
	vmt_store_release(w);
	vmt_output_close(&w->out);
	writer_free(w);
}

void vmt_store_discard(struct vmt_store_writer *w)
{
	vmt_output_discard(&w->out);
	writer_free(w);
}
