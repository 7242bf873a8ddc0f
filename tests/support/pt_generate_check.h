/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PT_GENERATE_CHECK_H
#define VMT_SUPPORT_PT_GENERATE_CHECK_H

#include "decode/base/event.h"
#include "tests/support/pt_generate.h"

/*
 * Decodes a generated stream and holds it against its truth: every entry, exit and event that the
 * stream tells comes out with every member that it tells, its time lies inside the bound that is
 * stated and is exact beside a TSC packet, and nothing comes out that did not happen.
 */
#define VMT_PTGEN_EVENTS_MAX 4096

struct vmt_ptgen_check {
	const struct vmt_ptgen_options *options;
	size_t events, timed, bounded, exact; /* sums over the streams */
	size_t kinds[VMT_PTGEN_NOTE + 1];     /* of the truths that came out */
	char why[2048];			      /* the first thing that was wrong */
	/* The rest is of the stream under way. */
	const struct vmt_ptgen *gen;
	size_t len;
	bool check_times;
	uint64_t told;
	struct vmt_event told_last;
	size_t nr_seen;
	struct vmt_event seen[VMT_PTGEN_EVENTS_MAX];
	uint64_t told_before[VMT_PTGEN_EVENTS_MAX]; /* host TSC of the event before it */
};

/* options must outlive the check; its seed and places may change between streams. */
void vmt_ptgen_check_begin(struct vmt_ptgen_check *check, const struct vmt_ptgen_options *options);
/* The first len bytes of a stream; false: check->why says what is wrong. */
bool vmt_ptgen_check(struct vmt_ptgen_check *check, const struct vmt_ptgen *gen, size_t len);

#endif
