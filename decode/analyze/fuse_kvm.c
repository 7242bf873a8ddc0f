// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What the tracepoints tell. Invariant: an event that the join hands out goes out once, after the
 * ones before it of its thread; an exit that its entry may follow is held until the join is done
 * with the record.
 */
#include "decode/analyze/fuse_private.h"

static bool agrees(const struct vmt_event *pt, const struct vmt_fuse_exit *kvm)
{
	if (pt->has & VMT_HAS_RIP && kvm->has_rip && pt->guest_rip != kvm->guest_rip)
		return false;
	return !(pt->has & VMT_HAS_REASON) || !kvm->has_reason ||
	       (pt->reason | pt->reason_flags) == kvm->reason;
}

/* The PT exit that a kvm_exit belongs to: the first one that its time allows and that agrees, else
 * the first one that its time allows; where packets are missing, or PT exits have no time, only one
 * that agrees. */
static uint64_t find_exit(const struct vmt_fuse *f, const struct fuse_lane *l,
			  const struct vmt_fuse_exit *kvm)
{
	uint64_t best = 0;
	unsigned int looked = 0;

	for (uint64_t n = l->first; n && looked < FUSE_CANDIDATES; n = fuse_slot_at(f, n)->next) {
		const struct fuse_slot *s = fuse_slot_at(f, n), *entry;

		if (s->span.low_ns > fuse_later(kvm->time_ns, FUSE_SLACK_NS))
			break;
		/* Its kvm_entry would have taken it. */
		if (f->entries && s->event.type == VMT_EVENT_ENTRY)
			break;
		if (s->event.type != VMT_EVENT_EXIT || s->taken)
			continue;
		entry = fuse_entry_behind(f, n);
		if (entry && fuse_later(entry->span.high_ns, FUSE_SLACK_NS) < kvm->time_ns)
			continue;
		if (agrees(&s->event, kvm))
			return n;
		if (!best && kvm->time_ns > l->lossy_until_ns)
			best = n;
		looked++;
	}
	return best;
}

static void note_first(struct vmt_fuse *f, uint64_t time_ns)
{
	if (!f->has_first)
		f->first_ns = time_ns;
	f->has_first = true;
}

void vmt_fuse_exit(struct vmt_fuse *f, size_t area, const struct vmt_fuse_exit *kvm)
{
	struct fuse_lane *l = area < f->nr_lanes ? &f->lanes[area] : NULL;
	const struct fuse_slot *s;
	struct vmt_event pt;
	uint64_t n;

	note_first(f, kvm->time_ns);
	f->active = true;
	if (!l)
		return;
	f->covered = true;
	fuse_await_settle(f, area, kvm->time_ns);
	n = find_exit(f, l, kvm);
	s = fuse_slot_at(f, n);
	if (n) {
		pt = s->event;
		fuse_sharpen_exit(f, &pt, kvm->time_ns);
	}
	if (!n || !vmt_fuse_stash_put(f->stash, kvm->tid, kvm->time_ns, &pt)) {
		l->unsure += l->seen && kvm->time_ns > l->lossy_until_ns;
		return;
	}
	fuse_learn(f, &pt, kvm->tid);
	fuse_take(f, l, n);
}

static void compare(struct vmt_fuse *f, const struct vmt_event *kvm, const struct vmt_event *pt)
{
	f->counts.joined++;
	f->counts.disagree_rip += fuse_rip_differs(kvm, pt);
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

void fuse_send_held(struct vmt_fuse *f)
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

	fuse_send_held(f);
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
	note_first(f, event->time.host_ns);
	f->entries = true;
	if (area >= f->nr_lanes) {
		fuse_send_held(f);
		f->emit(f->context, event);
		return;
	}
	fuse_await_settle(f, area, event->time.host_ns);
	if (f->has_held && f->held.tid == event->tid) {
		f->has_held = false;
		fuse_await(f, area, &f->held, event);
	} else {
		fuse_send_held(f);
		fuse_await(f, area, NULL, event);
	}
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
		fuse_send_held(f);
		f->emit(f->context, event);
	}
}

void vmt_fuse_settle(struct vmt_fuse *f)
{
	fuse_send_held(f);
}
