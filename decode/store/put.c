// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: w->at is where the next chunk begins and where the descriptor stands. A chunk is in
 * the file as a whole or not at all; only where the system does not even let a torn one be cut off,
 * its rest stays and at lies behind it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/io/sys.h"
#include "decode/store/hash.h"
#include "decode/store/writer.h"

#define COMPRESS_MIN   512u
#define COMPRESS_LEVEL 1

static const uint8_t padding[8];

/* writev only reads, which its type does not say. */
static struct iovec part_of(const void *bytes, size_t len)
{
	struct iovec part = { .iov_len = len };

	memcpy(&part.iov_base, &bytes, sizeof(bytes));
	return part;
}

static bool make_room_for_zstd(struct vmt_store_writer *w, size_t raw_len)
{
	size_t cap = ZSTD_compressBound(raw_len);
	uint8_t *bytes;

	if (!w->zstd) {
		w->zstd = ZSTD_createCCtx();
		if (!w->zstd)
			return false;
		ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, COMPRESS_LEVEL);
	}
	if (cap <= w->zstd_cap)
		return true;
	bytes = realloc(w->zstd_bytes, cap);
	if (!bytes)
		return false;
	w->zstd_bytes = bytes;
	w->zstd_cap = cap;
	return true;
}

/* The compressed length, or 0 when the payload is better stored as it is. */
static size_t compress(struct vmt_store_writer *w, const struct vmt_store_chunk *chunk,
		       size_t raw_len)
{
	ZSTD_outBuffer out;

	if (!w->options.compress || raw_len < COMPRESS_MIN ||
	    !vmt_store_is_appendable(chunk->type) || !make_room_for_zstd(w, raw_len))
		return 0;
	out = (ZSTD_outBuffer){ w->zstd_bytes, w->zstd_cap, 0 };
	ZSTD_CCtx_reset(w->zstd, ZSTD_reset_session_only);
	ZSTD_CCtx_setPledgedSrcSize(w->zstd, raw_len);
	for (unsigned int i = 0; i < chunk->nr_parts; i++) {
		ZSTD_inBuffer in = { chunk->parts[i].bytes, chunk->parts[i].len, 0 };
		bool last = i + 1 == chunk->nr_parts;
		size_t left = ZSTD_compressStream2(w->zstd, &out, &in,
						   last ? ZSTD_e_end : ZSTD_e_continue);

		if (ZSTD_isError(left) || in.pos < in.size || (last && left))
			return 0;
	}
	if (out.pos >= raw_len || raw_len / out.pos > VMT_STORE_RATIO_MAX)
		return 0;
	return out.pos;
}

/* Puts the file back to the length it had before a torn write of `written` bytes. */
static void cut_back(struct vmt_store_writer *w, size_t written)
{
	const struct vmt_io_ops *ops = w->out.ops;
	int err;

	if (!written)
		return;
	do
		err = ops->ftruncate(w->out.fd, (off_t)w->at);
	while (err < 0 && errno == EINTR);
	if (!err && ops->lseek(w->out.fd, (off_t)w->at, SEEK_SET) >= 0)
		return;
	w->at += written;
}

int vmt_store_put(struct vmt_store_writer *w, const struct vmt_store_chunk *chunk,
		  struct vmt_diag *diag)
{
	struct vmt_store_header h = {
		.version = VMT_STORE_VERSION,
		.type = (uint16_t)chunk->type,
		.header_len = VMT_STORE_HEADER,
		.sequence = w->sequence,
		.stream = chunk->stream,
		.cpu = chunk->cpu,
		.time_first_ns = chunk->time_first_ns,
		.time_last_ns = chunk->time_last_ns,
		.file_id = w->file_id,
	};
	uint8_t head[VMT_STORE_HEADER];
	struct iovec iov[6] = { { head, sizeof(head) } };
	size_t raw_len = 0, stored_len, written;
	int n = 1, err;

	for (unsigned int i = 0; i < chunk->nr_parts; i++)
		raw_len += chunk->parts[i].len;
	stored_len = compress(w, chunk, raw_len);
	if (stored_len) {
		h.flags = VMT_STORE_FLAG_ZSTD;
		iov[n++] = (struct iovec){ w->zstd_bytes, stored_len };
	} else {
		stored_len = raw_len;
		for (unsigned int i = 0; i < chunk->nr_parts; i++)
			iov[n++] = part_of(chunk->parts[i].bytes, chunk->parts[i].len);
	}
	if (stored_len % 8)
		iov[n++] = part_of(padding, 8 - stored_len % 8);
	h.stored_len = (uint32_t)stored_len;
	h.raw_len = (uint32_t)raw_len;
	h.payload_hash = vmt_store_hash_parts(iov + 1, n - 1);
	vmt_store_header_encode(&h, head);
	err = vmt_output_writev(&w->out, iov, n, &written, diag);
	if (err) {
		w->refusal = err == VMT_E_FULL ? "no-space" : "io-error";
		cut_back(w, written);
		return err;
	}
	w->at += written;
	w->sequence++;
	w->totals.chunks++;
	w->totals.payload_bytes += raw_len;
	if (chunk->type == VMT_CHUNK_RECORDS)
		w->records_bytes += raw_len;
	return 0;
}
