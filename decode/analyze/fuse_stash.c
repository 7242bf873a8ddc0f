// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: index is an open-addressed table of threads at most half full; of a thread's two
 * places the older exit is in the first.
 */
#include "decode/analyze/fuse_stash.h"

#include <stdlib.h>

#define THREADS_MAX 65536u
#define SLOTS	    (2 * THREADS_MAX)

struct kept {
	bool is_full;
	uint64_t kvm_ns;
	struct vmt_event exit;
};

struct thread {
	uint32_t tid;
	struct kept kept[2];
};

struct vmt_fuse_stash {
	struct thread *threads;
	size_t nr, room;
	uint32_t index[SLOTS]; /* into threads + 1, 0: free */
};

struct vmt_fuse_stash *vmt_fuse_stash_new(void)
{
	return calloc(1, sizeof(struct vmt_fuse_stash));
}

void vmt_fuse_stash_free(struct vmt_fuse_stash *s)
{
	if (!s)
		return;
	free(s->threads);
	free(s);
}

static uint32_t *slot_of(struct vmt_fuse_stash *s, uint32_t tid)
{
	size_t i = (size_t)(tid * 2654435761u) & (SLOTS - 1);

	while (s->index[i] && s->threads[s->index[i] - 1].tid != tid)
		i = (i + 1) & (SLOTS - 1);
	return &s->index[i];
}

static bool add_thread(struct vmt_fuse_stash *s, uint32_t *slot, uint32_t tid)
{
	if (s->nr == THREADS_MAX)
		return false;
	if (s->nr == s->room) {
		const size_t room = s->room ? 2 * s->room : 16;
		struct thread *bigger = realloc(s->threads, room * sizeof(*bigger));

		if (!bigger)
			return false;
		s->threads = bigger;
		s->room = room;
	}
	s->threads[s->nr++] = (struct thread){ .tid = tid };
	*slot = (uint32_t)s->nr;
	return true;
}

bool vmt_fuse_stash_put(struct vmt_fuse_stash *s, uint32_t tid, uint64_t kvm_ns,
			const struct vmt_event *exit)
{
	uint32_t *slot = slot_of(s, tid);
	struct thread *t;

	if (!*slot && !add_thread(s, slot, tid))
		return false;
	t = &s->threads[*slot - 1];
	t->kept[t->kept[0].is_full] =
		(struct kept){ .is_full = true, .kvm_ns = kvm_ns, .exit = *exit };
	return true;
}

bool vmt_fuse_stash_take(struct vmt_fuse_stash *s, uint32_t tid, uint64_t kvm_ns,
			 struct vmt_event *exit)
{
	const uint32_t *slot = slot_of(s, tid);
	struct kept *kept;

	if (!*slot)
		return false;
	kept = s->threads[*slot - 1].kept;
	for (unsigned int i = 0; i < 2; i++) {
		if (!kept[i].is_full || kept[i].kvm_ns != kvm_ns)
			continue;
		*exit = kept[i].exit;
		if (i == 0)
			kept[0] = kept[1];
		kept[1].is_full = false;
		return true;
	}
	return false;
}
