/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_KVM_JOIN_PRIVATE_H
#define VMT_KVM_JOIN_PRIVATE_H

#include "decode/base/exit_key.h"
#include "decode/kvm/join.h"

/* The pieces of the join: threads (join_threads.c), sub-keys (join_exit.c), parts (join_parts.c),
 * all other records (join_note.c). */

#define JOIN_THREADS_MAX 65536u
#define JOIN_OFF_MAX	 8 /* stretches off the CPU that are remembered within one exit */

enum join_side { /* of the last record that tells */
		 JOIN_SIDE_UNKNOWN,
		 JOIN_SIDE_GUEST,
		 JOIN_SIDE_HOST,
};

enum join_cpu {
	JOIN_ON_CPU,
	JOIN_BLOCKED,  /* off, not runnable */
	JOIN_RUNNABLE, /* off, runnable */
};

/* A stretch in which the thread was off the CPU for off_ns; less than its length where several
 * sleeps were put together. */
struct join_off {
	uint64_t from_ns, to_ns, off_ns;
};

/* Where the time of the open exit went so far; sums to since_ns - the exit's time. */
struct join_parts {
	uint64_t since_ns; /* accounted up to here */
	uint64_t kernel_ns, userspace_ns, halt_poll_ns, blocked_ns, preempted_ns;
	unsigned int nr_off;
	struct join_off off[JOIN_OFF_MAX]; /* in order of time */
};

struct join_thread {
	uint32_t tid, pid;
	uint32_t domain;
	int32_t vcpu;	     /* -1: no vCPU is known */
	uint64_t loss_epoch; /* losses up to this one are applied */
	uint8_t side;	     /* enum join_side */
	uint8_t cpu_state;   /* enum join_cpu */
	uint8_t wait;	     /* enum vmt_key_wait of the open exit */
	bool has_domain;
	bool open;	      /* `exit` waits for its entry */
	bool uncertain;	      /* the open exit was touched while records may be missing */
	bool after_loss;      /* a loss lies between `side` and now */
	bool in_userspace;    /* since a kvm_userspace_exit */
	bool stopped;	      /* the domain is paused */
	bool saw_switch;      /* context switches of this thread are recorded */
	bool is_protected;    /* SEV-ES or TDX */
	bool in_l2;	      /* kvm_nested_vmenter was the last word on the level */
	bool exit_in_l2;      /* in_l2 when the open exit came */
	bool nested_exit;     /* kvm_nested_vmexit confirmed the open exit */
	struct vmt_key early; /* a kvm_msr in front of its kvm_exit (SVM fast path) */
	struct join_parts parts;
	struct vmt_event exit;
};

struct vmt_join {
	const struct vmt_catalog *catalog;
	vmt_event_fn *emit;
	void *context;
	uint32_t wanted; /* types of events that are built */
	struct vmt_join_counts counts;
	uint64_t loss_epoch;
	uint64_t open_losses;  /* stretches in which records may be missing */
	bool has_switches;     /* the capture records the switches of every thread */
	bool nested_seen;      /* records of nested virtualisation are in the stream */
	bool nested_exit_seen; /* kvm_nested_vmexit among them */
	struct join_thread *threads;
	uint32_t nr_threads;
	uint32_t *slots; /* hash over tid: index + 1, 0 free */
	struct join_thread *last;
};

/* ---- join_threads.c ---- */
bool join_threads_init(struct vmt_join *join);
/* The state of a thread, or NULL. */
struct join_thread *join_thread_find(struct vmt_join *join, uint32_t tid);
/* The same, made when it is new; NULL when there are JOIN_THREADS_MAX or tid is 0. */
struct join_thread *join_thread_get(struct vmt_join *join, uint32_t tid, uint32_t pid);
/* Forgets what a thread did, not who it is. */
void join_thread_reset(struct join_thread *t);

/* ---- join_exit.c ---- */
/* Fills reason, qualification, vector and sub-key, as far as the record itself has them. */
void join_exit_fill(struct vmt_event *exit, enum vmt_key_wait *wait, const struct vmt_rec *rec);
/* What a later record adds to the open exit. */
void join_exit_refine(struct join_thread *t, const struct vmt_rec *rec, const struct vmt_key *key);

/* ---- join_parts.c ---- */
void join_parts_begin(struct join_thread *t, uint64_t time_ns);
/* Charges the time up to now to what the thread was doing. Call before its state changes. */
void join_parts_advance(struct join_thread *t, uint64_t now_ns);
/* Of the time ns up to now that a halt took: on CPU is polling, off CPU is charged already. */
void join_parts_halt(struct join_thread *t, uint64_t now_ns, uint64_t ns, bool waited,
		     bool switches_known);
/* Copies the parts into the exit. */
void join_parts_end(struct join_thread *t, bool switches_known);

/* ---- join_note.c ---- */
/* The sub-key and value of a record that is no entry, exit, switch or loss. */
void join_note_fill(struct vmt_event *event, const struct vmt_rec *rec);

/* ---- join_sched.c ---- */
void join_switch_out(struct vmt_join *join, uint32_t tid, const struct vmt_rec *rec,
		     bool preempted);
void join_switch_in(struct vmt_join *join, uint32_t tid, const struct vmt_rec *rec);
/* A blocked thread may run again, but does not yet. */
void join_waking(struct vmt_join *join, const struct vmt_rec *rec);

/* ---- join.c ---- */
#define JOIN_NO_CPU UINT32_MAX
void join_send(const struct vmt_join *join, const struct vmt_event *event);
/* Whether events of the type are to be built; counts the ones that are not. */
static inline bool join_wants(struct vmt_join *join, enum vmt_event_type type)
{
	bool wanted = join->wanted >> type & 1;

	join->counts.unsent += !wanted;
	return wanted;
}
/* Applies the losses that happened since the thread's last record. */
void join_catch_up(struct vmt_join *join, struct join_thread *t);
/* Who and when of a record, for an event about it; t may be NULL. */
void join_event_begin(struct vmt_event *event, enum vmt_event_type type, const struct vmt_rec *rec,
		      const struct join_thread *t);

#endif
