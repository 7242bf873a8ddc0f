/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_BASE_AUX_H
#define VMT_BASE_AUX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/diag.h"

/*
 * Intel PT in a capture file, whatever its format. One AUX area is one byte stream of a CPU or
 * of a thread; a file holds it in extents, one a buffer that was drained. Nothing is ever joined in
 * memory: a source reads any part of an extent when it is asked.
 */

#define VMT_AUX_NO_CPU UINT32_MAX

/*
 * How Intel PT was set up. perf.data: AUXTRACE_INFO, the attr of its PMU, TIME_CONV and the CPUID
 * feature. 0 or false: unknown.
 */
struct vmt_pt_info {
	uint32_t pmu_type;
	uint64_t config;    /* of the PT event: RTIT_CTL bits as the kernel's PMU takes them */
	bool has_time_conv; /* perf clock <-> TSC as in the perf mmap page */
	uint16_t time_shift;
	uint32_t time_mult;
	uint64_t time_zero;
	uint8_t mtc_freq; /* RTIT_CTL.MTCFreq, when MTC is on */
	bool has_mtc_freq;
	uint32_t tsc_num;   /* CPUID.15H:EBX */
	uint32_t art_den;   /* CPUID.15H:EAX */
	uint32_t nom_ratio; /* max non-turbo ratio */
	bool per_cpu;	    /* areas belong to CPUs, not to threads */
	bool snapshot;	    /* extents of an area may overlap, and aux_offset does not tell how */
	bool event_trace;   /* the CPU has Event Trace */
	bool has_cpu_id;
	uint16_t family, model, stepping;
	const char *filter; /* address filter as given to the kernel, NULL: none; the source's */
};

/* Bytes of an AUX area that stand together in the file. */
struct vmt_aux_extent {
	uint64_t
		at; /* offset in the file of the first byte of trace (compressed: of their chunk) */
	uint64_t len;
	uint64_t aux_offset; /* of the first byte, in the area's own stream; grows with no bound */
	uint64_t reference;  /* a host TSC near the extent, 0: not known */
	/* The source's own; bit 0, VMT_AUX_RESTART, is for all. */
	uint64_t handle;
};

/*
 * The trace was stopped right before the extent and began anew: what was before may be cut off in
 * a packet, and the extent begins with a whole one. (A PERF_RECORD_AUX with the flag TRUNCATED.)
 */
#define VMT_AUX_RESTART UINT64_C(1)

struct vmt_aux_area {
	uint32_t idx;			/* number of the area in the file */
	uint32_t cpu;			/* VMT_AUX_NO_CPU: the area is a thread's */
	uint32_t pid, tid;		/* 0: not known, or many */
	struct vmt_aux_extent *extents; /* in the order of the file */
	size_t nr_extents;
};

/*
 * What a whole file has of Intel PT: known once its headers have been walked. Areas in the order of
 * their idx, then cpu, then tid; no two have all three in common. Extents beyond the limit of the
 * source are in lost_extents and lost_bytes.
 */
struct vmt_aux_index {
	bool has_info; /* all of info is as the recorder said it; else only what is set */
	struct vmt_pt_info info;
	struct vmt_aux_area *areas;
	size_t nr_areas;
	uint64_t lost_extents, lost_bytes;
	/*
	 * Reads len bytes from byte `from` of an extent, wherever the source's items stand. 0;
	 * VMT_E_IO; VMT_E_TRUNCATED when the input ends before; VMT_E_DAMAGED when a checksum is
	 * wrong; VMT_E_NOMEM. *done bytes were good.
	 */
	int (*read)(void *source, const struct vmt_aux_extent *extent, uint64_t from, uint8_t *out,
		    size_t len, size_t *done, struct vmt_diag *diag);
	void *source;
};

/* A vCPU that a perf.data's ID_INDEX names (machine_pid, vcpu), or a session document. */
struct vmt_vcpu_link {
	uint32_t machine_pid; /* VMM process */
	uint32_t vcpu;
	uint32_t tid; /* thread of the vCPU */
	uint32_t pad;
};

#endif
