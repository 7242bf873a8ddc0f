/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_ANALYZE_FUSE_H
#define VMT_ANALYZE_FUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/analyze/pt_streams.h"
#include "decode/analyze/pt_who.h"
#include "decode/base/event.h"

/*
 * Entries and exits of Intel PT with those of kvm's tracepoints, each once. On one CPU kvm_exit
 * comes behind the VM exit and before the next VM entry, kvm_entry before the VM entry. What PT and
 * a tracepoint tell of one exit becomes one event with source pt: time, host TSC, RIP, CR3, VMCS
 * and duration from PT, the rest from the tracepoint; a reason that PT told (Event Trace) stays.
 * What only one of them told goes out as it is, PT's exits with their duration to the next entry of
 * their VMCS on whatever CPU.
 *
 * Order of calls: PT events up to a time, then what the tracepoint side has of that time. Memory is
 * bounded: 65536 PT events wait, one exit a thread.
 */
struct vmt_fuse_counts {
	uint64_t joined;
	uint64_t only_pt;	  /* PT exits without a kvm_exit */
	uint64_t only_kvm;	  /* kvm_exits without a PT exit, while PT covered their CPU */
	uint64_t disagree_reason; /* of joined: Event Trace and kvm_exit tell another reason */
	uint64_t disagree_rip;
	/* PT exits that have no time to join by: left out, as their entries are. A kvm_exit is in
	 * only_kvm only where no such exit can be its own. */
	uint64_t untimed;
};

struct vmt_fuse;

/* who must outlive it. NULL when memory is short. */
struct vmt_fuse *vmt_fuse_new(size_t nr_areas, struct vmt_pt_who *who, vmt_event_fn *emit,
			      void *context);
void vmt_fuse_free(struct vmt_fuse *fuse);

/* kvm_exit is recorded: PT exits wait for theirs from the start. */
void vmt_fuse_expect_kvm(struct vmt_fuse *fuse);

/*
 * TSC and perf clock, to tighten with the tracepoints' times what PT knows only to within a
 * microsecond or more.
 */
void vmt_fuse_clock(struct vmt_fuse *fuse, const struct vmt_perf_clock *clock);

/* Called when a VMCS is seen to belong to another thread than was known. May be NULL. */
void vmt_fuse_on_vmcs(struct vmt_fuse *fuse, void (*learnt)(void *context, uint64_t vmcs),
		      void *context);

/* An event of an area: context is the fuse (vmt_pt_streams_fn). */
void vmt_fuse_pt(void *context, size_t area, const struct vmt_event *event,
		 struct vmt_pt_span span);

/*
 * A kvm_exit at its own time, before the join takes it: the PT exit that belongs to it is set aside
 * for the event that the join will make of it. area SIZE_MAX: the CPU has no PT.
 */
struct vmt_fuse_exit {
	uint64_t time_ns;
	uint32_t tid;
	bool has_rip, has_reason;
	uint64_t guest_rip;
	uint32_t reason; /* with flags */
};
void vmt_fuse_exit(struct vmt_fuse *fuse, size_t area, const struct vmt_fuse_exit *kvm);

/* An event that the join hands out, with the area of its CPU or thread. */
void vmt_fuse_event(struct vmt_fuse *fuse, size_t area, const struct vmt_event *event);
/* The join has handed out what it has of a record. */
void vmt_fuse_settle(struct vmt_fuse *fuse);

/* Nothing of the tracepoint side before now_ns will come any more. UINT64_MAX: nothing at all. */
void vmt_fuse_advance(struct vmt_fuse *fuse, uint64_t now_ns);

/* The end: after PT was pulled to its end. */
void vmt_fuse_flush(struct vmt_fuse *fuse);

struct vmt_fuse_counts vmt_fuse_counts(const struct vmt_fuse *fuse);
/* Whether there was a kvm_exit on a CPU with PT. */
bool vmt_fuse_covered(const struct vmt_fuse *fuse);

#endif
