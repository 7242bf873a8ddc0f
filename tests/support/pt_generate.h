/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PT_GENERATE_H
#define VMT_SUPPORT_PT_GENERATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/pt_encode.h"

/*
 * A host that runs virtual machines under Intel PT, by chance but reproducibly: the stream that
 * the manual says its settings give, and the truth about every entry and exit. Time is simulated
 * here: an always running timer (ART), the TSC as ART * N/D + K, the core clock as a ratio of the
 * TSC, and a guest's TSC as floor(host * multiplier / 2^48) + offset; TSC, TMA, MTC and CYC
 * packets are read from these and agree with each other.
 */
#define VMT_PTGEN_VMS_MAX 4

struct vmt_ptgen_options {
	uint64_t seed;
	unsigned int rounds; /* entries, failed ones included */
	unsigned int nr_vms; /* 1..VMT_PTGEN_VMS_MAX */
	bool event_trace;    /* RTIT_CTL.EventEn */
	bool branch;	     /* RTIT_CTL.BranchEn */
	bool tsc, mtc, cyc;  /* RTIT_CTL.TSCEn, MTCEn, CYCEn */
	uint8_t mtc_freq;
	bool guest_only; /* TraceEn is 1 in VMX non-root alone */
	bool conceal;	 /* all three "conceal VMX from PT" controls are 1 */
	bool offset;	 /* VMs with TSC offsetting */
	bool scaling;	 /* VMs with TSC scaling */
	bool skz84;	 /* TMA packets of guests are corrupt and one byte too long */
	bool skylake;	 /* OVF cuts a CYC short (SKD007), no FUP follows OVF (SKD010) */
	/* Chances, in 1000 at each step (there are some dozens a round). */
	unsigned int psb, overflow, damage, cbr_change, late_failure;
};

struct vmt_ptgen_vm {
	uint64_t vmcs, cr3;
	uint64_t multiplier, offset; /* 48 fraction bits */
};

/* One VM entry or VM exit as it happened. */
struct vmt_ptgen_truth {
	bool is_exit;
	bool failed_entry; /* is_exit: the entry failed late, no guest code ran */
	bool hidden;	   /* its packets were concealed, lost or lie in damaged bytes */
	bool certain;	   /* the stream tells it without doubt */
	bool at_tsc;	   /* a TSC packet stands at this very time before it */
	bool has_reason;   /* the stream holds reason and qualification */
	bool has_vector;
	bool has_rip, has_cr3, has_vmcs; /* the stream tells these */
	uint64_t host_tsc;
	uint32_t reason;
	uint64_t qualification;
	uint8_t vector;
	uint64_t rip, cr3, vmcs;
	size_t begin, end; /* its packets in the stream */
};

struct vmt_ptgen {
	struct vmt_ptenc stream;
	struct vmt_ptgen_truth *truth;
	size_t nr_truth;
	struct vmt_ptgen_vm vms[VMT_PTGEN_VMS_MAX];
	uint64_t first_tsc, last_tsc; /* host */
	uint32_t n, d;		      /* CPUID.15H:EBX, EAX */
	uint8_t nominal;	      /* max non-turbo ratio */
	unsigned int overflows, damages, failures;
};

void vmt_ptgen_run(struct vmt_ptgen *out, const struct vmt_ptgen_options *options);
void vmt_ptgen_free(struct vmt_ptgen *gen);

#endif
