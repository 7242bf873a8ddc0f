/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Invariant: threads[0..nr_threads) are in use, each is in the hash exactly once, and the hash
 * (open addressing, a power of two) is at most half full. Threads are never taken out: a tid that
 * comes back in another process starts afresh.
 */
#include "decode/kvm/join_private.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS ((size_t)2 * JOIN_THREADS_MAX)

bool join_threads_init(struct vmt_join *join)
{
	join->threads = calloc(JOIN_THREADS_MAX, sizeof(*join->threads));
	join->slots = calloc(SLOTS, sizeof(*join->slots));
	return join->threads && join->slots;
}

static uint32_t *slot_of(struct vmt_join *join, uint32_t tid)
{
	size_t at = (tid * UINT32_C(0x9e3779b1)) >> 15;

	while (join->slots[at] && join->threads[join->slots[at] - 1].tid != tid)
		at = (at + 1) & (SLOTS - 1);
	return &join->slots[at];
}

struct join_thread *join_thread_find(struct vmt_join *join, uint32_t tid)
{
	uint32_t *slot;

	if (join->last && join->last->tid == tid)
		return join->last;
	slot = slot_of(join, tid);
	if (!*slot)
		return NULL;
	join->last = &join->threads[*slot - 1];
	return join->last;
}

struct join_thread *join_thread_get(struct vmt_join *join, uint32_t tid, uint32_t pid)
{
	uint32_t *slot, index = join->nr_threads;

	if (join->last && join->last->tid == tid)
		return join->last;
	slot = slot_of(join, tid);
	if (*slot) {
		join->last = &join->threads[*slot - 1];
		return join->last;
	}
	if (tid == 0 || index == JOIN_THREADS_MAX)
		return NULL;
	join->threads[index] = (struct join_thread){
		.tid = tid,
		.pid = pid,
		.vcpu = -1,
		.loss_epoch = join->loss_epoch,
	};
	*slot = ++join->nr_threads;
	join->last = &join->threads[index];
	return join->last;
}

void join_thread_reset(struct join_thread *t)
{
	struct join_thread fresh = {
		.tid = t->tid,
		.pid = t->pid,
		.domain = t->domain,
		.has_domain = t->has_domain,
		.vcpu = t->vcpu,
		.loss_epoch = t->loss_epoch,
	};

	*t = fresh;
}
