// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which fields of which tracepoint become which members. Sources: arch/x86/kvm/trace.h,
 * include/trace/events/kvm.h and sched.h of Linux 4.18 to 6.18. A field that a kernel lacks leaves
 * its member 0 and its flag clear; a field with another name in another kernel is a row of its own.
 */
#include "decode/kvm/rec_table.h"

#include <stddef.h>
#include <string.h>

#define U(m) offsetof(struct vmt_rec, u.m)
#define F32(name, m, flag)                                                                         \
	{                                                                                          \
		name, U(m), VMT_STORE_U32, flag                                                    \
	}
#define F64(name, m, flag)                                                                         \
	{                                                                                          \
		name, U(m), VMT_STORE_U64, flag                                                    \
	}
#define RW(name)                                                                                   \
	{                                                                                          \
		name, U(io.access), VMT_STORE_ACCESS, 0                                            \
	}

/* Without braces, so that a row may add its own. */
#define EXIT_FIELDS                                                                                \
	F32("exit_reason", exit.reason, 0), F64("guest_rip", exit.rip, VMT_REC_HAS_RIP),           \
		F32("isa", exit.isa, 0), F64("info1", exit.info1, 0), F64("info2", exit.info2, 0), \
		F32("intr_info", exit.intr_info, 0),                                               \
		F32("error_code", exit.error_code, VMT_REC_HAS_INTR),                              \
		F32("vcpu_id", exit.vcpu_id, VMT_REC_HAS_VCPU)

#define NESTED_FIELDS                                                                              \
	F32("exit_code", exit.reason, 0), F64("exit_info1", exit.info1, 0),                        \
		F64("exit_info2", exit.info2, 0), F32("exit_int_info", exit.intr_info, 0),         \
		F32("exit_int_info_err", exit.error_code, VMT_REC_HAS_INTR)

#define PLE_FIELDS                                                                                 \
	{                                                                                          \
		F32("vcpu_id", any.vcpu_id, VMT_REC_HAS_VCPU), F64("new", any.first, 0),           \
			F64("old", any.second, 0)                                                  \
	}

#define VMGEXIT_FIELDS                                                                             \
	{                                                                                          \
		F32("exit_reason", exit.reason, VMT_REC_HAS_REASON), F64("info1", exit.info1, 0),  \
			F64("info2", exit.info2, 0),                                               \
			F32("vcpu_id", exit.vcpu_id, VMT_REC_HAS_VCPU)                             \
	}

static const struct vmt_rec_row rows[] = {
	{ "kvm_entry",
	  VMT_REC_KVM_ENTRY,
	  { F32("vcpu_id", entry.vcpu_id, VMT_REC_HAS_VCPU), F64("rip", entry.rip, VMT_REC_HAS_RIP),
	    F32("immediate_exit", entry.immediate_exit, 0), F32("intr_info", entry.intr_info, 0),
	    F32("error_code", entry.error_code, VMT_REC_HAS_INTR) } },
	{ "kvm_exit", VMT_REC_KVM_EXIT, { EXIT_FIELDS } },
	{ "kvm_nested_vmexit",
	  VMT_REC_KVM_NESTED_VMEXIT,
	  { EXIT_FIELDS, NESTED_FIELDS, F64("rip", exit.rip, VMT_REC_HAS_RIP) } },
	{ "kvm_nested_vmexit_inject",
	  VMT_REC_KVM_NESTED_VMEXIT_INJECT,
	  { NESTED_FIELDS, F32("isa", exit.isa, 0) } },
	{ "kvm_nested_vmenter",
	  VMT_REC_KVM_NESTED_VMENTER,
	  { F64("rip", any.first, 0), F64("nested_rip", any.second, 0),
	    F32("isa", any.third, 0) } },
	{ "kvm_nested_vmrun",
	  VMT_REC_KVM_NESTED_VMENTER,
	  { F64("rip", any.first, 0), F64("nested_rip", any.second, 0) } },
	{ "kvm_userspace_exit",
	  VMT_REC_KVM_USERSPACE_EXIT,
	  { F32("reason", userspace.reason, 0), F32("errno", userspace.error, 0) } },
	{ "kvm_pio",
	  VMT_REC_KVM_PIO,
	  { F64("port", io.address, 0), RW("rw"), F32("size", io.size, 0),
	    F32("count", io.count, 0), F64("val", io.value, 0) } },
	{ "kvm_mmio",
	  VMT_REC_KVM_MMIO,
	  { F64("gpa", io.address, 0),
	    { "type", U(io.access), VMT_STORE_MMIO_ACCESS, 0 },
	    F32("len", io.size, 0),
	    F64("val", io.value, 0) } },
	{ "kvm_fast_mmio", VMT_REC_KVM_FAST_MMIO, { F64("gpa", io.address, 0) } },
	{ "kvm_msr",
	  VMT_REC_KVM_MSR,
	  { F64("ecx", io.address, 0), RW("write"), F64("data", io.value, 0),
	    F32("exception", io.exception, 0) } },
	{ "kvm_cr",
	  VMT_REC_KVM_CR,
	  { F64("cr", io.address, 0), RW("rw"), F64("val", io.value, 0) } },
	{ "kvm_apic",
	  VMT_REC_KVM_APIC,
	  { F64("reg", io.address, 0), RW("rw"), F64("val", io.value, 0) } },
	{ "kvm_apic_ipi",
	  VMT_REC_KVM_APIC_IPI,
	  { F64("icr_low", any.first, 0), F64("dest_id", any.second, 0) } },
	{ "kvm_apic_accept_irq",
	  VMT_REC_KVM_APIC_ACCEPT_IRQ,
	  { F64("vec", any.first, 0), F64("apicid", any.second, 0) } },
	{ "kvm_eoi",
	  VMT_REC_KVM_EOI,
	  { F64("vector", any.first, 0), F64("apicid", any.second, 0) } },
	{ "kvm_pv_eoi",
	  VMT_REC_KVM_PV_EOI,
	  { F64("vector", any.first, 0), F64("apicid", any.second, 0) } },
	{ "kvm_cpuid",
	  VMT_REC_KVM_CPUID,
	  { F32("function", cpuid.leaf, 0), F32("index", cpuid.subleaf, VMT_REC_HAS_SUBLEAF) } },
	{ "kvm_inj_virq",
	  VMT_REC_KVM_INJ_VIRQ,
	  { F32("vector", inject.vector, 0), F32("irq", inject.vector, 0),
	    F32("reinjected", inject.reinjected, 0) } },
	{ "kvm_inj_exception",
	  VMT_REC_KVM_INJ_EXCEPTION,
	  { F32("exception", inject.vector, 0), F32("has_error", inject.has_error, 0),
	    F32("error_code", inject.error_code, 0), F32("reinjected", inject.reinjected, 0) } },
	{ "kvm_hypercall",
	  VMT_REC_KVM_HYPERCALL,
	  { F64("nr", hypercall.nr, 0), F64("a0", hypercall.a0, 0) } },
	{ "kvm_hv_hypercall",
	  VMT_REC_KVM_HV_HYPERCALL,
	  { F64("code", hypercall.nr, 0), F64("ingpa", hypercall.ingpa, 0) } },
	{ "kvm_page_fault",
	  VMT_REC_KVM_PAGE_FAULT,
	  { F64("fault_address", fault.gpa, 0), F64("error_code", fault.error_code, 0),
	    F64("guest_rip", fault.rip, 0), F32("vcpu_id", fault.vcpu_id, VMT_REC_HAS_VCPU) } },
	{ "kvm_halt_poll_ns",
	  VMT_REC_KVM_HALT_POLL_NS,
	  { F64("new", any.first, 0), F64("old", any.second, 0),
	    F32("vcpu_id", any.vcpu_id, VMT_REC_HAS_VCPU), F32("grow", any.third, 0) } },
	{ "kvm_vcpu_wakeup",
	  VMT_REC_KVM_VCPU_WAKEUP,
	  { F64("ns", wakeup.ns, 0), F32("waited", wakeup.waited, 0),
	    F32("valid", wakeup.valid, 0) } },
	{ "kvm_ple_window", VMT_REC_KVM_PLE_WINDOW, PLE_FIELDS },
	{ "kvm_ple_window_update", VMT_REC_KVM_PLE_WINDOW, PLE_FIELDS },
	{ "kvm_write_tsc_offset",
	  VMT_REC_KVM_WRITE_TSC_OFFSET,
	  { F32("vcpu_id", tsc.vcpu_id, VMT_REC_HAS_VCPU),
	    F64("previous_tsc_offset", tsc.previous, 0), F64("next_tsc_offset", tsc.next, 0) } },
	{ "kvm_track_tsc",
	  VMT_REC_KVM_TRACK_TSC,
	  { F32("vcpu_id", any.vcpu_id, VMT_REC_HAS_VCPU),
	    F64("nr_vcpus_matched_tsc", any.first, 0), F64("online_vcpus", any.second, 0),
	    F32("use_master_clock", any.third, 0) } },
	{ "kvm_update_master_clock",
	  VMT_REC_KVM_UPDATE_MASTER_CLOCK,
	  { F64("use_master_clock", any.first, 0), F64("host_clock", any.second, 0),
	    F32("offset_matched", any.third, 0) } },
	{ "kvm_pvclock_update",
	  VMT_REC_KVM_PVCLOCK_UPDATE,
	  { F32("vcpu_id", tsc.vcpu_id, VMT_REC_HAS_VCPU), F64("tsc_timestamp", tsc.previous, 0),
	    F64("system_time", tsc.next, 0), F32("tsc_to_system_mul", tsc.mul, 0),
	    F32("tsc_shift", tsc.shift, 0), F32("flags", tsc.flags, 0) } },
	{ "kvm_unmap_hva_range",
	  VMT_REC_KVM_UNMAP_HVA,
	  { F64("start", any.first, 0), F64("end", any.second, 0) } },
	{ "kvm_unmap_hva", VMT_REC_KVM_UNMAP_HVA, { F64("hva", any.first, 0) } },
	{ "kvm_set_irq",
	  VMT_REC_KVM_SET_IRQ,
	  { F64("gsi", any.first, 0), F64("level", any.second, 0) } },
	{ "kvm_msi_set_irq",
	  VMT_REC_KVM_MSI_SET_IRQ,
	  { F64("address", any.first, 0), F64("data", any.second, 0) } },
	{ "kvm_emulate_insn",
	  VMT_REC_KVM_EMULATE_INSN,
	  { F64("rip", any.first, 0), F64("csbase", any.second, 0), F32("len", any.third, 0) } },
	{ "kvm_vmgexit_enter", VMT_REC_KVM_VMGEXIT, VMGEXIT_FIELDS },
	{ "kvm_vmgexit_exit", VMT_REC_KVM_VMGEXIT, VMGEXIT_FIELDS },
	{ "sched_switch",
	  VMT_REC_SCHED_SWITCH,
	  { F32("prev_pid", sched_switch.prev_tid, 0), F32("next_pid", sched_switch.next_tid, 0),
	    F64("prev_state", sched_switch.prev_state, 0) } },
	{ "sched_waking",
	  VMT_REC_SCHED_WAKING,
	  { F32("pid", waking.tid, 0), F32("target_cpu", waking.target_cpu, 0) } },
	{ "sched_wakeup",
	  VMT_REC_SCHED_WAKING,
	  { F32("pid", waking.tid, 0), F32("target_cpu", waking.target_cpu, 0) } },
};

/* Families by the beginning of the name, after the exact rows. */
static const struct vmt_rec_row families[] = {
	{ "kvm_hv_", VMT_REC_KVM_HV_OTHER, { { NULL, 0, 0, 0 } } },
	{ "kvm_async_pf_",
	  VMT_REC_KVM_ASYNC_PF,
	  { F64("gva", any.first, 0), F64("token", any.second, 0), F64("address", any.first, 0) } },
	{ "kvm_try_async_get_page", VMT_REC_KVM_ASYNC_PF, { F64("gva", any.first, 0) } },
	{ "kvm_nested_", VMT_REC_KVM_NESTED_OTHER, { { NULL, 0, 0, 0 } } },
	{ "kvm_vmgexit_", VMT_REC_KVM_VMGEXIT, VMGEXIT_FIELDS },
	{ "kvm_", VMT_REC_KVM_OTHER, { { NULL, 0, 0, 0 } } },
};

const struct vmt_rec_row *vmt_rec_row_find(const char *name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	}
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		if (!strncmp(families[i].name, name, strlen(families[i].name)))
			return &families[i];
	}
	return NULL;
}
