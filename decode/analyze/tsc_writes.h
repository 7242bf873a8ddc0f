/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_ANALYZE_TSC_WRITES_H
#define VMT_ANALYZE_TSC_WRITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/anchor.h"

/* A kvm_write_tsc_offset. */
struct vmt_tsc_write {
	uint64_t time_ns;	 /* perf clock */
	uint64_t previous, next; /* guest units, two's complement */
	uint32_t pid, tid;	 /* who wrote: the vCPU's thread, or another one of its process */
	uint32_t vcpu;
};

/* All of a capture, in the order of the file. Memory: 40 bytes each. */
#define VMT_TSC_WRITES_MAX (256u << 10)

struct vmt_tsc_writes {
	struct vmt_tsc_write *rows;
	size_t nr, room;
	bool too_many; /* there are more than are held */
	/* What the recorder read of the vCPUs the first time, at whatever moment: with the writes
	 * it holds for all of the capture. NULL: nothing. */
	struct vmt_vcpu_tsc *first;
	size_t nr_first;
};

void vmt_tsc_writes_free(struct vmt_tsc_writes *writes);

#endif
