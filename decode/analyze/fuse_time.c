// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * PT's times bettered by tracepoints. Invariant: the true time lies within the error of the time
 * that is told, before and after.
 */
#include "decode/analyze/fuse_private.h"

static uint64_t ns_of(const struct vmt_fuse *f, uint64_t tsc)
{
	return vmt_perf_clock_to_ns(&f->clock, (struct vmt_host_tsc){ tsc }).host_ns;
}

/* The TSC units that have the time kvm_ns: *first and *last. */
static void tsc_of(const struct vmt_fuse *f, uint64_t kvm_ns, uint64_t *first, uint64_t *last)
{
	uint64_t error;

	*first = vmt_perf_clock_to_tsc(&f->clock, (struct vmt_host_ns){ kvm_ns }, &error).host_tsc;
	*last = *first + error;
}

/* The last TSC at which the event may have been, UINT64_MAX: no bound. False: no time, or sharp. */
static bool end_of(const struct vmt_fuse *f, const struct vmt_event *e, uint64_t *last)
{
	if (!f->has_clock || !(e->has & VMT_HAS_HOST_TSC) || !(e->has & VMT_HAS_TIME))
		return false;
	if (e->host_tsc_error == VMT_PT_NO_BOUND ||
	    __builtin_add_overflow(e->host_tsc.host_tsc, e->host_tsc_error, last))
		*last = UINT64_MAX;
	return *last == UINT64_MAX || ns_of(f, *last) - e->time.host_ns > FUSE_SHARP_NS;
}

static void move(const struct vmt_fuse *f, struct vmt_event *e, uint64_t tsc, uint64_t error)
{
	e->time.host_ns = ns_of(f, tsc);
	e->host_tsc.host_tsc = tsc;
	e->host_tsc_error = error;
	e->has &= ~(uint32_t)(VMT_HAS_DURATION | VMT_HAS_DURATION_TSC);
}

void fuse_sharpen_exit(const struct vmt_fuse *f, struct vmt_event *e, uint64_t kvm_ns)
{
	const uint64_t tsc = e->host_tsc.host_tsc;

	uint64_t first, last, high;

	if (!end_of(f, e, &high))
		return;
	tsc_of(f, kvm_ns, &first, &last);
	if (last < high)
		high = last;
	if (high > tsc)
		move(f, e, high, high - e->host_tsc_low);
}

void fuse_sharpen_entry(const struct vmt_fuse *f, struct vmt_event *e, uint64_t kvm_ns)
{
	uint64_t first, last, high;

	if (!end_of(f, e, &high))
		return;
	tsc_of(f, kvm_ns, &first, &last);
	if (first > e->host_tsc.host_tsc && first <= high)
		move(f, e, first, high == UINT64_MAX ? VMT_PT_NO_BOUND : high - first);
}
