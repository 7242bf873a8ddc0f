/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef VMTRACE_CONTROLS_H
#define VMTRACE_CONTROLS_H
/* The VMX controls for Intel PT in the current VMCS of this CPU. */
#include "vmtrace_vmx.h"

/* One vCPU thread. The words belong to its own hooks; others only look at `state`. */
struct vmtrace_vcpu {
	struct vmtrace_vmx_state state;
	u64 vmcs; /* physical address of the VMCS in which the words stand */
	u64 old_guest_ctl;
	bool applied; /* between a kvm_entry and its kvm_exit */
};

/* 0, -EINVAL or -EOPNOTSUPP, see VMTRACE_VMX_SETUP. */
int vmtrace_controls_check(const struct vmtrace_vmx_setup *setup);

/* To be called by the vCPU's thread with interrupts off, at kvm_entry and kvm_exit. */
void vmtrace_controls_apply(const struct vmtrace_vmx_setup *setup, struct vmtrace_vcpu *vcpu);
void vmtrace_controls_undo(const struct vmtrace_vmx_setup *setup, struct vmtrace_vcpu *vcpu);

/* Gives the event that runs on this CPU its IA32_RTIT_CTL back. On every CPU, interrupts off. */
void vmtrace_controls_release_cpu(void *unused);

#endif
