// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: tail <= head, both at the start of a record. data_head is read with acquire, so that
 * the records below it are seen whole; data_tail is written with release, after the last byte of
 * the records below it has been read (linux/perf_event.h, struct perf_event_mmap_page). Records
 * begin at multiples of 8, so that no 8-byte word wraps round the ring's end.
 */
#include "host/capture/ring.h"

#include <string.h>

#define TRAILER_BYTES	   32u /* TID, TIME, CPU, IDENTIFIER */
#define TRAILER_TIME	   24u /* from the end */
#define SAMPLE_TID	   16u
#define SAMPLE_TIME	   24u
#define SAMPLE_RAW_ID	   44u /* common_type, after the raw size at 40 */
#define SAMPLE_BYTES_LEAST 48u
#define LOST_COUNT	   16u
#define LOST_SAMPLES_COUNT 8u
#define AUX_BYTES_LEAST	   64u
#define RECORD_ROOM	   1024u /* few records that vmtrace asks for are longer */

struct span { /* the chunk under construction */
	uint64_t first_ns, last_ns;
	uint64_t start, end; /* ring positions */
	uint32_t records, exits;
};

static uint64_t load_word(const struct vmt_capture_ring *ring, uint64_t at)
{
	uint64_t v;

	memcpy(&v, ring->data + (at & (ring->data_bytes - 1)), sizeof(v));
	return v;
}

static void note_time(struct span *span, uint64_t time_ns)
{
	if (!span->first_ns || time_ns < span->first_ns)
		span->first_ns = time_ns;
	if (time_ns > span->last_ns)
		span->last_ns = time_ns;
}

/* Samples that the watch looks at, and switches. Its bytes may wrap round the ring's end. */
static void show(const struct vmt_capture_ring *ring, uint64_t at, uint64_t header,
		 uint16_t tracepoint)
{
	uint16_t size = (uint16_t)(header >> 48), misc = (uint16_t)(header >> 32);
	uint64_t raw[VMT_TRIGGER_RAW_BYTES / 8 + 1];
	size_t len = size - SAMPLE_RAW_ID;

	if ((uint32_t)header != PERF_RECORD_SAMPLE) {
		vmt_trigger_watch_switch(ring->watch,
					 (uint32_t)(load_word(ring, at + size - TRAILER_BYTES) >>
						    32),
					 load_word(ring, at + size - TRAILER_TIME),
					 misc & PERF_RECORD_MISC_SWITCH_OUT,
					 misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
		return;
	}
	if (!vmt_trigger_watch_wants(ring->watch, tracepoint))
		return;
	len = len < VMT_TRIGGER_RAW_BYTES ? len : VMT_TRIGGER_RAW_BYTES;
	for (size_t i = 0; i * 8 < len + 4; i++)
		raw[i] = load_word(ring, at + SAMPLE_RAW_ID - 4 + i * 8);
	vmt_trigger_watch_sample(ring->watch, (uint32_t)(load_word(ring, at + SAMPLE_TID) >> 32),
				 load_word(ring, at + SAMPLE_TIME), (const uint8_t *)raw + 4, len);
}

static void count_record(const struct vmt_capture_ring *ring, uint64_t at, uint64_t header,
			 uint64_t exit_id, struct span *span, struct vmt_capture_counts *counts)
{
	uint32_t type = (uint32_t)header;
	uint16_t size = (uint16_t)(header >> 48);

	counts->records++;
	span->records++;
	if (type == PERF_RECORD_SAMPLE && size >= SAMPLE_BYTES_LEAST) {
		/* The id stands in the upper half of the word that starts with the raw size. */
		uint64_t word = load_word(ring, at + SAMPLE_RAW_ID - 4);

		note_time(span, load_word(ring, at + SAMPLE_TIME));
		if (((word >> 32) & 0xffff) == exit_id) {
			counts->exits++;
			span->exits++;
		}
		if (ring->watch)
			show(ring, at, header, (uint16_t)(word >> 32));
		return;
	}
	if (type == PERF_RECORD_LOST || type == PERF_RECORD_LOST_SAMPLES) {
		counts->lost +=
			load_word(ring, at + (type == PERF_RECORD_LOST ? LOST_COUNT
								       : LOST_SAMPLES_COUNT));
		counts->overflows++;
	}
	if (type == PERF_RECORD_AUX && ring->pt && size >= AUX_BYTES_LEAST)
		vmt_pt_ring_note(ring->pt, load_word(ring, at + 8), load_word(ring, at + 16),
				 load_word(ring, at + 24),
				 load_word(ring, at + size - TRAILER_TIME), &counts->pt);
	counts->throttles += type == PERF_RECORD_THROTTLE;
	if ((type == PERF_RECORD_SWITCH || type == PERF_RECORD_SWITCH_CPU_WIDE) && ring->watch &&
	    size >= 8 + TRAILER_BYTES)
		show(ring, at, header, 0);
	if (type != PERF_RECORD_SAMPLE && size >= 8 + TRAILER_BYTES)
		note_time(span, load_word(ring, at + size - TRAILER_TIME));
}

static int flush(const struct vmt_capture_ring *ring, struct span *span, vmt_capture_sink_fn *sink,
		 void *context, struct vmt_capture_counts *counts, struct vmt_diag *diag)
{
	size_t len = (size_t)(span->end - span->start);
	size_t at = (size_t)(span->start & (ring->data_bytes - 1));
	size_t head = ring->data_bytes - at < len ? ring->data_bytes - at : len;
	struct vmt_store_chunk chunk = {
		.type = VMT_CHUNK_RECORDS,
		.stream = ring->stream,
		.cpu = ring->cpu,
		.time_first_ns = span->first_ns,
		.time_last_ns = span->last_ns,
		.records = span->records,
		.exits = span->exits,
		.nr_parts = len > head ? 2 : 1,
		.parts = { { ring->data + at, head }, { ring->data, len - head } },
	};
	int err = len ? sink(context, &chunk, diag) : 0;

	if (err)
		counts->unstored += len;
	else
		counts->bytes += len;
	if (span->first_ns && (!counts->first_ns || span->first_ns < counts->first_ns))
		counts->first_ns = span->first_ns;
	if (span->last_ns > counts->last_ns)
		counts->last_ns = span->last_ns;
	__atomic_store_n(&ring->page->data_tail, span->end, __ATOMIC_RELEASE);
	*span = (struct span){ .start = span->end, .end = span->end };
	return err;
}

bool vmt_capture_ring_is_full(const struct vmt_capture_ring *ring, bool was_full)
{
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t used = head - ring->page->data_tail;

	return used ? ring->data_bytes - used < RECORD_ROOM : was_full;
}

int vmt_capture_ring_drain(const struct vmt_capture_ring *ring, uint64_t exit_id,
			   vmt_capture_sink_fn *sink, void *context,
			   struct vmt_capture_counts *counts, struct vmt_diag *diag)
{
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->data_tail;
	struct span span = { .start = tail, .end = tail };
	int first_err = 0, err;

	while (span.end < head) {
		uint64_t header = load_word(ring, span.end);
		uint16_t size = (uint16_t)(header >> 48);

		if (size < 8 || size % 8 || size > head - span.end) {
			err = flush(ring, &span, sink, context, counts, diag);
			counts->unstored += head - span.end;
			__atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
			if (first_err || err)
				return first_err ? first_err : err;
			return vmt_diag_set(diag, VMT_E_DAMAGED, "a perf ring holds no record",
					    "another program wrote into the ring");
		}
		if (span.end - span.start + size > VMT_CAPTURE_CHUNK_BYTES) {
			err = flush(ring, &span, sink, context, counts, diag);
			first_err = first_err ? first_err : err;
		}
		count_record(ring, span.end, header, exit_id, &span, counts);
		span.end += size;
	}
	err = flush(ring, &span, sink, context, counts, diag);
	return first_err ? first_err : err;
}
