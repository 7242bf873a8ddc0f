// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant of a vCPU that has a cursor: the parts in `sum` add up to cursor - first; `pending` is
 * how much of the time after the cursor is known to be stopped, up to the newest mark.
 */
#include "decode/analyze/bill.h"

#include <stdlib.h>
#include <string.h>

#define NO_INDEX UINT32_MAX

struct vcpu {
	uint32_t domain, vcpu, tid; /* UINT32_MAX, UINT32_MAX, 0: not known */
	bool has_cursor, in_guest;
	uint64_t first, cursor;
	uint64_t head_stopped; /* stopped before `first` */
	uint64_t pending;
	bool paused;
	uint64_t paused_from;
	struct vmt_bill sum;
};

struct domain {
	uint64_t stopped; /* so far */
	bool paused;
	uint64_t paused_from;
};

struct slot { /* (tid or domain, vcpu) -> vCPU */
	uint64_t key;
	uint32_t index; /* 1 + index, 0 free */
};

struct vmt_bill_set {
	struct vcpu *vcpus;
	uint32_t nr, room;
	struct slot slots[VMT_BILL_VCPUS_MAX * 4];
	uint32_t used;
	struct domain domains[VMT_BILL_DOMAINS_MAX];
	bool has_span;
	uint64_t first, last;
	uint64_t unbilled;
};

struct vmt_bill_set *vmt_bill_new(void)
{
	return calloc(1, sizeof(struct vmt_bill_set));
}

void vmt_bill_free(struct vmt_bill_set *set)
{
	if (!set)
		return;
	free(set->vcpus);
	free(set);
}

uint64_t vmt_bill_unbilled(const struct vmt_bill_set *set)
{
	return set->unbilled;
}

bool vmt_bill_span(const struct vmt_bill_set *set, uint64_t *first_ns, uint64_t *last_ns)
{
	*first_ns = set->first;
	*last_ns = set->last;
	return set->has_span;
}

static void widen(struct vmt_bill_set *set, uint64_t time)
{
	if (!set->has_span || time < set->first)
		set->first = time;
	if (!set->has_span || time > set->last)
		set->last = time;
	set->has_span = true;
}

/* ---- which vCPU ---- */

static struct slot *slot_of(struct vmt_bill_set *set, uint64_t key)
{
	uint32_t n = VMT_BILL_VCPUS_MAX * 4;
	uint32_t i = (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 40) & (n - 1);

	while (set->slots[i].index && set->slots[i].key != key)
		i = (i + 1) & (n - 1);
	return &set->slots[i];
}

static uint32_t find_known(const struct vmt_bill_set *set, uint32_t domain, uint32_t vcpu)
{
	for (uint32_t i = 0; i < set->nr; i++) {
		if (set->vcpus[i].domain == domain && set->vcpus[i].vcpu == vcpu)
			return i;
	}
	return NO_INDEX;
}

static struct domain *domain_of(struct vmt_bill_set *set, uint32_t domain)
{
	return domain < VMT_BILL_DOMAINS_MAX ? &set->domains[domain] : NULL;
}

static bool add_vcpu(struct vmt_bill_set *set, uint32_t domain)
{
	const struct domain *d = domain_of(set, domain);
	struct vcpu *v;

	if (set->nr == set->room) {
		uint32_t room = set->room ? set->room * 2 : 16;
		struct vcpu *bigger = realloc(set->vcpus, room * sizeof(*bigger));

		if (!bigger)
			return false;
		set->vcpus = bigger;
		set->room = room;
	}
	v = &set->vcpus[set->nr++];
	memset(v, 0, sizeof(*v));
	v->domain = v->vcpu = UINT32_MAX;
	if (d) {
		v->pending = d->stopped;
		v->paused = d->paused;
		v->paused_from = d->paused_from;
	}
	return true;
}

/* A vCPU is known by its thread; a thread that takes over a known vCPU continues its bill. */
static bool find_or_add(struct vmt_bill_set *set, const struct vmt_event *e, struct vcpu **out)
{
	bool known = (e->has & VMT_HAS_VCPU) && (e->has & VMT_HAS_DOMAIN);
	bool by_tid = (e->has & VMT_HAS_TID) && e->tid;
	uint32_t domain = e->has & VMT_HAS_DOMAIN ? e->domain : UINT32_MAX;
	uint32_t vcpu = e->has & VMT_HAS_VCPU ? e->vcpu : UINT32_MAX;
	uint64_t key = by_tid ? e->tid : (uint64_t)(domain | 0x80000000u) << 32 | vcpu;
	struct slot *slot;

	*out = NULL;
	if (!by_tid && vcpu == UINT32_MAX)
		return true;
	slot = slot_of(set, key);
	if (!slot->index) {
		uint32_t index = known ? find_known(set, domain, vcpu) : NO_INDEX;

		if (set->used >= VMT_BILL_VCPUS_MAX * 2 ||
		    (index == NO_INDEX && set->nr >= VMT_BILL_VCPUS_MAX)) {
			set->unbilled++;
			return true;
		}
		if (index == NO_INDEX) {
			if (!add_vcpu(set, domain))
				return false;
			index = set->nr - 1;
		}
		*slot = (struct slot){ .key = key, .index = index + 1 };
		set->used++;
	}
	*out = &set->vcpus[slot->index - 1];
	if (domain != UINT32_MAX)
		(*out)->domain = domain;
	if (vcpu != UINT32_MAX)
		(*out)->vcpu = vcpu;
	if (by_tid)
		(*out)->tid = e->tid;
	return true;
}

/* ---- charging ---- */

static uint64_t min_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Takes up to len from *from; returns what it took. */
static uint64_t take(uint64_t *from, uint64_t len)
{
	uint64_t n = min_of(*from, len);

	*from -= n;
	return n;
}

/* How much of [cursor, to) was stopped; nothing stays pending. */
static uint64_t stopped_until(struct vcpu *v, uint64_t to)
{
	uint64_t stopped = v->pending;

	v->pending = 0;
	if (v->paused && to > v->paused_from) {
		stopped += to - (v->paused_from > v->cursor ? v->paused_from : v->cursor);
		v->paused_from = to;
	}
	return min_of(stopped, to - v->cursor);
}

static void begin(struct vcpu *v, uint64_t at)
{
	v->has_cursor = true;
	v->head_stopped = v->pending;
	v->pending = 0;
	if (v->paused && at > v->paused_from) {
		v->head_stopped += at - v->paused_from;
		v->paused_from = at;
	}
	v->first = v->cursor = at;
}

/* Charges [cursor, to) to `part`, less what of it was stopped. */
static void charge(struct vcpu *v, uint64_t to, uint64_t *part)
{
	uint64_t stopped;

	if (!v->has_cursor)
		begin(v, to);
	if (to <= v->cursor)
		return;
	stopped = stopped_until(v, to);
	v->sum.stopped_ns += stopped;
	*part += to - v->cursor - stopped;
	v->cursor = to;
}

static void charge_exit(struct vcpu *v, const struct vmt_event *e, uint64_t len, uint64_t stopped,
			uint64_t *class_ns)
{
	bool parts = e->has & VMT_HAS_PARTS;
	uint64_t left = len;
	uint64_t user = parts ? take(&left, e->userspace_part_ns) : 0;
	uint64_t poll = parts ? take(&left, e->halt_poll_part_ns) : 0;
	uint64_t blocked = parts ? take(&left, e->blocked_part_ns) : 0;
	uint64_t preempted = parts ? take(&left, e->preempted_part_ns) : 0;

	v->sum.stopped_ns += stopped;
	stopped -= take(&blocked, stopped);
	stopped -= take(&user, stopped);
	stopped -= take(&left, stopped);
	stopped -= take(&preempted, stopped);
	take(&poll, stopped);
	v->sum.userspace_ns += user;
	v->sum.halt_poll_ns += poll;
	v->sum.halted_ns += blocked;
	v->sum.preempted_ns += preempted;
	*class_ns += left;
}

/* An exit and, where its end is known, its duration. Stops fall into the exit before the guest. */
static void exit_event(struct vcpu *v, const struct vmt_event *e, enum vmx_exit_class class)
{
	uint64_t at = e->time.host_ns;
	uint64_t end = at + (e->has & VMT_HAS_DURATION ? e->duration_ns : 0);
	uint64_t stopped, in_exit, before;

	if (end < at)
		end = at;
	if (!v->has_cursor)
		begin(v, at);
	at = at > v->cursor ? at : v->cursor;
	end = end > v->cursor ? end : v->cursor;
	stopped = stopped_until(v, end);
	in_exit = min_of(stopped, end - at);
	before = at - v->cursor - (stopped - in_exit);
	v->sum.stopped_ns += stopped - in_exit;
	if (v->in_guest && e->failed_entry)
		v->sum.class_ns[VMX_CLASS_FAILURE] += before;
	else if (v->in_guest)
		v->sum.guest_ns += before;
	else
		v->sum.residual_ns += before;
	charge_exit(v, e, end - at, in_exit, &v->sum.class_ns[class]);
	v->cursor = end;
	v->in_guest = false;
	v->sum.exits += !e->failed_entry;
}

static void entry_event(struct vcpu *v, uint64_t at)
{
	charge(v, at, &v->sum.residual_ns);
	v->in_guest = true;
	v->sum.entries++;
}

/* ---- losses and the life of the domain ---- */

static void lost(struct vmt_bill_set *set, const struct vmt_event *e)
{
	bool one = e->has & (VMT_HAS_VCPU | VMT_HAS_TID);

	for (uint32_t i = 0; i < set->nr; i++) {
		struct vcpu *v = &set->vcpus[i];

		if (one && (e->has & VMT_HAS_TID) && e->tid && v->tid != e->tid)
			continue;
		if (one && (e->has & VMT_HAS_VCPU) && v->vcpu != e->vcpu)
			continue;
		if ((e->has & VMT_HAS_DOMAIN) && v->domain != UINT32_MAX && v->domain != e->domain)
			continue;
		v->in_guest = false;
	}
}

static void pause_vcpu(struct vcpu *v, uint64_t at)
{
	if (v->paused)
		return;
	v->paused = true;
	v->paused_from = at;
	if (v->has_cursor && v->cursor > at)
		v->paused_from = v->cursor;
}

static void resume_vcpu(struct vcpu *v, uint64_t at)
{
	if (v->paused && at > v->paused_from)
		v->pending += at - v->paused_from;
	v->paused = false;
}

static bool named(const struct vmt_event *e, const char *const *names)
{
	for (; e->name && *names; names++) {
		if (strcmp(e->name, *names) == 0)
			return true;
	}
	return false;
}

static void mark(struct vmt_bill_set *set, const struct vmt_event *e)
{
	static const char *const stops[] = { "paused", "stopped", "crashed", "migrated-away",
					     NULL };
	static const char *const starts[] = { "resumed", "started", NULL };
	bool stop = named(e, stops), start = named(e, starts);
	uint64_t at = e->time.host_ns;

	if (!(e->has & VMT_HAS_TIME) || (!stop && !start))
		return;
	for (uint32_t i = 0; i < VMT_BILL_DOMAINS_MAX; i++) {
		struct domain *d = &set->domains[i];

		if ((e->has & VMT_HAS_DOMAIN) && i != e->domain)
			continue;
		if (stop && !d->paused)
			d->paused_from = at;
		if (start && d->paused && at > d->paused_from)
			d->stopped += at - d->paused_from;
		d->paused = stop;
	}
	for (uint32_t i = 0; i < set->nr; i++) {
		struct vcpu *v = &set->vcpus[i];

		if ((e->has & VMT_HAS_DOMAIN) && v->domain != UINT32_MAX && v->domain != e->domain)
			continue;
		if (stop)
			pause_vcpu(v, at);
		else
			resume_vcpu(v, at);
	}
}

bool vmt_bill_event(struct vmt_bill_set *set, const struct vmt_event *event,
		    enum vmx_exit_class class)
{
	bool timed = event->has & VMT_HAS_TIME;
	uint64_t at = event->time.host_ns;
	struct vcpu *v = NULL;

	if (timed) {
		widen(set, at);
		if (event->type == VMT_EVENT_EXIT && (event->has & VMT_HAS_DURATION) &&
		    at + event->duration_ns > at)
			widen(set, at + event->duration_ns);
	}
	switch (event->type) {
	case VMT_EVENT_EXIT:
	case VMT_EVENT_ENTRY:
	case VMT_EVENT_SWITCH:
		if (!find_or_add(set, event, &v))
			return false;
		if (!v || !timed)
			break;
		if (event->type == VMT_EVENT_EXIT)
			exit_event(v, event, class);
		else if (event->type == VMT_EVENT_ENTRY)
			entry_event(v, at);
		break;
	case VMT_EVENT_LOSS:
	case VMT_EVENT_GAP:
		lost(set, event);
		break;
	case VMT_EVENT_MARK:
		mark(set, event);
		break;
	default:
		break;
	}
	return true;
}

/* ---- the end ---- */

static void close_vcpu(struct vcpu *v, uint64_t start, uint64_t stop, bool complete)
{
	uint64_t head;

	if (!v->has_cursor)
		begin(v, stop);
	head = v->first - start;
	v->head_stopped = min_of(v->head_stopped, head);
	v->sum.stopped_ns += v->head_stopped;
	v->sum.residual_ns += head - v->head_stopped;
	charge(v, stop, v->in_guest && complete ? &v->sum.guest_ns : &v->sum.residual_ns);
}

static void fill(const struct vcpu *v, uint64_t wall, bool has_switches, struct vmt_bill *out)
{
	*out = v->sum;
	out->domain = v->domain;
	out->vcpu = v->vcpu;
	out->tid = v->tid;
	out->wall_ns = wall;
	out->has_switches = has_switches;
	if (!has_switches) {
		out->halted_ns += out->class_ns[VMX_CLASS_HALT];
		out->class_ns[VMX_CLASS_HALT] = 0;
	}
	for (unsigned int c = 0; c < VMX_CLASS_COUNT; c++)
		out->exits_ns += out->class_ns[c];
}

static int by_vcpu(const void *a, const void *b)
{
	const struct vmt_bill *x = a, *y = b;

	if (x->domain != y->domain)
		return x->domain < y->domain ? -1 : 1;
	if (x->vcpu != y->vcpu)
		return x->vcpu < y->vcpu ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

struct vmt_bill *vmt_bill_finish(struct vmt_bill_set *set, uint64_t start_ns, uint64_t stop_ns,
				 bool has_switches, bool complete, size_t *nr)
{
	struct vmt_bill *out = calloc(set->nr + 1u, sizeof(*out));

	*nr = 0;
	if (!out)
		return NULL;
	for (uint32_t i = 0; i < set->nr; i++) {
		close_vcpu(&set->vcpus[i], start_ns, stop_ns, complete);
		fill(&set->vcpus[i], stop_ns - start_ns, has_switches, &out[i]);
	}
	qsort(out, set->nr, sizeof(*out), by_vcpu);
	*nr = set->nr;
	return out;
}
