/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PT_FLEET_H
#define VMT_SUPPORT_PT_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/pt_encode.h"
#include "tests/support/stream.h"

/*
 * Several CPUs under Intel PT that share a pool of vCPUs, whose threads move between the CPUs, with
 * kvm_entry, kvm_exit and context switches beside, by chance but reproducibly, and the truth about
 * every VM exit. Each exit has a RIP of its own. TSC 2 GHz, perf clock = TSC / 2.
 */
#define VMT_PTFLEET_CPUS_MAX   8u
#define VMT_PTFLEET_VCPUS_MAX  16u
#define VMT_PTFLEET_RIP	       UINT64_C(0xffffffff81000000) /* of exit n: + 16 n */
#define VMT_PTFLEET_VMCS(vcpu) (0x1bff6a000 + UINT64_C(0x3000) * (vcpu))
#define VMT_PTFLEET_OFFSET     (UINT64_C(1) << 30)
#define VMT_PTFLEET_PID	       5000u
#define VMT_PTFLEET_TID	       5100u /* of vCPU n: + n */

struct vmt_ptfleet_options {
	uint64_t seed;
	unsigned int cpus, vcpus, steps;
	bool tracepoints, switches, event_trace;
	bool guest_tsc; /* TSC packets in guests, whose TSC is VMT_PTFLEET_OFFSET ahead */
	bool inside;	/* every other stream begins inside a guest, with no TSC of the host */
	bool conceal;	/* nothing in the streams shows a VM */
	/* Chances, in 1000: a kvm_exit that is missing, or tells another RIP or reason; packets
	 * that are lost. */
	unsigned int lose_kvm, wrong_rip, wrong_reason, overflow;
};

struct vmt_ptfleet_exit {
	uint32_t cpu, vcpu, reason;
	uint64_t tsc;
	bool has_pt, has_kvm;	      /* that tell of it */
	bool wrong_rip, wrong_reason; /* in kvm_exit */
	bool has_end, end_has_pt;     /* the entry behind it */
	uint32_t end_cpu;
	uint64_t end_tsc;
};

struct vmt_ptfleet {
	struct vmt_ptenc streams[VMT_PTFLEET_CPUS_MAX];
	struct vmt_stream rings[VMT_PTFLEET_CPUS_MAX]; /* a machine's records */
	struct vmt_ptfleet_exit *exits;
	size_t nr_exits, room;
	uint64_t first_tsc, last_tsc;
};

/* machine: whose formats the records have. */
void vmt_ptfleet_run(struct vmt_ptfleet *out, const struct vmt_ptfleet_options *options,
		     const struct vmt_machine *machine);
void vmt_ptfleet_free(struct vmt_ptfleet *fleet);

/* A perf.data of all that, in memory; free it. Each CPU's trace comes in three buffers. */
uint8_t *vmt_ptfleet_perfdata(const struct vmt_ptfleet *fleet,
			      const struct vmt_ptfleet_options *options,
			      const struct vmt_machine *machine, const char *kernel, bool pipe,
			      size_t *len);

#endif
