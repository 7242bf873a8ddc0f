/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_PERFDATA_PRIVATE_H
#define VMT_PERFDATA_PRIVATE_H

#include <zstd.h>

#include "decode/base/cursor.h"
#include "decode/perfdata/perfdata.h"
#include "decode/ring/aux_build.h"
#include "decode/ring/ring.h"

#define PERF_ATTRS_MAX	  4096u
#define PERF_IDS_MAX	  (1u << 20)
#define PERF_FORMATS_MAX  4096u
#define PERF_FORMAT_MAX	  (64u << 10) /* of one format text */
#define PERF_FORMATS_TEXT (4u << 20)  /* of all that are kept */
#define PERF_FEATURES	  7
#define PERF_FEATURE_MAX  (64u << 10)
#define PERF_TRACEPOINT	  2    /* perf_event_attr.type */
#define PERF_ATTR_LEN	  128u /* bytes of an attr that are kept as they stand */
#define PERF_SYSTEM_LEN	  64u
#define PERF_FEATURE_BITS 256u

/* include/uapi/linux/perf_event.h leaves the types from 64 on to perf: tools/lib/perf. */
enum perf_user_type {
	PERF_USER_HEADER_ATTR = 64,
	PERF_USER_TRACING_DATA = 66,
	PERF_USER_FINISHED_ROUND = 68,
	PERF_USER_ID_INDEX = 69,
	PERF_USER_AUXTRACE_INFO = 70,
	PERF_USER_AUXTRACE = 71,
	PERF_USER_TIME_CONV = 79,
	PERF_USER_HEADER_FEATURE = 80,
	PERF_USER_COMPRESSED = 81,
	PERF_USER_COMPRESSED2 = 83,
};

enum perf_feature {
	PERF_FEATURE_TRACING_DATA = 1,
	PERF_FEATURE_CMDLINE = 11,
	PERF_FEATURE_AUXTRACE = 18,
};

/* An attr with its ids, waiting to be delivered. */
struct perf_attr {
	struct vmt_ring_attr attr;
	uint8_t bytes[PERF_ATTR_LEN];
	size_t len;
	uint64_t *ids;
	size_t nr_ids;
};

/* The text of one format, in `formats`. */
struct perf_text {
	size_t offset, len;
	char system[PERF_SYSTEM_LEN];
};

/* A feature section of file mode; size 0: none. */
struct perf_section {
	uint64_t offset, size;
};

/* How far the file has been read. */
struct perf_place {
	struct vmt_ledger ledger;
	size_t next_attr, next_text;
	size_t pending_skip;  /* bytes of the reader that the item before covers */
	ZSTD_inBuffer packed; /* of the record that pending_skip covers */
	bool packed_more;     /* zstd may hold output that did not fit */
	bool packed_broken;   /* the stream is damaged: what follows cannot be unpacked */
	size_t plain_pos, plain_len;
	bool is_pt;   /* AUXTRACE_INFO says that AUXTRACE is Intel PT */
	bool cut_off; /* the item before ended with the input: it has to be said */
	bool ended;   /* the last item was delivered */
};

struct vmt_perfdata {
	struct vmt_reader *reader;
	bool is_pipe;	   /* pipe mode: metadata comes as records */
	bool has_data_end; /* file mode: the data section ends at data_end */
	uint64_t data_end;
	uint64_t feature_bits[4];
	struct perf_section sections[PERF_FEATURE_BITS];
	bool wants_user; /* VMT_ITEM_USER is delivered */
	struct perf_place at;

	struct perf_attr *attrs;
	size_t nr_attrs;
	size_t total_ids;

	bool has_tracing; /* tracing data was there, whole or not */
	uint8_t *formats;
	size_t formats_len, formats_cap;
	struct perf_text *texts;
	size_t nr_texts;

	char *features[PERF_FEATURES]; /* by the table in feature.c */

	ZSTD_DCtx *zstd;
	uint8_t *plain; /* unpacked records: plain[plain_pos..plain_len) are left */

	bool walk_due; /* the index has to be made from here on, before the next record */
	bool walking;  /* it is being made */
	bool walked;
	struct vmt_aux_index aux;
	struct vmt_aux_build build;
	uint64_t mtc_bit, mtc_freq_bits; /* of the config, as AUXTRACE_INFO names them */
	char *filter;			 /* aux.info.filter */
	struct vmt_aux_extent extent;
	uint32_t extent_thread; /* tid of its record */ /* of the VMT_ITEM_AUX before */
	struct vmt_vcpu_link *links;			/* of the VMT_ITEM_VCPU_LINK before */
	uint64_t spool_lost; /* bytes of a pipe that found no room; counted, to be told */
	bool tell_limit;     /* aux.lost_bytes are to be told */
};

/* ---- header.c: file mode ---- */

/* Header, attrs, features; leaves the reader at the data section. Errors as vmt_perfdata_open. */
int perf_header_read(struct vmt_perfdata *p, struct vmt_diag *diag);

/* ---- feature.c ---- */

/*
 * Adds the attr in `len` stored bytes, of which there are at least 64. Takes over ids. VMT_E_LIMIT,
 * VMT_E_NOMEM (ids are freed).
 */
int perf_attr_add(struct vmt_perfdata *p, const uint8_t *bytes, size_t len, uint64_t *ids,
		  size_t nr_ids);
/* A feature section: the ones with text are kept. */
void perf_feature_take(struct vmt_perfdata *p, uint64_t feature, const uint8_t *bytes, size_t len);

/* ---- tracing.c ---- */

/*
 * Reads the tracing data in the next `size` bytes of the reader and keeps the formats of the attrs
 * known so far (all, when there are none). *used: how many bytes the reader went on. A broken
 * section gives the formats up to the fault. 0, VMT_E_IO, VMT_E_NOMEM.
 */
int perf_tracing_read(struct vmt_perfdata *p, uint64_t size, uint64_t *used, struct vmt_diag *diag);

/* ---- packed.c ---- */

/* Begins a COMPRESSED record's payload, which stays in the reader until it is used up. */
int perf_packed_begin(struct vmt_perfdata *p, const uint8_t *bytes, size_t len);
/*
 * Unpacks until `plain` is full or the payload is used up: 1 when there is more to read in `plain`
 * than before, 0 when not, VMT_E_DAMAGED.
 */
int perf_packed_more(struct vmt_perfdata *p);

/* ---- user.c: records of perf itself ---- */

/*
 * The whole record at the reader's position: 1 an item, 0 nothing to tell, negative. It is counted
 * and stepped over, now or by pending_skip.
 */
int perf_user_record(struct vmt_perfdata *p, const uint8_t *record, size_t len,
		     struct vmt_item *item, struct vmt_diag *diag);

/* ---- aux.c: Intel PT and what goes with it ---- */

/* AUXTRACE_INFO, TIME_CONV: their bodies. Any length. VMT_E_NOMEM. */
int perf_auxtrace_info(struct vmt_perfdata *p, const uint8_t *body, size_t len);
void perf_time_conv(struct vmt_perfdata *p, const uint8_t *body, size_t len);
/* ID_INDEX: 1 an item, 0 when it names no vCPU, VMT_E_NOMEM. */
int perf_id_index(struct vmt_perfdata *p, const uint8_t *body, size_t len, struct vmt_item *item);
/* AUXTRACE, with the trace that follows; as perf_user_record. */
int perf_auxtrace(struct vmt_perfdata *p, const uint8_t *record, size_t len, struct vmt_item *item,
		  struct vmt_diag *diag);
/* Whether the header lets expect AUX data. */
bool perf_has_pmu_events(const struct vmt_perfdata *p);
/*
 * Makes the index from the reader's position to the end, and comes back. A pipe is spooled first.
 * 0, VMT_E_IO, VMT_E_NOMEM.
 */
int perf_aux_walk(struct vmt_perfdata *p, struct vmt_diag *diag);
/* Losses that the walk found: 1 an item, 0 no more. */
int perf_aux_losses(struct vmt_perfdata *p, struct vmt_item *item);
void perf_aux_free(struct vmt_perfdata *p);

/* ---- perfdata.c ---- */

void perf_count(struct vmt_perfdata *p, uint64_t decoded, uint64_t skipped);
void perf_loss_item(struct vmt_perfdata *p, struct vmt_item *item, const char *kind,
		    uint64_t bytes);
/*
 * Steps over n bytes, to the end of the data if that comes first, and counts them as skipped.
 * *done: how many. 0 or VMT_E_IO.
 */
int perf_skip_some(struct vmt_perfdata *p, uint64_t n, uint64_t *done, struct vmt_diag *diag);
/* The data ends in the middle, `lost` bytes of the last piece were counted as skipped: the last
 * item. */
int perf_end_truncated(struct vmt_perfdata *p, struct vmt_item *item, uint64_t lost);
/* The rest of the data cannot be read: the last item says so. 1 or VMT_E_IO. */
int perf_skip_rest(struct vmt_perfdata *p, struct vmt_item *item, const char *kind,
		   struct vmt_diag *diag);

#endif
