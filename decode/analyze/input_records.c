// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/analyze/input_private.h"

void input_on_rec(void *context, const struct vmt_rec *rec)
{
	struct vmt_input *in = context;

	if (!in->facts.has_start) { /* the merge hands out the earliest one first */
		in->facts.has_start = true;
		in->facts.start_ns = rec->time_ns;
	}
	if (!in->window_settled)
		input_settle_window(in, in->facts.start_ns);
	if (in->nr_marks)
		input_marks_until(in, rec->time_ns);
	vmt_join_push(in->join, rec);
}

/* ---- losses ---- */

static void push_loss(struct vmt_input *in, struct vmt_rec *lost, uint64_t since_ns)
{
	struct vmt_rec begin;

	vmt_rec_loss_begin(lost, since_ns, &begin);
	vmt_merge_push(in->merge, &begin, input_on_rec, in);
}

static struct vmt_rec file_loss(const struct vmt_input *in, uint64_t count)
{
	struct vmt_rec rec = { .time_ns = in->last_ns,
			       .kind = VMT_REC_LOST,
			       .flags = in->has_first ? VMT_REC_HAS_TIME : 0,
			       .catalog = UINT16_MAX,
			       .cpu = UINT32_MAX };

	rec.u.lost.count = count;
	rec.u.lost.cause = VMT_LOST_RECORDS;
	return rec;
}

void input_lost(struct vmt_input *in, uint64_t count)
{
	struct vmt_rec rec = file_loss(in, 0);

	in->lost_rounds = 2;
	in->lost_count += count;
	if (in->in_loss)
		return;
	in->in_loss = true;
	push_loss(in, &rec, in->floor_ns > in->first_ns ? in->floor_ns : in->first_ns);
}

void input_lost_end(struct vmt_input *in)
{
	struct vmt_rec rec = file_loss(in, in->lost_count);

	if (!in->in_loss)
		return;
	in->in_loss = false;
	in->lost_rounds = 0;
	in->lost_count = 0;
	rec.u.lost.begun = 1;
	vmt_merge_push(in->merge, &rec, input_on_rec, in);
}

void input_lost_rest(struct vmt_input *in)
{
	struct vmt_rec rec;

	if (in->told_at_end <= in->records_lost)
		return;
	rec = file_loss(in, in->told_at_end - in->records_lost);
	rec.u.lost.cause = VMT_LOST_SAMPLES;
	in->records_lost = in->told_at_end;
	in->overflows++;
	vmt_merge_push(in->merge, &rec, input_on_rec, in);
}

/*
 * A loss that a ring tells of. perf (from 6.1 on) adds its count of each event's lost samples when
 * it ends, without a time: most of them are the same ones.
 */
static bool take_lost(struct vmt_input *in, struct vmt_rec *rec, uint64_t since_ns)
{
	if (rec->u.lost.cause == VMT_LOST_SAMPLES && !(rec->flags & VMT_REC_HAS_TIME)) {
		in->told_at_end += rec->u.lost.count;
		return false;
	}
	if (rec->u.lost.cause != VMT_LOST_THROTTLED) {
		in->records_lost += rec->u.lost.count;
		in->overflows++;
	}
	if (rec->flags & VMT_REC_HAS_TIME)
		push_loss(in, rec, since_ns > in->floor_ns ? since_ns : in->floor_ns);
	return true;
}

/* ---- records ---- */

static void note_time(struct vmt_input *in, uint64_t time_ns)
{
	if (!in->has_first || time_ns < in->first_ns)
		in->first_ns = time_ns;
	if (!in->has_first || time_ns > in->last_ns)
		in->last_ns = time_ns;
	in->has_first = true;
}

/* `ring`: number of the stream in a .vmt; in a perf.data, which does not tell, of the CPU. */
static void take(struct vmt_input *in, struct vmt_rec *rec, uint32_t ring)
{
	uint64_t *last_ns = &in->ring_last_ns[ring % INPUT_RINGS];

	if (!rec->time_ns) /* no clock that anything was recorded by stands at 0 */
		rec->flags &= (uint8_t)~VMT_REC_HAS_TIME;
	if (rec->kind == VMT_REC_LOST && !take_lost(in, rec, *last_ns))
		return;
	if (rec->flags & VMT_REC_HAS_TIME) {
		note_time(in, rec->time_ns);
		*last_ns = rec->time_ns;
	} else {
		rec->time_ns = in->last_ns; /* as near as the stream tells */
	}
	vmt_merge_push(in->merge, rec, input_on_rec, in);
}

void input_records(struct vmt_input *in, const struct vmt_item *item)
{
	const uint8_t *bytes = item->data;
	size_t at = 0, len = item->len;
	struct vmt_ring_record record;
	struct vmt_rec rec;
	uint64_t damaged = 0;

	in->record_bytes += len;
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
			take(in, &rec, in->perf ? rec.cpu : item->stream);
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
