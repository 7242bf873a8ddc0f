// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/analyze/input_private.h"

void input_on_rec(void *context, const struct vmt_rec *rec)
{
	struct vmt_input *in = context;

	if (in->nr_marks)
		input_marks_until(in, rec->time_ns);
	vmt_join_push(in->join, rec);
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

	while (at < len) {
		int size = vmt_ring_parse(in->ring, bytes + at, len - at, &record, NULL);

		if (size <= 0) {
			bool steppable = size == VMT_E_DAMAGED && record.size >= 8 &&
					 record.size % 8 == 0 && record.size <= len - at;
			size_t skipped = steppable ? record.size : len - at;

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
		default:
			in->undecoded_bytes += (uint64_t)size;
		}
		at += (size_t)size;
	}
}
