// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: the file is [FILE chunk][hole, if anything was dropped][segments], each segment begins
 * with all metadata, and only whole segments are dropped. So what a reader finds behind the hole
 * can be decoded without what was in front of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "decode/store/writer.h"

#define SEGMENT_BYTES (64u << 20)
/* With keep_ns, repeated metadata shall be at most one part in so many. */
#define META_SHARE 8u
/* No file system has larger blocks. */
#define BLOCK_MAX 65536u

void vmt_store_segment_begin(struct vmt_store_writer *w)
{
	struct vmt_store_segments *s = &w->segments;

	if (s->nr == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 64;
		struct vmt_store_segment *rows = realloc(s->rows, cap * sizeof(*rows));

		if (!rows)
			return;
		s->rows = rows;
		s->cap = cap;
	}
	s->rows[s->nr++] = (struct vmt_store_segment){ .offset = w->at, .sequence = w->sequence };
	vmt_store_meta_owe_all(&w->meta);
	s->payload_from = w->at;
}

void vmt_store_segment_note(struct vmt_store_writer *w, const struct vmt_store_chunk *chunk)
{
	struct vmt_store_segments *s = &w->segments;
	uint64_t last = chunk->time_last_ns ? chunk->time_last_ns : s->newest_ns;
	uint64_t first = chunk->time_first_ns ? chunk->time_first_ns : last;
	struct vmt_store_segment *row;

	if (last > s->newest_ns)
		s->newest_ns = last;
	if ((chunk->type != VMT_CHUNK_RECORDS && chunk->type != VMT_CHUNK_AUX) || !s->nr)
		return;
	if (!s->first_ns || first < s->first_ns)
		s->first_ns = first;
	row = &s->rows[s->nr - 1];
	row->records += chunk->records;
	row->exits += chunk->exits;
	if (!row->time_first_ns || first < row->time_first_ns)
		row->time_first_ns = first;
	if (last > row->time_last_ns)
		row->time_last_ns = last;
}

static uint64_t segment_bytes(const struct vmt_store_writer *w)
{
	uint64_t bytes = w->options.segment_bytes ? w->options.segment_bytes : SEGMENT_BYTES;

	/* A ring that is bounded by size as well has to consist of several segments. */
	if (w->options.keep_ns && w->options.limit_bytes && bytes > w->options.limit_bytes / 8)
		bytes = w->options.limit_bytes / 8;
	return bytes;
}

bool vmt_store_segment_due(const struct vmt_store_writer *w, bool at_round)
{
	const struct vmt_store_segments *s = &w->segments;
	uint64_t bytes = w->at - s->payload_from;
	uint64_t unit = at_round ? 1 : 2; /* a source without ROUNDs is cut anywhere, later */
	uint64_t keep = w->options.keep_ns, age;

	if (!s->nr || bytes >= segment_bytes(w) * unit)
		return s->nr != 0;
	if (!keep || !s->rows[s->nr - 1].time_first_ns)
		return false;
	age = s->newest_ns - s->rows[s->nr - 1].time_first_ns;
	if (age >= keep * unit)
		return true;
	return age >= keep / 8 * unit && bytes >= w->meta.bytes * META_SHARE;
}

static int punch(struct vmt_store_writer *w, uint64_t offset, uint64_t len)
{
	int err;

	do
		err = w->out.ops->fallocate(w->out.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					    (off_t)offset, (off_t)len);
	while (err < 0 && errno == EINTR);
	return err;
}

bool vmt_store_can_punch(struct vmt_store_writer *w)
{
	return !w->out.is_device && punch(w, w->at, 4096) == 0;
}

/* Drops the n oldest segments. */
static bool drop(struct vmt_store_writer *w, size_t n, struct vmt_diag *diag)
{
	struct vmt_store_segments *s = &w->segments;
	uint64_t from = w->head + w->totals.dropped_bytes;
	uint64_t to = s->rows[n].offset;
	/* The block at the edge was only zeroed by the punch before: it is given back now. */
	uint64_t block = from & ~(uint64_t)(BLOCK_MAX - 1);
	uint64_t start = block > w->head ? block : w->head;

	if (punch(w, start, to - start) < 0) {
		w->totals.keep_unsupported = true;
		vmt_diag_set(diag, VMT_E_UNSUPPORTED, "old records are no longer dropped",
			     "the file system refuses to punch holes: the file grows from now on");
		return false;
	}
	w->totals.dropped_bytes += to - from;
	for (size_t i = 0; i < n; i++) {
		w->totals.dropped_records += s->rows[i].records;
		w->totals.dropped_exits += s->rows[i].exits;
	}
	memmove(s->rows, s->rows + n, (s->nr - n) * sizeof(s->rows[0]));
	s->nr -= n;
	return true;
}

static bool can_drop(const struct vmt_store_writer *w)
{
	return w->options.keep_ns && !w->totals.keep_unsupported;
}

void vmt_store_segments_drop(struct vmt_store_writer *w, struct vmt_diag *diag)
{
	const struct vmt_store_segments *s = &w->segments;
	size_t n = 0;

	if (!can_drop(w) || s->newest_ns < w->options.keep_ns)
		return;
	while (n + 1 < s->nr && s->rows[n].time_last_ns < s->newest_ns - w->options.keep_ns)
		n++;
	if (n)
		drop(w, n, diag);
}

bool vmt_store_segments_drop_oldest(struct vmt_store_writer *w)
{
	/* The last segment alone will do only when all its metadata is in the file. */
	size_t stay = vmt_store_meta_owed_bytes(&w->meta) ? 2 : 1;

	return can_drop(w) && w->segments.nr > stay && drop(w, 1, NULL);
}

uint64_t vmt_store_index(struct vmt_store_writer *w)
{
	const struct vmt_store_segments *s = &w->segments;
	size_t len = s->nr * VMT_STORE_INDEX_ROW_LEN;
	uint64_t offset = w->at;
	uint8_t *payload;
	struct vmt_store_chunk chunk;
	int err;

	if (!len || len > VMT_CHUNK_PAYLOAD_MAX)
		return 0;
	if (w->options.limit_bytes &&
	    w->at - w->totals.dropped_bytes + len + VMT_STORE_HEADER + VMT_STORE_RESERVE >
		    w->options.limit_bytes)
		return 0;
	if (vmt_store_reserve(w, len + VMT_STORE_HEADER, NULL) != 0)
		return 0;
	payload = malloc(len);
	if (!payload)
		return 0;
	for (size_t i = 0; i < s->nr; i++)
		vmt_store_segment_encode(&s->rows[i], payload + i * VMT_STORE_INDEX_ROW_LEN);
	chunk = (struct vmt_store_chunk){
		.type = VMT_CHUNK_INDEX, .cpu = -1, .nr_parts = 1, .parts = { { payload, len } }
	};
	err = vmt_store_put(w, &chunk, NULL);
	free(payload);
	return err ? 0 : offset;
}
