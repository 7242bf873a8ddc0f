/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_ANALYZE_FUSE_PAIRS_H
#define VMT_ANALYZE_FUSE_PAIRS_H

#include <stddef.h>
#include <stdint.h>

#include "decode/analyze/pt_who.h"
#include "decode/base/event.h"

/*
 * Durations of PT exits over all CPUs: an exit ends with the next entry of its VMCS, wherever that
 * is. The decoder of one CPU knows only its own; when the vCPU ran elsewhere in between, the
 * duration that it gave is too long. An exit waits here for its entry and goes out before it. No
 * duration reaches across a loss on a CPU where the vCPU may have run in between.
 */
struct vmt_pairs;

/* NULL when memory is short. */
struct vmt_pairs *vmt_pairs_new(const struct vmt_pt_who *who, vmt_event_fn *emit, void *context);
void vmt_pairs_free(struct vmt_pairs *pairs);

/* A PT event in order of time; an exit waits, others go out. */
void vmt_pairs_push(struct vmt_pairs *pairs, size_t area, const struct vmt_event *event,
		    struct vmt_pt_span span);
/* An entry or exit that goes out by another way: what waits for it goes first. */
void vmt_pairs_see(struct vmt_pairs *pairs, size_t area, const struct vmt_event *event);
void vmt_pairs_flush(struct vmt_pairs *pairs);

#endif
