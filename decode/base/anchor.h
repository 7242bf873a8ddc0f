/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_BASE_ANCHOR_H
#define VMT_BASE_ANCHOR_H

#include <stdint.h>

/*
 * Clock readings that stand in a .vmt, little endian, exactly these layouts.
 */

/* The clocks of the host, read together on one CPU: the TSC before and after the three others. */
struct vmt_anchor {
	uint64_t host_tsc_before, host_tsc_after;
	uint64_t host_ns;	   /* perf clock; 0 with VMT_ANCHOR_NO_PERF_CLOCK */
	uint64_t monotonic_raw_ns; /* CLOCK_MONOTONIC_RAW */
	uint64_t realtime_ns;	   /* CLOCK_REALTIME */
	uint64_t time_zero;	   /* perf mmap page: TSC -> perf clock */
	uint32_t time_mult;
	uint16_t time_shift;
	uint16_t flags; /* VMT_ANCHOR_* */
	uint32_t cpu, pad;
};

#define VMT_ANCHOR_NO_TIME_ZERO	 0x1u /* cap_user_time_zero = 0: perf time is not convertible */
#define VMT_ANCHOR_NO_PERF_CLOCK 0x2u /* host_ns is not known */

/* TSC offset and ratio of one vCPU, as the kernel says at one moment. */
struct vmt_vcpu_tsc {
	uint64_t host_ns;
	uint64_t ratio; /* multiplier; 1 << frac when unscaled */
	int64_t offset;
	uint32_t domain, vcpu;
	uint8_t frac;	/* 48 VMX, 32 SVM, 0: no scaling hardware (ratio 1) */
	uint8_t source; /* 1 debugfs, 2 kvm_write_tsc_offset, 3 replayed */
	uint16_t flags;
	uint32_t pad;
};

#endif
