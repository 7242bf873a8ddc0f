/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_PERF_EVENT_H
#define VMT_CAPTURE_PERF_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/base/diag.h"
#include "decode/ring/ring.h"

/*
 * perf_event_open(2) and what belongs to it, as a table, so that tests can inject EINTR, EAGAIN,
 * EMFILE and EACCES. Members behave as the system calls (errno set, -1 or MAP_FAILED on failure).
 */
struct vmt_perf_ops {
	int (*open)(struct perf_event_attr *attr, pid_t pid, int cpu, int group,
		    unsigned long flags);
	void *(*map)(size_t len, int prot, int fd, size_t offset); /* shared */
	int (*unmap)(void *map, size_t len);
	int (*control)(int fd, unsigned long request, uintptr_t argument);
	ssize_t (*read)(int fd, void *buffer, size_t size);
	int (*close)(int fd);
	int (*open_device)(const char *path); /* for reading and writing */
};

extern const struct vmt_perf_ops vmt_perf_system;

/* What to open. name stands in errors: "kvm:kvm_exit". */
struct vmt_perf_want {
	const char *name;
	bool dummy;		/* a software event that never fires, to carry what follows */
	bool switches;		/* SWITCH records of the thread */
	bool comm;		/* COMM records: the clock's self-sample */
	bool user_only;		/* no kernel part: allowed to everyone */
	bool no_host;		/* neither kernel nor user: VMX controls trace the guest */
	bool mappings;		/* MMAP2 records of code, and COMM */
	bool text_poke;		/* TEXT_POKE records, where the kernel has them (5.9) */
	uint32_t pmu_type;	/* of a PMU of its own; 0: a tracepoint, or dummy */
	uint64_t config;	/* tracepoint: its id; PMU: attr.config */
	pid_t pid;		/* -1: every thread, on cpu */
	int cpu;		/* -1: every CPU, of pid */
	uint32_t watermark;	/* bytes after which a poller of the ring is woken */
	uint32_t aux_watermark; /* the same of the AUX area, 0: half of it */
};

/* The attr of these events as it stands in a capture (the same for all tracepoints but config). */
struct vmt_ring_attr vmt_perf_ring_attr(const struct vmt_perf_want *want);

/*
 * Opens one event, disabled. Returns the descriptor, VMT_E_NOT_FOUND when the thread is gone,
 * VMT_E_PERMISSION (the cure names capability, sysctl or lockdown), VMT_E_CAPABILITY when the
 * kernel lacks the event, VMT_E_LIMIT when descriptors or memory limits are exhausted (the cure
 * names the limit), VMT_E_IO otherwise. EINTR and EAGAIN are retried.
 */
int vmt_perf_open(const struct vmt_perf_ops *ops, const struct vmt_perf_want *want,
		  struct vmt_diag *diag);

/* Maps the ring of an event: a control page and 2^n pages of data. NULL with diag. */
struct perf_event_mmap_page *vmt_perf_map(const struct vmt_perf_ops *ops, int fd, size_t data_bytes,
					  struct vmt_diag *diag);

/*
 * Maps the AUX area of an event whose ring is mapped: aux_bytes, 2^n pages. Read-write: the kernel
 * stops when there is no room and waits for aux_tail. overwrite: read-only, and the kernel goes
 * round and round. NULL with diag.
 */
void *vmt_perf_map_aux(const struct vmt_perf_ops *ops, int fd, struct perf_event_mmap_page *page,
		       size_t data_bytes, size_t aux_bytes, bool overwrite, struct vmt_diag *diag);

/* ioctls, retried on EINTR. Errors as vmt_perf_open. */
int vmt_perf_filter(const struct vmt_perf_ops *ops, int fd, const char *filter,
		    struct vmt_diag *diag);
int vmt_perf_redirect(const struct vmt_perf_ops *ops, int fd, int leader, struct vmt_diag *diag);
int vmt_perf_enable(const struct vmt_perf_ops *ops, int fd, struct vmt_diag *diag);
void vmt_perf_disable(const struct vmt_perf_ops *ops, int fd);
int vmt_perf_id(const struct vmt_perf_ops *ops, int fd, uint64_t *id, struct vmt_diag *diag);

/*
 * How many records this event could not put into its ring since it was opened (PERF_FORMAT_LOST,
 * Linux 6.0). False: the kernel does not count them. A LOST record tells the same, but only in
 * front of the next record that fits: one that is lost last is never told in the ring.
 */
bool vmt_perf_lost(const struct vmt_perf_ops *ops, int fd, uint64_t *lost);

/* Raises RLIMIT_NOFILE to its hard limit and RLIMIT_MEMLOCK as far as it goes. */
void vmt_perf_raise_limits(void);

#endif
