// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: every table is sorted by first and its ranges do not overlap
 * (tests/unit/test_vmx_names.c), so that a binary search finds the only candidate.
 */
#include "vmx/names.h"

#include "vmx/rows.h"

const struct vmx_range_row *vmx_name_rows(enum vmx_name_kind kind, size_t *count)
{
	*count = vmx_range_tables[kind].count;
	return vmx_range_tables[kind].rows;
}

static const char *range_name(enum vmx_name_kind kind, uint64_t number)
{
	const struct vmx_range_row *rows = vmx_range_tables[kind].rows;
	size_t low = 0, high = vmx_range_tables[kind].count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (rows[middle].last < number)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == vmx_range_tables[kind].count || rows[low].first > number)
		return NULL;
	return rows[low].name;
}

const char *vmx_port_name(uint16_t port)
{
	return range_name(VMX_NAME_PORT, port);
}

const char *vmx_gpa_name(uint64_t gpa)
{
	return range_name(VMX_NAME_GPA, gpa);
}

const char *vmx_kvm_exit_name(uint32_t reason)
{
	return range_name(VMX_NAME_KVM_EXIT, reason);
}

const char *vmx_exception_name(uint32_t vector)
{
	return range_name(VMX_NAME_EXCEPTION, vector);
}

const char *vmx_kvm_hypercall_name(uint64_t nr)
{
	return range_name(VMX_NAME_KVM_HYPERCALL, nr);
}

const char *vmx_hv_hypercall_name(uint32_t code)
{
	return range_name(VMX_NAME_HV_HYPERCALL, code);
}

const char *vmx_cpuid_name(uint32_t leaf)
{
	return range_name(VMX_NAME_CPUID, leaf);
}

const char *vmx_apic_register_name(uint32_t offset)
{
	return range_name(VMX_NAME_APIC, offset);
}

const struct vmx_msr_row *vmx_msr_rows(size_t *count)
{
	*count = vmx_msr_table_count;
	return vmx_msr_table;
}

const struct vmx_msr_row *vmx_msr_find(uint32_t index)
{
	size_t low = 0, high = vmx_msr_table_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (vmx_msr_table[middle].last < index)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == vmx_msr_table_count || vmx_msr_table[low].first > index)
		return NULL;
	return &vmx_msr_table[low];
}

const char *vmx_msr_name(uint32_t index)
{
	const struct vmx_msr_row *row = vmx_msr_find(index);

	return row ? row->name : NULL;
}
