/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_ANALYZE_FUSE_PRIVATE_H
#define VMT_ANALYZE_FUSE_PRIVATE_H

#include "decode/analyze/fuse.h"
#include "decode/analyze/fuse_pairs.h"
#include "decode/analyze/fuse_stash.h"

/* The pieces of the fuse: PT events that wait (fuse.c), entries that wait for theirs
 * (fuse_await.c), what the tracepoints tell (fuse_kvm.c). */

/* The perf clock of a tracepoint and the time of PT are the same TSC, but for rounding. */
#define FUSE_SLACK_NS 300u
/* A VM exit whose kvm_exit has not come by then, however long an NMI or SMI took, has none. */
#define FUSE_EXPIRE_NS 10000000u
/* A time of PT that is known to less than that is not bettered by a tracepoint's. */
#define FUSE_SHARP_NS 1000u
/* What tells another RIP is taken for the same only when its time leaves no other. */
#define FUSE_NARROW_NS	  20000u
#define FUSE_RECENT_EXITS 4096u
#define FUSE_CANDIDATES	  8u
#define FUSE_NO_LANE	  SIZE_MAX

struct fuse_slot {
	struct vmt_event event;
	struct vmt_pt_span span;
	uint64_t next;	 /* number of the next one of the area, 0: none */
	uint64_t before; /* EXIT: of the exit of its VMCS before it, 0: not known */
	uint32_t area;
	bool taken;
};

struct fuse_recent { /* the last exit of a VMCS in the ring */
	uint64_t vmcs, number;
};

/* What waits for the PT entry that a kvm_entry announces. */
struct fuse_awaiting {
	bool is_open, has_exit;
	bool is_due;	     /* a PT entry came that is ahead of the tracepoints */
	size_t older, newer; /* lanes that wait, by the time of their kvm_entry */
	size_t next_due;
	struct vmt_event exit;	/* PT's part is in it when its source is PT */
	struct vmt_event entry; /* the join's */
};

struct fuse_lane {	      /* of an area */
	uint64_t first, last; /* numbers of its chain */
	struct fuse_awaiting await;
	bool seen;	 /* an event with a time came */
	uint64_t unsure; /* kvm_exits without PT since the last event */
	uint64_t passed; /* number of the last event that was taken */
	uint64_t lossy_until_ns;
};

struct vmt_fuse {
	struct vmt_pt_who *who;
	struct vmt_pairs *pairs;
	vmt_event_fn *emit;
	void *context;
	void (*learnt)(void *context, uint64_t vmcs);
	void *learnt_context;

	struct fuse_slot *ring;
	uint64_t head, tail; /* numbers, from 1 */
	size_t room;
	struct fuse_lane *lanes;
	size_t nr_lanes;

	struct vmt_fuse_stash *stash;
	struct fuse_recent recent[FUSE_RECENT_EXITS]; /* by VMCS, what fits */

	size_t oldest, newest; /* lanes that wait for a PT entry, FUSE_NO_LANE: none */
	size_t due;
	bool has_clock;
	struct vmt_perf_clock clock;
	bool expects; /* kvm_exit is recorded */
	bool entries; /* so is kvm_entry */
	bool active;  /* there was one */
	bool covered, has_held;
	bool has_first;
	uint64_t first_ns; /* of the first kvm_entry or kvm_exit */
	uint64_t now_ns;
	struct vmt_event held; /* an exit of the join that its entry may follow */
	struct vmt_fuse_counts counts;
};

static inline struct fuse_slot *fuse_slot_at(const struct vmt_fuse *f, uint64_t number)
{
	return &f->ring[number & (f->room - 1)];
}

static inline uint64_t fuse_later(uint64_t ns, uint64_t by)
{
	return ns > UINT64_MAX - by ? UINT64_MAX : ns + by;
}

static inline bool fuse_rip_differs(const struct vmt_event *a, const struct vmt_event *b)
{
	return a->has & b->has & VMT_HAS_RIP && a->guest_rip != b->guest_rip;
}

/* ---- fuse.c ---- */
/* Takes an event out of its chain, and with it all before it. */
void fuse_take(struct vmt_fuse *f, struct fuse_lane *l, uint64_t number);
/* The next entry in the chain, if it is near. */
const struct fuse_slot *fuse_entry_behind(const struct vmt_fuse *f, uint64_t number);
/* The vCPU entered: the kvm_exit of its exit before that will not come any more. */
void fuse_release_exit(struct vmt_fuse *f, uint64_t entry);
void fuse_learn(struct vmt_fuse *f, const struct vmt_event *event, uint32_t tid);

/* ---- fuse_await.c ---- */
/* Opens the lane's place for a kvm_entry; exit may be NULL. */
void fuse_await(struct vmt_fuse *f, size_t area, const struct vmt_event *exit,
		const struct vmt_event *entry);
/* Whether the lane waits, and a PT entry has come for it that the tracepoints have not reached. */
void fuse_await_due(struct vmt_fuse *f, size_t area);
/* Looks for the PT entry among those that may have been at or before now_ns. */
void fuse_await_try(struct vmt_fuse *f, size_t area, uint64_t now_ns);
/* The same, and sends what waits in any case. */
void fuse_await_settle(struct vmt_fuse *f, size_t area, uint64_t now_ns);
/* The tracepoints have come to now_ns. */
void fuse_await_advance(struct vmt_fuse *f);

/* ---- fuse_time.c ---- */
/* A PT exit is not after its kvm_exit, an entry not before its kvm_entry. */
void fuse_sharpen_exit(const struct vmt_fuse *f, struct vmt_event *exit, uint64_t kvm_ns);
void fuse_sharpen_entry(const struct vmt_fuse *f, struct vmt_event *entry, uint64_t kvm_ns);

/* ---- fuse_kvm.c ---- */
void fuse_send_held(struct vmt_fuse *f);

#endif
