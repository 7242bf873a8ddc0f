/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_CAPTURE_H
#define VMT_CAPTURE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/diag.h"
#include "decode/rewrite/privacy.h"
#include "decode/store/store.h"
#include "host/capture/trigger_watch.h"
#include "host/domain/domain.h"
#include "vmx/pt_plan.h"

/*
 * Capture into a .vmt: rings of the kernel's tracepoints (backend kvm, sched), Intel PT (pt) or a
 * recorded file at its own pace (backend replay). The owner calls vmt_capture_drain at least every
 * flush interval.
 */
struct vmt_capture_options {
	const char *backend;   /* auto (kvm, sched), a comma list of kvm, sched, pt; replay:FILE */
	uint64_t buffer_bytes; /* all rings together; 0: 64 MiB */
	uint64_t pt_buffer_bytes;	  /* all AUX areas together; 0: 64 MiB */
	const char *pt_terms;		  /* vmt_pt_config_make; NULL: none */
	const char *pt_filter;		  /* vmt_pt_filter_make; NULL: none */
	bool vm_events_only, system_wide; /* of pt */
	enum vmx_pt_mode pt_mode;	  /* pt: VMX_PT_SYSTEM or VMX_PT_GUEST_ONLY */
	bool pt_conceal;		  /* pt: VMX is not to be seen in it */
	/* pt: areas are overwritten; vmt_capture_flush and _stop take what they hold. */
	bool pt_overwrite;
	enum vmt_privacy privacy;	    /* pt: the side that reaches the file */
	const char *session_json;	    /* the session document, written first and repeated */
	const struct vmt_trigger *triggers; /* looked for in the records; copied */
	size_t nr_triggers;
};

struct vmt_capture;

/*
 * What needs more rights than capturing itself: raises the limits of open files and locked memory
 * and mounts tracefs privately when it is not mounted. Called by a single thread before rights are
 * dropped; nothing to do for a replay. Errors of vmt_tracefs_open; VMT_E_USAGE for an unknown
 * backend, VMT_E_CAPABILITY for one that this version does not have.
 */
int vmt_capture_prepare(const char *backend, struct vmt_diag *diag);

/*
 * What the user should know of how Intel PT is set up, NULL: nothing. Static.
 */
const char *vmt_capture_note(const struct vmt_capture *capture);

/*
 * Opens everything for the domains (which must outlive the capture and may be refreshed by it) and
 * starts. VMT_E_PERMISSION names the capability, sysctl or path; VMT_E_CAPABILITY says what the
 * kernel lacks.
 */
int vmt_capture_open(struct vmt_capture **out, const struct vmt_capture_options *options,
		     struct vmt_domains *domains, struct vmt_store_writer *store,
		     struct vmt_diag *diag);

/* Descriptor that becomes readable when a ring reaches its watermark; for epoll. */
int vmt_capture_fd(const struct vmt_capture *capture);

/*
 * Moves what the rings hold into the store, writes a ROUND, looks for new threads. VMT_E_FULL: the
 * store is full (the capture goes on and counts the loss); 1 when the source has ended (replay).
 */
int vmt_capture_drain(struct vmt_capture *capture, struct vmt_diag *diag);

/* The same, and Intel PT that is overwritten is taken as well. */
int vmt_capture_flush(struct vmt_capture *capture, struct vmt_diag *diag);

/* Takes the first trigger that fired since the last call; false when there is none. */
bool vmt_capture_triggered(struct vmt_capture *capture, struct vmt_trigger_hit *hit);

/* Perf clock of the records now (of a replay: the recording's), 0 when it is not known. */
uint64_t vmt_capture_now_ns(const struct vmt_capture *capture);

/*
 * Records up to this perf clock are in the store, or would be after vmt_capture_flush. UINT64_MAX:
 * a replay that is over.
 */
uint64_t vmt_capture_seen_ns(const struct vmt_capture *capture);

/* A domain changed (from vmt_watch): the mark is stored, threads and TSC snapshots are read again.
 */
int vmt_capture_mark(struct vmt_capture *capture, uint32_t domain, const char *name,
		     const char *detail, struct vmt_diag *diag);

struct vmt_capture_stats {
	uint64_t records, bytes, lost_records, rings, descriptors, threads;
	uint64_t unknown_losses;     /* LOSSes whose size is not known, not in lost_records */
	uint64_t exits;		     /* kvm_exit samples seen, by tracepoint id */
	uint64_t pt_areas, pt_bytes; /* of Intel PT, stored */
	uint64_t pt_truncated;	     /* how often an AUX area was full */
	uint64_t pt_partial, pt_collisions, pt_unstored; /* of struct vmt_pt_counts */
	uint64_t cpu_ns;				 /* own CPU time */
};
struct vmt_capture_stats vmt_capture_stats(const struct vmt_capture *capture);

/*
 * Stops recording, drains once more and writes the last clocks and the mark. Nothing is written
 * afterwards: the store may be finished while the capture is still open, since the kernel takes
 * some 30 ms to close each tracepoint.
 */
int vmt_capture_stop(struct vmt_capture *capture, struct vmt_diag *diag);

/* Stops unless that is done, and frees. Does not close the store. */
int vmt_capture_close(struct vmt_capture *capture, struct vmt_diag *diag);

#endif
