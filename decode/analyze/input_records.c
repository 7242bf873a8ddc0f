// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/analyze/input_private.h"

/* Beside enum vmt_lost_cause: the far border of a loss. */
#define INPUT_LOST_AGAIN VMT_LOST_CAUSE_COUNT

void input_on_rec(void *context, const struct vmt_rec *rec)
{
	struct vmt_input *in = context;

	if (!in->window_settled)
		input_settle_window(in, in->facts.has_start ? in->facts.start_ns : rec->time_ns);
	if (in->nr_marks)
		input_marks_until(in, rec->time_ns);
	in->swallow_loss = rec->kind == VMT_REC_LOST && rec->u.lost.cause == INPUT_LOST_AGAIN;
	vmt_join_push(in->join, rec);
	in->swallow_loss = false;
}

static void push_loss(struct vmt_input *in, uint64_t time_ns, uint64_t count, uint32_t cause)
{
	struct vmt_rec rec = { .kind = VMT_REC_LOST,
			       .catalog = UINT16_MAX,
			       .cpu = UINT32_MAX,
			       .time_ns = time_ns,
			       .flags = in->has_first ? VMT_REC_HAS_TIME : 0 };

	rec.u.lost.count = count;
	rec.u.lost.cause = cause;
	vmt_merge_push(in->merge, &rec, input_on_rec, in);
}

void input_lost(struct vmt_input *in, uint64_t count)
{
	push_loss(in, in->floor_ns > in->first_ns ? in->floor_ns : in->first_ns, count,
		  VMT_LOST_RECORDS);
	in->lost_rounds = 2;
}

void input_lost_until_here(struct vmt_input *in)
{
	if (!in->lost_rounds)
		return;
	in->lost_rounds--;
	push_loss(in, in->last_ns, 0, INPUT_LOST_AGAIN);
}

static void note_time(struct vmt_input *in, uint64_t time_ns)
{
	if (!in->has_first || time_ns < in->first_ns)
		in->first_ns = time_ns;
	if (!in->has_first || time_ns > in->last_ns)
		in->last_ns = time_ns;
	in->has_first = true;
}

static void take(struct vmt_input *in, struct vmt_rec *rec)
{
	if (rec->flags & VMT_REC_HAS_TIME)
		note_time(in, rec->time_ns);
	else
		rec->time_ns = in->last_ns; /* as near as the stream tells */
	if (rec->kind == VMT_REC_LOST && rec->u.lost.cause != VMT_LOST_THROTTLED) {
		in->records_lost += rec->u.lost.count;
		in->overflows++;
	}
	vmt_merge_push(in->merge, rec, input_on_rec, in);
}

void input_records(struct vmt_input *in, const uint8_t *bytes, size_t len)
{
	struct vmt_ring_record record;
	struct vmt_rec rec;
	size_t at = 0;
	uint64_t damaged = 0;

	while (at < len) {
		int size = vmt_ring_parse(in->ring, bytes + at, len - at, &record, NULL);

		if (size <= 0) {
			bool steppable = size == VMT_E_DAMAGED && record.size >= 8 &&
					 record.size % 8 == 0 && record.size <= len - at;
			size_t skipped = steppable ? record.size : len - at;

			damaged++;
			in->undecoded_bytes += skipped;
			at += skipped;
			continue;
		}
		switch (vmt_rec_decode(in->catalog, &record, &rec)) {
		case 1:
			take(in, &rec);
			break;
		case 0:
			break;
		case VMT_E_DAMAGED:
			damaged++;
			in->undecoded_bytes += (uint64_t)size;
			break;
		default: /* a tracepoint without a format: nothing that is told from a vCPU */
			in->undecoded_bytes += (uint64_t)size;
		}
		at += (size_t)size;
	}
	if (damaged)
		input_lost(in, damaged);
}
