/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMX_NAMES_H
#define VMX_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* Names of the numbers that exits carry; each returns NULL for a number that no table has. */

/* MSR by index, architectural, AMD, Hyper-V's and KVM's: "IA32_TSC_DEADLINE", "HV_X64_MSR_EOI". */
const char *vmx_msr_name(uint32_t index);
/* Usual owner of an I/O port on a PC or QEMU machine: "COM1", "PCI config", "fw_cfg". */
const char *vmx_port_name(uint16_t port);
/* Known device window of a guest-physical address: "local APIC", "IOAPIC", "HPET". */
const char *vmx_gpa_name(uint64_t gpa);
/* KVM_EXIT_* of kvm_userspace_exit: "KVM_EXIT_IO". */
const char *vmx_kvm_exit_name(uint32_t reason);
/* Exception vectors 0..31 ("#PF"), else NULL. */
const char *vmx_exception_name(uint32_t vector);
/* Hypercall numbers of KVM and of Hyper-V (call code). */
const char *vmx_kvm_hypercall_name(uint64_t nr);
const char *vmx_hv_hypercall_name(uint32_t code);
/* CPUID leaf: "deterministic cache parameters". */
const char *vmx_cpuid_name(uint32_t leaf);
/* Register of the local APIC by its offset in the page, 0..0xfff: "EOI", "ICR low". */
const char *vmx_apic_register_name(uint32_t offset);

/* A row of the tables above: what the numbers first..last are. Names may repeat. */
struct vmx_range_row {
	uint64_t first, last;
	const char *name;
};

/* All rows of one kind, sorted, for listings and for searches by name. */
enum vmx_name_kind {
	VMX_NAME_PORT,
	VMX_NAME_GPA,
	VMX_NAME_KVM_EXIT,
	VMX_NAME_EXCEPTION,
	VMX_NAME_KVM_HYPERCALL,
	VMX_NAME_HV_HYPERCALL,
	VMX_NAME_CPUID,
	VMX_NAME_APIC,
	VMX_NAME_KIND_COUNT,
};
const struct vmx_range_row *vmx_name_rows(enum vmx_name_kind kind, size_t *count);

struct vmx_msr_row {
	uint32_t first, last; /* range of indices that share the row */
	const char *name;
	const char *source;
	const char *advice; /* NULL, or what many exits on it mean */
};
const struct vmx_msr_row *vmx_msr_find(uint32_t index);
const struct vmx_msr_row *vmx_msr_rows(size_t *count);

#endif
