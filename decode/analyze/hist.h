/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_ANALYZE_HIST_H
#define VMT_ANALYZE_HIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Log-linear histograms of many rows in one hash table of (row, bucket) -> count: 64 buckets an
 * octave, so that the middle of a bucket is within 1/128 (0.78 %) of every value in it; values
 * below 128 have a bucket each and are exact. A row costs only the buckets that it has.
 */
#define VMT_HIST_SUB_BITS  6
#define VMT_HIST_BUCKETS   3776	      /* (64 - VMT_HIST_SUB_BITS + 1) << VMT_HIST_SUB_BITS */
#define VMT_HIST_ROWS_MAX  (1u << 19) /* rows are numbered below it */
#define VMT_HIST_SLOTS_MAX (1u << 20) /* 16 MiB, three quarters of it usable */

struct vmt_hist_entry {
	uint32_t key; /* 1 + (row << 12 | bucket); 0: free */
	uint64_t count;
};

struct vmt_hist {
	struct vmt_hist_entry
		*slots; /* open addressing while filling, sorted after vmt_hist_sort */
	size_t nr_slots, used;
};

unsigned int vmt_hist_bucket(uint64_t value);
/* The middle of a bucket. */
uint64_t vmt_hist_value(unsigned int bucket);

void vmt_hist_free(struct vmt_hist *hist);

/* Counts a value of a row. False when the table is full (or memory is short) and the value is left
 * out. A zeroed struct is an empty table. */
bool vmt_hist_add(struct vmt_hist *hist, uint32_t row, uint64_t value);

/* Puts the entries in order of row and bucket: from here on only vmt_hist_rank may be called. */
void vmt_hist_sort(struct vmt_hist *hist);

/*
 * Nearest-rank percentiles of a row, rank = ceil(percent / 100 * n), for nr percents in ascending
 * order. Returns n, the number of values; out is untouched when it is 0.
 */
uint64_t vmt_hist_rank(const struct vmt_hist *hist, uint32_t row, const unsigned int *percents,
		       unsigned int nr, uint64_t *out);

#endif
