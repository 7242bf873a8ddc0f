/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_ANALYZE_FUSE_STASH_H
#define VMT_ANALYZE_FUSE_STASH_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/base/event.h"

/*
 * PT exits that belong to kvm_exits which the join has not handed out yet: at most two a thread,
 * the open one and the one that closes it. Up to 65536 threads, about 600 bytes each.
 */
struct vmt_fuse_stash;

/* NULL when memory is short. */
struct vmt_fuse_stash *vmt_fuse_stash_new(void);
void vmt_fuse_stash_free(struct vmt_fuse_stash *stash);

/* False when there is no room for the thread. */
bool vmt_fuse_stash_put(struct vmt_fuse_stash *stash, uint32_t tid, uint64_t kvm_ns,
			const struct vmt_event *exit);
/* The exit that was put with the same thread and time. */
bool vmt_fuse_stash_take(struct vmt_fuse_stash *stash, uint32_t tid, uint64_t kvm_ns,
			 struct vmt_event *exit);

#endif
