/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_ANALYZE_ROWS_H
#define VMT_ANALYZE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/analyze/hist.h"
#include "decode/analyze/hitters.h"
#include "decode/analyze/report.h"

/*
 * Exits summed by row. A table of rows has a bound; an exit whose row does not fit goes to the row
 * of the same reason without key, RIP and vCPU, for which room is always kept.
 */
#define VMT_ROWS_MAX	    65536u
#define VMT_ROWS_SPARE	    4096u      /* further rows, for those without key */
#define VMT_ROWS_RIP_BUDGET (1u << 18) /* hitter slots of a table: 4 MiB */

enum vmt_rows_dim { /* what tells rows apart, besides isa, nested and failed */
		    VMT_ROWS_BY_REASON = 1u << 0,
		    VMT_ROWS_BY_KEY = 1u << 1,
		    VMT_ROWS_BY_RIP = 1u << 2,
		    VMT_ROWS_BY_VCPU = 1u << 3,
};

/* A row's key without padding that is not zero, so that it can be compared as bytes. */
struct vmt_row_id {
	uint64_t number, rip;
	uint32_t reason, flags, sub, domain, vcpu;
	uint8_t isa, has_reason, kind, access;
	uint8_t nested, failed, has_rip, pad[5];
};

struct vmt_row_sum {
	struct vmt_row_id id;
	uint32_t number;       /* of the row in its table */
	uint32_t series;       /* storms.c: handle of the row's series, 0 none yet */
	uint32_t reason_group; /* storms.c: handle of the reason's series, 0 none yet */
	uint8_t class;	       /* enum vmx_exit_class */
	bool no_percentiles;   /* a duration did not fit the histograms */
	uint64_t count, timed, total_ns, min_ns, max_ns, userspace_ns;
	struct vmt_hitters rips;
};

struct vmt_rows;

/* dims: VMT_ROWS_BY_*. NULL when memory is short. */
struct vmt_rows *vmt_rows_new(unsigned int dims);
void vmt_rows_free(struct vmt_rows *rows);

/*
 * Dimensions of a comma list of reason,key,rip,vcpu; NULL is "reason,key". 0 when a word is none of
 * them or the list is empty.
 */
unsigned int vmt_rows_dims(const char *by);

/* Counts an exit; returns its row, valid until the next call, or NULL when memory is short. */
struct vmt_row_sum *vmt_rows_add(struct vmt_rows *rows, const struct vmt_event *exit);

/* Exits that went to a row without key because their own did not fit. */
uint64_t vmt_rows_dropped(const struct vmt_rows *rows);

/*
 * Ends the counting: the rows by total_ns descending, then by count, then by name of reason and
 * key. NULL when memory is short; *nr is 0 and the result not NULL when there are none. The caller
 * frees.
 */
struct vmt_row *vmt_rows_finish(struct vmt_rows *rows, size_t *nr);

#endif
