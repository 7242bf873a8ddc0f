/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PT_GENERATE_H
#define VMT_SUPPORT_PT_GENERATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/pt_encode.h"

/*
 * A host that runs virtual machines under Intel PT, by chance but reproducibly: the stream that
 * the manual says its settings give, and the truth about every entry, exit and event. Time is
 * simulated here: an always running timer (ART), the TSC as ART * N/D + K, the core clock as a
 * ratio of the TSC, and a guest's TSC as floor(host * multiplier / 2^48) + offset; TSC, TMA, MTC
 * and CYC packets are read from these and agree with each other.
 */
#define VMT_PTGEN_VMS_MAX 4

enum vmt_ptgen_tracing {
	VMT_PTGEN_SYSTEM,     /* TraceEn is 1 in both worlds */
	VMT_PTGEN_GUEST_ONLY, /* in VMX non-root alone, by the MSR lists */
	VMT_PTGEN_HOST_ONLY,  /* in VMX root alone, by the MSR lists */
};

/* The three controls "conceal VMX from PT". */
enum vmt_ptgen_conceal {
	VMT_PTGEN_CONCEAL_EXECUTION = 1u << 0, /* secondary processor-based control 19 */
	VMT_PTGEN_CONCEAL_ENTRY = 1u << 1,     /* VM-entry control 17 */
	VMT_PTGEN_CONCEAL_EXIT = 1u << 2,      /* VM-exit control 24 */
	VMT_PTGEN_CONCEAL_ALL = 7,
};

struct vmt_ptgen_options {
	uint64_t seed;
	unsigned int rounds; /* entries, failed ones included */
	unsigned int nr_vms; /* 1..VMT_PTGEN_VMS_MAX */
	enum vmt_ptgen_tracing tracing;
	bool event_trace;     /* RTIT_CTL.EventEn */
	bool branch;	      /* RTIT_CTL.BranchEn */
	bool tsc, mtc, cyc;   /* RTIT_CTL.TSCEn, MTCEn, CYCEn */
	bool pip_at_enabling; /* a PIP where the MSR lists set TraceEn; processors differ */
	uint8_t mtc_freq;
	uint8_t conceal[VMT_PTGEN_VMS_MAX]; /* enum vmt_ptgen_conceal, of each VM */
	bool offset;			    /* VMs with TSC offsetting */
	bool scaling;			    /* VMs with TSC scaling: half rate and others */
	uint32_t errata;		    /* enum vmt_pt_erratum: the CPU has these */
	/* Chances, in 1000 at each step (there are some dozens a round). */
	unsigned int psb, overflow, damage, cbr_change, events, filter;
	/* Chances, in 1000 at each entry or exit. */
	unsigned int late_failure, abort, smm, map_step;
	/* Before this packet, counted from 1, packets are lost, a PSB+ stands, or bad bytes do. */
	size_t overflow_at, psb_at, damage_at;
};

struct vmt_ptgen_vm {
	uint64_t vmcs, cr3;
	uint64_t multiplier, offset; /* 48 fraction bits; at the beginning */
	uint8_t conceal;
};

/* From this place in the stream on a VM has another TSC offset. */
struct vmt_ptgen_step {
	size_t at;
	unsigned int vm;
	uint64_t offset;
};

enum vmt_ptgen_kind {
	VMT_PTGEN_ENTRY,
	VMT_PTGEN_EXIT,
	VMT_PTGEN_FAILED, /* the entry failed late, no guest code ran */
	VMT_PTGEN_NOTE,	  /* what else Event Trace names */
};

/* One VM entry, VM exit or event as it happened. */
struct vmt_ptgen_truth {
	enum vmt_ptgen_kind kind;
	bool hidden;  /* its packets were concealed, lost or lie in damaged bytes */
	bool certain; /* the stream tells it without doubt */
	bool at_tsc;  /* a TSC packet stands at this very time before it */
	/* What the stream tells. */
	bool has_reason; /* reason and qualification */
	bool has_vector;
	bool has_value;
	bool has_rip, has_cr3, has_vmcs;
	/* Entry into code outside the filter ranges: the next TIP.PGE may be its own or a later
	 * one's. */
	bool rip_unclear;
	uint64_t host_tsc;
	uint32_t reason;
	uint64_t qualification;
	uint8_t vector;
	const char *note;
	uint64_t value;
	uint64_t rip, cr3, vmcs;
	size_t begin, end; /* its packets in the stream */
};

struct vmt_ptgen {
	struct vmt_ptenc stream;
	struct vmt_ptgen_truth *truth;
	size_t nr_truth;
	struct vmt_ptgen_step *steps;
	size_t nr_steps;
	size_t nr_packets; /* written, those that were lost included */
	struct vmt_ptgen_vm vms[VMT_PTGEN_VMS_MAX];
	uint64_t first_tsc, last_tsc; /* host */
	uint32_t n, d;		      /* CPUID.15H:EBX, EAX */
	uint8_t nominal;	      /* max non-turbo ratio */
	unsigned int overflows, damages, failures, aborts, smm_exits;
};

/* Three VMs, every kind of packet, events and transitions, and nothing lost. */
extern const struct vmt_ptgen_options vmt_ptgen_usual;

void vmt_ptgen_run(struct vmt_ptgen *out, const struct vmt_ptgen_options *options);
void vmt_ptgen_free(struct vmt_ptgen *gen);

/*
 * Whether a stream of these settings can be told from another one at all. Without Event Trace a MOV
 * to CR3 that is traced reads as the transition that was concealed.
 */
bool vmt_ptgen_ambiguous(const struct vmt_ptgen_options *options);

#endif
