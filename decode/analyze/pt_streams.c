// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A heap of areas by the key of the first event in each one's queue. Invariant: an area is in the
 * heap exactly when its queue holds an event, and one that is not has ended: an area whose queue
 * becomes empty is fed until it has an event or ends. The key of an event is the earliest time that
 * it may have had, never less than that of the event before it in its area.
 */
#include "decode/analyze/pt_streams.h"

#include <stdlib.h>
#include <string.h>

#include "decode/analyze/pt_pieces.h"

#define FEED_BYTES   512u /* at most that many bytes' events wait beyond those of the decoder */
#define FIRST_EVENTS 16u
/* An event waits at most that long for others that may have been before it. */
#define ERROR_NS_MAX 10000000u
#define CPUS_MAX     VMT_PT_STREAMS_MAX

__extension__ typedef unsigned __int128 u128;

struct queued {
	uint64_t key;
	struct vmt_pt_span span;
	struct vmt_event event;
};

struct area {
	struct vmt_pt_streams *streams;
	struct vmt_pt_decoder *decoder;
	struct vmt_pt_pieces *pieces;
	struct vmt_pt_piece piece; /* what is left of it */
	struct queued *queue;	   /* a ring */
	uint32_t head, waiting, room;
	uint64_t key; /* of the last event */
	struct vmt_pt_span span;
	/* Bytes of the area that are in no piece, and those of them that are missing. */
	uint64_t total, skipped;
	bool ended;
};

struct vmt_pt_streams {
	struct vmt_pt_streams_options options;
	struct area *areas;
	size_t nr_areas;
	uint32_t *heap;
	size_t nr_heap;
	uint16_t of_cpu[CPUS_MAX]; /* area + 1, 0: none */
	bool primed, out_of_memory;
	uint64_t lost_bytes;
};

/* ---- time ---- */

static uint64_t error_ns(const struct vmt_pt_streams_options *o, uint64_t tsc)
{
	u128 ns;

	if (!o->has_perf_clock)
		return o->clock.tsc_hz ? vmt_tsc_to_ns(tsc, o->clock.tsc_hz) : tsc;
	ns = ((u128)tsc * o->perf_clock.mult >> o->perf_clock.shift) + 1;
	return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

static uint64_t to_ns(const struct vmt_pt_streams_options *o, uint64_t tsc)
{
	const struct vmt_host_tsc t = { tsc };

	if (o->has_perf_clock)
		return vmt_perf_clock_to_ns(&o->perf_clock, t).host_ns;
	return o->clock.tsc_hz ? vmt_tsc_to_ns(tsc, o->clock.tsc_hz) : tsc;
}

/* Gives the event its times, and says where it may lie. */
static void add_time(struct area *a, struct vmt_event *e)
{
	const struct vmt_pt_streams_options *o = &a->streams->options;
	const bool in_ns = o->has_perf_clock || o->clock.tsc_hz;
	uint64_t at, error;

	if (!(e->has & VMT_HAS_HOST_TSC))
		return;
	at = to_ns(o, e->host_tsc.host_tsc);
	if (in_ns) {
		e->time.host_ns = at;
		e->has |= VMT_HAS_TIME;
	}
	if (in_ns && e->has & VMT_HAS_DURATION_TSC) {
		e->duration_ns = to_ns(o, e->host_tsc.host_tsc + e->duration_tsc) - at;
		e->has |= VMT_HAS_DURATION;
	}
	a->span.low_ns = to_ns(o, e->host_tsc_low);
	a->span.high_ns = UINT64_MAX;
	if (e->host_tsc_error == VMT_PT_NO_BOUND)
		return;
	error = error_ns(o, e->host_tsc_error);
	if (!__builtin_add_overflow(at, error, &a->span.high_ns))
		return;
	a->span.high_ns = UINT64_MAX;
}

static uint64_t key_of(const struct area *a, const struct vmt_event *e)
{
	uint64_t key = a->span.low_ns, at;

	if (e->has & VMT_HAS_TIME) {
		at = e->time.host_ns;
		if (at - key > ERROR_NS_MAX)
			key = at - ERROR_NS_MAX;
	}
	return key > a->key ? key : a->key;
}

/* ---- the queue of an area ---- */

static bool make_room(struct area *a)
{
	const uint32_t room = a->room ? a->room * 2 : FIRST_EVENTS;
	struct queued *bigger = malloc(room * sizeof(*bigger));

	if (!bigger)
		return false;
	for (uint32_t i = 0; i < a->waiting; i++)
		bigger[i] = a->queue[(a->head + i) % a->room];
	free(a->queue);
	a->queue = bigger;
	a->head = 0;
	a->room = room;
	return true;
}

static void on_event(void *context, const struct vmt_event *event)
{
	struct area *a = context;
	struct queued *q;

	if (a->waiting == a->room && !make_room(a)) {
		a->streams->out_of_memory = true;
		return;
	}
	q = &a->queue[(a->head + a->waiting++) % a->room];
	q->event = *event;
	q->span = a->span;
	add_time(a, &q->event);
	if (event->type == VMT_EVENT_LOSS) { /* it began any time since the event before */
		q->span.high_ns = a->span.high_ns;
	} else {
		a->key = key_of(a, &q->event);
		q->span = a->span;
	}
	q->key = a->key;
}

/* A piece by a little at a time: all events of what is fed must be kept. */
static void feed(struct area *a)
{
	struct vmt_pt_piece part = a->piece;

	if (part.len > FEED_BYTES)
		part.len = FEED_BYTES;
	vmt_pt_piece_feed(&part, a->decoder);
	a->piece.join = VMT_PT_JOIN_CONTINUES;
	a->piece.bytes += part.len;
	a->piece.len -= part.len;
}

/* Goes to the next piece that has bytes. */
static int next_piece(struct area *a, struct vmt_diag *diag)
{
	int status;

	while ((status = vmt_pt_pieces_next(a->pieces, &a->piece, diag)) == 1 && !a->piece.bytes) {
		a->total += a->piece.skipped;
		if (a->piece.lost)
			a->skipped += a->piece.skipped;
	}
	if (status != 1)
		a->piece.len = 0;
	return status;
}

/* Feeds an area until it has an event or ends. */
static int fill(struct area *a, struct vmt_diag *diag)
{
	while (!a->waiting && !a->ended) {
		int status = a->piece.len ? 1 : next_piece(a, diag);

		if (status < 0)
			return status;
		if (status == 1) {
			feed(a);
		} else {
			vmt_pt_decoder_end(a->decoder);
			a->ended = true;
		}
	}
	if (a->streams->out_of_memory)
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot read the processor trace",
				    "memory is short");
	return 0;
}

/* ---- the heap ---- */

static uint64_t key_at(const struct vmt_pt_streams *s, size_t i)
{
	const struct area *a = &s->areas[s->heap[i]];

	return a->queue[a->head].key;
}

static bool older(const struct vmt_pt_streams *s, size_t i, size_t j)
{
	const uint64_t a = key_at(s, i), b = key_at(s, j);

	return a < b || (a == b && s->heap[i] < s->heap[j]);
}

static void swap(struct vmt_pt_streams *s, size_t i, size_t j)
{
	const uint32_t moved = s->heap[i];

	s->heap[i] = s->heap[j];
	s->heap[j] = moved;
}

static void sift_down(struct vmt_pt_streams *s, size_t i)
{
	for (size_t child = 2 * i + 1; child < s->nr_heap; child = 2 * i + 1) {
		if (child + 1 < s->nr_heap && older(s, child + 1, child))
			child++;
		if (!older(s, child, i))
			return;
		swap(s, i, child);
		i = child;
	}
}

static void push(struct vmt_pt_streams *s, uint32_t area)
{
	size_t i = s->nr_heap++;

	s->heap[i] = area;
	for (; i > 0 && older(s, i, (i - 1) / 2); i = (i - 1) / 2)
		swap(s, i, (i - 1) / 2);
}

static int prime(struct vmt_pt_streams *s, struct vmt_diag *diag)
{
	for (size_t i = 0; i < s->nr_areas; i++) {
		int status = fill(&s->areas[i], diag);

		if (status)
			return status;
		if (s->areas[i].waiting)
			push(s, (uint32_t)i);
	}
	s->primed = true;
	return 0;
}

int vmt_pt_streams_pull(struct vmt_pt_streams *s, uint64_t limit_ns, vmt_pt_streams_fn *emit,
			void *context, struct vmt_diag *diag)
{
	int status = s->primed ? 0 : prime(s, diag);

	while (!status && s->nr_heap && key_at(s, 0) <= limit_ns) {
		const size_t index = s->heap[0];
		struct area *a = &s->areas[index];
		struct queued *q = &a->queue[a->head];

		emit(context, index, &q->event, q->span);
		a->head = (a->head + 1) % a->room;
		a->waiting--;
		status = fill(a, diag);
		if (!a->waiting)
			s->heap[0] = s->heap[--s->nr_heap];
		sift_down(s, 0);
	}
	return status;
}

bool vmt_pt_streams_next(const struct vmt_pt_streams *s, uint64_t *time_ns)
{
	bool found = false;

	for (size_t i = 0; i < s->nr_areas; i++) {
		const struct area *a = &s->areas[i];

		for (uint32_t k = 0; k < a->waiting; k++) {
			const struct queued *q = &a->queue[(a->head + k) % a->room];

			if (!(q->event.has & VMT_HAS_TIME))
				continue;
			if (!found || q->event.time.host_ns < *time_ns)
				*time_ns = q->event.time.host_ns;
			found = true;
			break;
		}
	}
	return found;
}

/* ---- areas ---- */

static bool open_area(struct vmt_pt_streams *s, size_t index)
{
	const struct vmt_aux_area *aux = &s->options.index->areas[index];
	struct area *a = &s->areas[index];
	struct vmt_pt_decoder_options options = {
		.cpu = s->options.cpu,
		.clock = s->options.clock,
		.vms = s->options.vms,
		.nr_vms = s->options.nr_vms,
		.own_vm = s->options.own_vms ? &s->options.own_vms[index] : NULL,
		.emit = on_event,
		.context = a,
	};

	vmt_pt_decoder_setup(&options, s->options.index, index);
	if (aux->cpu != VMT_AUX_NO_CPU) /* the threads of a CPU are many */
		options.pid = options.tid = 0;
	a->streams = s;
	a->decoder = vmt_pt_decoder_new(&options);
	if (aux->cpu < CPUS_MAX && !s->of_cpu[aux->cpu])
		s->of_cpu[aux->cpu] = (uint16_t)(index + 1);
	a->pieces = vmt_pt_pieces_new(s->options.index, index);
	return a->decoder && a->pieces;
}

static void skip_area(struct vmt_pt_streams *s, const struct vmt_aux_area *aux)
{
	for (size_t i = 0; i < aux->nr_extents; i++)
		s->lost_bytes += aux->extents[i].len;
}

struct vmt_pt_streams *vmt_pt_streams_new(const struct vmt_pt_streams_options *options)
{
	struct vmt_pt_streams *s = calloc(1, sizeof(*s));
	const struct vmt_aux_index *index = options->index;
	bool good;

	if (!s)
		return NULL;
	s->options = *options;
	s->nr_areas = index->nr_areas < VMT_PT_STREAMS_MAX ? index->nr_areas : VMT_PT_STREAMS_MAX;
	s->areas = calloc(s->nr_areas + 1, sizeof(*s->areas));
	s->heap = calloc(s->nr_areas + 1, sizeof(*s->heap));
	good = s->areas && s->heap;
	for (size_t i = 0; good && i < s->nr_areas; i++)
		good = open_area(s, i);
	for (size_t i = s->nr_areas; i < index->nr_areas; i++)
		skip_area(s, &index->areas[i]);
	if (good)
		return s;
	vmt_pt_streams_free(s);
	return NULL;
}

void vmt_pt_streams_free(struct vmt_pt_streams *s)
{
	if (!s)
		return;
	for (size_t i = 0; s->areas && i < s->nr_areas; i++) {
		vmt_pt_decoder_free(s->areas[i].decoder);
		vmt_pt_pieces_free(s->areas[i].pieces);
		free(s->areas[i].queue);
	}
	free(s->areas);
	free(s->heap);
	free(s);
}

size_t vmt_pt_streams_area(const struct vmt_pt_streams *s, uint32_t cpu, uint32_t tid)
{
	if (cpu < CPUS_MAX && s->of_cpu[cpu])
		return s->of_cpu[cpu] - 1u;
	for (size_t i = 0; tid && i < s->nr_areas; i++) {
		const struct vmt_aux_area *aux = &s->options.index->areas[i];

		if (aux->cpu == UINT32_MAX && aux->tid == tid)
			return i;
	}
	return SIZE_MAX;
}

size_t vmt_pt_streams_count(const struct vmt_pt_streams *s)
{
	return s->nr_areas;
}

struct vmt_ledger vmt_pt_streams_ledger(const struct vmt_pt_streams *s)
{
	struct vmt_ledger sum = { .bytes_total = s->lost_bytes, .bytes_skipped = s->lost_bytes };

	for (size_t i = 0; i < s->nr_areas; i++) {
		const struct area *a = &s->areas[i];
		const struct vmt_ledger l = vmt_pt_decoder_ledger(a->decoder);

		sum.bytes_total += l.bytes_total + a->total;
		sum.bytes_decoded += l.bytes_decoded + (a->total - a->skipped);
		sum.bytes_skipped += l.bytes_skipped + a->skipped;
		sum.overflows += l.overflows;
		sum.truncated = sum.truncated || l.truncated;
	}
	return sum;
}

struct vmt_pt_counts vmt_pt_streams_counts(const struct vmt_pt_streams *s)
{
	struct vmt_pt_counts sum = { 0 };

	for (size_t i = 0; i < s->nr_areas; i++) {
		const struct vmt_pt_counts c = vmt_pt_decoder_counts(s->areas[i].decoder);

		sum.packets += c.packets;
		sum.entries += c.entries;
		sum.exits += c.exits;
		sum.failed_entries += c.failed_entries;
		sum.gaps += c.gaps;
		sum.overflows += c.overflows;
		sum.resyncs += c.resyncs;
		sum.nonroot_seen = sum.nonroot_seen || c.nonroot_seen;
		sum.pips += c.pips;
		sum.nonroot_pips += c.nonroot_pips;
		sum.exit_pips += c.exit_pips;
		sum.entry_cfes += c.entry_cfes;
		sum.exit_cfes += c.exit_cfes;
		sum.events += c.events;
	}
	return sum;
}
