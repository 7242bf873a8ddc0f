// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: every byte in front of the reader's position is in the ledger, as decoded (in a chunk
 * that was or is now delivered) or as skipped, except for the dropped front of a file with keep_ns
 * and for what vmt_store_scan_seek stepped over.
 */
#include "decode/store/scan.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/cursor.h"
#include "decode/store/hash.h"

#define HOLE_WORTH_A_SEEK 65536u

void vmt_store_scan_init(struct vmt_store_scan *scan, struct vmt_reader *reader)
{
	memset(scan, 0, sizeof(*scan));
	scan->reader = reader;
}

void vmt_store_scan_free(struct vmt_store_scan *scan)
{
	ZSTD_freeDCtx(scan->zstd);
	free(scan->raw);
	scan->zstd = NULL;
	scan->raw = NULL;
}

static bool need_raw(struct vmt_store_scan *scan, size_t len)
{
	uint8_t *raw;

	if (len <= scan->raw_cap)
		return true;
	raw = realloc(scan->raw, len);
	if (!raw)
		return false;
	scan->raw = raw;
	scan->raw_cap = len;
	return true;
}

/* Steps over n bytes as damage. */
static int skip_damage(struct vmt_store_scan *scan, uint64_t n, struct vmt_diag *diag)
{
	if (!scan->gap_bytes)
		scan->gap_offset = vmt_reader_offset(scan->reader);
	scan->gap_bytes += n;
	scan->ledger.bytes_total += n;
	scan->ledger.bytes_skipped += n;
	return vmt_reader_skip(scan->reader, n, diag);
}

/* A chunk with a good header and a wrong or short payload: remember how far it claims to reach. */
static void suspect(struct vmt_store_scan *scan, size_t len)
{
	uint64_t end = vmt_reader_offset(scan->reader) + len;

	if (vmt_reader_offset(scan->reader) >= scan->suspect_end)
		scan->suspects = 0;
	scan->suspects++;
	if (end > scan->suspect_end)
		scan->suspect_end = end;
}

/* Whether a good chunk of this file begins here: 1 or 0; *left says how many bytes there are. */
static int chunk_here(struct vmt_store_scan *scan, struct vmt_store_header *h,
		      const uint8_t **bytes, size_t *left, struct vmt_diag *diag)
{
	int64_t n = vmt_reader_peek(scan->reader, VMT_STORE_HEADER, bytes, diag);
	size_t len;

	if (n < 0)
		return (int)n;
	*left = (size_t)n;
	if (n < (int64_t)VMT_STORE_HEADER || !vmt_store_header_decode(*bytes, h))
		return 0;
	if ((scan->has_file_id && h->file_id != scan->file_id) || h->sequence < scan->next_sequence)
		return 0;
	len = vmt_store_chunk_len(h);
	n = vmt_reader_peek(scan->reader, len, bytes, diag);
	if (n < 0)
		return (int)n;
	if ((uint64_t)n >= len &&
	    vmt_store_hash(*bytes + VMT_STORE_HEADER, len - VMT_STORE_HEADER) == h->payload_hash)
		return 1;
	suspect(scan, len);
	return 0;
}

/* How many of the bytes at the front are zero. */
static size_t leading_zeros(const uint8_t *bytes, size_t len)
{
	size_t i = 0;

	while (i + 8 <= len && vmt_load_u64(bytes + i) == 0)
		i += 8;
	while (i < len && !bytes[i])
		i++;
	return i;
}

/* Steps over zero bytes and holes, which are damage unless the front was dropped here. */
static int skip_zeros(struct vmt_store_scan *scan, struct vmt_diag *diag)
{
	bool dropped = scan->at_front && !scan->gap_bytes;
	const uint8_t *bytes;
	int64_t n;

	if (dropped && !scan->hole_bytes)
		scan->hole_offset = vmt_reader_offset(scan->reader);
	while ((n = vmt_reader_peek(scan->reader, 1, &bytes, diag)) > 0) {
		size_t zeros = leading_zeros(bytes, (size_t)n);
		uint64_t hole = 0;
		int err;

		if (!zeros)
			break;
		err = dropped ? vmt_reader_skip(scan->reader, zeros, diag)
			      : skip_damage(scan, zeros, diag);
		if (err)
			return err;
		if (zeros == (size_t)n && zeros >= HOLE_WORTH_A_SEEK)
			hole = vmt_reader_skip_hole(scan->reader);
		if (dropped) {
			scan->hole_bytes += zeros + hole;
		} else {
			scan->gap_bytes += hole;
			scan->ledger.bytes_total += hole;
			scan->ledger.bytes_skipped += hole;
		}
	}
	return n < 0 ? (int)n : 0;
}

/* Whether the bytes here were dropped since the writer's file was opened: steps over that hole. */
static bool skip_dropped(struct vmt_store_scan *scan)
{
	uint64_t at = vmt_reader_offset(scan->reader);
	uint64_t hole;

	if (!scan->drops || scan->gap_bytes)
		return false;
	hole = vmt_reader_skip_hole(scan->reader);
	if (!hole)
		return false;
	if (!scan->hole_bytes)
		scan->hole_offset = at;
	scan->hole_bytes += hole;
	scan->at_front = true; /* zeros up to the first segment that is left are part of it */
	return true;
}

/* Steps over what is no good chunk, at least one byte, to where one might begin. */
static int skip_to_candidate(struct vmt_store_scan *scan, struct vmt_diag *diag)
{
	uint64_t at = vmt_reader_offset(scan->reader);
	const uint8_t *bytes, *found;
	int64_t n;

	if (skip_dropped(scan))
		return 0;
	/* Chunks inside of each other that are all wrong would be hashed again and again. */
	if (scan->suspects >= VMT_STORE_TRIES && at < scan->suspect_end) {
		n = vmt_reader_peek(scan->reader, (size_t)(scan->suspect_end - at), &bytes, diag);
		if (n < 0)
			return (int)n;
		if ((uint64_t)n > scan->suspect_end - at)
			n = (int64_t)(scan->suspect_end - at);
		scan->suspects = 0;
		return skip_damage(scan, (uint64_t)n, diag);
	}
	n = vmt_reader_peek(scan->reader, VMT_STORE_MAGIC_LEN, &bytes, diag);
	if (n < 0)
		return (int)n;
	if (n < (int64_t)VMT_STORE_MAGIC_LEN)
		return skip_damage(scan, (uint64_t)n, diag);
	if (vmt_load_u64(bytes) == 0)
		return skip_zeros(scan, diag);
	found = memmem(bytes + 1, (size_t)n - 1, vmt_store_magic, VMT_STORE_MAGIC_LEN);
	if (found)
		return skip_damage(scan, (uint64_t)(found - bytes), diag);
	return skip_damage(scan, (uint64_t)n - (VMT_STORE_MAGIC_LEN - 1), diag);
}

static bool report(struct vmt_store_gap *gap, const char *kind, uint64_t offset, uint64_t bytes,
		   uint64_t chunks)
{
	*gap = (struct vmt_store_gap){ kind, offset, bytes, chunks };
	return true;
}

/* What is missing in front of the good chunk h that begins here. */
static bool gap_before(struct vmt_store_scan *scan, const struct vmt_store_header *h,
		       struct vmt_store_gap *gap)
{
	uint64_t chunks = h->sequence - scan->next_sequence;
	uint64_t bytes;

	if (scan->hole_bytes) {
		bytes = scan->hole_bytes;
		scan->hole_bytes = 0;
		if (!scan->gap_bytes)
			scan->next_sequence = h->sequence;
		return report(gap, "keep", scan->hole_offset, bytes, scan->gap_bytes ? 0 : chunks);
	}
	scan->next_sequence = h->sequence;
	if (scan->gap_bytes) {
		bytes = scan->gap_bytes;
		scan->gap_bytes = 0;
		return report(gap, "damaged", scan->gap_offset, bytes, chunks);
	}
	return chunks && report(gap, "missing-chunks", vmt_reader_offset(scan->reader), 0, chunks);
}

/* What is missing at the end of the input; called until it says nothing more. */
static bool gap_at_end(struct vmt_store_scan *scan, struct vmt_store_gap *gap)
{
	uint64_t bytes = scan->gap_bytes;

	if (scan->hole_bytes) {
		bytes = scan->hole_bytes;
		scan->hole_bytes = 0;
		return report(gap, "keep", scan->hole_offset, bytes, 0);
	}
	scan->done = true;
	if (scan->closed)
		return bytes && report(gap, "after-end", scan->gap_offset, bytes, 0);
	scan->ledger.truncated = true;
	return report(gap, "truncated", bytes ? scan->gap_offset : vmt_reader_offset(scan->reader),
		      bytes, 0);
}

/* Gives the payload of the chunk in bytes: 1, 0 when it cannot be decompressed. */
static int open_payload(struct vmt_store_scan *scan, const uint8_t *bytes,
			struct vmt_store_view *view, struct vmt_diag *diag)
{
	const struct vmt_store_header *h = &view->header;
	bool zstd = h->flags & VMT_STORE_FLAG_ZSTD;

	view->payload = bytes + h->header_len;
	view->len = h->stored_len;
	if (!zstd && (uintptr_t)view->payload % 8 == 0)
		return 1;
	if (zstd && !scan->zstd)
		scan->zstd = ZSTD_createDCtx();
	if (!need_raw(scan, h->raw_len ? h->raw_len : 1) || (zstd && !scan->zstd))
		return vmt_diag_set(diag, VMT_E_NOMEM, "a chunk cannot be read", "memory is short");
	if (zstd) {
		size_t len = ZSTD_decompressDCtx(scan->zstd, scan->raw, h->raw_len, view->payload,
						 h->stored_len);

		if (ZSTD_isError(len) || len != h->raw_len)
			return 0;
	} else {
		memcpy(scan->raw, view->payload, view->len);
	}
	view->payload = scan->raw;
	view->len = h->raw_len;
	return 1;
}

/* Takes the good chunk that begins here: 1, or 0 when its payload makes no sense. */
static int take_chunk(struct vmt_store_scan *scan, const uint8_t *bytes,
		      struct vmt_store_view *view, struct vmt_diag *diag)
{
	struct vmt_store_file_info info;
	bool is_file = view->header.type == VMT_CHUNK_FILE;
	int ok;

	view->offset = vmt_reader_offset(scan->reader);
	ok = open_payload(scan, bytes, view, diag);
	if (ok <= 0)
		return ok;
	scan->step = vmt_store_chunk_len(&view->header);
	scan->ledger.bytes_total += scan->step;
	scan->ledger.bytes_decoded += scan->step;
	scan->next_sequence = view->header.sequence + 1;
	scan->file_id = view->header.file_id;
	scan->has_file_id = true;
	scan->closed = view->header.type == VMT_CHUNK_END;
	scan->at_front =
		is_file && vmt_store_file_decode(view->payload, view->len, &info) && info.keep;
	scan->drops = scan->drops || scan->at_front;
	return 1;
}

/* Behind the end: whatever follows is no part of the file. */
static int skip_rest(struct vmt_store_scan *scan, struct vmt_diag *diag)
{
	const uint8_t *bytes;
	int64_t n;

	while ((n = vmt_reader_peek(scan->reader, 1, &bytes, diag)) > 0) {
		int err = skip_damage(scan, (uint64_t)n, diag);

		if (err)
			return err;
	}
	return (int)n;
}

int vmt_store_scan_next(struct vmt_store_scan *scan, struct vmt_store_view *view,
			struct vmt_store_gap *gap, struct vmt_diag *diag)
{
	int err = vmt_reader_skip(scan->reader, scan->step, diag);

	scan->step = 0;
	if (!err && scan->closed && !scan->done)
		err = skip_rest(scan, diag);
	while (!err && !scan->done) {
		const uint8_t *bytes;
		size_t left = 0;
		int good = chunk_here(scan, &view->header, &bytes, &left, diag);

		if (good < 0)
			return good;
		if (good) {
			if (gap_before(scan, &view->header, gap))
				return VMT_STORE_FOUND_GAP;
			good = take_chunk(scan, bytes, view, diag);
			if (good)
				return good;
		}
		if (!left)
			return gap_at_end(scan, gap) ? VMT_STORE_FOUND_GAP : VMT_STORE_FOUND_END;
		err = skip_to_candidate(scan, diag);
	}
	return err;
}

void vmt_store_scan_reject(struct vmt_store_scan *scan, const struct vmt_store_view *view)
{
	uint64_t len = vmt_store_chunk_len(&view->header);

	scan->ledger.bytes_decoded -= len;
	scan->ledger.bytes_skipped += len;
}

int vmt_store_scan_seek(struct vmt_store_scan *scan, uint64_t offset, uint64_t sequence,
			struct vmt_diag *diag)
{
	int err = vmt_reader_seek(scan->reader, offset, diag);

	if (err)
		return err;
	scan->step = 0;
	scan->next_sequence = sequence;
	scan->at_front = false;
	return 0;
}
