/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_KVM_JOIN_H
#define VMT_KVM_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/event.h"
#include "decode/kvm/rec.h"

/*
 * Joins recs in time order into events: an exit with its sub-key, duration and parts. One state per
 * vCPU thread. An exit is emitted when the following entry of its vCPU is seen (then with a
 * duration), or at flush (without). A loss makes every state that it may concern unknown: no exit
 * gets a duration or a part across it.
 */
struct vmt_join;

/* catalog gives names to NOTE events and must outlive the join. NULL when memory is short. */
struct vmt_join *vmt_join_new(const struct vmt_catalog *catalog, vmt_event_fn *emit, void *context);
void vmt_join_free(struct vmt_join *join);

/* A thread that the session knows: vcpu < 0 for a helper thread (emulator, iothread, vhost). */
int vmt_join_thread(struct vmt_join *join, uint32_t tid, uint32_t domain, int vcpu);

/*
 * Says that the stream records the context switches of every thread (has_switches of the session
 * document): then the parts of an exit are a full account from the first one on. Without it they
 * are from the first switch of a thread on.
 */
void vmt_join_has_switches(struct vmt_join *join);

/*
 * Events of the types whose bits (1u << enum vmt_event_type) are not in the mask are not built, but
 * counted in `unsent`. All are wanted at first.
 */
void vmt_join_want(struct vmt_join *join, uint32_t types);

void vmt_join_push(struct vmt_join *join, const struct vmt_rec *rec);

/* The domain is paused, stopped or resumed at time_ns: the time to the resume is not the guest's.
 */
void vmt_join_mark(struct vmt_join *join, uint64_t time_ns, uint32_t domain, const char *name);

/* The end: open exits are emitted without a duration. */
void vmt_join_flush(struct vmt_join *join);

/*
 * unmatched_exits: exits with no entry between them and an exit before; unmatched_entries the
 * reverse; both without a loss between. untracked: entries and exits of threads beyond 65536, or
 * without a thread.
 */
struct vmt_join_counts {
	uint64_t entries, exits, failed_entries, unmatched_exits, unmatched_entries, untracked;
	uint64_t unsent; /* events that vmt_join_want leaves out */
};
struct vmt_join_counts vmt_join_counts(const struct vmt_join *join);

#endif
