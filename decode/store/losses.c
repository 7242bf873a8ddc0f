// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>

#include "decode/base/cursor.h"
#include "decode/store/writer.h"

/* Byte `at` of a payload that stands in parts. The caller has checked that it exists. */
static uint8_t byte_at(const struct vmt_store_chunk *chunk, size_t at)
{
	unsigned int i = 0;

	while (at >= chunk->parts[i].len)
		at -= chunk->parts[i++].len;
	return ((const uint8_t *)chunk->parts[i].bytes)[at];
}

/* Counts the ring records of a RECORDS payload; false when they do not fit together. */
static bool count_records(const struct vmt_store_chunk *chunk, size_t len, uint64_t *records)
{
	*records = 0;
	for (size_t at = 0; at < len;) {
		size_t size;

		if (len - at < 8)
			return false;
		size = byte_at(chunk, at + 6) | (size_t)byte_at(chunk, at + 7) << 8;
		if (size < 8 || size > len - at)
			return false;
		at += size;
		(*records)++;
	}
	return true;
}

static void merge(struct vmt_store_pending *to, const struct vmt_store_pending *more)
{
	to->info.bytes += more->info.bytes;
	to->info.records += more->info.records;
	to->info.chunks += more->info.chunks;
	to->info.has_records = to->info.has_records && more->info.has_records;
	if (to->stream != more->stream)
		to->stream = VMT_STORE_ANY_STREAM;
	if (more->time_first_ns && (!to->time_first_ns || more->time_first_ns < to->time_first_ns))
		to->time_first_ns = more->time_first_ns;
	if (more->time_last_ns > to->time_last_ns)
		to->time_last_ns = more->time_last_ns;
}

void vmt_store_pend(struct vmt_store_writer *w, const struct vmt_store_loss_info *info,
		    uint32_t stream, uint64_t time_first_ns, uint64_t time_last_ns)
{
	struct vmt_store_pending p = { *info, stream, time_first_ns, time_last_ns };

	for (size_t i = 0; i < w->nr_pending; i++) {
		bool last = i + 1 == VMT_STORE_PENDING_MAX;

		if (last || !strcmp(w->pending[i].info.kind, info->kind)) {
			merge(&w->pending[i], &p);
			return;
		}
	}
	w->pending[w->nr_pending++] = p;
}

void vmt_store_pend_chunk(struct vmt_store_writer *w, const struct vmt_store_chunk *chunk)
{
	struct vmt_store_loss_info info = { .chunks = 1, .has_records = true };

	for (unsigned int i = 0; i < chunk->nr_parts; i++)
		info.bytes += chunk->parts[i].len;
	if (chunk->type == VMT_CHUNK_RECORDS)
		info.has_records = count_records(chunk, info.bytes, &info.records);
	vmt_store_kind_copy(info.kind, w->refusal, strlen(w->refusal));
	w->totals.lost_bytes += info.bytes;
	w->totals.lost_records += info.records;
	w->totals.lost_chunks++;
	vmt_store_pend(w, &info, chunk->stream, chunk->time_first_ns, chunk->time_last_ns);
}

int vmt_store_put_pending(struct vmt_store_writer *w, struct vmt_diag *diag)
{
	while (w->nr_pending) {
		struct vmt_store_pending *p = &w->pending[w->nr_pending - 1];
		uint8_t payload[VMT_STORE_LOSS_LEN + VMT_STORE_KIND_MAX];
		struct vmt_store_chunk chunk = {
			.type = VMT_CHUNK_LOSS,
			.stream = p->stream,
			.cpu = -1,
			.time_first_ns = p->time_first_ns,
			.time_last_ns = p->time_last_ns,
			.nr_parts = 1,
			.parts = { { payload, vmt_store_loss_encode(&p->info, payload) } },
		};
		int err = vmt_store_put(w, &chunk, diag);

		if (err)
			return err;
		w->nr_pending--;
	}
	return 0;
}
