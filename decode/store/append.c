// SPDX-License-Identifier: LGPL-2.1-or-later
/* The payloads of the kinds of chunks that have a layout of their own. */
#include <string.h>

#include "decode/store/writer.h"

static int append_text(struct vmt_store_writer *w, enum vmt_chunk_type type, const char *text,
		       uint64_t time_ns, struct vmt_diag *diag)
{
	struct vmt_store_chunk chunk = { .type = type,
					 .cpu = -1,
					 .time_first_ns = time_ns,
					 .time_last_ns = time_ns,
					 .nr_parts = 1,
					 .parts = { { text, strlen(text) } } };

	return vmt_store_append(w, &chunk, diag);
}

int vmt_store_session(struct vmt_store_writer *w, const char *json, struct vmt_diag *diag)
{
	return append_text(w, VMT_CHUNK_SESSION, json, 0, diag);
}

int vmt_store_format(struct vmt_store_writer *w, const char *text, struct vmt_diag *diag)
{
	return append_text(w, VMT_CHUNK_FORMAT, text, 0, diag);
}

int vmt_store_mark(struct vmt_store_writer *w, const char *json, uint64_t time_ns,
		   struct vmt_diag *diag)
{
	return append_text(w, VMT_CHUNK_MARK, json, time_ns, diag);
}

int vmt_store_attr(struct vmt_store_writer *w, const struct vmt_ring_attr *attr,
		   const uint64_t *ids, size_t nr_ids, struct vmt_diag *diag)
{
	uint8_t fixed[VMT_STORE_ATTR_LEN];
	struct vmt_store_chunk chunk = { .type = VMT_CHUNK_ATTR, .cpu = -1, .nr_parts = 2 };

	if (nr_ids > VMT_CHUNK_PAYLOAD_MAX / sizeof(*ids))
		return vmt_diag_set(diag, VMT_E_LIMIT, "an event has more ids than a chunk holds",
				    "an error in the program");
	vmt_store_attr_encode(attr, nr_ids, fixed);
	chunk.parts[0] = (struct vmt_store_part){ fixed, sizeof(fixed) };
	chunk.parts[1] = (struct vmt_store_part){ ids, nr_ids * sizeof(*ids) };
	return vmt_store_append(w, &chunk, diag);
}

int vmt_store_aux_info(struct vmt_store_writer *w, const struct vmt_pt_info *info,
		       struct vmt_diag *diag)
{
	uint8_t fixed[VMT_STORE_AUX_INFO_LEN];
	struct vmt_store_chunk chunk = { .type = VMT_CHUNK_AUX_INFO, .cpu = -1, .nr_parts = 2 };

	vmt_store_aux_info_encode(info, fixed);
	chunk.parts[0] = (struct vmt_store_part){ fixed, sizeof(fixed) };
	chunk.parts[1] =
		(struct vmt_store_part){ info->filter, info->filter ? strlen(info->filter) : 0 };
	return vmt_store_append(w, &chunk, diag);
}

/* The first n bytes of the parts, which go on behind them. */
static void take_front(struct vmt_store_part *from, size_t n, struct vmt_store_part *front)
{
	for (unsigned int i = 0; i < 2; i++) {
		size_t len = from[i].len < n ? from[i].len : n;

		front[i] = (struct vmt_store_part){ from[i].bytes, len };
		from[i].bytes = len ? (const uint8_t *)from[i].bytes + len : from[i].bytes;
		from[i].len -= len;
		n -= len;
	}
}

int vmt_store_aux(struct vmt_store_writer *w, const struct vmt_aux_area *area,
		  const struct vmt_store_trace *trace, struct vmt_diag *diag)
{
	struct vmt_store_part rest[2] = { trace->parts[0], trace->parts[1] };
	struct vmt_store_aux_head head = { .aux_offset = trace->aux_offset,
					   .reference = trace->reference,
					   .pid = area->pid,
					   .tid = area->tid,
					   .restart = trace->restart };
	uint8_t fixed[VMT_STORE_AUX_HEAD];
	struct vmt_store_chunk chunk = { .type = VMT_CHUNK_AUX,
					 .stream = area->idx,
					 .cpu = (int32_t)area->cpu,
					 .time_first_ns = trace->time_first_ns,
					 .time_last_ns = trace->time_last_ns,
					 .nr_parts = 3,
					 .parts = { { fixed, sizeof(fixed) } } };
	int err = 0, first_err = 0;

	while (rest[0].len + rest[1].len) {
		vmt_store_aux_encode(&head, fixed);
		take_front(rest, VMT_STORE_AUX_MAX, &chunk.parts[1]);
		err = vmt_store_append(w, &chunk, first_err ? NULL : diag);
		first_err = first_err ? first_err : err;
		head.aux_offset += chunk.parts[1].len + chunk.parts[2].len;
		head.restart = false;
	}
	return first_err;
}

int vmt_store_round(struct vmt_store_writer *w, uint64_t time_ns, struct vmt_diag *diag)
{
	struct vmt_store_chunk chunk = { .type = VMT_CHUNK_ROUND,
					 .cpu = -1,
					 .time_first_ns = time_ns,
					 .time_last_ns = time_ns };

	return vmt_store_append(w, &chunk, diag);
}

int vmt_store_loss(struct vmt_store_writer *w, uint32_t stream, const char *kind, uint64_t bytes,
		   uint64_t records, uint64_t time_ns, struct vmt_diag *diag)
{
	struct vmt_store_loss_info info = { .bytes = bytes,
					    .records = records == UINT64_MAX ? 0 : records,
					    .has_records = records != UINT64_MAX };
	uint8_t payload[VMT_STORE_LOSS_LEN + VMT_STORE_KIND_MAX];
	struct vmt_store_chunk chunk = { .type = VMT_CHUNK_LOSS,
					 .stream = stream,
					 .cpu = -1,
					 .time_first_ns = time_ns,
					 .time_last_ns = time_ns,
					 .nr_parts = 1 };

	vmt_store_kind_copy(info.kind, kind, strlen(kind));
	chunk.parts[0] = (struct vmt_store_part){ payload, vmt_store_loss_encode(&info, payload) };
	return vmt_store_append(w, &chunk, diag);
}
