// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Records that perf itself writes between those of the kernel
 * (tools/lib/perf/include/perf/event.h). The ones that only serve symbols, maps or statistics are
 * stepped over.
 */
#include <stdlib.h>
#include <string.h>

#include "decode/perfdata/private.h"

static int no_memory(struct vmt_diag *diag)
{
	return vmt_diag_set(diag, VMT_E_NOMEM, "cannot read the file", "memory is short");
}

/* HEADER_ATTR: an attr that says its own length, then ids to the end. */
static int take_attr(struct vmt_perfdata *p, const uint8_t *body, size_t len, struct vmt_diag *diag)
{
	uint64_t *ids = NULL;
	size_t stored, nr;

	if (len < 64)
		return 0;
	stored = vmt_load_u32(body + 4);
	if (!stored)
		stored = 64; /* PERF_ATTR_SIZE_VER0 */
	if (stored < 64 || stored > len)
		return 0;
	nr = (len - stored) / 8;
	if (nr) {
		ids = malloc(nr * 8);
		if (!ids)
			return no_memory(diag);
		memcpy(ids, body + stored, nr * 8);
	}
	return perf_attr_add(p, body, stored, ids, nr) == VMT_E_NOMEM ? no_memory(diag) : 0;
}

/* TRACING_DATA: u32 size; that many bytes follow the record, padded to 8. */
static int take_tracing(struct vmt_perfdata *p, const uint8_t *record, size_t len,
			struct vmt_item *item, struct vmt_diag *diag)
{
	uint64_t size = len >= 12 ? vmt_load_u32(record + 8) : 0;
	uint64_t padded = (size + 7) & ~UINT64_C(7), used, rest;
	int status = vmt_reader_skip(p->reader, len, diag);

	used = 0;
	perf_count(p, len, 0);
	if (!status && !p->walking)
		status = perf_tracing_read(p, size, &used, diag);
	if (status)
		return status;
	perf_count(p, used, 0);
	/* What is behind the formats, and padding: read, but of no use here. */
	status = perf_skip_some(p, padded - used, &rest, diag);
	p->at.ledger.bytes_skipped -= rest;
	p->at.ledger.bytes_decoded += rest;
	if (status || used + rest == padded)
		return status;
	return perf_end_truncated(p, item, 0);
}

/* Pieces of a stream that broke before are skipped, each with its record. */
static int take_packed(struct vmt_perfdata *p, const uint8_t *payload, size_t len,
		       struct vmt_item *item, struct vmt_diag *diag)
{
	if (!p->at.packed_broken)
		return perf_packed_begin(p, payload, len) ? no_memory(diag) : 0;
	p->at.ledger.bytes_decoded -= p->at.pending_skip;
	p->at.ledger.bytes_skipped += p->at.pending_skip;
	perf_loss_item(p, item, "damaged", p->at.pending_skip);
	return 1;
}

/* COMPRESSED2: u64 length of the data, which padding follows. */
static int take_packed2(struct vmt_perfdata *p, const uint8_t *record, size_t len,
			struct vmt_item *item, struct vmt_diag *diag)
{
	uint64_t size = len >= 16 ? vmt_load_u64(record + 8) : 0;

	if (len < 16 || size > len - 16) {
		p->at.packed_broken = true;
		size = 0;
	}
	return take_packed(p, record + (len < 16 ? len : 16), (size_t)size, item, diag);
}

/* 1 when whole records of perf itself were asked for. */
static int user_item(const struct vmt_perfdata *p, const uint8_t *record, size_t len,
		     struct vmt_item *item)
{
	if (!p->wants_user)
		return 0;
	*item = (struct vmt_item){ .type = VMT_ITEM_USER,
				   .offset = vmt_reader_offset(p->reader),
				   .data = record,
				   .len = len };
	return 1;
}

int perf_user_record(struct vmt_perfdata *p, const uint8_t *record, size_t len,
		     struct vmt_item *item, struct vmt_diag *diag)
{
	uint32_t type = vmt_load_u32(record);
	int status;

	if (type == PERF_USER_TRACING_DATA)
		return take_tracing(p, record, len, item, diag);
	if (type == PERF_USER_AUXTRACE)
		return perf_auxtrace(p, record, len, item, diag);
	perf_count(p, len, 0);
	p->at.pending_skip = len;
	switch (type) {
	case PERF_USER_COMPRESSED:
		return take_packed(p, record + 8, len - 8, item, diag);
	case PERF_USER_COMPRESSED2:
		return take_packed2(p, record, len, item, diag);
	case PERF_USER_HEADER_ATTR:
		return p->is_pipe && !p->walking ? take_attr(p, record + 8, len - 8, diag) : 0;
	case PERF_USER_HEADER_FEATURE:
		if (p->is_pipe && len >= 16)
			perf_feature_take(p, vmt_load_u64(record + 8), record + 16, len - 16);
		return user_item(p, record, len, item);
	case PERF_USER_AUXTRACE_INFO:
		if (perf_auxtrace_info(p, record + 8, len - 8))
			return no_memory(diag);
		return user_item(p, record, len, item);
	case PERF_USER_TIME_CONV:
		perf_time_conv(p, record + 8, len - 8);
		return user_item(p, record, len, item);
	case PERF_USER_ID_INDEX:
		status = perf_id_index(p, record + 8, len - 8, item);
		if (p->wants_user && status >= 0)
			return user_item(p, record, len, item);
		return status < 0 ? no_memory(diag) : status;
	case PERF_USER_FINISHED_ROUND:
		*item = (struct vmt_item){ .type = VMT_ITEM_ROUND,
					   .offset = vmt_reader_offset(p->reader) };
		return 1;
	default:
		return user_item(p, record, len, item);
	}
}
