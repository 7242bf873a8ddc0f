// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The scalar engine. Invariant: batch->passed counts every packet that the reader is past; the
 * packets given are those, less what skimming leaves out.
 */
#include "decode/pt/batch.h"

#include "decode/pt/batch_private.h"

bool pt_batch_stops(const struct vmt_pt_packet *packet, const uint8_t *p)
{
	return (packet->type == VMT_PT_CYC && packet->len == 2 && p[1] == 0x02) ||
	       (packet->type == VMT_PT_TMA && packet->reserved);
}

int pt_batch_one(struct vmt_pt_reader *r, struct vmt_pt_batch *batch)
{
	struct vmt_pt_packet *out = &batch->packets[batch->len];
	const struct vmt_pt_reader before = *r;
	const int status = vmt_pt_next(r, out, &batch->why);
	uint64_t bit;
	bool ran;

	if (status != 1)
		return status;
	if (batch->careful && pt_batch_stops(out, before.pos)) {
		*r = before;
		return 2;
	}
	batch->passed++;
	bit = UINT64_C(1) << out->type;
	ran = bit & PT_QUIET_SET;
	batch->len += !batch->skim || !(out->type == VMT_PT_PAD || (batch->quiet && ran));
	batch->quiet = ran || (batch->quiet && bit & PT_QUIET_KEEP);
	return 1;
}

static int read_scalar(struct vmt_pt_reader *r, struct vmt_pt_batch *batch)
{
	int status = 1;

	batch->len = 0;
	batch->passed = 0;
	batch->why = NULL;
	while (status == 1 && batch->len < batch->max)
		status = pt_batch_one(r, batch);
	return status;
}

const struct vmt_pt_engine vmt_pt_engine_scalar = { "scalar", read_scalar };

const struct vmt_pt_engine *vmt_pt_engine_best(void)
{
#if defined(__x86_64__)
	if (pt_engine_avx2_runs())
		return &pt_engine_avx2;
#endif
	return &vmt_pt_engine_scalar;
}
