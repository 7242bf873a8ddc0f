/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as PT packets, and as PEBS records out of them; the first byte sets the block context.
 * A packet stays inside the bytes, does not depend on what follows it, is never taken from fewer
 * bytes than it has, and a step to the next PSB comes forward and lands on one.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decode/pt/packet.h"
#include "decode/pt/pebs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_packet(const struct vmt_pt_reader *before, const struct vmt_pt_reader *after,
			 const struct vmt_pt_packet *p)
{
	struct vmt_pt_reader alone = *before;
	struct vmt_pt_packet again;

	if (!p->len || after->pos != before->pos + p->len || after->pos > after->end)
		abort();
	if (p->type >= VMT_PT_TYPE_COUNT || p->count > 47 || p->fc > 0x1ff)
		abort();
	alone.end = after->pos;
	if (vmt_pt_next(&alone, &again, NULL) != 1 || memcmp(&again, p, sizeof(again)) != 0)
		abort();
	for (unsigned int cut = 1; cut < p->len; cut++) {
		alone = *before;
		alone.end = alone.pos + cut;
		if (vmt_pt_next(&alone, &again, NULL) != VMT_E_TRUNCATED)
			abort();
	}
}

static void check_sync(struct vmt_pt_reader *r)
{
	static const uint8_t psb[16] = { 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
					 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82 };
	const uint8_t *from = r->pos;
	size_t step = vmt_pt_sync(r), left = (size_t)(r->end - r->pos);

	if (r->pos != from + step || r->pos > r->end || r->block != VMT_PT_BLOCK_NONE)
		abort();
	if (memcmp(r->pos, psb, left < sizeof(psb) ? left : sizeof(psb)) != 0)
		abort();
}

static void check_pebs(struct vmt_pt_pebs *pebs, const struct vmt_pt_packet *p)
{
	const uint64_t before = pebs->records;
	const bool whole = vmt_pt_pebs_packet(pebs, p);

	if (pebs->records != before + whole || (whole && (pebs->open || pebs->wants_fup)))
		abort();
	if (pebs->record.has_gpr >> VMT_PT_GPR_COUNT || pebs->record.has_basic >> 3 ||
	    pebs->record.has_memory >> 4)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t blocks[] = { VMT_PT_BLOCK_NONE, VMT_PT_BLOCK_4, VMT_PT_BLOCK_8 };
	struct vmt_pt_reader r, before;
	struct vmt_pt_packet p;
	struct vmt_pt_pebs pebs = { 0 };
	int status;

	if (!size)
		return 0;
	r = vmt_pt_reader_of(data + 1, size - 1);
	r.block = blocks[data[0] % 3];
	for (;;) {
		const char *why = NULL;

		before = r;
		status = vmt_pt_next(&r, &p, &why);
		if (status == 1) {
			check_packet(&before, &r, &p);
			check_pebs(&pebs, &p);
			continue;
		}
		if (memcmp(&before, &r, sizeof(r)) != 0)
			abort();
		if (status != VMT_E_DAMAGED)
			break;
		if (!why)
			abort();
		check_sync(&r);
		if (r.end - r.pos < 16)
			break;
	}
	if ((status == 0) != (r.pos == r.end) && status != VMT_E_DAMAGED)
		abort();
	return 0;
}
