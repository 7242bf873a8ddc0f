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
