// SPDX-License-Identifier: GPL-2.0-only
/*
 * The packets of VM transitions, from kvm's tracepoints on AMD. Invariant: PIP NR=1 and NR=0
 * alternate on a CPU between two PSBs, each with the packets that SDM tables 33-52 and 33-59 have
 * for the transition without branches.
 */
#include <linux/kvm_host.h>
#include <linux/tracepoint.h>

#include <asm/msr.h>
#include <asm/special_insns.h>
#include <asm/svm.h>

#include "standin.h"

DECLARE_TRACE(kvm_entry, TP_PROTO(struct kvm_vcpu *vcpu, bool immediate_exit),
	      TP_ARGS(vcpu, immediate_exit));
DECLARE_TRACE(kvm_exit, TP_PROTO(struct kvm_vcpu *vcpu, u32 isa), TP_ARGS(vcpu, isa));

static DEFINE_PER_CPU(bool, in_guest);

/* kvm-amd's struct vcpu_svm is struct kvm_vcpu, then the pointer to the VMCB. */
static const struct vmcb *vmcb_of(const struct kvm_vcpu *vcpu)
{
	return *(struct vmcb *const *)(vcpu + 1);
}

static void put_psb_plus(struct standin_group *g, const struct vmcb *vmcb, bool fresh)
{
	if (!fresh)
		return;
	__this_cpu_write(in_guest, false);
	standin_psb(g);
	standin_tsc(g, rdtsc_ordered());
	standin_pip(g, __read_cr3(), false);
	standin_vmcs(g, virt_to_phys((void *)vmcb));
	standin_mode_exec(g);
	standin_psbend(g);
}

static void on_entry(void *data, struct kvm_vcpu *vcpu, bool immediate_exit)
{
	const struct vmcb *vmcb = vmcb_of(vcpu);
	struct standin_group g = { .len = 0 };
	unsigned long flags;
	bool fresh;

	local_irq_save(flags);
	if (standin_running(&fresh)) {
		put_psb_plus(&g, vmcb, fresh);
		standin_vmcs(&g, virt_to_phys((void *)vmcb));
		standin_tsc(&g, rdtsc_ordered());
		standin_cfe(&g, STANDIN_CFE_VMENTRY, 0);
		standin_fup(&g, _THIS_IP_);
		standin_pip(&g, vmcb->save.cr3, true);
		standin_write(&g);
		__this_cpu_write(in_guest, true);
	}
	local_irq_restore(flags);
}

/* Of an exit whose entry is not in the trace nothing is written: the CPU is then in the host. */
static void on_exit(void *data, struct kvm_vcpu *vcpu, u32 isa)
{
	const struct vmcb *vmcb = vmcb_of(vcpu);
	const u32 reason = vmcb->control.exit_code;
	struct standin_group g = { .len = 0 };
	unsigned long flags;
	bool fresh;

	local_irq_save(flags);
	if (standin_running(&fresh) && !fresh && __this_cpu_read(in_guest)) {
		standin_tsc(&g, rdtsc_ordered() + vmcb->control.tsc_offset);
		standin_evd(&g, STANDIN_EVD_VMXQ, vmcb->control.exit_info_1);
		standin_evd(&g, STANDIN_EVD_VMXR, reason);
		if (reason == SVM_EXIT_INTR || reason == SVM_EXIT_NMI)
			standin_cfe(&g, STANDIN_CFE_VMEXIT_INTR, 0);
		else
			standin_cfe(&g, STANDIN_CFE_VMEXIT, 0);
		standin_fup(&g, vmcb->save.rip);
		standin_pip(&g, __read_cr3(), false);
		standin_tsc(&g, rdtsc_ordered());
		standin_write(&g);
	}
	__this_cpu_write(in_guest, false);
	local_irq_restore(flags);
}

int standin_kvm_attach(void)
{
	int err = register_trace_kvm_entry(on_entry, NULL);

	if (err)
		return err;
	err = register_trace_kvm_exit(on_exit, NULL);
	if (err)
		unregister_trace_kvm_entry(on_entry, NULL);
	return err;
}

void standin_kvm_detach(void)
{
	unregister_trace_kvm_exit(on_exit, NULL);
	unregister_trace_kvm_entry(on_entry, NULL);
	tracepoint_synchronize_unregister();
}
