// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/analyze/input_private.h"

#define PERF_TYPE_TRACEPOINT 2

void input_on_rec(void *context, const struct vmt_rec *rec)
{
	struct vmt_input *in = context;

	if (in->nr_marks)
		input_marks_until(in, rec->time_ns);
	if (!input_aux_before(in, rec))
		vmt_join_push(in->join, rec);
	input_aux_after(in, rec);
}

void input_note_time(struct vmt_input *in, uint64_t time_ns)
{
	if (!in->has_first || time_ns < in->first_ns)
		in->first_ns = time_ns;
	if (!in->has_first || time_ns > in->last_ns)
		in->last_ns = time_ns;
	in->has_first = true;
}

/* The ring that a rec came from: the .vmt says it, in a perf.data rings belong to CPUs. */
static uint64_t *last_of_ring(struct vmt_input *in, uint32_t stream, const struct vmt_rec *rec)
{
	uint32_t ring = in->store ? stream : rec->cpu;

	return ring < INPUT_RINGS_MAX ? &in->ring_last_ns[ring] : NULL;
}

/* What a LOST record tells of is missing somewhere since the record before it in its ring. */
static void take_lost(struct vmt_input *in, struct vmt_rec *rec, const uint64_t *last)
{
	struct vmt_rec begin;

	if (rec->u.lost.cause != VMT_LOST_THROTTLED) {
		in->records_lost += rec->u.lost.count;
		in->overflows++;
		input_loss_count(in, "ring", rec->u.lost.count, 0);
	}
	if (!in->has_first)
		return;
	vmt_rec_loss_begin(rec, last && *last ? *last : in->first_ns, &begin);
	vmt_merge_push(in->merge, &begin, input_on_rec, in);
}

static void take(struct vmt_input *in, uint32_t stream, struct vmt_rec *rec)
{
	uint64_t *last = last_of_ring(in, stream, rec);

	if (rec->kind == VMT_REC_LOST && !rec->time_ns)
		rec->flags &= (uint8_t)~VMT_REC_HAS_TIME; /* perf writes such with an id of zeros */
	if (rec->flags & VMT_REC_HAS_TIME)
		input_note_time(in, rec->time_ns);
	else
		rec->time_ns = in->last_ns; /* as near as the stream tells */
	if (rec->kind == VMT_REC_LOST)
		take_lost(in, rec, last);
	if (!in->has_first)
		return; /* a loss before the first record: counted, and nothing to end */
	if (last && rec->flags & VMT_REC_HAS_TIME)
		*last = rec->time_ns;
	vmt_merge_push(in->merge, rec, input_on_rec, in);
}

/* A sample whose raw bytes are not a tracepoint's (bpf-output, for instance). */
static bool is_foreign(const struct vmt_input *in, const struct vmt_ring_record *record, int attr)
{
	return record->raw && attr >= 0 &&
	       vmt_ring_set_attr(in->ring, (size_t)attr)->type != PERF_TYPE_TRACEPOINT;
}

/* Any record; returns how many bytes to step over. */
static size_t take_record(struct vmt_input *in, uint32_t stream, const uint8_t *bytes, size_t len)
{
	struct vmt_ring_record record;
	struct vmt_rec rec;
	int attr, size = vmt_ring_parse(in->ring, bytes, len, &record, &attr);

	if (size <= 0) {
		bool steppable = size == VMT_E_DAMAGED && record.size >= 8 &&
				 record.size % 8 == 0 && record.size <= len;
		size_t skipped = steppable ? record.size : len;

		in->undecoded_bytes += skipped;
		return skipped;
	}
	switch (is_foreign(in, &record, attr) ? 0 : vmt_rec_decode(in->catalog, &record, &rec)) {
	case 1:
		take(in, stream, &rec);
		break;
	case 0:
		break;
	default:
		in->undecoded_bytes += (uint64_t)size;
	}
	return (size_t)size;
}

/* The tracepoints, decoded where the merge keeps them; returns how many bytes were of that kind. */
static size_t take_samples(struct vmt_input *in, uint32_t stream, const uint8_t *bytes, size_t len)
{
	size_t at = 0;

	while (at < len) {
		struct vmt_ring_sample sample;
		int size = vmt_ring_sample(in->ring, bytes + at, len - at, &sample);
		struct vmt_rec *rec;
		uint64_t *last;

		if (!size)
			break;
		at += (size_t)size;
		rec = vmt_merge_slot(in->merge);
		switch (vmt_rec_decode_sample(in->catalog, &sample, rec)) {
		case 1:
			break;
		case 0:
			continue;
		default:
			in->undecoded_bytes += (uint64_t)size;
			continue;
		}
		input_note_time(in, rec->time_ns);
		last = last_of_ring(in, stream, rec);
		if (last)
			*last = rec->time_ns;
		vmt_merge_take(in->merge, input_on_rec, in);
	}
	return at;
}

void input_records(struct vmt_input *in, uint32_t stream, const uint8_t *bytes, size_t len)
{
	size_t at = 0;

	in->record_bytes += len;
	while (at < len) {
		at += take_samples(in, stream, bytes + at, len - at);
		if (at < len)
			at += take_record(in, stream, bytes + at, len - at);
	}
}
