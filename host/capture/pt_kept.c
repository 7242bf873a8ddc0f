// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: bytes[0, len) were rewritten and are not in the store; between two calls len is 0, but
 * for what waits inside of the rewriter for its next packet.
 */
#include "host/capture/pt_kept.h"

#include <stdlib.h>
#include <string.h>

#define ROOM (256u << 10)

struct vmt_pt_kept {
	struct vmt_rewrite *rewrite;
	uint64_t offset; /* of bytes[0] in the kept stream */
	size_t len;
	/* Of the last call. */
	struct vmt_aux_area area;
	struct vmt_store_trace trace; /* of the next chunk */
	struct vmt_store_writer *store;
	struct vmt_diag *diag;
	int err; /* the first */
	uint8_t bytes[ROOM];
};

/* Where the store refuses, the offset tells readers that something is missing. */
static void put(struct vmt_pt_kept *k)
{
	int err;

	if (!k->len)
		return;
	k->trace.aux_offset = k->offset;
	k->trace.parts[0] = (struct vmt_store_part){ k->bytes, k->len };
	k->trace.parts[1] = (struct vmt_store_part){ NULL, 0 };
	err = vmt_store_aux(k->store, &k->area, &k->trace, k->err ? NULL : k->diag);
	k->err = k->err ? k->err : err;
	k->offset += k->len;
	k->len = 0;
	k->trace.restart = false;
}

static void take(void *context, const uint8_t *bytes, size_t len)
{
	struct vmt_pt_kept *k = context;

	if (len > ROOM - k->len)
		put(k);
	memcpy(k->bytes + k->len, bytes, len);
	k->len += len;
}

struct vmt_pt_kept *vmt_pt_kept_new(const struct vmt_rewrite_options *options)
{
	struct vmt_pt_kept *k = calloc(1, sizeof(*k));
	struct vmt_rewrite_options own = *options;

	if (!k)
		return NULL;
	own.write = take;
	own.context = k;
	k->rewrite = vmt_rewrite_new(&own);
	if (k->rewrite)
		return k;
	free(k);
	return NULL;
}

void vmt_pt_kept_free(struct vmt_pt_kept *k)
{
	if (k)
		vmt_rewrite_free(k->rewrite);
	free(k);
}

/* What was written before and what comes do not follow each other, and a reader sees that. */
static void join(struct vmt_pt_kept *k, enum vmt_pt_kept_join how)
{
	switch (how) {
	case VMT_PT_KEPT_CONTINUES:
		return;
	case VMT_PT_KEPT_RESTART:
		vmt_rewrite_gap(k->rewrite);
		put(k);
		k->trace.restart = true;
		return;
	case VMT_PT_KEPT_SEEK:
		vmt_rewrite_seek(k->rewrite);
		put(k);
		k->offset++;
		return;
	case VMT_PT_KEPT_SNAPSHOT:
		vmt_rewrite_seek(k->rewrite);
		k->len = 0;
		return;
	}
}

int vmt_pt_kept_put(struct vmt_pt_kept *k, const struct vmt_aux_area *area,
		    const struct vmt_store_trace *trace, enum vmt_pt_kept_join how,
		    struct vmt_store_writer *store, struct vmt_diag *diag)
{
	k->area = *area;
	k->trace = *trace;
	k->trace.restart = false;
	k->store = store;
	k->diag = diag;
	k->err = 0;
	join(k, how);
	for (size_t i = 0; i < 2; i++)
		vmt_rewrite_feed(k->rewrite, trace->parts[i].bytes, trace->parts[i].len);
	vmt_rewrite_flush(k->rewrite);
	put(k);
	return k->err;
}

int vmt_pt_kept_end(struct vmt_pt_kept *k, struct vmt_store_writer *store, struct vmt_diag *diag)
{
	k->store = store;
	k->diag = diag;
	k->err = 0;
	vmt_rewrite_end(k->rewrite);
	put(k);
	return k->err;
}
