/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_PT_BATCH_PRIVATE_H
#define VMT_PT_BATCH_PRIVATE_H

#include "decode/pt/batch.h"

/* Types that say no more than that code ran, and those that do not end a `steady` stretch. */
#define PT_RUNS                                                                                    \
	(UINT64_C(1) << VMT_PT_TNT | UINT64_C(1) << VMT_PT_TNT_LONG | UINT64_C(1) << VMT_PT_TIP)

static inline uint64_t pt_add_sat(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* Gives what is held; returns the place behind it. */
static inline struct vmt_pt_packet *pt_skim_flush(struct vmt_pt_skim *s, struct vmt_pt_packet *out)
{
	if (!s->holds)
		return out;
	*out++ = (struct vmt_pt_packet){ .type = VMT_PT_CYC, .len = 1, .payload = s->held };
	if (s->ran)
		*out++ = (struct vmt_pt_packet){ .type = VMT_PT_TNT, .len = 1 };
	s->quiet = s->quiet && s->ran; /* behind a CYC the next one is told */
	s->holds = false;
	s->held = 0;
	return out;
}

/* Takes the packet at out[2], gives at out what is to be given; returns the place behind it. */
static inline struct vmt_pt_packet *pt_skim_put(struct vmt_pt_skim *s, struct vmt_pt_packet *out)
{
	const struct vmt_pt_packet *p = out + 2;
	const uint64_t bit = UINT64_C(1) << p->type;

	if (p->type == VMT_PT_PAD)
		return out;
	if (bit & PT_RUNS && s->quiet) {
		s->ran = true;
		return out;
	}
	if (p->type == VMT_PT_CYC && s->steady) {
		s->held = pt_add_sat(s->held, p->payload);
		s->holds = true;
		s->ran = false;
		return out;
	}
	if (s->holds)
		out = pt_skim_flush(s, out);
	*out = *p;
	if (bit & PT_RUNS) {
		s->quiet = true;
	} else {
		s->quiet = s->quiet && p->type == VMT_PT_MTC;
		s->steady = p->type == VMT_PT_CYC;
	}
	return out + 1;
}

/* Whether careful stops before the packet at p, which is `type` and in full there. */
bool pt_batch_stops(const struct vmt_pt_packet *packet, const uint8_t *p);

/* One packet by vmt_pt_next into the batch, which has VMT_PT_BATCH_SPARE free places if it skims.
 */
int pt_batch_one(struct vmt_pt_reader *reader, struct vmt_pt_batch *batch);

/* The last step of read: what is held is given when status is not 1. Returns status. */
int pt_batch_end(struct vmt_pt_batch *batch, int status);

#if defined(__x86_64__)
extern const struct vmt_pt_engine pt_engine_avx2;
bool pt_engine_avx2_runs(void);
#endif

#endif
