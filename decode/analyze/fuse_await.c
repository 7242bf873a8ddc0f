// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What kvm_entry announces waits for its PT entry, with the exit that it ends. Invariant: the lanes
 * that wait are in a list by the time of their kvm_entry; none waits longer than FUSE_EXPIRE_NS of
 * the tracepoints' time, or until the next kvm_exit or kvm_entry of its CPU.
 */
#include "decode/analyze/fuse_private.h"

static void link_lane(struct vmt_fuse *f, size_t area)
{
	struct fuse_awaiting *a = &f->lanes[area].await;

	a->is_open = true;
	a->older = f->newest;
	a->newer = FUSE_NO_LANE;
	if (f->newest != FUSE_NO_LANE)
		f->lanes[f->newest].await.newer = area;
	else
		f->oldest = area;
	f->newest = area;
}

static void unlink_lane(struct vmt_fuse *f, size_t area)
{
	struct fuse_awaiting *a = &f->lanes[area].await;

	a->is_open = false;
	if (a->older != FUSE_NO_LANE)
		f->lanes[a->older].await.newer = a->newer;
	else
		f->oldest = a->newer;
	if (a->newer != FUSE_NO_LANE)
		f->lanes[a->newer].await.older = a->older;
	else
		f->newest = a->older;
}

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

/* Sends what waits; number: of PT's entry, or 0. */
static void close_await(struct vmt_fuse *f, size_t area, uint64_t number)
{
	struct vmt_event pt = fuse_slot_at(f, number)->event, *entry = &pt;
	struct fuse_awaiting *a = &f->lanes[area].await;
	struct vmt_event *e = &a->entry;

	unlink_lane(f, area);
	if (number) {
		fuse_release_exit(f, number);
		fuse_sharpen_entry(f, &pt, e->time.host_ns);
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
		fuse_learn(f, entry, e->tid);
	}
	if (a->has_exit) {
		end_exit(&a->exit, e);
		f->emit(f->context, &a->exit);
	}
	vmt_pairs_see(f->pairs, area, e);
	f->emit(f->context, e);
}

/* Whether an entry of PT can be the one that is waited for, and how well it fits: 0, 1 or 2. */
static int fit_of(const struct fuse_slot *s, const struct vmt_event *kvm)
{
	const uint64_t at = kvm->time.host_ns;

	if (fuse_later(s->span.high_ns, FUSE_SLACK_NS) < at)
		return 0;
	if (!fuse_rip_differs(&s->event, kvm))
		return 2;
	return s->span.high_ns < fuse_later(at, FUSE_NARROW_NS) &&
	       s->span.high_ns - s->span.low_ns < FUSE_NARROW_NS;
}

void fuse_await_try(struct vmt_fuse *f, size_t area, uint64_t now_ns)
{
	struct fuse_lane *l = &f->lanes[area];
	unsigned int looked = 0;
	uint64_t best = 0;
	int best_fit = 0;

	for (uint64_t n = l->first; n && looked < FUSE_CANDIDATES; n = fuse_slot_at(f, n)->next) {
		const struct fuse_slot *s = fuse_slot_at(f, n);
		int fit;

		if (s->span.low_ns > now_ns)
			break;
		if (s->event.type != VMT_EVENT_ENTRY && !s->event.failed_entry)
			continue;
		fit = fit_of(s, &l->await.entry);
		if (fit > best_fit) {
			best = n;
			best_fit = fit;
		}
		looked++;
	}
	if (!best)
		return;
	if (fuse_slot_at(f, best)->event.type == VMT_EVENT_ENTRY) {
		fuse_take(f, l, best);
		close_await(f, area, best);
	} else {
		close_await(f, area, 0);
	}
}

void fuse_await_settle(struct vmt_fuse *f, size_t area, uint64_t now_ns)
{
	if (f->lanes[area].await.is_open)
		fuse_await_try(f, area, now_ns);
	if (f->lanes[area].await.is_open)
		close_await(f, area, 0);
}

void fuse_await(struct vmt_fuse *f, size_t area, const struct vmt_event *exit,
		const struct vmt_event *entry)
{
	struct fuse_awaiting *a = &f->lanes[area].await;

	a->has_exit = exit != NULL;
	if (exit)
		a->exit = *exit;
	a->entry = *entry;
	link_lane(f, area);
	fuse_await_due(f, area);
}

void fuse_await_due(struct vmt_fuse *f, size_t area)
{
	struct fuse_awaiting *a = &f->lanes[area].await;

	if (!a->is_open || a->is_due || !f->lanes[area].first)
		return;
	a->is_due = true;
	a->next_due = f->due;
	f->due = area;
}

void fuse_await_advance(struct vmt_fuse *f)
{
	size_t area = f->due;

	f->due = FUSE_NO_LANE;
	while (area != FUSE_NO_LANE) {
		struct fuse_awaiting *a = &f->lanes[area].await;
		const size_t next = a->next_due;

		a->is_due = false;
		if (a->is_open)
			fuse_await_try(f, area, f->now_ns);
		if (a->is_open)
			fuse_await_due(f, area);
		area = next;
	}
	while (f->oldest != FUSE_NO_LANE &&
	       f->now_ns > fuse_later(f->lanes[f->oldest].await.entry.time.host_ns, FUSE_EXPIRE_NS))
		close_await(f, f->oldest, 0);
}
