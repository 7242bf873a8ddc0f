// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant of a vCPU that has a cursor: the parts in `sum` add up to cursor - first. The cursor
 * stands at the beginning of an exit until the next event or the end of the capture ends it. The
 * stops of a domain are disjoint and in order of time; only the last may be open.
 */
#include "decode/analyze/bill.h"

#include <stdlib.h>
#include <string.h>

#define NO_INDEX UINT32_MAX
#define RECENT	 256u

struct open_exit { /* charged up to its beginning */
	bool is_open;
	uint8_t class;
	uint64_t end;
	uint64_t userspace_ns, halt_poll_ns, blocked_ns, preempted_ns;
};

struct vcpu {
	uint32_t domain, vcpu, tid; /* UINT32_MAX, UINT32_MAX, 0: not known */
	bool has_cursor, in_guest, lost;
	bool pt_alone;	  /* the last entry or exit is known by Intel PT alone */
	uint32_t cpu;	  /* of that; UINT32_MAX: not known */
	uint64_t lost_at; /* earliest loss since the last entry or exit */
	uint64_t first, cursor;
	struct open_exit exit;
	struct vmt_bill sum;
};

struct stop {
	uint64_t from, to; /* UINT64_MAX: not resumed yet */
};

struct domain {
	struct stop *stops;
	uint32_t nr, room;
};

struct slot { /* (tid or domain, vcpu) -> vCPU */
	uint64_t key;
	uint32_t index; /* 1 + index, 0 free */
};

struct vmt_bill_set {
	struct vcpu *vcpus;
	uint32_t nr, room;
	struct slot slots[VMT_BILL_VCPUS_MAX * 4];
	uint32_t recent[RECENT]; /* 1 + index of the vCPU that a thread with this hash had */
	uint32_t used;
	struct domain domains[VMT_BILL_DOMAINS_MAX];
	bool has_span;
	uint64_t first, last, last_end;
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
	for (uint32_t i = 0; i < VMT_BILL_DOMAINS_MAX; i++)
		free(set->domains[i].stops);
	free(set->vcpus);
	free(set);
}

uint64_t vmt_bill_unbilled(const struct vmt_bill_set *set)
{
	return set->unbilled;
}

bool vmt_bill_span(const struct vmt_bill_set *set, uint64_t *first_ns, uint64_t *last_ns,
		   uint64_t *last_end_ns)
{
	*first_ns = set->first;
	*last_ns = set->last;
	*last_end_ns = set->last_end > set->last ? set->last_end : set->last;
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

static bool add_vcpu(struct vmt_bill_set *set)
{
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
	return true;
}

/* A thread belongs to one vCPU for good; the vCPU says which thread it has. */
static bool is_recent(const struct vmt_bill_set *set, uint32_t tid, struct vcpu **out)
{
	uint32_t index = set->recent[tid % RECENT];

	if (!index || set->vcpus[index - 1].tid != tid)
		return false;
	*out = &set->vcpus[index - 1];
	return true;
}

static void name_vcpu(struct vcpu *v, uint32_t domain, uint32_t vcpu)
{
	if (domain != UINT32_MAX)
		v->domain = domain;
	if (vcpu != UINT32_MAX)
		v->vcpu = vcpu;
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
	if (by_tid && is_recent(set, e->tid, out)) {
		name_vcpu(*out, domain, vcpu);
		return true;
	}
	slot = slot_of(set, key);
	if (!slot->index) {
		uint32_t index = known ? find_known(set, domain, vcpu) : NO_INDEX;

		if (set->used >= VMT_BILL_VCPUS_MAX * 2 ||
		    (index == NO_INDEX && set->nr >= VMT_BILL_VCPUS_MAX)) {
			set->unbilled++;
			return true;
		}
		if (index == NO_INDEX) {
			if (!add_vcpu(set))
				return false;
			index = set->nr - 1;
		}
		*slot = (struct slot){ .key = key, .index = index + 1 };
		set->used++;
	}
	*out = &set->vcpus[slot->index - 1];
	name_vcpu(*out, domain, vcpu);
	if (by_tid) {
		(*out)->tid = e->tid;
		set->recent[e->tid % RECENT] = slot->index;
	}
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

/* How much of [from, to) the vCPU's domain was stopped. */
static uint64_t stopped_within(const struct vmt_bill_set *set, const struct vcpu *v, uint64_t from,
			       uint64_t to)
{
	const struct domain *d;
	uint64_t sum = 0;
	uint32_t i;

	if (v->domain >= VMT_BILL_DOMAINS_MAX)
		return 0;
	d = &set->domains[v->domain];
	for (i = d->nr; i > 0 && d->stops[i - 1].to > from; i--) {
		uint64_t first = d->stops[i - 1].from > from ? d->stops[i - 1].from : from;
		uint64_t last = min_of(d->stops[i - 1].to, to);

		sum += last > first ? last - first : 0;
	}
	return sum;
}

/* Charges [cursor, to) to `part`, less what of it was stopped. */
static void charge(const struct vmt_bill_set *set, struct vcpu *v, uint64_t to, uint64_t *part)
{
	uint64_t stopped;

	if (!v->has_cursor) {
		v->has_cursor = true;
		v->first = v->cursor = to;
	}
	if (to <= v->cursor)
		return;
	stopped = stopped_within(set, v, v->cursor, to);
	v->sum.stopped_ns += stopped;
	*part += to - v->cursor - stopped;
	v->cursor = to;
}

/*
 * Charges [cursor, end) to the parts of the open exit. They may be more than that when it is cut
 * off, at `latest`: each gets what is left. Stopped time is taken from where a stopped vCPU waits:
 * off the CPU, else in the VMM.
 */
static void end_exit(const struct vmt_bill_set *set, struct vcpu *v, uint64_t latest)
{
	const struct open_exit *e = &v->exit;
	uint64_t end = min_of(e->end, latest), left, stopped, user, poll, blocked, preempted;

	if (!e->is_open)
		return;
	v->exit.is_open = false;
	if (end <= v->cursor)
		return;
	left = end - v->cursor;
	stopped = stopped_within(set, v, v->cursor, end);
	user = take(&left, e->userspace_ns);
	poll = take(&left, e->halt_poll_ns);
	blocked = take(&left, e->blocked_ns);
	preempted = take(&left, e->preempted_ns);
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
	v->sum.class_ns[e->class] += left;
	v->cursor = end;
}

static void exit_event(const struct vmt_bill_set *set, struct vcpu *v, const struct vmt_event *e,
		       enum vmx_exit_class class)
{
	uint64_t at = e->time.host_ns;
	bool ran = v->in_guest && !(v->lost && at > v->lost_at);

	end_exit(set, v, at);
	if (ran && e->failed_entry)
		charge(set, v, at, &v->sum.class_ns[VMX_CLASS_FAILURE]);
	else
		charge(set, v, at, ran ? &v->sum.guest_ns : &v->sum.residual_ns);
	if ((e->has & VMT_HAS_DURATION) && at + e->duration_ns > at)
		v->exit = (struct open_exit){ .is_open = true,
					      .class = (uint8_t) class,
					      .end = at + e->duration_ns,
					      .userspace_ns = e->userspace_part_ns,
					      .halt_poll_ns = e->halt_poll_part_ns,
					      .blocked_ns = e->blocked_part_ns,
					      .preempted_ns = e->preempted_part_ns };
	v->in_guest = false;
	v->lost = v->lost && at <= v->lost_at;
	v->sum.exits += !e->failed_entry;
}

static void entry_event(const struct vmt_bill_set *set, struct vcpu *v, uint64_t at)
{
	end_exit(set, v, at);
	charge(set, v, at, &v->sum.residual_ns);
	v->in_guest = true;
	v->lost = v->lost && at < v->lost_at;
	v->sum.entries++;
}

/* ---- losses and the life of the domain ---- */

/* Packets that are missing on a CPU hide what a vCPU did there, unless tracepoints told it. */
static bool is_hidden(const struct vcpu *v, const struct vmt_event *e)
{
	if (e->source != VMT_SOURCE_PT)
		return true;
	return v->pt_alone && (!(e->has & VMT_HAS_CPU) || v->cpu == UINT32_MAX || v->cpu == e->cpu);
}

static void note_cpu(struct vcpu *v, const struct vmt_event *e)
{
	v->pt_alone = e->source == VMT_SOURCE_PT && !e->joined;
	v->cpu = e->has & VMT_HAS_CPU ? e->cpu : UINT32_MAX;
}

static void lost(struct vmt_bill_set *set, const struct vmt_event *e)
{
	bool one = e->has & (VMT_HAS_VCPU | VMT_HAS_TID);

	for (uint32_t i = 0; i < set->nr; i++) {
		struct vcpu *v = &set->vcpus[i];

		if (!is_hidden(v, e))
			continue;
		if (one && (e->has & VMT_HAS_TID) && e->tid && v->tid != e->tid)
			continue;
		if (one && (e->has & VMT_HAS_VCPU) && v->vcpu != e->vcpu)
			continue;
		if ((e->has & VMT_HAS_DOMAIN) && v->domain != UINT32_MAX && v->domain != e->domain)
			continue;
		if (!(e->has & VMT_HAS_TIME))
			v->in_guest = false;
		else if (!v->lost)
			v->lost_at = e->time.host_ns;
		v->lost = e->has & VMT_HAS_TIME;
	}
}

static bool named(const struct vmt_event *e, const char *const *names)
{
	for (; e->name && *names; names++) {
		if (strcmp(e->name, *names) == 0)
			return true;
	}
	return false;
}

static bool begin_stop(struct domain *d, uint64_t at)
{
	uint64_t before = d->nr ? d->stops[d->nr - 1].to : 0;

	if (before == UINT64_MAX)
		return true;
	if (d->nr == VMT_BILL_STOPS_MAX) { /* goes on with the last one: it becomes longer */
		d->stops[d->nr - 1].to = UINT64_MAX;
		return true;
	}
	if (d->nr == d->room) {
		uint32_t room = d->room ? d->room * 2 : 4;
		struct stop *bigger = realloc(d->stops, room * sizeof(*bigger));

		if (!bigger)
			return false;
		d->stops = bigger;
		d->room = room;
	}
	d->stops[d->nr++] = (struct stop){ at > before ? at : before, UINT64_MAX };
	return true;
}

static void end_stop(struct domain *d, uint64_t at)
{
	struct stop *last = d->nr ? &d->stops[d->nr - 1] : NULL;

	if (last && last->to == UINT64_MAX)
		last->to = at > last->from ? at : last->from;
}

static bool mark(struct vmt_bill_set *set, const struct vmt_event *e)
{
	static const char *const stops[] = { "paused", "stopped", "crashed", "migrated-away",
					     NULL };
	static const char *const starts[] = { "resumed", "started", NULL };

	if (!(e->has & VMT_HAS_TIME) || !(e->has & VMT_HAS_DOMAIN) ||
	    e->domain >= VMT_BILL_DOMAINS_MAX)
		return true;
	if (named(e, stops))
		return begin_stop(&set->domains[e->domain], e->time.host_ns);
	if (named(e, starts))
		end_stop(&set->domains[e->domain], e->time.host_ns);
	return true;
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
		    at + event->duration_ns > set->last_end)
			set->last_end = at + event->duration_ns;
	}
	switch (event->type) {
	case VMT_EVENT_SWITCH:
		if (!(event->has & VMT_HAS_VCPU)) /* a helper thread */
			break;
		return find_or_add(set, event, &v);
	case VMT_EVENT_EXIT:
	case VMT_EVENT_ENTRY:
		if (!find_or_add(set, event, &v))
			return false;
		if (v)
			note_cpu(v, event);
		if (v && timed && event->type == VMT_EVENT_EXIT)
			exit_event(set, v, event, class);
		else if (v && timed)
			entry_event(set, v, at);
		break;
	case VMT_EVENT_LOSS:
	case VMT_EVENT_GAP:
		lost(set, event);
		break;
	case VMT_EVENT_MARK:
		return mark(set, event);
	default:
		break;
	}
	return true;
}

/* ---- the end ---- */

static void close_vcpu(const struct vmt_bill_set *set, struct vcpu *v, uint64_t start,
		       uint64_t stop, bool complete)
{
	bool runs = v->in_guest && !v->lost && complete;
	uint64_t head_stopped;

	end_exit(set, v, stop);
	charge(set, v, stop, runs ? &v->sum.guest_ns : &v->sum.residual_ns);
	head_stopped = stopped_within(set, v, start, v->first);
	v->sum.stopped_ns += head_stopped;
	v->sum.residual_ns += v->first - start - head_stopped;
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
		close_vcpu(set, &set->vcpus[i], start_ns, stop_ns, complete);
		fill(&set->vcpus[i], stop_ns - start_ns, has_switches, &out[i]);
	}
	qsort(out, set->nr, sizeof(*out), by_vcpu);
	*nr = set->nr;
	return out;
}
