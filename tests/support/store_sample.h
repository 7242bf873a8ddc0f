/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_STORE_SAMPLE_H
#define VMT_SUPPORT_STORE_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/store/store.h"

/*
 * A capture whose contents are known exactly, and the check that a reader of a damaged copy
 * delivers nothing else and says when something is missing. All of it aborts when memory is short.
 */

/* n ring records of 64 bytes: chunk number `number` of the sample, always the same bytes. */
#define VMT_SAMPLE_RECORD 64u
void vmt_sample_records(uint8_t *bytes, size_t n, uint32_t number);

/*
 * Appends the sample: metadata, then `chunks` times RECORDS of nr_records records with a ROUND
 * after every fourth, some MARKs and VCPU_TSCs between. Errors of the store are passed over when
 * ignore_errors, else the first one is returned.
 */
struct vmt_sample_options {
	uint32_t chunks;
	size_t nr_records;
	bool ignore_errors;
};
int vmt_sample_append(struct vmt_store_writer *w, const struct vmt_sample_options *options);

/* The undamaged file: its bytes and the chunks in it. */
struct vmt_sample_chunk {
	uint64_t offset;
	enum vmt_item_type type; /* 0: a chunk that is not delivered */
	uint8_t *payload;
	size_t len;
	bool repeated; /* an ATTR or FORMAT that stood before */
};
struct vmt_sample {
	uint8_t *bytes;
	size_t len;
	struct vmt_sample_chunk *chunks;
	size_t nr_chunks;
	size_t nr_delivered; /* by an undamaged read */
};
/* Writes the sample to path with these options, reads it back and removes it. */
struct vmt_sample vmt_sample_make(const char *path, const struct vmt_store_options *store,
				  const struct vmt_sample_options *options);
void vmt_sample_free(struct vmt_sample *sample);

/* A new .vmt, and one to be read. */
struct vmt_store_writer *vmt_sample_create(const char *path,
					   const struct vmt_store_options *options);
struct vmt_store_reader *vmt_sample_open(const char *path);

/* A reader over bytes in memory, as from a pipe. The bytes stay the caller's. */
struct vmt_reader *vmt_sample_reader(const uint8_t *bytes, size_t len);

/*
 * Reads bytes as a .vmt and compares with the sample: NULL when each item delivered is one that
 * was written, in order and none twice, when the ledger balances and counts len bytes, and when
 * something tells of a loss if anything is missing; otherwise what is wrong.
 */
const char *vmt_sample_check(const struct vmt_sample *sample, const uint8_t *bytes, size_t len);

#endif
