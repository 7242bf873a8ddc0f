/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_PT_BATCH_PRIVATE_H
#define VMT_PT_BATCH_PRIVATE_H

#include "decode/pt/batch.h"

/* Types that leave `quiet` as it is (see vmt_pt_batch.skim), and those that set it. */
#define PT_QUIET_KEEP (UINT64_C(1) << VMT_PT_PAD | UINT64_C(1) << VMT_PT_MTC)
#define PT_QUIET_SET                                                                               \
	(UINT64_C(1) << VMT_PT_TNT | UINT64_C(1) << VMT_PT_TNT_LONG | UINT64_C(1) << VMT_PT_TIP)

/* Whether careful stops before the packet at p, which is `type` and in full there. */
bool pt_batch_stops(const struct vmt_pt_packet *packet, const uint8_t *p);

/* One packet by vmt_pt_next into the batch. */
int pt_batch_one(struct vmt_pt_reader *reader, struct vmt_pt_batch *batch);

#if defined(__x86_64__)
extern const struct vmt_pt_engine pt_engine_avx2;
bool pt_engine_avx2_runs(void);
#endif

#endif
