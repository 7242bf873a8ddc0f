/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_STORE_STORE_H
#define VMT_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/anchor.h"
#include "decode/base/aux.h"
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
	VMT_CHUNK_FILE = 12, /* the first chunk of a file */
	VMT_CHUNK_AUX_INFO = 13,
	VMT_CHUNK_AUX = 14,
};

#define VMT_CHUNK_PAYLOAD_MAX (16u << 20)  /* before compression */
#define VMT_STORE_AUX_MAX     (256u << 10) /* trace in an AUX chunk */

struct vmt_store_options {
	const struct vmt_io_ops *ops; /* NULL: the system */
	bool compress;		      /* zstd for payloads of 512 bytes and more */
	bool force;	      /* replace an existing file (by a new one, never through a link) */
	uint64_t limit_bytes; /* 0: none; the file never occupies more (dropped parts do not count)
			       */
	uint64_t min_free_bytes; /* 0: no guard; writing stops while less is free */
	uint64_t keep_ns;	 /* 0: keep all; else older RECORDS are dropped from the front */
	uint64_t file_id;	 /* 0: a random one; else fixed, so that a file can be made again */
	uint64_t segment_bytes;	 /* 0: 64 MiB; metadata is repeated at least this often */
};

struct vmt_store_writer;

/*
 * Creates the file exclusively, mode 0600, never through a link. VMT_E_EXISTS, VMT_E_PERMISSION,
 * VMT_E_IO with diag; VMT_E_USAGE for a limit below VMT_STORE_LIMIT_MIN. Where keep_ns is asked for
 * and the file system cannot punch holes, the file grows instead: the result is 0, diag holds
 * VMT_E_UNSUPPORTED as a warning and totals.keep_unsupported is set.
 */
#define VMT_STORE_LIMIT_MIN 16384u

int vmt_store_create(struct vmt_store_writer **out, const char *path,
		     const struct vmt_store_options *options, struct vmt_diag *diag);

/*
 * The same, but a file that is to be replaced is there until vmt_store_commit or vmt_store_finish
 * takes its place.
 */
int vmt_store_create_late(struct vmt_store_writer **out, const char *path,
			  const struct vmt_store_options *options, struct vmt_diag *diag);

/* Puts the file at its path; nothing to do when it is there. Errors of vmt_output_commit. */
int vmt_store_commit(struct vmt_store_writer *writer, struct vmt_diag *diag);

/*
 * Appends one chunk; the payload is given in up to 4 parts (a ring that wraps) and is copied at
 * most once, by the write. time_first/last: perf clock, 0 when the chunk has none. VMT_E_FULL: no
 * space, limit or guard; nothing of this chunk is then in the file (a partial write is cut off
 * again) and the loss is kept and written as a LOSS chunk as soon as there is room. VMT_E_IO
 * otherwise, VMT_E_LIMIT for a payload above VMT_CHUNK_PAYLOAD_MAX.
 *
 * SESSION, AUX_INFO (the last), ATTR and FORMAT (all), ANCHOR (the last) and VCPU_TSC (the last of
 * each vCPU) are remembered and repeated at the start of each segment, so that a reader who finds
 * the front of the file dropped or damaged still has them. One that could not be written is written
 * before the next chunk. A segment ends at the first ROUND after segment_bytes, or after an eighth
 * of keep_ns; keep_ns drops whole segments, once all of a segment's RECORDS and AUX are older.
 */
struct vmt_store_part {
	const void *bytes;
	size_t len;
};
struct vmt_store_chunk {
	enum vmt_chunk_type type; /* none of INDEX, END, FILE */
	uint32_t stream;
	int32_t cpu; /* -1: none */
	uint64_t time_first_ns, time_last_ns;
	uint32_t records, exits; /* of RECORDS, for the totals only; 0: not counted */
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

/* How Intel PT is set up; before any trace. */
int vmt_store_aux_info(struct vmt_store_writer *w, const struct vmt_pt_info *info,
		       struct vmt_diag *diag);

/*
 * Trace of one area, which follows what was drained before when aux_offset says so; of any length,
 * in as many chunks as it needs. It is not copied. Only idx, cpu, pid and tid of `area` count.
 */
struct vmt_store_trace {
	uint64_t aux_offset;		      /* of the first byte in the area's stream */
	uint64_t reference;		      /* a host TSC near it, 0: not known */
	bool restart;			      /* VMT_AUX_RESTART */
	uint64_t time_first_ns, time_last_ns; /* perf clock, 0: not known */
	struct vmt_store_part parts[2];	      /* a buffer that wraps; the second may be empty */
};
int vmt_store_aux(struct vmt_store_writer *w, const struct vmt_aux_area *area,
		  const struct vmt_store_trace *trace, struct vmt_diag *diag);

/* records: UINT64_MAX when not known. kind: at most 31 of a-z, 0-9 and '-'. */

/* What is in the file so far, and what was lost so far. */
struct vmt_store_totals {
	uint64_t file_bytes;	/* length of the file */
	uint64_t dropped_bytes; /* of these, given back to the file system (keep_ns) */
	uint64_t dropped_records, dropped_exits; /* as counted by the chunks that were dropped */
	uint64_t payload_bytes, chunks;
	uint64_t lost_bytes, lost_records, lost_chunks; /* refused for want of room, or failed */
	const char *refusal;   /* kind of LOSS of the last failure to write, NULL: none */
	bool keep_unsupported; /* keep_ns has no effect on this file system */
};
struct vmt_store_totals vmt_store_totals(const struct vmt_store_writer *writer);

/* Writes INDEX and END, syncs, closes. The writer is freed in any case. */
int vmt_store_finish(struct vmt_store_writer *writer, struct vmt_diag *diag);

/* Closes without an end (as after a crash). */
void vmt_store_abandon(struct vmt_store_writer *writer);

/* Closes and removes the new file; one that it was to replace stays. */
void vmt_store_discard(struct vmt_store_writer *writer);

/* ---- reading ---- */

struct vmt_store_reader;

/*
 * Whether the input looks like a .vmt: the first 8 bytes are the magic or, when they are damaged, a
 * good chunk header stands within the first 64 KiB. Moves nothing. Negative: VMT_E_IO, VMT_E_NOMEM.
 */
int vmt_store_recognise(struct vmt_reader *reader, struct vmt_diag *diag);

/*
 * Takes over (on success) a reader that stands at the file's start; VMT_E_DAMAGED when it is no
 * .vmt, VMT_E_TRUNCATED when it is empty.
 */
int vmt_store_open(struct vmt_store_reader **out, struct vmt_reader *reader, struct vmt_diag *diag);
void vmt_store_close(struct vmt_store_reader *store);

/* Frees all but the reader it had taken over, and gives that back. */
struct vmt_reader *vmt_store_give_back(struct vmt_store_reader *store);

/*
 * 1 and the next item; 0 at the end. Damage is an item (VMT_ITEM_LOSS), not an error: after it the
 * reader goes on at the next good chunk. Missing sequence numbers are items as well. Negative only
 * for VMT_E_IO and VMT_E_NOMEM. data is aligned to 8. An ATTR or FORMAT that was delivered before
 * (they repeat in the file) is not delivered again; SESSION, ANCHOR and VCPU_TSC are. An AUX item
 * has no data: its bytes are read through vmt_store_aux_index.
 *
 * Kinds of loss the reader finds: damaged (lost_bytes were skipped), missing-chunks (lost_chunks
 * are absent, no bytes), unsupported (a chunk of a later version), after-end (bytes behind the
 * end), truncated (the file was not closed in order; lost_bytes of a torn tail, possibly 0), keep
 * (the front was dropped on purpose: lost_bytes of hole, which the ledger does not count),
 * aux-limit, spool-full (see vmt_perfdata_open). Those
 * that the writer noted: no-space, size-limit, free-space, io-error, and the capture's own.
 */
int vmt_store_next(struct vmt_store_reader *store, struct vmt_item *item, struct vmt_diag *diag);

/*
 * The file's Intel PT. Never NULL. The file is walked for it at its first AUX_INFO or AUX chunk, a
 * pipe is spooled there; the writer puts AUX_INFO in front of all RECORDS. Belongs to store; ask
 * again after the walk. In the ledger the trace counts as decoded.
 */
const struct vmt_aux_index *vmt_store_aux_index(struct vmt_store_reader *store);

struct vmt_ledger vmt_store_ledger(const struct vmt_store_reader *store);

/*
 * Goes to the segment that holds from_ns (perf clock), by the index at the end; the bytes stepped
 * over are in no ledger. Only before the first vmt_store_next. VMT_E_UNSUPPORTED (and nothing
 * moves) when the input is a pipe or has no index: then read from the start. Also VMT_E_IO,
 * VMT_E_NOMEM.
 */
int vmt_store_seek(struct vmt_store_reader *store, uint64_t from_ns, struct vmt_diag *diag);

/* ---- copying ---- */

/*
 * What a copy puts in the place of chunks. An error ends the copy.
 */
struct vmt_store_edit {
	/* RECORDS, to be filtered in place; what is left of len, 0: the chunk is left out. */
	size_t (*records)(void *context, uint8_t *bytes, size_t len);
	/* Before any trace: how it was set up. */
	int (*info)(void *context, const struct vmt_pt_info *info, struct vmt_diag *diag);
	/* Trace, which goes to the copy by this alone; parts[1] is empty. */
	int (*trace)(void *context, struct vmt_store_writer *to, const struct vmt_aux_area *area,
		     const struct vmt_store_trace *trace, struct vmt_diag *diag);
	/* Behind the last chunk. */
	int (*end)(void *context, struct vmt_store_writer *to, struct vmt_diag *diag);
	void *context;
};

/*
 * Copies what is good in a .vmt to a writer, with the edits. The reader stays the caller's; the
 * writer is the caller's to finish. Losses as vmt_store_snapshot; VMT_E_DAMAGED: no .vmt.
 */
int vmt_store_copy(struct vmt_reader *reader, struct vmt_store_writer *to,
		   const struct vmt_store_edit *edit, struct vmt_diag *diag);

struct vmt_store_snapshot {
	struct vmt_store_options store; /* of the new file */
	uint64_t from_ns, to_ns; /* RECORDS wholly before or after are left out; to_ns 0: no end */
};

/*
 * Copies what is good in a .vmt that may still be written to into a new, finished file. Losses in
 * the source become LOSS chunks of the copy; a torn tail is where the other writer stands at the
 * moment and no loss. On failure no new file is left. totals may be NULL. Errors of
 * vmt_reader_open, vmt_store_open, vmt_store_create and vmt_store_append.
 */
int vmt_store_snapshot(const char *from_path, const char *to_path,
		       const struct vmt_store_snapshot *options, struct vmt_store_totals *totals,
		       struct vmt_diag *diag);

#endif
