/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Invariant: while an exit is open, kernel + userspace + halt polling + blocked + preempted =
 * since_ns - the exit's time. Nothing is charged while none is open.
 */
#include "decode/kvm/join_private.h"

#include <string.h>

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void join_parts_begin(struct join_thread *t, uint64_t time_ns)
{
	struct join_parts *p = &t->parts;

	p->since_ns = time_ns;
	p->kernel_ns = 0;
	p->userspace_ns = 0;
	p->halt_poll_ns = 0;
	p->blocked_ns = 0;
	p->preempted_ns = 0;
	p->nr_off = 0;
}

static void remember_off(struct join_parts *p, uint64_t from_ns, uint64_t to_ns)
{
	struct join_off *off = p->off;

	if (p->nr_off && off[p->nr_off - 1].to_ns == from_ns) {
		off[p->nr_off - 1].off_ns += to_ns - from_ns;
		off[p->nr_off - 1].to_ns = to_ns;
		return;
	}
	if (p->nr_off == JOIN_OFF_MAX) { /* the two oldest become one */
		off[0].to_ns = off[1].to_ns;
		off[0].off_ns += off[1].off_ns;
		memmove(&off[1], &off[2], (JOIN_OFF_MAX - 2) * sizeof(off[0]));
		p->nr_off--;
	}
	off[p->nr_off++] = (struct join_off){ from_ns, to_ns, to_ns - from_ns };
}

void join_parts_advance(struct join_thread *t, uint64_t now_ns)
{
	struct join_parts *p = &t->parts;
	uint64_t passed;

	if (!t->open || now_ns <= p->since_ns)
		return;
	passed = now_ns - p->since_ns;
	if (t->cpu_state == JOIN_BLOCKED || (t->stopped && t->cpu_state == JOIN_ON_CPU))
		p->blocked_ns += passed;
	else if (t->cpu_state == JOIN_RUNNABLE)
		p->preempted_ns += passed;
	else if (t->in_userspace)
		p->userspace_ns += passed;
	else
		p->kernel_ns += passed;
	if (t->cpu_state != JOIN_ON_CPU)
		remember_off(p, p->since_ns, now_ns);
	p->since_ns = now_ns;
}

/* How much of [from, to) the thread was off the CPU. */
static uint64_t off_within(const struct join_parts *p, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < p->nr_off; i++) {
		uint64_t first = max_u64(p->off[i].from_ns, from_ns);
		uint64_t last = min_u64(p->off[i].to_ns, to_ns);

		if (last > first)
			sum += min_u64(last - first, p->off[i].off_ns);
	}
	return sum;
}

void join_parts_halt(struct join_thread *t, uint64_t now_ns, uint64_t ns, bool waited,
		     bool switches_known)
{
	struct join_parts *p = &t->parts;
	uint64_t from_ns, on_cpu_ns;

	if (!t->open)
		return;
	join_parts_advance(t, now_ns);
	from_ns = ns < now_ns ? now_ns - ns : 0;
	from_ns = min_u64(max_u64(from_ns, t->exit.time.host_ns), now_ns);
	on_cpu_ns = now_ns - from_ns - off_within(p, from_ns, now_ns);
	on_cpu_ns = min_u64(on_cpu_ns, p->kernel_ns);
	p->kernel_ns -= on_cpu_ns;
	if (waited && !switches_known)
		p->blocked_ns += on_cpu_ns;
	else
		p->halt_poll_ns += on_cpu_ns;
}

void join_parts_end(struct join_thread *t, bool switches_known)
{
	const struct join_parts *p = &t->parts;

	t->exit.userspace_part_ns = p->userspace_ns;
	t->exit.halt_poll_part_ns = p->halt_poll_ns;
	t->exit.blocked_part_ns = p->blocked_ns;
	t->exit.preempted_part_ns = p->preempted_ns;
	if (switches_known)
		t->exit.has |= VMT_HAS_PARTS;
}
