/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_LIVE_H
#define VMT_CAPTURE_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/event.h"
#include "decode/rewrite/privacy.h"
#include "decode/store/store.h"
#include "host/capture/perf_event.h"
#include "host/capture/pt_config.h"
#include "host/capture/pt_filter.h"
#include "host/capture/pt_means.h"
#include "host/capture/ring.h"
#include "host/capture/threads.h"
#include "vmx/kmod/vmtrace_vmx.h"

/*
 * The kernel's tracepoints as a source (docs/CAPTURE.md): a ring a CPU with every event, filtered
 * by the kernel to the threads of the domains, and a ring a thread for its context switches; and
 * Intel PT of the vCPU threads or of the CPUs, each with an AUX area of its own.
 */
struct vmt_live_setup {
	const struct vmt_perf_ops *ops;
	const char *tracefs;		   /* folder */
	bool kvm, sched, pt;		   /* what is wanted */
	bool system_wide;		   /* pt: every CPU, not the vCPU threads alone */
	struct vmt_pt_pmu pmu;		   /* of pt */
	struct vmt_pt_config config;	   /* the same */
	char pt_filter[VMT_PT_FILTER_MAX]; /* address filters of pt, "": none */
	bool overwrite;			   /* pt: only vmt_live_snapshot takes it */
	enum vmt_privacy privacy;	   /* pt: the side that is stored */
	enum vmt_pt_means means;	   /* of pt */
	enum vmx_pt_mode mode;		   /* of pt */
	int controls;	   /* the module's descriptor, set up; taken over; -1: none */
	uint64_t pt_bytes; /* all AUX areas together, 0: 64 MiB */
	enum vmt_isa isa;
	uint64_t buffer_bytes;
	const int *cpus; /* online */
	size_t nr_cpus;
	const struct vmt_domains *domains;
	struct vmt_store_writer *store;
	struct vmt_trigger_watch *watch; /* NULL: none; must outlive the capture */
};

struct vmt_live;

/*
 * Opens all and writes ATTR and FORMAT items; nothing is recorded before vmt_live_enable. Errors of
 * vmt_perf_open and vmt_tracefs_event; VMT_E_NOT_FOUND when no thread of the domains is known.
 */
int vmt_live_open(struct vmt_live **out, const struct vmt_live_setup *setup, struct vmt_diag *diag);
int vmt_live_enable(struct vmt_live *live, struct vmt_diag *diag);
void vmt_live_disable(struct vmt_live *live);
void vmt_live_close(struct vmt_live *live);

/* Readable when a ring passed its watermark or a thread ended. */
int vmt_live_fd(const struct vmt_live *live);

/* Empties all rings into the store. The first error of the store, after having emptied all. */
int vmt_live_drain(struct vmt_live *live, struct vmt_capture_counts *counts, struct vmt_diag *diag);

/*
 * Writes who was there before the capture, for Intel PT; nothing without it. Again where a flight
 * recorder may have dropped it.
 */
int vmt_live_write_existing(struct vmt_live *live, const struct vmt_domains *domains,
			    struct vmt_diag *diag);

/*
 * Takes what the overwritten areas of Intel PT hold; nothing to do where they are drained. The
 * events stand still meanwhile. The first error of the store, after all were tried.
 */
int vmt_live_snapshot(struct vmt_live *live, uint64_t now_ns, struct vmt_capture_counts *counts,
		      struct vmt_diag *diag);

/*
 * How many records the kernel could not put into the rings so far: told or not yet told by LOST
 * records. False where the kernel does not count (before 6.0); *lost is then UINT64_MAX when a ring
 * was full at its last drain, else 0.
 */
bool vmt_live_lost(const struct vmt_live *live, uint64_t *lost);

/*
 * Follows the domains' threads: opens what is new, closes the rings of those that ended. Returns 1
 * when the table changed, 0 when not; on failure (descriptors, rights) the capture of the other
 * threads goes on and the error tells what is missing.
 */
int vmt_live_follow(struct vmt_live *live, const struct vmt_domains *domains,
		    struct vmt_diag *diag);

/*
 * The (first) thread for which the last vmt_live_follow failed, and the index of its domain; 0 when
 * there is none.
 */
pid_t vmt_live_uncaptured(const struct vmt_live *live, uint32_t *domain);

/* The same for CPUs that came online. */
int vmt_live_add_cpus(struct vmt_live *live, const int *cpus, size_t nr_cpus,
		      struct vmt_diag *diag);

/*
 * What the kernel module tells of the VMX controls of each vCPU thread that it was given, those
 * that have ended as well; how many, at most max. 0 where it sets none.
 */
size_t vmt_live_controls(const struct vmt_live *live, struct vmtrace_vmx_state *out, size_t max);

struct vmt_live_totals {
	size_t rings, descriptors, threads, events, pt_areas;
};
struct vmt_live_totals vmt_live_totals(const struct vmt_live *live);

#endif
