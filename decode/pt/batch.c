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
	struct vmt_pt_packet *packet = batch->skim ? out + 2 : out;
	const struct vmt_pt_reader before = *r;
	const int status = vmt_pt_next(r, packet, &batch->why);

	if (status != 1)
		return status;
	if (batch->careful && pt_batch_stops(packet, before.pos)) {
		*r = before;
		return 2;
	}
	batch->passed++;
	out = batch->skim ? pt_skim_put(&batch->state, out) : out + 1;
	batch->len = (size_t)(out - batch->packets);
	return 1;
}

int pt_batch_end(struct vmt_pt_batch *batch, int status)
{
	const struct vmt_pt_packet *out;

	if (status == 1 || !batch->skim)
		return status;
	out = pt_skim_flush(&batch->state, &batch->packets[batch->len]);
	batch->len = (size_t)(out - batch->packets);
	return status;
}

static int read_scalar(struct vmt_pt_reader *r, struct vmt_pt_batch *batch)
{
	const size_t spare = batch->skim ? VMT_PT_BATCH_SPARE : 0;
	int status = 1;

	batch->len = 0;
	batch->passed = 0;
	batch->why = NULL;
	while (status == 1 && batch->len + spare < batch->max)
		status = pt_batch_one(r, batch);
	return pt_batch_end(batch, status);
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
