// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * PT events wait in a ring in the order in which they came, those of one area also in a chain,
 * until a tracepoint takes them or none can any more. Invariants: slots [head, tail) are in the
 * ring; the chain of an area begins behind the last event that was taken in it, so that what is
 * joined keeps its order; a PT event goes out exactly once, alone or in a joined event.
 */
#include "decode/analyze/fuse.h"

#include <stdlib.h>

#include "decode/analyze/fuse_pairs.h"
#include "decode/analyze/fuse_stash.h"

#define EVENTS_FIRST 256u /* powers of two */
#define EVENTS_MAX   65536u
/* The perf clock of a tracepoint and the time of PT are the same TSC, but for rounding. */
#define SLACK_NS 300u
/* A VM exit whose kvm_exit has not come by then, however long an NMI or SMI took, has none. */
#define EXPIRE_NS  10000000u
#define CANDIDATES 8u

struct slot {
	struct vmt_event event;
	struct vmt_pt_span span;
	uint64_t next; /* number of the next one of the area, 0: none */
	uint32_t area;
	bool taken;
};

/* What waits for the PT entry that a kvm_entry announces. */
struct awaiting {
	bool is_open, has_exit;
	struct vmt_event exit;	/* PT's part is in it when its source is PT */
	struct vmt_event entry; /* the join's */
};

struct lane {		      /* of an area */
	uint64_t first, last; /* numbers of its chain */
	struct awaiting await;
	bool seen;	 /* an event with a time came */
	uint64_t unsure; /* kvm_exits without PT since the last event */
};

struct stash {		  /* the PT exit of a kvm_exit that the join holds */
	uint64_t time_ns; /* of the kvm_exit */
	bool is_full;
	struct vmt_event exit;
};

struct thread {
	uint32_t tid;
	struct stash stash[2]; /* a next one may come before the join lets the last one go */
};

struct vmt_fuse {
	struct vmt_pt_who *who;
	struct vmt_pairs *pairs;
	vmt_event_fn *emit;
	void *context;
	void (*learnt)(void *context, uint64_t vmcs);
	void *learnt_context;

	struct slot *ring;
	uint64_t head, tail; /* numbers, from 1 */
	size_t room;
	struct lane *lanes;
	size_t nr_lanes;

	struct vmt_fuse_stash *stash;

	bool active, covered, has_held;
	uint64_t first_ns; /* of the first kvm_exit */
	uint64_t now_ns;
	struct vmt_event held; /* an exit of the join that its entry may follow */
	struct vmt_fuse_counts counts;
};

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
	f->ring = malloc(f->room * sizeof(*f->ring));
	f->lanes = calloc(nr_areas + 1, sizeof(*f->lanes));
	f->pairs = vmt_pairs_new(emit, context);
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

void vmt_fuse_on_vmcs(struct vmt_fuse *f, void (*learnt)(void *context, uint64_t vmcs),
		      void *context)
{
	f->learnt = learnt;
	f->learnt_context = context;
}

static uint64_t later(uint64_t ns, uint64_t by)
{
	return ns > UINT64_MAX - by ? UINT64_MAX : ns + by;
}

static void learn(struct vmt_fuse *f, const struct vmt_event *e, uint32_t tid)
{
	if (e->has & VMT_HAS_VMCS && vmt_pt_who_vmcs(f->who, e->vmcs, tid) && f->learnt)
		f->learnt(f->learnt_context, e->vmcs);
}

/* ---- the ring ---- */

static struct slot *slot_at(const struct vmt_fuse *f, uint64_t number)
{
	return &f->ring[number & (f->room - 1)];
}

/* The next entry in the chain, if it is near. */
static const struct slot *entry_behind(const struct vmt_fuse *f, uint64_t number)
{
	number = slot_at(f, number)->next;
	for (unsigned int i = 0; number && i < CANDIDATES; i++) {
		const struct slot *s = slot_at(f, number);

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
static uint64_t end_of(const struct slot *s)
{
	const uint64_t most = later(s->span.low_ns, 2 * EXPIRE_NS);

	return s->span.high_ns < most ? s->span.high_ns : most;
}

/* Whether no tracepoint that is still to come can belong to the event. */
static bool is_done(const struct vmt_fuse *f, uint64_t number)
{
	const struct slot *s = slot_at(f, number), *entry;
	const uint64_t end = end_of(s);

	if (f->now_ns == UINT64_MAX || s->taken)
		return true;
	if (f->active && s->event.type == VMT_EVENT_EXIT && f->now_ns <= later(end, EXPIRE_NS)) {
		entry = entry_behind(f, number);
		return entry && f->now_ns > later(end_of(entry), SLACK_NS);
	}
	return f->now_ns > later(end, SLACK_NS);
}

static void send_alone(struct vmt_fuse *f, struct slot *s)
{
	struct vmt_event *e = &s->event;
	uint32_t before = 0;

	if (f->active && is_join_event(e) && !(e->has & VMT_HAS_TIME)) {
		f->counts.untimed++;
		return;
	}
	if (f->active && e->type == VMT_EVENT_EXIT &&
	    later(s->span.high_ns, SLACK_NS) >= f->first_ns)
		f->counts.only_pt++;
	if (e->has & VMT_HAS_VMCS)
		before = vmt_pt_who_tid_of(f->who, e->vmcs);
	vmt_pt_who_fill(f->who, s->area, e, s->span);
	if (f->learnt && e->has & VMT_HAS_VMCS && vmt_pt_who_tid_of(f->who, e->vmcs) != before)
		f->learnt(f->learnt_context, e->vmcs);
	vmt_pairs_push(f->pairs, s->area, e);
}

static void release_head(struct vmt_fuse *f)
{
	struct slot *s = slot_at(f, f->head);
	struct lane *l = &f->lanes[s->area];

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
static struct slot *place(struct vmt_fuse *f)
{
	if (f->tail - f->head == f->room && f->room < EVENTS_MAX) {
		struct slot *bigger = malloc(2 * f->room * sizeof(*bigger));

		for (uint64_t n = f->head; bigger && n < f->tail; n++)
			bigger[n & (2 * f->room - 1)] = *slot_at(f, n);
		if (bigger) {
			free(f->ring);
			f->ring = bigger;
			f->room *= 2;
		}
	}
	if (f->tail - f->head == f->room)
		release_head(f);
	return slot_at(f, f->tail);
}

/* Takes an event out of its chain, and with it all before it. */
static void take(struct vmt_fuse *f, struct lane *l, uint64_t number)
{
	struct slot *s = slot_at(f, number);

	s->taken = true;
	l->first = s->next;
	if (!l->first)
		l->last = 0;
}

/* ---- entries ---- */

/* The exit ends here: where the decoder of its CPU saw the same end, or the tracepoints did. */
static void end_exit(struct vmt_event *x, const struct vmt_event *entry)
{
	const bool has_tsc = x->has & entry->has & VMT_HAS_HOST_TSC &&
			     entry->host_tsc.host_tsc >= x->host_tsc.host_tsc;
	const uint64_t tsc = entry->host_tsc.host_tsc - x->host_tsc.host_tsc;
	const bool known = x->has & VMT_HAS_DURATION ||
			   (has_tsc && x->has & VMT_HAS_DURATION_TSC && x->duration_tsc == tsc);

	if (x->source != VMT_SOURCE_PT)
		return;
	x->has &= ~(uint32_t)(VMT_HAS_DURATION_TSC | VMT_HAS_DURATION);
	if (!known || entry->time.host_ns < x->time.host_ns)
		return;
	x->duration_ns = entry->time.host_ns - x->time.host_ns;
	x->has |= VMT_HAS_DURATION;
	if (has_tsc) {
		x->duration_tsc = tsc;
		x->has |= VMT_HAS_DURATION_TSC;
	}
}

/* Sends what waits; entry: PT's, or NULL. */
static void close_await(struct vmt_fuse *f, size_t area, const struct vmt_event *entry)
{
	struct awaiting *a = &f->lanes[area].await;
	struct vmt_event *e = &a->entry;

	a->is_open = false;
	if (entry) {
		e->source = VMT_SOURCE_PT;
		e->joined = true;
		e->time = entry->time;
		e->host_tsc = entry->host_tsc;
		e->host_tsc_error = entry->host_tsc_error;
		e->vmcs = entry->vmcs;
		e->guest_cr3 = entry->guest_cr3;
		if (entry->has & VMT_HAS_RIP)
			e->guest_rip = entry->guest_rip;
		e->has |= entry->has & (uint32_t)(VMT_HAS_TIME | VMT_HAS_HOST_TSC | VMT_HAS_VMCS |
						  VMT_HAS_CR3 | VMT_HAS_RIP);
		learn(f, entry, e->tid);
	}
	if (a->has_exit) {
		end_exit(&a->exit, e);
		f->emit(f->context, &a->exit);
	}
	vmt_pairs_see(f->pairs, area, e);
	f->emit(f->context, e);
}

static bool rip_differs(const struct vmt_event *a, const struct vmt_event *b)
{
	return a->has & b->has & VMT_HAS_RIP && a->guest_rip != b->guest_rip;
}

/* Looks for the PT entry, or the failed one, that a kvm_entry announced. */
static void try_await(struct vmt_fuse *f, size_t area)
{
	struct lane *l = &f->lanes[area];
	const uint64_t at = l->await.entry.time.host_ns;
	uint64_t best = 0;
	unsigned int looked = 0;

	for (uint64_t n = l->first; n && looked < CANDIDATES; n = slot_at(f, n)->next) {
		const struct slot *s = slot_at(f, n);

		if (s->event.type != VMT_EVENT_ENTRY && !s->event.failed_entry)
			continue;
		if (later(s->span.high_ns, SLACK_NS) < at)
			continue;
		if (!best || rip_differs(&slot_at(f, best)->event, &l->await.entry))
			best = !best || !rip_differs(&s->event, &l->await.entry) ? n : best;
		looked++;
	}
	if (!best)
		return;
	if (slot_at(f, best)->event.type == VMT_EVENT_ENTRY) {
		take(f, l, best);
		close_await(f, area, &slot_at(f, best)->event);
	} else {
		close_await(f, area, NULL);
	}
}

static void settle_await(struct vmt_fuse *f, size_t area)
{
	if (!f->lanes[area].await.is_open)
		return;
	try_await(f, area);
	if (f->lanes[area].await.is_open)
		close_await(f, area, NULL);
}

/* ---- what PT tells ---- */

/* kvm_exits that PT did not show between two of its events, with no loss between. */
static void settle_unsure(struct vmt_fuse *f, struct lane *l, const struct vmt_event *e)
{
	if (e->type != VMT_EVENT_LOSS && e->type != VMT_EVENT_GAP)
		f->counts.only_kvm += l->unsure;
	l->unsure = 0;
	l->seen = true;
}

void vmt_fuse_pt(void *context, size_t area, const struct vmt_event *event, struct vmt_pt_span span)
{
	struct vmt_fuse *f = context;
	struct lane *l = &f->lanes[area];
	struct slot *s = place(f);
	const uint64_t number = f->tail++;

	*s = (struct slot){ .event = *event, .span = span, .area = (uint32_t)area };
	if (event->has & VMT_HAS_TIME)
		settle_unsure(f, l, event);
	if (is_join_event(event) && event->has & VMT_HAS_TIME) {
		if (l->last)
			slot_at(f, l->last)->next = number;
		else
			l->first = number;
		l->last = number;
		if (l->await.is_open)
			try_await(f, area);
	}
	release(f);
}

/* ---- what the tracepoints tell ---- */

static bool agrees(const struct vmt_event *pt, const struct vmt_fuse_exit *kvm)
{
	if (pt->has & VMT_HAS_RIP && kvm->has_rip && pt->guest_rip != kvm->guest_rip)
		return false;
	return !(pt->has & VMT_HAS_REASON) || !kvm->has_reason ||
	       (pt->reason | pt->reason_flags) == kvm->reason;
}

/* The PT exit that a kvm_exit belongs to: the first one that its time allows and that agrees, else
 * the first one that its time allows. */
static uint64_t find_exit(const struct vmt_fuse *f, const struct lane *l,
			  const struct vmt_fuse_exit *kvm)
{
	uint64_t best = 0;
	unsigned int looked = 0;

	for (uint64_t n = l->first; n && looked < CANDIDATES; n = slot_at(f, n)->next) {
		const struct slot *s = slot_at(f, n), *entry;

		if (s->span.low_ns > later(kvm->time_ns, SLACK_NS))
			break;
		if (s->event.type != VMT_EVENT_EXIT)
			continue;
		entry = entry_behind(f, n);
		if (entry && later(entry->span.high_ns, SLACK_NS) < kvm->time_ns)
			continue;
		if (agrees(&s->event, kvm))
			return n;
		if (!best)
			best = n;
		looked++;
	}
	return best;
}

void vmt_fuse_exit(struct vmt_fuse *f, size_t area, const struct vmt_fuse_exit *kvm)
{
	struct lane *l = area < f->nr_lanes ? &f->lanes[area] : NULL;
	const struct slot *s;
	uint64_t n;

	if (!f->active)
		f->first_ns = kvm->time_ns;
	f->active = true;
	if (!l)
		return;
	f->covered = true;
	settle_await(f, area);
	n = find_exit(f, l, kvm);
	s = slot_at(f, n);
	if (!n || !vmt_fuse_stash_put(f->stash, kvm->tid, kvm->time_ns, &s->event)) {
		l->unsure += l->seen;
		return;
	}
	learn(f, &s->event, kvm->tid);
	take(f, l, n);
}

static void compare(struct vmt_fuse *f, const struct vmt_event *kvm, const struct vmt_event *pt)
{
	f->counts.joined++;
	f->counts.disagree_rip += rip_differs(kvm, pt);
	if (kvm->has & pt->has & VMT_HAS_REASON)
		f->counts.disagree_reason +=
			kvm->reason != pt->reason || kvm->reason_flags != pt->reason_flags;
}

/* Lays PT's part over the tracepoint's. */
static void merge(struct vmt_event *e, const struct vmt_event *pt)
{
	const uint32_t copied = VMT_HAS_TIME | VMT_HAS_HOST_TSC | VMT_HAS_VMCS | VMT_HAS_CR3;

	e->source = VMT_SOURCE_PT;
	e->joined = true;
	e->time = pt->time;
	e->host_tsc = pt->host_tsc;
	e->host_tsc_error = pt->host_tsc_error;
	e->vmcs = pt->vmcs;
	e->guest_cr3 = pt->guest_cr3;
	e->has |= pt->has & copied;
	if (pt->has & VMT_HAS_RIP)
		e->guest_rip = pt->guest_rip;
	if (pt->has & VMT_HAS_REASON) {
		e->reason = pt->reason;
		e->reason_flags = pt->reason_flags;
		e->failed_entry = pt->failed_entry;
	}
	if (pt->has & VMT_HAS_QUALIFICATION)
		e->qualification = pt->qualification;
	if (pt->has & VMT_HAS_VECTOR)
		e->vector = pt->vector;
	if (e->key.kind == VMT_KEY_NONE)
		e->key = pt->key;
	if (pt->has & VMT_HAS_DOMAIN)
		e->domain = pt->domain;
	if (pt->has & VMT_HAS_VCPU)
		e->vcpu = pt->vcpu;
	e->has |= pt->has & (uint32_t)(VMT_HAS_RIP | VMT_HAS_REASON | VMT_HAS_QUALIFICATION |
				       VMT_HAS_VECTOR | VMT_HAS_DOMAIN | VMT_HAS_VCPU);
	e->duration_tsc = pt->duration_tsc;
	e->has |= pt->has & VMT_HAS_DURATION_TSC;
}

static void send_held(struct vmt_fuse *f)
{
	if (!f->has_held)
		return;
	f->has_held = false;
	f->held.has &= ~(uint32_t)VMT_HAS_DURATION_TSC; /* of another end than duration_ns */
	f->emit(f->context, &f->held);
}

static void on_exit_event(struct vmt_fuse *f, size_t area, const struct vmt_event *event)
{
	struct vmt_event pt;

	send_held(f);
	f->held = *event;
	f->has_held = true;
	if (!vmt_fuse_stash_take(f->stash, event->tid, event->time.host_ns, &pt))
		return;
	compare(f, event, &pt);
	merge(&f->held, &pt);
	vmt_pairs_see(f->pairs, area, &f->held);
}

static void on_entry_event(struct vmt_fuse *f, size_t area, const struct vmt_event *event)
{
	struct awaiting *a;

	if (area >= f->nr_lanes) {
		send_held(f);
		f->emit(f->context, event);
		return;
	}
	settle_await(f, area);
	a = &f->lanes[area].await;
	*a = (struct awaiting){ .is_open = true, .entry = *event };
	if (f->has_held && f->held.tid == event->tid) {
		a->has_exit = true;
		a->exit = f->held;
		f->has_held = false;
	}
	send_held(f);
	try_await(f, area);
}

void vmt_fuse_event(struct vmt_fuse *f, size_t area, const struct vmt_event *event)
{
	switch (event->type) {
	case VMT_EVENT_EXIT:
		on_exit_event(f, area, event);
		return;
	case VMT_EVENT_ENTRY:
		on_entry_event(f, area, event);
		return;
	default:
		send_held(f);
		f->emit(f->context, event);
	}
}

void vmt_fuse_settle(struct vmt_fuse *f)
{
	send_held(f);
}

void vmt_fuse_advance(struct vmt_fuse *f, uint64_t now_ns)
{
	if (now_ns > f->now_ns)
		f->now_ns = now_ns;
	release(f);
}

void vmt_fuse_flush(struct vmt_fuse *f)
{
	send_held(f);
	vmt_fuse_advance(f, UINT64_MAX);
	for (size_t i = 0; i < f->nr_lanes; i++)
		settle_await(f, i);
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
