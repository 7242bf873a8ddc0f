/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_KVM_MERGE_H
#define VMT_KVM_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include "decode/kvm/rec.h"

/*
 * Puts recs of several rings into time order with bounded memory. Rings are written one after the
 * other in rounds: after vmt_merge_round() nothing older than the newest rec of the round before
 * may come (perf's FINISHED_ROUND, the .vmt ROUND chunk). Where rounds are absent or larger than
 * the bound, the oldest half is let go, and a rec that then comes too late is passed on at once and
 * counted in `late`. A rec without VMT_REC_HAS_TIME gets the time of the newest one before it.
 */
struct vmt_merge;

/* max_recs bounds the memory: about 140 bytes a rec, of which only what is used is touched. NULL
 * when memory is short. */
struct vmt_merge *vmt_merge_new(size_t max_recs);
void vmt_merge_free(struct vmt_merge *merge);

typedef void vmt_rec_fn(void *context, const struct vmt_rec *rec);

/* Recs go to `emit` in order of time, equal times in order of arrival. */
void vmt_merge_push(struct vmt_merge *merge, const struct vmt_rec *rec, vmt_rec_fn *emit,
		    void *context);
/*
 * The same without a copy: where the next rec goes, to be filled in place and then taken. Valid
 * until the next call.
 */
struct vmt_rec *vmt_merge_slot(struct vmt_merge *merge);
void vmt_merge_take(struct vmt_merge *merge, vmt_rec_fn *emit, void *context);

void vmt_merge_round(struct vmt_merge *merge, vmt_rec_fn *emit, void *context);
/*
 * How far apart in time recs may be handed out in the wrong order by the next rounds, where that
 * costs nothing: a consumer that keeps threads apart gets a stretch of one thread at a time. The
 * recs of one thread stay in order. Where a thread moves between CPUs or a rec concerns others than
 * its own thread (a loss, sched_switch, sched_waking), the order is strict as ever. 0, as at first:
 * always strict.
 */
void vmt_merge_relax(struct vmt_merge *merge, uint64_t slack_ns);

void vmt_merge_flush(struct vmt_merge *merge, vmt_rec_fn *emit, void *context);

/* How many recs were passed on after a younger one. */
uint64_t vmt_merge_late(const struct vmt_merge *merge);

#endif
