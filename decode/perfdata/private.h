/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_PERFDATA_PRIVATE_H
#define VMT_PERFDATA_PRIVATE_H

#include <zstd.h>

#include "decode/base/cursor.h"
#include "decode/perfdata/perfdata.h"
#include "decode/ring/ring.h"

#define PERF_ATTRS_MAX	 4096
#define PERF_IDS_MAX	 (1u << 20)
#define PERF_FORMATS_MAX 4096
#define PERF_SECTION_MAX (48u << 20)
#define PERF_FEATURES	 6

/* An attr with its ids, waiting to be delivered. */
struct perf_attr {
	struct vmt_ring_attr attr;
	uint64_t *ids;
	size_t nr_ids;
};

/* A stretch of the tracing data: the text of one format. */
struct perf_text {
	size_t offset, len;
};

struct vmt_perfdata {
	struct vmt_reader *reader;
	bool is_pipe;	   /* pipe mode: metadata comes as records */
	bool has_data_end; /* file mode: the data section ends at data_end */
	uint64_t data_end;
	uint64_t feature_bits[4];
	struct vmt_ledger ledger;

	struct perf_attr *attrs;
	size_t nr_attrs, next_attr;
	size_t total_ids;

	uint8_t *tracing; /* the tracing data section */
	struct perf_text *texts;
	size_t nr_texts, next_text;

	char *features[PERF_FEATURES]; /* by the table in feature.c */

	size_t pending_skip; /* bytes of the reader that the item before covers */
	ZSTD_DCtx *zstd;
	uint8_t *plain; /* decompressed records: plain[plain_pos..plain_len) are left */
	size_t plain_pos, plain_len, plain_cap;
	bool ended;
};

/* Reads an attr of `len` stored bytes; false when it is too short. */
bool perf_attr_read(const uint8_t *bytes, size_t len, struct vmt_ring_attr *out);
/* Takes over ids. VMT_E_LIMIT, VMT_E_NOMEM (ids are freed). */
int perf_attr_add(struct vmt_perfdata *p, const struct vmt_ring_attr *attr, uint64_t *ids,
		  size_t nr_ids);

/* Takes over a tracing data section; a broken one gives the formats up to the fault. */
int perf_tracing_take(struct vmt_perfdata *p, uint8_t *bytes, size_t len);

/* A feature section: the ones with text are kept. */
void perf_feature_take(struct vmt_perfdata *p, uint64_t feature, const uint8_t *bytes, size_t len);

/* File mode: header, attrs, features; leaves the reader at the data section. */
int perf_header_read(struct vmt_perfdata *p, struct vmt_diag *diag);

/* A COMPRESSED record's payload; appends to `plain`. VMT_E_DAMAGED, VMT_E_LIMIT, VMT_E_NOMEM. */
int perf_decompress(struct vmt_perfdata *p, const uint8_t *bytes, size_t len);

#endif
