/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_ANALYZE_HITTERS_H
#define VMT_ANALYZE_HITTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The most frequent values of a stream (guest RIPs of a row) in bounded memory. Exact while there
 * are few different ones; when the table is full, the median count is taken off all and what is
 * left with nothing makes room (Misra and Gries' frequent items, with batches): every count is then
 * a lower bound of the true one, at most `taken` below it, and a value that makes up more than
 * taken of the stream is never lost.
 */
#define VMT_HITTERS_MAX 128u /* slots of a table; three quarters are used */

struct vmt_hitter {
	uint64_t value;
	uint64_t count; /* 0: free */
};

struct vmt_hitters {
	struct vmt_hitter one;	  /* as long as there is one value, no table is needed */
	struct vmt_hitter *slots; /* NULL, or nr_slots */
	uint16_t nr_slots, used;
	uint64_t taken; /* 0: all counts are exact */
};

/* Slots that all tables together may still take; shared by the tables of one report. */
struct vmt_hitters_budget {
	size_t slots_left;
};

void vmt_hitters_free(struct vmt_hitters *hitters);

/* Counts a value. Where budget or memory are short the table stays as small as it is. */
void vmt_hitters_add(struct vmt_hitters *hitters, struct vmt_hitters_budget *budget,
		     uint64_t value);

/* The most frequent value (the lowest among equals); false when there is none left. */
bool vmt_hitters_top(const struct vmt_hitters *hitters, struct vmt_hitter *top);

#endif
