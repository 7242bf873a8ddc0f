/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_STORE_WRITER_H
#define VMT_STORE_WRITER_H

#include <zstd.h>

#include "decode/io/output.h"
#include "decode/store/layout.h"
#include "decode/store/meta.h"

/* Losses that wait for room to be written, one a kind. */
#define VMT_STORE_PENDING_MAX 8u
/* Kept free below limit_bytes for the pending losses and the end. */
#define VMT_STORE_RESERVE    1024u
#define VMT_STORE_ANY_STREAM UINT32_MAX

struct vmt_store_pending {
	struct vmt_store_loss_info info;
	uint32_t stream; /* VMT_STORE_ANY_STREAM for several */
	uint64_t time_first_ns, time_last_ns;
};

/* The segments of the file, oldest first; the last one is being written. */
struct vmt_store_segments {
	struct vmt_store_segment *rows;
	size_t nr, cap;
	uint64_t payload_from; /* offset behind the last segment's repeated metadata */
	uint64_t newest_ns;    /* of all RECORDS and ROUNDs */
	uint64_t first_ns;     /* of all RECORDS */
};

struct vmt_store_writer {
	struct vmt_output out;
	struct vmt_store_options options;
	uint64_t file_id;
	uint64_t sequence; /* of the next chunk */
	uint64_t at;	   /* offset of the next chunk */
	uint64_t head;	   /* length of the FILE chunk */
	struct vmt_store_totals totals;
	uint64_t records_bytes;
	const char *refusal; /* kind of the last failure to write */

	struct vmt_store_meta meta;
	struct vmt_store_segments segments;
	struct vmt_store_pending pending[VMT_STORE_PENDING_MAX];
	size_t nr_pending;

	ZSTD_CCtx *zstd;
	uint8_t *zstd_bytes;
	size_t zstd_cap;

	uint64_t allocated_to; /* blocks up to this offset are this file's */
	bool cannot_allocate;  /* the file system does not do that */

	uint64_t guard_ns;  /* when free space was last looked at; 0: never */
	uint64_t guard_at;  /* offset at that moment */
	bool guard_refuses; /* too little was free */
};

/*
 * put.c: writes one chunk as it is, without a look at limits. VMT_E_FULL or another negative error
 * with w->refusal set; the chunk is then not in the file, at most as a torn rest that readers step
 * over.
 */
int vmt_store_put(struct vmt_store_writer *w, const struct vmt_store_chunk *chunk,
		  struct vmt_diag *diag);

/*
 * reserve.c: allocates blocks for `need` bytes and for what must always have room behind them.
 * VMT_E_FULL with w->refusal set, or 0 (also where the file system cannot allocate ahead).
 */
int vmt_store_reserve(struct vmt_store_writer *w, uint64_t need, struct vmt_diag *diag);
/* Gives back what was allocated behind the end. */
void vmt_store_release(struct vmt_store_writer *w);

/* segments.c: a segment begins here. Its metadata is owed afterwards. */
void vmt_store_segment_begin(struct vmt_store_writer *w);
/* Notes the times of a RECORDS, AUX or ROUND chunk that was just written. */
void vmt_store_segment_note(struct vmt_store_writer *w, const struct vmt_store_chunk *chunk);
/* Whether it is time for the next segment; at_round: the last chunk was a ROUND. */
bool vmt_store_segment_due(const struct vmt_store_writer *w, bool at_round);
/*
 * Drops what is older than keep_ns; the last segment's metadata must not be owed. diag:
 * VMT_E_UNSUPPORTED as a warning.
 */
void vmt_store_segments_drop(struct vmt_store_writer *w, struct vmt_diag *diag);
/* Drops the oldest segment for want of room; false when there is none to drop. */
bool vmt_store_segments_drop_oldest(struct vmt_store_writer *w);
/* Whether the file system can punch holes into this file. */
bool vmt_store_can_punch(struct vmt_store_writer *w);
/* Writes the INDEX; its offset, or 0 when it was not written. */
uint64_t vmt_store_index(struct vmt_store_writer *w);

/* losses.c: adds a loss to those that wait. */
void vmt_store_pend(struct vmt_store_writer *w, const struct vmt_store_loss_info *info,
		    uint32_t stream, uint64_t time_first_ns, uint64_t time_last_ns);
/* Notes that a chunk could not be written, for the reason w->refusal. */
void vmt_store_pend_chunk(struct vmt_store_writer *w, const struct vmt_store_chunk *chunk);
/* Writes those that wait. */
int vmt_store_put_pending(struct vmt_store_writer *w, struct vmt_diag *diag);

#endif
