// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Intel PT in a .vmt: AUX_INFO says how it was set up, AUX chunks hold it. Invariant: what is given
 * out of a chunk has had its checksum verified.
 */
#include "decode/store/aux.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/cursor.h"
#include "decode/store/hash.h"

/* A chunk of this version or a later one, with padding. */
#define CHUNK_MAX (VMT_STORE_HEADER_MAX + VMT_STORE_AUX_HEAD + VMT_STORE_AUX_MAX + 8u)

bool vmt_store_aux_fits(const struct vmt_store_view *view)
{
	if (view->header.type == VMT_CHUNK_AUX_INFO)
		return view->len >= VMT_STORE_AUX_INFO_LEN;
	return view->len >= VMT_STORE_AUX_HEAD &&
	       view->len - VMT_STORE_AUX_HEAD <= VMT_STORE_AUX_MAX;
}

struct vmt_aux_extent vmt_store_aux_extent(const struct vmt_store_view *view)
{
	const struct vmt_store_header *h = &view->header;
	struct vmt_store_aux_head head;
	uint64_t at = view->offset;

	vmt_store_aux_decode(view->payload, &head);
	if (!(h->flags & VMT_STORE_FLAG_ZSTD))
		at += h->header_len + VMT_STORE_AUX_HEAD;
	return (struct vmt_aux_extent){ .at = at,
					.len = view->len - VMT_STORE_AUX_HEAD,
					.aux_offset = head.aux_offset,
					.reference = head.reference,
					.handle = view->offset << 1 |
						  (head.restart ? VMT_AUX_RESTART : 0) };
}

/* ---- the index ---- */

static int take_info(struct vmt_store_aux *aux, const struct vmt_store_view *view)
{
	const char *text = (const char *)view->payload + VMT_STORE_AUX_INFO_LEN;
	size_t len = view->len - VMT_STORE_AUX_INFO_LEN;
	char *filter = len ? strndup(text, len) : NULL;

	if (len && !filter)
		return VMT_E_NOMEM;
	free(aux->filter);
	aux->filter = filter;
	aux->index.has_info = true;
	vmt_store_aux_info_decode(view->payload, &aux->index.info);
	aux->index.info.filter = filter;
	return 0;
}

static int take_trace(struct vmt_store_aux *aux, const struct vmt_store_view *view)
{
	const struct vmt_aux_extent extent = vmt_store_aux_extent(view);
	struct vmt_aux_area area = { .idx = view->header.stream,
				     .cpu = (uint32_t)view->header.cpu };
	struct vmt_store_aux_head head;
	int added;

	if (!extent.len)
		return 0;
	vmt_store_aux_decode(view->payload, &head);
	area.pid = head.pid;
	area.tid = head.tid;
	added = vmt_aux_build_add(&aux->build, &area, &extent);
	return added < 0 ? added : 0;
}

static int take_chunk(struct vmt_store_aux *aux, const struct vmt_store_view *view)
{
	const struct vmt_store_header *h = &view->header;

	if ((h->type != VMT_CHUNK_AUX_INFO && h->type != VMT_CHUNK_AUX) ||
	    h->version != VMT_STORE_VERSION || (h->flags & ~VMT_STORE_FLAG_ZSTD) ||
	    !vmt_store_aux_fits(view))
		return 0;
	return h->type == VMT_CHUNK_AUX ? take_trace(aux, view) : take_info(aux, view);
}

static int walk(struct vmt_store_aux *aux, struct vmt_store_scan *scan, struct vmt_diag *diag)
{
	struct vmt_store_view view;
	struct vmt_store_gap gap;
	int found;

	while ((found = vmt_store_scan_next(scan, &view, &gap, diag)) > 0) {
		if (found == VMT_STORE_FOUND_CHUNK && take_chunk(aux, &view))
			return VMT_E_NOMEM;
	}
	return found;
}

static int read_extent(void *source, const struct vmt_aux_extent *extent, uint64_t from,
		       uint8_t *out, size_t len, size_t *done, struct vmt_diag *diag);

int vmt_store_aux_build(struct vmt_store_aux *aux, const struct vmt_store_scan *scan,
			const struct vmt_store_view *view, struct vmt_diag *diag)
{
	uint64_t start = view->offset;
	struct vmt_store_scan ahead;
	int status = vmt_reader_spool(scan->reader, &aux->lost, diag), finished;

	if (status)
		return status;
	if (aux->lost && vmt_reader_size(scan->reader) <= start + view->len)
		return vmt_diag_set(diag, VMT_E_FULL,
				    "no room in a temporary file for what the pipe holds",
				    "Intel PT from a pipe is kept in a file of TMPDIR, /var/tmp or "
				    "/tmp: make room there, or store the input in a file first");
	vmt_store_scan_init(&ahead, scan->reader);
	ahead.has_file_id = true;
	ahead.file_id = view->header.file_id;
	ahead.next_sequence = view->header.sequence;
	ahead.drops = scan->drops;
	aux->built = true;
	aux->reader = scan->reader;
	aux->file_id = view->header.file_id;
	aux->build.index = &aux->index;
	aux->index.read = read_extent;
	aux->index.source = aux;
	status = walk(aux, &ahead, diag);
	finished = vmt_aux_build_finish(&aux->build);
	vmt_store_scan_free(&ahead);
	aux->tell_limit = aux->index.lost_extents != 0;
	if (!status)
		status = finished;
	if (status == VMT_E_NOMEM)
		vmt_diag_set(diag, VMT_E_NOMEM, "cannot read the file", "memory is short");
	return status ? status : vmt_reader_seek(scan->reader, start, diag);
}

void vmt_store_aux_free(struct vmt_store_aux *aux)
{
	vmt_aux_index_free(&aux->index);
	free(aux->filter);
	free(aux->packed);
	for (size_t i = 0; i < VMT_STORE_AUX_SLOTS; i++)
		free(aux->slots[i].bytes);
	ZSTD_freeDCtx(aux->zstd);
}

/* ---- reading ---- */

static int damaged(uint64_t chunk, struct vmt_diag *diag)
{
	return vmt_diag_at(diag, VMT_E_DAMAGED, chunk, "a chunk of trace is damaged",
			   "its checksum is wrong");
}

/* The slot of a chunk, or the one that was used longest ago, emptied. */
static struct vmt_store_aux_slot *slot_of(struct vmt_store_aux *aux, uint64_t chunk)
{
	struct vmt_store_aux_slot *oldest = &aux->slots[0];

	for (size_t i = 0; i < VMT_STORE_AUX_SLOTS; i++) {
		struct vmt_store_aux_slot *slot = &aux->slots[i];

		if (slot->used && slot->chunk == chunk)
			return slot;
		if (slot->used < oldest->used)
			oldest = slot;
	}
	oldest->used = 0;
	if (!oldest->bytes)
		oldest->bytes = malloc(CHUNK_MAX);
	return oldest;
}

/* Unpacks a chunk of len bytes in slot->bytes. */
static int unpack(struct vmt_store_aux *aux, struct vmt_store_aux_slot *slot,
		  const struct vmt_store_header *h, size_t len)
{
	size_t got;

	if (!aux->zstd)
		aux->zstd = ZSTD_createDCtx();
	if (!aux->packed)
		aux->packed = malloc(CHUNK_MAX);
	if (!aux->zstd || !aux->packed)
		return VMT_E_NOMEM;
	memcpy(aux->packed, slot->bytes, len);
	got = ZSTD_decompressDCtx(aux->zstd, slot->bytes, CHUNK_MAX, aux->packed + h->header_len,
				  h->stored_len);
	return ZSTD_isError(got) || got != h->raw_len ? VMT_E_DAMAGED : 0;
}

/* Whether the chunk in bytes, as the header says, is whole and holds trace. */
static bool is_good(const struct vmt_store_aux *aux, const struct vmt_store_header *h,
		    const uint8_t *bytes, size_t len)
{
	return h->type == VMT_CHUNK_AUX && h->file_id == aux->file_id &&
	       h->raw_len >= VMT_STORE_AUX_HEAD && len >= VMT_STORE_HEADER &&
	       vmt_store_hash(bytes + VMT_STORE_HEADER, len - VMT_STORE_HEADER) == h->payload_hash;
}

static int load(struct vmt_store_aux *aux, struct vmt_store_aux_slot *slot, uint64_t chunk,
		struct vmt_diag *diag)
{
	struct vmt_store_header h;
	size_t len, done;
	int err;

	if (!slot->bytes)
		return VMT_E_NOMEM;
	err = vmt_reader_read_at(aux->reader, chunk, slot->bytes, VMT_STORE_HEADER, &done, diag);
	if (err)
		return err;
	if (!vmt_store_header_decode(slot->bytes, &h) || vmt_store_chunk_len(&h) > CHUNK_MAX)
		return damaged(chunk, diag);
	len = vmt_store_chunk_len(&h);
	err = vmt_reader_read_at(aux->reader, chunk + VMT_STORE_HEADER,
				 slot->bytes + VMT_STORE_HEADER, len - VMT_STORE_HEADER, &done,
				 diag);
	if (err)
		return err;
	if (!is_good(aux, &h, slot->bytes, len))
		return damaged(chunk, diag);
	slot->trace_at = h.header_len + VMT_STORE_AUX_HEAD;
	slot->trace_len = h.raw_len - VMT_STORE_AUX_HEAD;
	if (h.flags & VMT_STORE_FLAG_ZSTD) {
		err = unpack(aux, slot, &h, len);
		slot->trace_at = VMT_STORE_AUX_HEAD;
	}
	return err == VMT_E_DAMAGED ? damaged(chunk, diag) : err;
}

static int read_extent(void *source, const struct vmt_aux_extent *extent, uint64_t from,
		       uint8_t *out, size_t len, size_t *done, struct vmt_diag *diag)
{
	struct vmt_store_aux *aux = source;
	uint64_t chunk = extent->handle >> 1;
	struct vmt_store_aux_slot *slot = slot_of(aux, chunk);
	int err = slot->used ? 0 : load(aux, slot, chunk, diag);

	*done = 0;
	if (err)
		return err;
	slot->chunk = chunk;
	slot->used = ++aux->uses;
	if (from > slot->trace_len || len > slot->trace_len - from)
		return damaged(chunk, diag);
	memcpy(out, slot->bytes + slot->trace_at + from, len);
	*done = len;
	return 0;
}
