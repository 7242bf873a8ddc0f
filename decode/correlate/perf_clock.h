/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CORRELATE_PERF_CLOCK_H
#define VMT_CORRELATE_PERF_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/anchor.h"
#include "decode/base/clock.h"

/*
 * Perf clock <-> host TSC by the kernel's own numbers (perf mmap page: time_zero, time_mult,
 * time_shift), exact as the kernel computes.
 */
struct vmt_perf_clock {
	uint64_t zero;
	uint32_t mult;
	uint16_t shift;
};

/*
 * False when the anchor's perf time is not convertible (VMT_ANCHOR_NO_TIME_ZERO), mult is 0 or
 * shift exceeds 32, which no kernel uses.
 */
bool vmt_perf_clock_from_anchor(const struct vmt_anchor *anchor, struct vmt_perf_clock *out);

/* perf time of a TSC value. */
struct vmt_host_ns vmt_perf_clock_to_ns(const struct vmt_perf_clock *clock,
					struct vmt_host_tsc tsc);

/*
 * First TSC value whose perf time is ns, and in *error how many units later the last one lies (the
 * true value is within); *error is 0 when exactly one value maps. A TSC slower than 1 GHz skips
 * times: then the last value before ns and 1. A time beyond the last TSC value gives UINT64_MAX.
 */
struct vmt_host_tsc vmt_perf_clock_to_tsc(const struct vmt_perf_clock *clock, struct vmt_host_ns ns,
					  uint64_t *error);

/* A stretch of TSC units, or the time since the TSC's reset, by its rate alone; saturates. */
uint64_t vmt_tsc_to_ns(uint64_t tsc, uint64_t hz);

#endif
