/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_BASE_CLOCK_H
#define VMT_BASE_CLOCK_H

#include <stdint.h>

/*
 * The three clocks, as types that do not mix: converting one into another is the work of
 * decode/correlate alone.
 */
struct vmt_host_tsc { /* TSC of the host CPU, host units */
	uint64_t host_tsc;
};

struct vmt_guest_tsc { /* TSC as RDTSC in the guest reads it, guest units, one per vCPU */
	uint64_t guest_tsc;
};

struct vmt_host_ns { /* the perf clock of the host (sched_clock), nanoseconds */
	uint64_t host_ns;
};

#endif
