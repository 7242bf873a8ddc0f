/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the scheduler and the domain's life say about a thread: on the CPU, off it and why, stopped.
 * A change that is told twice (a switch record and the sched_switch tracepoint) counts once.
 */
#include "decode/kvm/join_private.h"

#include <string.h>

static void emit_switch(struct vmt_join *join, const struct join_thread *t,
			const struct vmt_rec *rec, bool in, bool preempted)
{
	struct vmt_event event;

	join_event_begin(&event, VMT_EVENT_SWITCH, rec, t);
	event.source = VMT_SOURCE_SCHED;
	event.tid = t->tid;
	event.pid = t->pid;
	event.has |= VMT_HAS_TID;
	event.switch_in = in;
	event.preempted = preempted;
	join_send(join, &event);
}

void join_switch_out(struct vmt_join *join, uint32_t tid, const struct vmt_rec *rec, bool preempted)
{
	struct join_thread *t = join_thread_find(join, tid);

	if (!t)
		return;
	join_catch_up(join, t);
	t->saw_switch = true;
	if (t->cpu_state != JOIN_ON_CPU)
		return;
	join_parts_advance(t, rec->time_ns);
	t->cpu_state = preempted ? JOIN_RUNNABLE : JOIN_BLOCKED;
	emit_switch(join, t, rec, false, preempted);
}

void join_switch_in(struct vmt_join *join, uint32_t tid, const struct vmt_rec *rec)
{
	struct join_thread *t = join_thread_find(join, tid);

	if (!t)
		return;
	join_catch_up(join, t);
	t->saw_switch = true;
	if (t->cpu_state == JOIN_ON_CPU)
		return;
	join_parts_advance(t, rec->time_ns);
	t->cpu_state = JOIN_ON_CPU;
	emit_switch(join, t, rec, true, false);
}

void join_waking(struct vmt_join *join, const struct vmt_rec *rec)
{
	struct join_thread *t = join_thread_find(join, rec->u.waking.tid);

	if (!t)
		return;
	join_catch_up(join, t);
	if (t->cpu_state != JOIN_BLOCKED)
		return;
	join_parts_advance(t, rec->time_ns);
	t->cpu_state = JOIN_RUNNABLE;
}

/* ---- life of the domain ---- */

static bool stops(const char *name)
{
	return strcmp(name, "paused") == 0 || strcmp(name, "stopped") == 0 ||
	       strcmp(name, "crashed") == 0 || strcmp(name, "migrated-away") == 0;
}

static bool goes_on(const char *name)
{
	return strcmp(name, "resumed") == 0 || strcmp(name, "started") == 0;
}

void vmt_join_mark(struct vmt_join *join, uint64_t time_ns, uint32_t domain, const char *name)
{
	const struct vmt_rec rec = { .time_ns = time_ns,
				     .flags = VMT_REC_HAS_TIME,
				     .cpu = JOIN_NO_CPU };
	bool stop = stops(name), go = goes_on(name);
	struct vmt_event event;

	for (uint32_t i = 0; (stop || go) && i < join->nr_threads; i++) {
		struct join_thread *t = &join->threads[i];

		if (!t->has_domain || t->domain != domain)
			continue;
		join_parts_advance(t, time_ns);
		t->stopped = stop;
	}
	join_event_begin(&event, VMT_EVENT_MARK, &rec, NULL);
	event.source = VMT_SOURCE_SESSION;
	event.domain = domain;
	event.has |= VMT_HAS_DOMAIN;
	event.name = name;
	join_send(join, &event);
}
