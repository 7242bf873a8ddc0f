// SPDX-License-Identifier: LGPL-2.1-or-later
/* The VMX controls for Intel PT: offered, checked, and read at transitions. */
#include "virt-fixtures/ptcpu/call.h"
#include "virt-fixtures/ptcpu/ptcpu.h"

enum {
	VMCS_GUEST_PHYSICAL = 0x2400,
	VMCS_GUEST_RTIT_CTL = 0x2814,
	VMCS_PRIMARY = 0x4002,
	VMCS_EXIT = 0x400c,
	VMCS_ENTRY = 0x4012,
	VMCS_SECONDARY = 0x401e,
	ERROR_CONTROLS = 7, /* VM entry with invalid control fields */
};

#define PRIMARY_SECONDARY (1U << 31)
#define SECONDARY_EPT	  (1U << 1)

static struct ptcpu_plan plan;

void vmx_set_plan(const struct ptcpu_plan *wanted)
{
	plan = *wanted;
}

static void set_bits(struct ptcpu *p, uint32_t field, uint32_t bits)
{
	if (bits)
		bochs.vmwrite32(p->cpu, field, bochs.vmread32(p->cpu, field) | bits);
}

void vmx_apply_plan(struct ptcpu *p)
{
	set_bits(p, VMCS_SECONDARY, plan.secondary);
	set_bits(p, VMCS_EXIT, plan.exit);
	set_bits(p, VMCS_ENTRY, plan.entry);
	if (plan.entry & VMENTRY_LOAD_RTIT)
		bochs.vmwrite64(p->cpu, VMCS_GUEST_RTIT_CTL, plan.guest_rtit_ctl);
}

/* The capability MSRs and Bochs's own checks at VM entry read the same members. */
void vmx_offer_controls(struct bochs_cpu *cpu)
{
	static const struct {
		enum bochs_member at;
		uint32_t bits;
	} offers[] = {
		{ BOCHS_MAY_SECONDARY, VMX2_PT_CONCEAL | VMX2_PT_GUEST_PA },
		{ BOCHS_MAY_EXIT, VMEXIT_PT_CONCEAL | VMEXIT_CLEAR_RTIT },
		{ BOCHS_MAY_ENTRY, VMENTRY_PT_CONCEAL | VMENTRY_LOAD_RTIT },
	};

	for (size_t i = 0; i < sizeof(offers) / sizeof(offers[0]); i++)
		bochs_set_u32(cpu, offers[i].at, bochs_u32(cpu, offers[i].at) | offers[i].bits);
}

uint32_t vmx_entry_controls(struct ptcpu *p)
{
	return bochs.vmread32(p->cpu, VMCS_ENTRY);
}

uint32_t vmx_exit_controls(struct ptcpu *p)
{
	return bochs.vmread32(p->cpu, VMCS_EXIT);
}

uint32_t vmx_check_controls(struct ptcpu *p)
{
	const bool secondary = bochs.vmread32(p->cpu, VMCS_PRIMARY) & PRIMARY_SECONDARY;
	const uint32_t second = secondary ? bochs.vmread32(p->cpu, VMCS_SECONDARY) : 0;
	const bool load = vmx_entry_controls(p) & VMENTRY_LOAD_RTIT;
	const bool clear = vmx_exit_controls(p) & VMEXIT_CLEAR_RTIT;

	if ((p->ctl & RTIT_TRACE_EN) && load)
		return ERROR_CONTROLS;
	if ((second & VMX2_PT_GUEST_PA) && (!(second & SECONDARY_EPT) || !load || !clear))
		return ERROR_CONTROLS;
	return 0;
}

bool vmx_guest_rtit_is_legal(struct ptcpu *p)
{
	return !(vmx_entry_controls(p) & VMENTRY_LOAD_RTIT) ||
	       msr_ctl_is_legal(bochs.vmread64(p->cpu, VMCS_GUEST_RTIT_CTL));
}

static bool conceal_control(const struct ptcpu *p)
{
	return bochs_u32(p->cpu, BOCHS_SECONDARY) & VMX2_PT_CONCEAL;
}

bool vmx_nr(struct ptcpu *p)
{
	return ptcpu_in_guest(p) && !conceal_control(p);
}

bool vmx_concealed(struct ptcpu *p)
{
	return ptcpu_in_guest(p) && conceal_control(p);
}

void vmx_exit_for_output(struct ptcpu *p)
{
	enum { EXIT_EPT_VIOLATION = 48, WRITE = 1 << 1, ASYNCHRONOUS = 1 << 16 };

	bochs.vmwrite64(p->cpu, VMCS_GUEST_PHYSICAL, p->output_gpa);
	bochs.vmexit(p->cpu, EXIT_EPT_VIOLATION, WRITE | ASYNCHRONOUS);
}
