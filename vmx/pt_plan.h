/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMX_PT_PLAN_H
#define VMX_PT_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "vmx/pt_caps.h"

/*
 * From a wanted way of tracing to VMX controls, IA32_RTIT_CTL and the packets that follow (SDM vol.
 * 3 33.5, tables 33-52 to 33-54). For VMMs and for whoever reads their streams. Pure arithmetic on
 * what vmx_pt_caps holds.
 */
enum vmx_pt_mode {
	VMX_PT_SYSTEM,	   /* host and guests, 33.5.2.1 */
	VMX_PT_GUEST_ONLY, /* TraceEn in VMX non-root only, 33.5.2.2 */
	VMX_PT_HOST_ONLY,  /* TraceEn in VMX root only */
	VMX_PT_MODES,
};

struct vmx_pt_request {
	enum vmx_pt_mode mode;
	bool conceal;	  /* nothing in the stream may show VMX */
	bool event_trace; /* CFE and EVD packets */
	bool no_branches; /* BranchEn=0: events alone */
};

enum vmx_pt_verdict {
	VMX_PT_FITS,	/* the CPU allows the value */
	VMX_PT_UNKNOWN, /* the capability MSR is not known */
	VMX_PT_REFUSED, /* VM entry fails with this value (allowed-0/allowed-1) */
};

struct vmx_pt_control {
	enum vmx_ctl_word word;
	uint8_t bit;
	const char *name; /* as in the SDM */
	bool value;
	enum vmx_pt_verdict verdict;
};

#define VMX_PT_CONTROLS	    6u
#define VMX_PT_PROBLEMS_MAX 12u

struct vmx_pt_plan {
	struct vmx_pt_request request;
	struct vmx_pt_control controls[VMX_PT_CONTROLS];
	/* VM entry and VM exit write IA32_RTIT_CTL from their MSR-load lists. */
	bool msr_lists;
	bool has_guest_ctl, has_root_ctl;
	uint64_t guest_ctl; /* IA32_RTIT_CTL in the guest: VMCS field 2814H, or the entry list's */
	uint64_t root_ctl;  /* IA32_RTIT_CTL in VMX root operation */
	bool entry_fails;   /* with these controls VM entry would fail, or PT would not work */
	bool unsure;	    /* something that decides it is not known */
	unsigned int nr_problems;
	const char *problems[VMX_PT_PROBLEMS_MAX]; /* static: why it fails, and what is unsure */
	unsigned int nr_notes;
	const char *notes[VMX_PT_PROBLEMS_MAX]; /* static: what to mind */
};

/* Never fails: what cannot be had is said in the plan. */
void vmx_pt_plan_make(const struct vmx_pt_request *request, const struct vmx_pt_caps *caps,
		      struct vmx_pt_plan *plan);

/* The controls of a plan in one word: bits to be 1 and to be 0, others are free. */
void vmx_pt_plan_word(const struct vmx_pt_plan *plan, enum vmx_ctl_word word, uint32_t *set,
		      uint32_t *clear);

/* ---- what the stream then holds ---- */
enum vmx_pt_transition {
	VMX_PT_ON_ENTRY,
	VMX_PT_ON_EXIT,
	VMX_PT_ON_SMM_EXIT, /* to the SMM-transfer monitor, and back */
	VMX_PT_ON_EARLY_FAILURE,
	VMX_PT_ON_LATE_FAILURE,
	VMX_PT_ON_PSB_ROOT,
	VMX_PT_ON_PSB_NONROOT,
	VMX_PT_ON_VMPTRLD,
	VMX_PT_TRANSITIONS,
};

struct vmx_pt_expect {
	const char *packet; /* SDM spelling, with its payload: "PIP(guest CR3, NR=1)" */
	bool maybe;	    /* not always: see `when` */
	const char *when;   /* NULL, or the condition */
};

#define VMX_PT_EXPECT_MAX 12u

/* The packets of a transition in order; returns how many. */
unsigned int vmx_pt_plan_expect(const struct vmx_pt_plan *plan, enum vmx_pt_transition transition,
				struct vmx_pt_expect out[VMX_PT_EXPECT_MAX]);

const char *vmx_pt_mode_name(enum vmx_pt_mode mode);
const char *vmx_ctl_word_name(enum vmx_ctl_word word);
const char *vmx_pt_transition_name(enum vmx_pt_transition transition);

/* ---- what a stream that was seen says of the controls ---- */
struct vmx_pt_seen {
	bool nonroot;	  /* a PIP with NR=1 */
	bool exit_pip;	  /* NR 1 -> 0 without a loss between */
	bool exit_event;  /* CFE or EVD of a VM exit */
	bool entry_event; /* CFE.VMENTRY */
	bool vmcs;	  /* a VMCS packet */
	bool enabled;	  /* TIP.PGE … TIP.PGD spans */
	bool event_trace; /* any CFE or EVD */
	bool guest_ran;	  /* it is known from elsewhere that a guest ran there */
};

/*
 * Compares. Returns how many static texts of differences stand in `texts` (VMX_PT_PROBLEMS_MAX at
 * most): "bit 24 of the VM-exit controls seems to be 1".
 */
unsigned int vmx_pt_plan_compare(const struct vmx_pt_plan *plan, const struct vmx_pt_seen *seen,
				 const char *texts[VMX_PT_PROBLEMS_MAX]);

/* ---- TSC of a guest that traces itself (SDM 33.5.2.4) ---- */
struct vmx_pt_guest_time {
	bool known;
	uint32_t art_den, tsc_num;  /* CPUID.15H EAX and EBX for the guest */
	uint8_t max_nonturbo_ratio; /* MSR_PLATFORM_INFO[15:8] for the guest */
	uint64_t guest_tsc_hz;	    /* 0: the crystal's rate is not known */
	bool exact; /* the ratio is that of the multiplier to its last bit; else to 32 bits */
};

/* What the guest must be told so that its TSC, MTC and CBR packets agree, for a TSC multiplier. */
struct vmx_pt_guest_time vmx_pt_guest_time_of(const struct vmx_pt_caps *caps, uint64_t multiplier,
					      uint8_t frac_bits);

#endif
