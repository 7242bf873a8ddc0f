/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_ANCHORS_H
#define VMT_CAPTURE_ANCHORS_H

#include <stdint.h>

#include "decode/base/anchor.h"
#include "decode/base/diag.h"
#include "decode/store/store.h"
#include "host/capture/perf_event.h"
#include "host/domain/domain.h"

/*
 * The perf clock of this host, read now. Where perf time cannot be computed from the TSC
 * (cap_user_time_zero = 0) the kernel is made to stamp a record: an own event of this thread asks
 * for COMM records, and setting the thread's name gives one.
 */
struct vmt_clock {
	const struct vmt_perf_ops *ops;
	int fd; /* -1: no self-sample, perf time is then only known by time_zero */
	struct perf_event_mmap_page *page;
	size_t map_bytes;
};

/* Works without any right; when the kernel refuses, the clock has no self-sample. */
void vmt_clock_open(struct vmt_clock *clock, const struct vmt_perf_ops *ops);
void vmt_clock_close(struct vmt_clock *clock);

/*
 * All clocks together on one CPU; of a few tries the one with the narrowest bracket of the TSC.
 * Must be called by the thread that opened the clock.
 */
void vmt_anchor_read(const struct vmt_clock *clock, struct vmt_anchor *out);

/* Perf clock alone, 0 when it is not known. */
uint64_t vmt_clock_now_ns(const struct vmt_clock *clock);

/* Snapshots of the vCPUs of a domain whose offset is known. Returns how many, at most max. */
size_t vmt_vcpu_tsc_of(const struct vmt_domain *domain, uint32_t index, uint64_t host_ns,
		       struct vmt_vcpu_tsc *out, size_t max);

/* An anchor, and the snapshots of all domains, as chunks. Errors of vmt_store_append. */
int vmt_anchor_write(const struct vmt_clock *clock, struct vmt_store_writer *store,
		     struct vmt_diag *diag);
int vmt_vcpu_tsc_write(const struct vmt_clock *clock, const struct vmt_domains *domains,
		       struct vmt_store_writer *store, struct vmt_diag *diag);

#endif
