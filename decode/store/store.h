/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_STORE_STORE_H
#define VMT_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/anchor.h"
#include "decode/base/diag.h"
#include "decode/base/item.h"
#include "decode/io/ops.h"
#include "decode/io/reader.h"
#include "decode/ring/ring.h"

/*
 * The .vmt container (docs/FORMAT.md, vmtrace-trace(5)): append-only chunks, nothing is patched.
 */
enum vmt_chunk_type {
	VMT_CHUNK_SESSION = 1,
	VMT_CHUNK_ATTR = 2,
	VMT_CHUNK_FORMAT = 3,
	VMT_CHUNK_RECORDS = 4,
	VMT_CHUNK_ROUND = 5,
	VMT_CHUNK_ANCHOR = 6,
	VMT_CHUNK_VCPU_TSC = 7,
	VMT_CHUNK_MARK = 8,
	VMT_CHUNK_LOSS = 9,
	VMT_CHUNK_INDEX = 10,
	VMT_CHUNK_END = 11,
};

#define VMT_CHUNK_PAYLOAD_MAX (16u << 20) /* before compression */

struct vmt_store_options {
	const struct vmt_io_ops *ops; /* NULL: the system */
	bool compress;		      /* zstd for payloads of 512 bytes and more */
	bool force;		 /* replace an existing file (by a new one, never through a link) */
	uint64_t limit_bytes;	 /* 0: none; the file never grows beyond it */
	uint64_t min_free_bytes; /* 0: no guard; writing stops while less is free */
	uint64_t keep_ns;	 /* 0: keep all; else older RECORDS are dropped from the front */
};

struct vmt_store_writer;

/*
 * Creates the file exclusively, mode 0600, never through a link. VMT_E_EXISTS, VMT_E_PERMISSION,
 * VMT_E_IO with diag.
 */
int vmt_store_create(struct vmt_store_writer **out, const char *path,
		     const struct vmt_store_options *options, struct vmt_diag *diag);

/*
 * Appends one chunk; the payload is given in up to 4 parts (a ring that wraps) and is copied at
 * most once, by the write. time_first/last: perf clock, 0 when the chunk has none. VMT_E_FULL: no
 * space, limit or guard; nothing of this chunk is then in the file (a partial write is cut off
 * again) and the loss is kept and written as a LOSS chunk as soon as there is room. VMT_E_IO
 * otherwise.
 */
struct vmt_store_part {
	const void *bytes;
	size_t len;
};
struct vmt_store_chunk {
	enum vmt_chunk_type type;
	uint32_t stream;
	int32_t cpu; /* -1: none */
	uint64_t time_first_ns, time_last_ns;
	unsigned int nr_parts;
	struct vmt_store_part parts[4];
};
int vmt_store_append(struct vmt_store_writer *writer, const struct vmt_store_chunk *chunk,
		     struct vmt_diag *diag);

/* Helpers that lay out a chunk of their kind. Errors as vmt_store_append. */
int vmt_store_session(struct vmt_store_writer *w, const char *json, struct vmt_diag *diag);
int vmt_store_attr(struct vmt_store_writer *w, const struct vmt_ring_attr *attr,
		   const uint64_t *ids, size_t nr_ids, struct vmt_diag *diag);
int vmt_store_format(struct vmt_store_writer *w, const char *text, struct vmt_diag *diag);
int vmt_store_round(struct vmt_store_writer *w, uint64_t time_ns, struct vmt_diag *diag);
int vmt_store_mark(struct vmt_store_writer *w, const char *json, uint64_t time_ns,
		   struct vmt_diag *diag);
int vmt_store_loss(struct vmt_store_writer *w, uint32_t stream, const char *kind, uint64_t bytes,
		   uint64_t records, uint64_t time_ns, struct vmt_diag *diag);

/* Bytes in the file so far, bytes and records lost so far. */
struct vmt_store_totals {
	uint64_t file_bytes, payload_bytes, chunks, lost_bytes, lost_chunks;
};
struct vmt_store_totals vmt_store_totals(const struct vmt_store_writer *writer);

/* Writes INDEX and END, syncs, closes. The writer is freed in any case. */
int vmt_store_finish(struct vmt_store_writer *writer, struct vmt_diag *diag);

/* Closes without an end (as after a crash). */
void vmt_store_abandon(struct vmt_store_writer *writer);

/* ---- reading ---- */

struct vmt_store_reader;

/* Takes over a reader that stands at the file's start; VMT_E_DAMAGED when it is no .vmt. */
int vmt_store_open(struct vmt_store_reader **out, struct vmt_reader *reader, struct vmt_diag *diag);
void vmt_store_close(struct vmt_store_reader *store);

/*
 * 1 and the next item; 0 at the end. Damage is an item (VMT_ITEM_LOSS), not an error: after it the
 * reader goes on at the next good chunk. Missing sequence numbers are items as well. Negative only
 * for VMT_E_IO and VMT_E_NOMEM.
 */
int vmt_store_next(struct vmt_store_reader *store, struct vmt_item *item, struct vmt_diag *diag);

struct vmt_ledger vmt_store_ledger(const struct vmt_store_reader *store);

#endif
