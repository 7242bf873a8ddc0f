// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A binary heap over (time, sequence) beside a slab of events. Invariant: heap[0..waiting) is a
 * heap, each node names another slab place, and the places from `waiting` on in `heap` are the free
 * ones.
 */
#include "decode/analyze/reorder.h"

#include <stdlib.h>

#define FIRST_EVENTS 256u

struct node {
	uint64_t time, sequence;
	uint32_t place;
};

struct vmt_reorder {
	struct node *heap;
	struct vmt_event *slab;
	size_t waiting, room, max;
	uint64_t sequence, newest, passed, late;
	vmt_event_fn *emit;
	void *context;
};

struct vmt_reorder *vmt_reorder_new(size_t max_events, vmt_event_fn *emit, void *context)
{
	struct vmt_reorder *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->max = max_events ? max_events : VMT_REORDER_EVENTS;
	if (r->max > VMT_REORDER_EVENTS_MAX)
		r->max = VMT_REORDER_EVENTS_MAX;
	r->emit = emit;
	r->context = context;
	return r;
}

void vmt_reorder_free(struct vmt_reorder *reorder)
{
	if (!reorder)
		return;
	free(reorder->heap);
	free(reorder->slab);
	free(reorder);
}

static int older(const struct node *a, const struct node *b)
{
	return a->time < b->time || (a->time == b->time && a->sequence < b->sequence);
}

static void sift_up(struct node *heap, size_t i)
{
	struct node moved = heap[i];

	while (i > 0 && older(&moved, &heap[(i - 1) / 2])) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = moved;
}

static void sift_down(struct node *heap, size_t n, size_t i)
{
	struct node moved = heap[i];

	for (size_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
		if (child + 1 < n && older(&heap[child + 1], &heap[child]))
			child++;
		if (!older(&heap[child], &moved))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = moved;
}

/* More room for waiting events, up to the bound; 0 when there is none to be had. */
static int make_room(struct vmt_reorder *r)
{
	size_t room = r->room ? r->room * 2 : FIRST_EVENTS;
	struct node *heap;
	struct vmt_event *slab;

	if (room > r->max)
		room = r->max;
	if (room <= r->room)
		return 0;
	heap = realloc(r->heap, room * sizeof(*heap));
	if (!heap)
		return 0;
	r->heap = heap;
	slab = realloc(r->slab, room * sizeof(*slab));
	if (!slab)
		return 0;
	r->slab = slab;
	for (size_t i = r->room; i < room; i++)
		heap[i].place = (uint32_t)i;
	r->room = room;
	return 1;
}

static void let_oldest_go(struct vmt_reorder *r)
{
	struct node oldest = r->heap[0];

	r->waiting--;
	r->heap[0] = r->heap[r->waiting];
	r->heap[r->waiting] = oldest;
	if (r->waiting)
		sift_down(r->heap, r->waiting, 0);
	r->passed = oldest.time;
	r->emit(r->context, &r->slab[oldest.place]);
}

void vmt_reorder_push(struct vmt_reorder *reorder, const struct vmt_event *event)
{
	struct vmt_reorder *r = reorder;
	uint64_t time = event->has & VMT_HAS_TIME ? event->time.host_ns : r->newest;

	if (time > r->newest)
		r->newest = time;
	if (time < r->passed || (r->waiting == r->room && !make_room(r) && r->room == 0)) {
		r->late += time < r->passed;
		r->emit(r->context, event);
		return;
	}
	if (r->waiting == r->room) {
		if (time < r->heap[0].time) {
			r->passed = time;
			r->emit(r->context, event);
			return;
		}
		let_oldest_go(r);
	}
	r->heap[r->waiting].time = time;
	r->heap[r->waiting].sequence = r->sequence++;
	r->slab[r->heap[r->waiting].place] = *event;
	sift_up(r->heap, r->waiting++);
}

void vmt_reorder_flush(struct vmt_reorder *reorder)
{
	while (reorder->waiting)
		let_oldest_go(reorder);
}

uint64_t vmt_reorder_late(const struct vmt_reorder *reorder)
{
	return reorder->late;
}
