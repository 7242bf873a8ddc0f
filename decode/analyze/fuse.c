// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * PT events wait in a ring in the order in which they came, those of one area also in a chain,
 * until a tracepoint takes them or none can any more. Invariants: slots [head, tail) are in the
 * ring; the chain of an area begins behind the last event that was taken in it, so that what is
 * joined keeps its order; a PT event goes out exactly once, alone or in a joined event.
 */
#include "decode/analyze/fuse_private.h"

#include <stdlib.h>

#define EVENTS_FIRST 256u /* powers of two */
#define EVENTS_MAX   65536u

/* ---- life ---- */

struct vmt_fuse *vmt_fuse_new(size_t nr_areas, struct vmt_pt_who *who, vmt_event_fn *emit,
			      void *context)
{
	struct vmt_fuse *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->who = who;
	f->emit = emit;
	f->context = context;
	f->head = f->tail = 1;
	f->room = EVENTS_FIRST;
	f->nr_lanes = nr_areas;
	f->oldest = f->newest = f->due = FUSE_NO_LANE;
	f->ring = calloc(f->room, sizeof(*f->ring));
	f->lanes = calloc(nr_areas + 1, sizeof(*f->lanes));
	f->pairs = vmt_pairs_new(who, emit, context);
	f->stash = vmt_fuse_stash_new();
	if (f->ring && f->lanes && f->pairs && f->stash)
		return f;
	vmt_fuse_free(f);
	return NULL;
}

void vmt_fuse_free(struct vmt_fuse *f)
{
	if (!f)
		return;
	vmt_pairs_free(f->pairs);
	free(f->ring);
	free(f->lanes);
	vmt_fuse_stash_free(f->stash);
	free(f);
}

void vmt_fuse_expect_kvm(struct vmt_fuse *f)
{
	f->expects = true;
}

void vmt_fuse_clock(struct vmt_fuse *f, const struct vmt_perf_clock *clock)
{
	f->clock = *clock;
	f->has_clock = true;
}

void vmt_fuse_on_vmcs(struct vmt_fuse *f, void (*learnt)(void *context, uint64_t vmcs),
		      void *context)
{
	f->learnt = learnt;
	f->learnt_context = context;
}

void fuse_learn(struct vmt_fuse *f, const struct vmt_event *e, uint32_t tid)
{
	if (e->has & VMT_HAS_VMCS && vmt_pt_who_vmcs(f->who, e->vmcs, tid) && f->learnt)
		f->learnt(f->learnt_context, e->vmcs);
}

/* ---- the ring ---- */

/* The next entry in the chain, if it is near. */
const struct fuse_slot *fuse_entry_behind(const struct vmt_fuse *f, uint64_t number)
{
	number = fuse_slot_at(f, number)->next;
	for (unsigned int i = 0; number && i < FUSE_CANDIDATES; i++) {
		const struct fuse_slot *s = fuse_slot_at(f, number);

		number = s->next;
		if (s->event.type == VMT_EVENT_ENTRY)
			return s;
	}
	return NULL;
}

static bool is_join_event(const struct vmt_event *e)
{
	return e->type == VMT_EVENT_EXIT || e->type == VMT_EVENT_ENTRY;
}

/* Where an event without a bound of its time ends for those who wait for it. */
static uint64_t end_of(const struct fuse_slot *s)
{
	const uint64_t most = fuse_later(s->span.low_ns, 2 * FUSE_EXPIRE_NS);

	return s->span.high_ns < most ? s->span.high_ns : most;
}

/* Whether no tracepoint that is still to come can belong to the event. */
static bool is_done(const struct vmt_fuse *f, uint64_t number)
{
	const struct fuse_slot *s = fuse_slot_at(f, number), *entry;
	const uint64_t end = end_of(s);

	if (f->now_ns == UINT64_MAX || s->taken || number < f->lanes[s->area].passed)
		return true;
	if ((f->active || f->expects) && s->event.type == VMT_EVENT_EXIT &&
	    f->now_ns <= fuse_later(end, FUSE_EXPIRE_NS)) {
		entry = fuse_entry_behind(f, number);
		return entry && f->now_ns > fuse_later(end_of(entry), FUSE_SLACK_NS);
	}
	return f->now_ns > fuse_later(end, FUSE_SLACK_NS);
}

static void send_alone(struct vmt_fuse *f, struct fuse_slot *s)
{
	struct vmt_event *e = &s->event;
	uint32_t before = 0;

	if ((f->active || f->expects) && is_join_event(e) && !(e->has & VMT_HAS_TIME)) {
		f->counts.untimed += e->type == VMT_EVENT_EXIT;
		return;
	}
	if (f->has_first && e->type == VMT_EVENT_EXIT &&
	    fuse_later(s->span.high_ns, FUSE_SLACK_NS) >= f->first_ns)
		f->counts.only_pt++;
	if (e->has & VMT_HAS_VMCS)
		before = vmt_pt_who_tid_of(f->who, e->vmcs);
	vmt_pt_who_fill(f->who, s->area, e, s->span);
	if (f->learnt && e->has & VMT_HAS_VMCS && vmt_pt_who_tid_of(f->who, e->vmcs) != before)
		f->learnt(f->learnt_context, e->vmcs);
	vmt_pairs_push(f->pairs, s->area, e, s->span);
}

static void release_head(struct vmt_fuse *f)
{
	struct fuse_slot *s = fuse_slot_at(f, f->head);
	struct fuse_lane *l = &f->lanes[s->area];

	if (l->first == f->head)
		l->first = s->next;
	if (!l->first)
		l->last = 0;
	if (!s->taken)
		send_alone(f, s);
	f->head++;
}

static void release(struct vmt_fuse *f)
{
	while (f->head < f->tail && is_done(f, f->head))
		release_head(f);
}

/* A place at the tail; a ring that cannot grow lets its first event go. */
static struct fuse_slot *place(struct vmt_fuse *f)
{
	if (f->tail - f->head == f->room && f->room < EVENTS_MAX) {
		struct fuse_slot *bigger = calloc(2 * f->room, sizeof(*bigger));

		for (uint64_t n = f->head; bigger && n < f->tail; n++)
			bigger[n & (2 * f->room - 1)] = *fuse_slot_at(f, n);
		if (bigger) {
			free(f->ring);
			f->ring = bigger;
			f->room *= 2;
		}
	}
	if (f->tail - f->head == f->room)
		release_head(f);
	return fuse_slot_at(f, f->tail);
}

/* Takes an event out of its chain, and with it all before it. */
void fuse_take(struct vmt_fuse *f, struct fuse_lane *l, uint64_t number)
{
	struct fuse_slot *s = fuse_slot_at(f, number);

	s->taken = true;
	l->passed = number;
	l->first = s->next;
	if (!l->first)
		l->last = 0;
}

static struct fuse_recent *recent_of(struct vmt_fuse *f, uint64_t vmcs)
{
	return &f->recent[(vmcs >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> 52 &
			  (FUSE_RECENT_EXITS - 1)];
}

static void note_exit(struct vmt_fuse *f, struct fuse_slot *s, uint64_t number)
{
	struct fuse_recent *r = recent_of(f, s->event.vmcs);

	s->before = r->vmcs == s->event.vmcs ? r->number : 0;
	*r = (struct fuse_recent){ s->event.vmcs, number };
}

/* The vCPU entered: the kvm_exit of its exit before that will not come any more. */
void fuse_release_exit(struct vmt_fuse *f, uint64_t entry)
{
	const struct vmt_event *e = &fuse_slot_at(f, entry)->event;
	const struct fuse_recent *r = recent_of(f, e->vmcs);
	uint64_t n = e->has & VMT_HAS_VMCS && r->vmcs == e->vmcs ? r->number : 0;
	struct fuse_slot *s;

	for (unsigned int i = 0; n > entry && i < FUSE_CANDIDATES; i++)
		n = fuse_slot_at(f, n)->before;
	if (n < f->head || n > entry)
		return;
	s = fuse_slot_at(f, n);
	/* Between CPUs the order of numbers is that of the earliest times alone. */
	if (s->taken ||
	    (s->area != fuse_slot_at(f, entry)->area && s->span.high_ns > e->time.host_ns))
		return;
	s->taken = true;
	send_alone(f, s);
}

/* ---- what PT tells ---- */

/* kvm_exits that PT did not show between two of its events, with no loss between. What lies before
 * the first event with a time is not covered. */
static void settle_unsure(struct vmt_fuse *f, struct fuse_lane *l, const struct vmt_event *e,
			  struct vmt_pt_span span)
{
	const bool loss = e->type == VMT_EVENT_LOSS || e->type == VMT_EVENT_GAP;

	if (!loss)
		f->counts.only_kvm += l->unsure;
	if (!l->seen || loss == (span.high_ns > l->lossy_until_ns))
		l->lossy_until_ns = span.high_ns;
	l->unsure = 0;
	l->seen = true;
}

/* An exit or entry somewhere behind the last event with a time: any kvm_exit may be its own. */
static void doubt(struct fuse_lane *l)
{
	l->unsure = 0;
	l->lossy_until_ns = UINT64_MAX; /* the next event with a time bounds it */
}

void vmt_fuse_pt(void *context, size_t area, const struct vmt_event *event, struct vmt_pt_span span)
{
	struct vmt_fuse *f = context;
	struct fuse_lane *l = &f->lanes[area];
	struct fuse_slot *s = place(f);
	const uint64_t number = f->tail++;

	*s = (struct fuse_slot){ .event = *event, .span = span, .area = (uint32_t)area };
	if (event->has & VMT_HAS_TIME)
		settle_unsure(f, l, event, span);
	else if (is_join_event(event))
		doubt(l);
	if (is_join_event(event) && event->has & VMT_HAS_TIME) {
		if (l->last)
			fuse_slot_at(f, l->last)->next = number;
		else
			l->first = number;
		l->last = number;
		if (event->type == VMT_EVENT_EXIT && event->has & VMT_HAS_VMCS)
			note_exit(f, s, number);
		fuse_await_due(f, area);
	}
	release(f);
}

void vmt_fuse_advance(struct vmt_fuse *f, uint64_t now_ns)
{
	if (now_ns > f->now_ns)
		f->now_ns = now_ns;
	fuse_await_advance(f);
	release(f);
}

void vmt_fuse_flush(struct vmt_fuse *f)
{
	fuse_send_held(f);
	vmt_fuse_advance(f, UINT64_MAX);
	for (size_t i = 0; i < f->nr_lanes; i++)
		fuse_await_settle(f, i, UINT64_MAX);
	vmt_pairs_flush(f->pairs);
}

struct vmt_fuse_counts vmt_fuse_counts(const struct vmt_fuse *f)
{
	return f->counts;
}

bool vmt_fuse_covered(const struct vmt_fuse *f)
{
	return f->covered;
}
