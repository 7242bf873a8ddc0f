/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_LIVE_STATE_H
#define VMT_CAPTURE_LIVE_STATE_H

#include "host/capture/events.h"
#include "host/capture/filter.h"
#include "host/capture/live.h"

/* One tracepoint that this kernel has, or a software event that carries records. */
struct vmt_live_event {
	const struct vmt_event_row *row; /* NULL: a software event */
	uint64_t id;			 /* tracepoint id */
	uint64_t *ids;			 /* of descriptors opened since the last ATTR item */
	size_t nr_ids, cap_ids;
};

struct vmt_live_ring {
	struct vmt_capture_ring ring;
	int leader;		/* -1: closed */
	pid_t tid;		/* 0: ring of a CPU */
	bool ended;		/* the thread is gone: drain once more, then close */
	bool full;		/* when it was drained last: what came after that may be lost */
	struct vmt_pt_ring *pt; /* of Intel PT: its AUX area, owned; NULL: another ring */
};

/* The ring of a CPU that takes its tracepoints. */
static inline bool vmt_live_takes_events(const struct vmt_live_ring *ring)
{
	return ring->leader >= 0 && !ring->tid && !ring->pt;
}

#define VMT_LIVE_ROLES 4 /* VMT_ROLE_VCPU .. VMT_ROLE_WAKING */

/* Kernel filters for one set of threads. An empty text: no filter. */
struct vmt_live_filters {
	char text[VMT_LIVE_ROLES][VMT_FILTER_MAX];
	bool first; /* of the first set: events that name no thread are opened only once */
};

/* The software events in front of the tracepoints. */
enum {
	VMT_LIVE_LEADER,   /* head of a CPU's ring */
	VMT_LIVE_SWITCHES, /* of a thread */
	VMT_LIVE_PT,
	VMT_LIVE_TRACEPOINTS,
};

struct vmt_live {
	const struct vmt_perf_ops *ops;
	struct vmt_store_writer *store;
	struct vmt_trigger_watch *watch;
	bool sched, system_wide;
	/* Intel PT. pt_type 0: not wanted. */
	uint32_t pt_type;
	uint64_t pt_config;
	size_t pt_aux_bytes;
	char pt_filter[VMT_PT_FILTER_MAX]; /* "": none */
	uint64_t pt_id;			   /* of the first of its events, 0: none yet */
	uint32_t synth_stream;
	bool pt_overwrite;
	struct vmt_rewrite_options pt_privacy; /* keep NONE: areas are stored as they are */
	bool pt_no_host; /* the host is left out by the driver, the guest traced by VMX controls */
	int controls;	 /* descriptor of the kernel module that sets them, -1: none */
	pid_t *controlled; /* threads that it was given */
	size_t nr_controlled, cap_controlled;
	int epoll;
	struct vmt_live_event *events;
	size_t nr_events;
	uint64_t exit_id; /* tracepoint id of kvm_exit */
	struct vmt_live_ring *rings;
	size_t nr_rings, cap_rings;
	int *fds; /* every descriptor but the leaders */
	size_t nr_fds, cap_fds, nr_enabled;
	size_t nr_leaders_enabled;
	size_t cpu_ring_bytes, thread_ring_bytes;
	struct vmt_threads threads;
	uint32_t next_stream;
	pid_t uncaptured; /* a thread that the last vmt_live_follow could not open, 0: none */
	uint32_t uncaptured_domain;
	uint64_t closed_lost; /* records lost by rings that are closed */
	bool enabled;
};

/* Reads ids and formats of what this kernel has; writes the FORMAT items. */
int vmt_live_find_events(struct vmt_live *live, const struct vmt_live_setup *setup,
			 struct vmt_diag *diag);

/* Opens a CPU's ring with its leader. Returns the ring's index. */
int vmt_live_open_cpu(struct vmt_live *live, int cpu, struct vmt_diag *diag);
/* Opens the tracepoints of one set of threads into the ring of a CPU. */
int vmt_live_open_events(struct vmt_live *live, size_t ring, const struct vmt_live_filters *filters,
			 struct vmt_diag *diag);
/* Opens the ring of a thread's switches; 0 as well when the thread has ended meanwhile. */
int vmt_live_open_thread(struct vmt_live *live, pid_t tid, struct vmt_diag *diag);
void vmt_live_close_ring(struct vmt_live *live, struct vmt_live_ring *ring);

/* What an event in front of the tracepoints asks for, pid and cpu apart. */
struct vmt_perf_want vmt_live_want(const struct vmt_live *live, size_t event);

/*
 * Opens an event of its own into a ring of its own. ring: size, cpu, and with pt an AUX area. The
 * ring's index, or an error.
 */
int vmt_live_open_ring(struct vmt_live *live, size_t index, struct vmt_perf_want want, size_t bytes,
		       struct vmt_diag *diag);

/*
 * live_pt.c: Intel PT of a thread (0 as well when it has ended, is no vCPU, or Intel PT is of CPUs
 * or not wanted) and of a CPU.
 */
int vmt_live_open_pt_thread(struct vmt_live *live, const struct vmt_domains *domains,
			    const struct vmt_thread *thread, struct vmt_diag *diag);
int vmt_live_open_pt_cpu(struct vmt_live *live, int cpu, struct vmt_diag *diag);
int vmt_live_map_pt(struct vmt_live *live, struct vmt_live_ring *ring, struct vmt_diag *diag);
void vmt_live_unmap_pt(struct vmt_live *live, struct vmt_live_ring *ring);
void vmt_live_size_pt(struct vmt_live *live, const struct vmt_live_setup *setup);
/* Empties a ring of Intel PT and lets the trace go on where the kernel stopped it. */
int vmt_live_drain_pt(struct vmt_live *live, struct vmt_live_ring *ring,
		      struct vmt_capture_counts *counts, uint64_t head, struct vmt_diag *diag);

/* Writes an ATTR item for each event that got new ids. */
int vmt_live_write_attrs(struct vmt_live *live, struct vmt_diag *diag);

/* Filters for the threads rows[from..count). */
void vmt_live_make_filters(const struct vmt_live *live, const struct vmt_domains *domains,
			   size_t from, struct vmt_live_filters *filters);

#endif
