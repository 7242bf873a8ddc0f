// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: at most one exit of a VMCS waits; where the VMCS is not known, one of a thread, else
 * of an area. A loss in an area makes what waits there uncertain: it may have entered unseen. What
 * waits elsewhere may have been there, unless its thread is known to have kept its CPU.
 */
#include "decode/analyze/fuse_pairs.h"

#include <stdbool.h>
#include <stdlib.h>

#define OPEN_MAX 1024u

enum owner {
	OWNER_VMCS,
	OWNER_THREAD,
	OWNER_AREA,
};

struct key {
	enum owner owner;
	uint64_t number;
};

struct open {
	bool used;
	bool uncertain; /* packets of its CPU are missing since */
	bool elsewhere; /* packets of another CPU are */
	struct key key;
	size_t area;
	uint64_t age;
	struct vmt_event exit;
};

struct vmt_pairs {
	const struct vmt_pt_who *who;
	uint64_t lossy_until_ns; /* ends of losses so far */
	vmt_event_fn *emit;
	void *context;
	uint64_t now;
	size_t used; /* places that were ever used */
	struct open open[OPEN_MAX];
};

struct vmt_pairs *vmt_pairs_new(const struct vmt_pt_who *who, vmt_event_fn *emit, void *context)
{
	struct vmt_pairs *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->who = who;
	p->emit = emit;
	p->context = context;
	return p;
}

void vmt_pairs_free(struct vmt_pairs *p)
{
	free(p);
}

static struct key key_of(size_t area, const struct vmt_event *e)
{
	if (e->has & VMT_HAS_VMCS)
		return (struct key){ OWNER_VMCS, e->vmcs };
	if (e->has & VMT_HAS_TID)
		return (struct key){ OWNER_THREAD, e->tid };
	return (struct key){ OWNER_AREA, area };
}

static struct open *find(struct vmt_pairs *p, struct key key)
{
	for (size_t i = 0; i < p->used; i++) {
		struct open *o = &p->open[i];

		if (o->used && o->key.owner == key.owner && o->key.number == key.number)
			return o;
	}
	return NULL;
}

static void let_go(struct vmt_pairs *p, struct open *o)
{
	o->used = false;
	p->emit(p->context, &o->exit);
}

/* A free place; when there is none the oldest exit goes out with what is known. */
static struct open *place(struct vmt_pairs *p)
{
	struct open *oldest = &p->open[0];

	for (size_t i = 0; i < p->used; i++) {
		if (!p->open[i].used)
			return &p->open[i];
		if (p->open[i].age < oldest->age)
			oldest = &p->open[i];
	}
	if (p->used < OPEN_MAX)
		return &p->open[p->used++];
	let_go(p, oldest);
	return oldest;
}

static void drop_duration(struct vmt_event *e)
{
	e->has &= ~(uint32_t)(VMT_HAS_DURATION | VMT_HAS_DURATION_TSC);
}

/* The exit ends at the entry, whatever the decoder of its CPU thought. */
static void end_at(const struct vmt_pairs *p, struct open *o, size_t area,
		   const struct vmt_event *entry)
{
	struct vmt_event *x = &o->exit;
	const bool stayed = o->area == area && x->has & entry->has & VMT_HAS_TIME &&
			    vmt_pt_who_stayed(p->who, area, x->time.host_ns, entry->time.host_ns);
	const bool timed = x->has & entry->has & VMT_HAS_HOST_TSC &&
			   entry->host_tsc.host_tsc >= x->host_tsc.host_tsc;

	if (o->elsewhere && !stayed)
		o->uncertain = true;
	if (o->area == area && !o->uncertain && x->has & VMT_HAS_DURATION_TSC)
		return; /* its own decoder saw both */
	drop_duration(x);
	if (o->uncertain || !timed || o->key.owner == OWNER_AREA)
		return;
	x->duration_tsc = entry->host_tsc.host_tsc - x->host_tsc.host_tsc;
	x->has |= VMT_HAS_DURATION_TSC;
	if (x->has & entry->has & VMT_HAS_TIME && entry->time.host_ns >= x->time.host_ns) {
		x->duration_ns = entry->time.host_ns - x->time.host_ns;
		x->has |= VMT_HAS_DURATION;
	}
}

/* An exit that no entry ended: a duration that its decoder gave reaches over another exit. */
static void end_without(struct vmt_pairs *p, struct open *o, const struct vmt_event *next)
{
	if (next->has & o->exit.has & VMT_HAS_HOST_TSC && o->exit.has & VMT_HAS_DURATION_TSC &&
	    o->exit.duration_tsc > next->host_tsc.host_tsc - o->exit.host_tsc.host_tsc)
		drop_duration(&o->exit);
	let_go(p, o);
}

static void on_loss(struct vmt_pairs *p, size_t area)
{
	for (size_t i = 0; i < p->used; i++) {
		if (p->open[i].area == area)
			p->open[i].uncertain = true;
		else
			p->open[i].elsewhere = true;
	}
}

/* Of an exit of which nothing but the CPU is known the next event there must be the entry. */
static void let_nameless_go(struct vmt_pairs *p, size_t area, struct key next)
{
	struct open *o = find(p, (struct key){ OWNER_AREA, area });

	if (o && next.owner != OWNER_AREA)
		let_go(p, o);
}

void vmt_pairs_see(struct vmt_pairs *p, size_t area, const struct vmt_event *e)
{
	struct open *o;

	if (e->type == VMT_EVENT_LOSS || e->type == VMT_EVENT_GAP)
		on_loss(p, area);
	/* No guest ran after an entry that failed: the exit before it is still open. */
	if ((e->type != VMT_EVENT_ENTRY && e->type != VMT_EVENT_EXIT) || e->failed_entry)
		return;
	let_nameless_go(p, area, key_of(area, e));
	o = find(p, key_of(area, e));
	if (o && e->type == VMT_EVENT_EXIT) {
		end_without(p, o, e);
	} else if (o) {
		end_at(p, o, area, e);
		let_go(p, o);
	}
}

void vmt_pairs_push(struct vmt_pairs *p, size_t area, const struct vmt_event *e,
		    struct vmt_pt_span span)
{
	struct open *o;

	if (e->type == VMT_EVENT_LOSS && span.high_ns > p->lossy_until_ns)
		p->lossy_until_ns = span.high_ns;

	vmt_pairs_see(p, area, e);
	if (e->type != VMT_EVENT_EXIT || e->failed_entry) {
		p->emit(p->context, e);
		return;
	}
	o = place(p);
	*o = (struct open){ .used = true,
			    .key = key_of(area, e),
			    .area = area,
			    .elsewhere =
				    e->has & VMT_HAS_TIME && e->time.host_ns <= p->lossy_until_ns,
			    .age = p->now++,
			    .exit = *e };
}

void vmt_pairs_flush(struct vmt_pairs *p)
{
	for (size_t i = 0; i < p->used; i++) {
		if (p->open[i].used)
			let_go(p, &p->open[i]);
	}
}
