/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_VMT_COUNTS_H
#define VMT_SUPPORT_VMT_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is in a .vmt, counted with the store's reader and the ring's parser. */
struct vmt_counts {
	bool readable;	/* it is a .vmt and was read to its end */
	bool closed;	/* END was seen */
	bool truncated; /* a loss of kind "truncated" was seen */
	uint64_t sessions, attrs, formats, anchors, rounds, marks, losses;
	uint64_t records, samples, switches_in, switches_out;
	uint64_t bad_records;	 /* that could not be taken apart */
	uint64_t unknown_ids;	 /* samples that belong to no attr */
	uint64_t disordered;	 /* records older than the newest of the round before last */
	char mark_names[512];	 /* space separated, in order */
	char last_session[8192]; /* text of the last session document, cut off */
};

struct vmt_counts vmt_counts_of(const char *path);

/* Samples of one tracepoint and thread (0: any). */
uint64_t vmt_count_samples(const char *path, const char *name, uint32_t tid);

#endif
