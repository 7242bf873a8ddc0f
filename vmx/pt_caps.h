/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMX_PT_CAPS_H
#define VMX_PT_CAPS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What a CPU says of Intel PT and of the VMX controls for it: CPUID leaves 1, 7, 14H, 15H, 16H and
 * the capability MSRs (SDM vol. 3 33.3.1, A.1 to A.6). Filled value by value; what was never given
 * is unknown.
 */
enum vmx_ctl_word {		   /* the VMCS control words that matter here */
		    VMX_CTL_PROC,  /* primary processor-based */
		    VMX_CTL_PROC2, /* secondary processor-based */
		    VMX_CTL_EXIT,
		    VMX_CTL_ENTRY,
		    VMX_CTL_WORDS,
};

enum vmx_cpuid_reg { VMX_EAX, VMX_EBX, VMX_ECX, VMX_EDX };

struct vmx_cpuid_leaf {
	bool known;
	uint32_t reg[4]; /* by enum vmx_cpuid_reg */
};

struct vmx_msr_value {
	bool known;
	uint64_t value;
};

struct vmx_pt_caps {
	struct vmx_cpuid_leaf leaf1, leaf7, leaf14_0, leaf14_1, leaf15, leaf16;
	struct vmx_msr_value basic, misc, platform_info;
	struct vmx_msr_value plain[VMX_CTL_WORDS]; /* IA32_VMX_*_CTLS */
	struct vmx_msr_value exact[VMX_CTL_WORDS]; /* IA32_VMX_TRUE_*_CTLS */
	/* Errata, from whoever knows the model. */
	bool needs_branch_en;	   /* clearing BranchEn raises #GP: BDM106 */
	bool tma_wrong_in_nonroot; /* SKZ84 */
};

/* Takes a value over; false: nothing here depends on it. */
bool vmx_pt_caps_msr(struct vmx_pt_caps *caps, uint32_t index, uint64_t value);
bool vmx_pt_caps_cpuid(struct vmx_pt_caps *caps, uint32_t leaf, uint32_t subleaf,
		       const uint32_t reg[4]);

/* The MSRs and CPUID leaves that can be given: nth from 0; false beyond the last one. */
bool vmx_pt_caps_wanted_msr(unsigned int nth, uint32_t *index);
bool vmx_pt_caps_wanted_cpuid(unsigned int nth, uint32_t *leaf, uint32_t *subleaf);

enum vmx_known { VMX_NO, VMX_YES, VMX_UNKNOWN };

/* Intel PT exists (CPUID.7.EBX[25]); it may be used in VMX operation (IA32_VMX_MISC[14]). */
enum vmx_known vmx_pt_caps_pt(const struct vmx_pt_caps *caps);
enum vmx_known vmx_pt_caps_in_vmx(const struct vmx_pt_caps *caps);
/* A bit of CPUID.14H.0:EBX or ECX. */
enum vmx_known vmx_pt_caps_bit(const struct vmx_pt_caps *caps, enum vmx_cpuid_reg reg,
			       unsigned int bit);

#define VMX_PT_EBX_CR3_FILTER 0u
#define VMX_PT_EBX_PSB_CYC    1u
#define VMX_PT_EBX_IP_FILTER  2u
#define VMX_PT_EBX_MTC	      3u
#define VMX_PT_EBX_EVENT      7u
#define VMX_PT_ECX_TOPA	      0u
#define VMX_PT_ECX_SINGLE     2u

/*
 * The bits of a control word that must be 1 (allowed-0) and may be 1 (allowed-1), from the TRUE MSR
 * where IA32_VMX_BASIC[55] says that it exists. False: unknown.
 */
bool vmx_ctl_allowed(const struct vmx_pt_caps *caps, enum vmx_ctl_word word, uint32_t *must,
		     uint32_t *may);

#endif
