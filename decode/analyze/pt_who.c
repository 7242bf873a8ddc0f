// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: the runs of an area are in order of time, the newest RUNS_MAX of them; a thread has
 * the CPU from its own time to that of the next run.
 */
#include "decode/analyze/pt_who.h"

#include <stdlib.h>

#define RUNS_MAX 64u /* a power of two */
#define UNKNOWN	 UINT32_MAX

struct run {
	uint64_t from_ns;
	uint32_t pid, tid;
};

struct timeline {
	uint64_t nr; /* runs ever; run n is at n & (RUNS_MAX - 1) */
	struct run runs[RUNS_MAX];
};

struct thread {
	uint32_t tid; /* 0: free */
	uint32_t pid, domain, vcpu;
};

struct vmcs {
	uint64_t vmcs;
	uint32_t tid; /* 0: free */
};

/* Both tables are twice as large as what is put into them. */
struct vmt_pt_who {
	struct timeline *timelines;
	size_t nr_areas, nr_threads, nr_vmcs;
	uint64_t contradictions;
	struct thread threads[2 * VMT_PT_WHO_THREADS_MAX];
	struct vmcs vmcs[2 * VMT_PT_WHO_VMCS_MAX];
};

struct vmt_pt_who *vmt_pt_who_new(void)
{
	return calloc(1, sizeof(struct vmt_pt_who));
}

void vmt_pt_who_free(struct vmt_pt_who *who)
{
	if (!who)
		return;
	free(who->timelines);
	free(who);
}

static size_t hash(uint64_t key, size_t slots)
{
	return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (slots - 1);
}

static size_t thread_slot(const struct vmt_pt_who *who, uint32_t tid)
{
	const size_t slots = 2 * VMT_PT_WHO_THREADS_MAX;
	size_t i = hash(tid, slots);

	while (who->threads[i].tid && who->threads[i].tid != tid)
		i = (i + 1) & (slots - 1);
	return i;
}

static size_t vmcs_slot(const struct vmt_pt_who *who, uint64_t vmcs)
{
	const size_t slots = 2 * VMT_PT_WHO_VMCS_MAX;
	size_t i = hash(vmcs >> 12, slots);

	while (who->vmcs[i].tid && who->vmcs[i].vmcs != vmcs)
		i = (i + 1) & (slots - 1);
	return i;
}

void vmt_pt_who_vcpu(struct vmt_pt_who *who, uint32_t tid, uint32_t pid, uint32_t domain,
		     uint32_t vcpu)
{
	struct thread *t = &who->threads[thread_slot(who, tid)];

	if (!tid)
		return;
	if (!t->tid) {
		if (who->nr_threads == VMT_PT_WHO_THREADS_MAX)
			return;
		who->nr_threads++;
		*t = (struct thread){ .tid = tid, .domain = UNKNOWN };
	}
	if (pid)
		t->pid = pid;
	if (domain != UNKNOWN)
		t->domain = domain;
	t->vcpu = vcpu;
}

static bool make_room(struct vmt_pt_who *who, size_t area)
{
	struct timeline *bigger;

	if (area < who->nr_areas)
		return true;
	if (area >= VMT_PT_STREAMS_MAX)
		return false;
	bigger = realloc(who->timelines, (area + 1) * sizeof(*bigger));
	if (!bigger)
		return false;
	who->timelines = bigger;
	while (who->nr_areas <= area)
		who->timelines[who->nr_areas++].nr = 0;
	return true;
}

void vmt_pt_who_runs(struct vmt_pt_who *who, size_t area, uint64_t time_ns, uint32_t pid,
		     uint32_t tid)
{
	struct timeline *t;
	const struct run *last;

	if (!make_room(who, area))
		return;
	t = &who->timelines[area];
	last = &t->runs[(t->nr - 1) & (RUNS_MAX - 1)];
	if (t->nr && (last->tid == tid || last->from_ns > time_ns))
		return;
	t->runs[t->nr++ & (RUNS_MAX - 1)] =
		(struct run){ .from_ns = time_ns, .pid = pid, .tid = tid };
}

bool vmt_pt_who_vmcs(struct vmt_pt_who *who, uint64_t vmcs, uint32_t tid)
{
	struct vmcs *v = &who->vmcs[vmcs_slot(who, vmcs)];

	if (!tid || v->tid == tid)
		return false;
	if (!v->tid) {
		if (who->nr_vmcs == VMT_PT_WHO_VMCS_MAX)
			return false;
		who->nr_vmcs++;
	} else {
		who->contradictions++;
	}
	*v = (struct vmcs){ .vmcs = vmcs, .tid = tid };
	return true;
}

uint32_t vmt_pt_who_tid_of(const struct vmt_pt_who *who, uint64_t vmcs)
{
	return who->vmcs[vmcs_slot(who, vmcs)].tid;
}

bool vmt_pt_who_vcpu_of(const struct vmt_pt_who *who, uint32_t tid, uint32_t *pid, uint32_t *domain,
			uint32_t *vcpu)
{
	const struct thread *t = &who->threads[thread_slot(who, tid)];

	if (!tid || !t->tid)
		return false;
	*pid = t->pid;
	*domain = t->domain;
	*vcpu = t->vcpu;
	return true;
}

static bool is_vcpu(const struct vmt_pt_who *who, uint32_t tid)
{
	return tid && who->threads[thread_slot(who, tid)].tid;
}

/*
 * The one thread that can have made an event within the span; NULL when there is none or not one.
 * Only a vCPU's thread enters and leaves a guest.
 */
static const struct run *find_run(const struct vmt_pt_who *who, size_t area,
				  struct vmt_pt_span span, bool of_guest)
{
	const struct timeline *t = &who->timelines[area];
	const struct run *one = NULL, *vcpu = NULL;
	uint64_t oldest = t->nr > RUNS_MAX ? t->nr - RUNS_MAX : 0;
	bool several = false, vcpus = false;

	for (uint64_t n = t->nr; n > oldest; n--) {
		const struct run *r = &t->runs[(n - 1) & (RUNS_MAX - 1)];

		if (r->from_ns > span.high_ns)
			continue;
		several = several || (one && one->tid != r->tid);
		one = r;
		if (is_vcpu(who, r->tid)) {
			vcpus = vcpus || (vcpu && vcpu->tid != r->tid);
			vcpu = r;
		}
		if (r->tid == UNKNOWN)
			vcpus = true;
		if (r->from_ns <= span.low_ns)
			return !several ? one : of_guest && !vcpus ? vcpu : NULL;
	}
	return NULL; /* what was at the beginning of the span is not known */
}

bool vmt_pt_who_stayed(const struct vmt_pt_who *who, size_t area, uint64_t from_ns, uint64_t to_ns)
{
	const struct vmt_pt_span span = { from_ns, to_ns };
	const struct run *r = area < who->nr_areas ? find_run(who, area, span, false) : NULL;

	return r && r->tid != UNKNOWN;
}

static void add_owner(const struct vmt_pt_who *who, struct vmt_event *e, uint32_t tid)
{
	const struct thread *t = &who->threads[thread_slot(who, tid)];

	if (!(e->has & VMT_HAS_TID)) {
		e->tid = tid;
		e->pid = t->tid ? t->pid : 0;
		e->has |= VMT_HAS_TID;
	}
	if (!t->tid)
		return;
	if (!(e->has & VMT_HAS_VCPU)) {
		e->vcpu = t->vcpu;
		e->has |= VMT_HAS_VCPU;
	}
	if (!(e->has & VMT_HAS_DOMAIN) && t->domain != UNKNOWN) {
		e->domain = t->domain;
		e->has |= VMT_HAS_DOMAIN;
	}
}

void vmt_pt_who_fill(struct vmt_pt_who *who, size_t area, struct vmt_event *e,
		     struct vmt_pt_span span)
{
	const bool of_guest = e->type == VMT_EVENT_EXIT || e->type == VMT_EVENT_ENTRY;
	const struct run *r = NULL;
	uint32_t tid = 0;

	if (e->has & VMT_HAS_TIME && area < who->nr_areas)
		r = find_run(who, area, span, of_guest);
	if (r && r->tid != UNKNOWN && r->tid) {
		if (!(e->has & VMT_HAS_TID)) {
			e->pid = r->pid;
			e->tid = r->tid;
			e->has |= VMT_HAS_TID;
		}
		tid = r->tid;
		if (of_guest && e->has & VMT_HAS_VMCS && is_vcpu(who, tid))
			vmt_pt_who_vmcs(who, e->vmcs, tid);
	} else if (e->has & VMT_HAS_TID) { /* an area of a thread */
		tid = e->tid;
		if (of_guest && e->has & VMT_HAS_VMCS && is_vcpu(who, tid))
			vmt_pt_who_vmcs(who, e->vmcs, tid);
	} else if (e->has & VMT_HAS_VMCS) {
		tid = vmt_pt_who_tid_of(who, e->vmcs);
	}
	if (tid)
		add_owner(who, e, tid);
}

uint64_t vmt_pt_who_contradictions(const struct vmt_pt_who *who)
{
	return who->contradictions;
}
