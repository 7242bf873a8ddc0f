// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vmx/pt_caps.h"

#include <stddef.h>

#define BASIC_TRUE_MSRS (UINT64_C(1) << 55)
#define MISC_PT		(UINT64_C(1) << 14)
#define LEAF7_PT	(1u << 25)

static const struct msr_row {
	uint32_t index;
	size_t offset;
} msr_rows[] = {
	{ 0xce, offsetof(struct vmx_pt_caps, platform_info) },
	{ 0x480, offsetof(struct vmx_pt_caps, basic) },
	{ 0x482, offsetof(struct vmx_pt_caps, plain[VMX_CTL_PROC]) },
	{ 0x483, offsetof(struct vmx_pt_caps, plain[VMX_CTL_EXIT]) },
	{ 0x484, offsetof(struct vmx_pt_caps, plain[VMX_CTL_ENTRY]) },
	{ 0x485, offsetof(struct vmx_pt_caps, misc) },
	{ 0x48b, offsetof(struct vmx_pt_caps, plain[VMX_CTL_PROC2]) },
	{ 0x48e, offsetof(struct vmx_pt_caps, exact[VMX_CTL_PROC]) },
	{ 0x48f, offsetof(struct vmx_pt_caps, exact[VMX_CTL_EXIT]) },
	{ 0x490, offsetof(struct vmx_pt_caps, exact[VMX_CTL_ENTRY]) },
};

static const struct cpuid_row {
	uint32_t leaf, subleaf;
	size_t offset;
} cpuid_rows[] = {
	{ 0x1, 0, offsetof(struct vmx_pt_caps, leaf1) },
	{ 0x7, 0, offsetof(struct vmx_pt_caps, leaf7) },
	{ 0x14, 0, offsetof(struct vmx_pt_caps, leaf14_0) },
	{ 0x14, 1, offsetof(struct vmx_pt_caps, leaf14_1) },
	{ 0x15, 0, offsetof(struct vmx_pt_caps, leaf15) },
	{ 0x16, 0, offsetof(struct vmx_pt_caps, leaf16) },
};

#define NR_MSRS	  (sizeof(msr_rows) / sizeof(msr_rows[0]))
#define NR_CPUIDS (sizeof(cpuid_rows) / sizeof(cpuid_rows[0]))

bool vmx_pt_caps_msr(struct vmx_pt_caps *caps, uint32_t index, uint64_t value)
{
	for (size_t i = 0; i < NR_MSRS; i++) {
		struct vmx_msr_value *msr = (void *)((char *)caps + msr_rows[i].offset);

		if (msr_rows[i].index != index)
			continue;
		*msr = (struct vmx_msr_value){ true, value };
		return true;
	}
	return false;
}

bool vmx_pt_caps_cpuid(struct vmx_pt_caps *caps, uint32_t leaf, uint32_t subleaf,
		       const uint32_t reg[4])
{
	for (size_t i = 0; i < NR_CPUIDS; i++) {
		struct vmx_cpuid_leaf *row = (void *)((char *)caps + cpuid_rows[i].offset);

		if (cpuid_rows[i].leaf != leaf || cpuid_rows[i].subleaf != subleaf)
			continue;
		*row = (struct vmx_cpuid_leaf){ true, { reg[0], reg[1], reg[2], reg[3] } };
		return true;
	}
	return false;
}

bool vmx_pt_caps_wanted_msr(unsigned int nth, uint32_t *index)
{
	if (nth >= NR_MSRS)
		return false;
	*index = msr_rows[nth].index;
	return true;
}

bool vmx_pt_caps_wanted_cpuid(unsigned int nth, uint32_t *leaf, uint32_t *subleaf)
{
	if (nth >= NR_CPUIDS)
		return false;
	*leaf = cpuid_rows[nth].leaf;
	*subleaf = cpuid_rows[nth].subleaf;
	return true;
}

static enum vmx_known known(bool is_known, bool value)
{
	return !is_known ? VMX_UNKNOWN : value ? VMX_YES : VMX_NO;
}

enum vmx_known vmx_pt_caps_pt(const struct vmx_pt_caps *caps)
{
	return known(caps->leaf7.known, caps->leaf7.reg[VMX_EBX] & LEAF7_PT);
}

enum vmx_known vmx_pt_caps_in_vmx(const struct vmx_pt_caps *caps)
{
	return known(caps->misc.known, caps->misc.value & MISC_PT);
}

enum vmx_known vmx_pt_caps_bit(const struct vmx_pt_caps *caps, enum vmx_cpuid_reg reg,
			       unsigned int bit)
{
	if (vmx_pt_caps_pt(caps) == VMX_NO)
		return VMX_NO;
	return known(caps->leaf14_0.known, caps->leaf14_0.reg[reg] >> bit & 1);
}

bool vmx_ctl_allowed(const struct vmx_pt_caps *caps, enum vmx_ctl_word word, uint32_t *must,
		     uint32_t *may)
{
	const bool has_true = caps->basic.known && caps->basic.value & BASIC_TRUE_MSRS;
	const struct vmx_msr_value *msr = &caps->plain[word];

	/* The secondary controls have one MSR, whose low half is 0. */
	if (has_true && caps->exact[word].known)
		msr = &caps->exact[word];
	if (!msr->known)
		return false;
	*must = (uint32_t)msr->value;
	*may = (uint32_t)(msr->value >> 32);
	return true;
}
