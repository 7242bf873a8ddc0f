/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PT_CAPTURE_H
#define VMT_SUPPORT_PT_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

#include "tests/support/pt_encode.h"
#include "tests/support/stream.h"

/*
 * A .vmt with kvm records and Intel PT side by side: one domain, a vCPU a host CPU, with names of
 * its threads. What is in it is known exactly. Aborts when memory is short or a write fails.
 */
#define VMT_PT_CAPTURE_CPUS	2u
#define VMT_PT_CAPTURE_PID	6000u /* vCPU n is thread PID + 1 + n, "CPU n/KVM" */
#define VMT_PT_CAPTURE_PMU_TYPE 8u
#define VMT_PT_CAPTURE_EXITS	200u /* of each vCPU */

struct vmt_pt_capture {
	struct vmt_stream records; /* of the rings, in the order of the file */
	struct vmt_ptenc trace[VMT_PT_CAPTURE_CPUS];
};

/* piece: bytes of trace in an extent; any number, so that packets may be parted. */
void vmt_pt_capture_write(struct vmt_pt_capture *out, const char *path, uint64_t seed,
			  size_t piece);
void vmt_pt_capture_free(struct vmt_pt_capture *capture);

#endif
