/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_STORE_SCAN_H
#define VMT_STORE_SCAN_H

#include <zstd.h>

#include "decode/io/reader.h"
#include "decode/store/layout.h"

/*
 * The chunks of a file, in order, with whatever damage lies between them. A chunk is delivered when
 * its header and payload have the right checksums, it belongs to this file and its sequence number
 * is not behind. Each byte is read once and hashed at most VMT_STORE_TRIES times; memory is one
 * chunk and its decompressed payload.
 */
#define VMT_STORE_TRIES 16u

/* A good chunk. payload is decompressed, aligned to 8 and valid until the next call. */
struct vmt_store_view {
	struct vmt_store_header header;
	uint64_t offset;
	const uint8_t *payload;
	size_t len;
};

struct vmt_store_gap {
	const char *kind;
	uint64_t offset, bytes, chunks;
};

enum vmt_store_found {
	VMT_STORE_FOUND_END = 0,
	VMT_STORE_FOUND_CHUNK = 1,
	VMT_STORE_FOUND_GAP = 2,
};

struct vmt_store_scan {
	struct vmt_reader *reader;
	struct vmt_ledger ledger;
	bool has_file_id;
	uint64_t file_id;
	uint64_t next_sequence;
	uint64_t step; /* bytes of the delivered chunk, to be stepped over first */

	bool drops;    /* a file with keep_ns: its front may vanish while it is read */
	bool at_front; /* only the FILE chunk of a file with keep_ns was seen: a hole may follow */
	bool closed;   /* END was seen */
	bool done;

	uint64_t gap_offset;  /* of the damage that was stepped over and not yet reported */
	uint64_t gap_bytes;   /* 0: none */
	uint64_t hole_offset; /* likewise of the dropped front */
	uint64_t hole_bytes;

	uint64_t suspect_end; /* end of chunks whose payloads turned out to be wrong */
	unsigned int suspects;

	ZSTD_DCtx *zstd;
	uint8_t *raw; /* decompressed or aligned payload */
	size_t raw_cap;
};

/* The reader stays the caller's. vmt_store_scan_free frees what the scan itself holds. */
void vmt_store_scan_init(struct vmt_store_scan *scan, struct vmt_reader *reader);
void vmt_store_scan_free(struct vmt_store_scan *scan);

/*
 * The next chunk into *view or gap into *gap; which of both, or that the file has ended, is the
 * result. Negative: VMT_E_IO, VMT_E_NOMEM.
 */
int vmt_store_scan_next(struct vmt_store_scan *scan, struct vmt_store_view *view,
			struct vmt_store_gap *gap, struct vmt_diag *diag);

/* Counts the chunk that was just delivered as skipped: the caller cannot use it. */
void vmt_store_scan_reject(struct vmt_store_scan *scan, const struct vmt_store_view *view);

/* Goes on at an offset where a chunk with this sequence number begins. VMT_E_IO, … */
int vmt_store_scan_seek(struct vmt_store_scan *scan, uint64_t offset, uint64_t sequence,
			struct vmt_diag *diag);

#endif
