// SPDX-License-Identifier: LGPL-2.1-or-later
/* The tables of names: sorted, without overlap, and the entries that people meet most. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <linux/kvm.h>
#include <linux/kvm_para.h>

#include "vmx/names.h"

static void ranges_are_sorted(void **state)
{
	(void)state;
	for (int kind = 0; kind < VMX_NAME_KIND_COUNT; kind++) {
		size_t count;
		const struct vmx_range_row *rows = vmx_name_rows((enum vmx_name_kind)kind, &count);

		assert_true(count > 0);
		for (size_t i = 0; i < count; i++) {
			assert_true(rows[i].first <= rows[i].last);
			assert_true(i == 0 || rows[i - 1].last < rows[i].first);
			assert_true(rows[i].name[0] != '\0');
		}
	}
}

static void msrs_are_sorted_and_unique(void **state)
{
	size_t count;
	const struct vmx_msr_row *rows = vmx_msr_rows(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		assert_true(rows[i].first <= rows[i].last);
		assert_true(i == 0 || rows[i - 1].last < rows[i].first);
		assert_true(rows[i].source[0] != '\0');
		assert_ptr_equal(vmx_msr_find(rows[i].first), &rows[i]);
		assert_ptr_equal(vmx_msr_find(rows[i].last), &rows[i]);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(rows[k].name, rows[i].name);
	}
}

static void msr_names(void **state)
{
	static const struct {
		uint32_t index;
		const char *name;
	} wanted[] = {
		{ 0x10, "IA32_TIME_STAMP_COUNTER" },
		{ 0x3b, "IA32_TSC_ADJUST" },
		{ 0x48, "IA32_SPEC_CTRL" },
		{ 0xc1, "IA32_PMC0..7" },
		{ 0x570, "IA32_RTIT_CTL" },
		{ 0x587, "IA32_RTIT_ADDR3_B" },
		{ 0x6e0, "IA32_TSC_DEADLINE" },
		{ 0x802, "IA32_X2APIC_APICID" },
		{ 0x808, "IA32_X2APIC_TPR" },
		{ 0x80b, "IA32_X2APIC_EOI" },
		{ 0x830, "IA32_X2APIC_ICR" },
		{ 0x838, "IA32_X2APIC_INIT_COUNT" },
		{ 0x83f, "IA32_X2APIC_SELF_IPI" },
		{ 0x40000000, "HV_X64_MSR_GUEST_OS_ID" },
		{ 0x40000020, "HV_X64_MSR_TIME_REF_COUNT" },
		{ 0x40000070, "HV_X64_MSR_EOI" },
		{ 0x400000b0, "HV_X64_MSR_STIMER0_CONFIG" },
		{ 0x400000b7, "HV_X64_MSR_STIMER3_COUNT" },
		{ 0x40000118, "HV_X64_MSR_TSC_INVARIANT_CONTROL" },
		{ MSR_KVM_WALL_CLOCK_NEW, "MSR_KVM_WALL_CLOCK_NEW" },
		{ MSR_KVM_SYSTEM_TIME_NEW, "MSR_KVM_SYSTEM_TIME_NEW" },
		{ MSR_KVM_STEAL_TIME, "MSR_KVM_STEAL_TIME" },
		{ MSR_KVM_PV_EOI_EN, "MSR_KVM_PV_EOI_EN" },
		{ MSR_KVM_POLL_CONTROL, "MSR_KVM_POLL_CONTROL" },
		{ MSR_KVM_ASYNC_PF_ACK, "MSR_KVM_ASYNC_PF_ACK" },
		{ MSR_KVM_MIGRATION_CONTROL, "MSR_KVM_MIGRATION_CONTROL" },
		{ 0xc0000080, "EFER" },
		{ 0xc0000103, "TSC_AUX" },
		{ 0xc0000104, "TSC_RATIO" },
		{ 0xc0010200, "PERF_CTL0" },
		{ 0xc0011033, "IBS_OP_CTL" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		assert_string_equal(vmx_msr_name(wanted[i].index), wanted[i].name);
	assert_null(vmx_msr_name(0x2));
	assert_null(vmx_msr_name(0x801));
	assert_null(vmx_msr_name(0x12345678));
	assert_null(vmx_msr_name(UINT32_MAX));
	assert_non_null(vmx_msr_find(0x6e0)->advice);
}

/* Every register of the x2APIC range that the manual has: index = 800H + offset / 16. */
static void x2apic_registers(void **state)
{
	static const uint8_t present[] = { 0x02, 0x03, 0x08, 0x0a, 0x0b, 0x0d, 0x0f,
					   0x28, 0x2f, 0x30, 0x32, 0x33, 0x34, 0x35,
					   0x36, 0x37, 0x38, 0x39, 0x3e, 0x3f };

	(void)state;
	for (size_t i = 0; i < sizeof(present); i++) {
		assert_non_null(vmx_msr_name(0x800u + present[i]));
		assert_non_null(vmx_apic_register_name(present[i] * 16u));
	}
	for (uint32_t i = 0x10; i < 0x28; i++) {
		assert_non_null(vmx_msr_name(0x800 + i));
		assert_non_null(vmx_apic_register_name(i * 16));
	}
}

static void port_names(void **state)
{
	(void)state;
	assert_string_equal(vmx_port_name(0x3f8), "COM1");
	assert_string_equal(vmx_port_name(0x3ff), "COM1");
	assert_string_equal(vmx_port_name(0x2f8), "COM2");
	assert_string_equal(vmx_port_name(0x608), "ACPI PM timer");
	assert_string_equal(vmx_port_name(0xb008), "ACPI PM timer");
	assert_string_equal(vmx_port_name(0x510), "fw_cfg");
	assert_string_equal(vmx_port_name(0xcf8), "PCI config address");
	assert_string_equal(vmx_port_name(0x40), "PIT (8254)");
	assert_string_equal(vmx_port_name(0x70), "RTC/CMOS");
	assert_string_equal(vmx_port_name(0x1f0), "IDE primary");
	assert_string_equal(vmx_port_name(0xffff), "PCI device (I/O BAR)");
	assert_null(vmx_port_name(0x3000));
}

static void gpa_names(void **state)
{
	(void)state;
	assert_string_equal(vmx_gpa_name(0xfee00380), "local APIC");
	assert_string_equal(vmx_gpa_name(0xfec00010), "IOAPIC");
	assert_string_equal(vmx_gpa_name(0xfed000f0), "HPET");
	assert_string_equal(vmx_gpa_name(0xb8000), "VGA memory");
	assert_null(vmx_gpa_name(0x100000));
	assert_null(vmx_gpa_name(0xfed00400));
	assert_null(vmx_gpa_name(UINT64_MAX));
}

#define SAME(function, constant) assert_string_equal(function(constant), #constant)

static void kernel_constants(void **state)
{
	(void)state;
	SAME(vmx_kvm_exit_name, KVM_EXIT_UNKNOWN);
	SAME(vmx_kvm_exit_name, KVM_EXIT_IO);
	SAME(vmx_kvm_exit_name, KVM_EXIT_HYPERCALL);
	SAME(vmx_kvm_exit_name, KVM_EXIT_MMIO);
	SAME(vmx_kvm_exit_name, KVM_EXIT_FAIL_ENTRY);
	SAME(vmx_kvm_exit_name, KVM_EXIT_INTR);
	SAME(vmx_kvm_exit_name, KVM_EXIT_NMI);
	SAME(vmx_kvm_exit_name, KVM_EXIT_INTERNAL_ERROR);
	SAME(vmx_kvm_exit_name, KVM_EXIT_SYSTEM_EVENT);
	SAME(vmx_kvm_exit_name, KVM_EXIT_IOAPIC_EOI);
	SAME(vmx_kvm_exit_name, KVM_EXIT_HYPERV);
	SAME(vmx_kvm_exit_name, KVM_EXIT_X86_RDMSR);
	SAME(vmx_kvm_exit_name, KVM_EXIT_X86_WRMSR);
	SAME(vmx_kvm_exit_name, KVM_EXIT_DIRTY_RING_FULL);
	SAME(vmx_kvm_exit_name, KVM_EXIT_X86_BUS_LOCK);
	SAME(vmx_kvm_exit_name, KVM_EXIT_NOTIFY);
	assert_null(vmx_kvm_exit_name(1000));
	SAME(vmx_kvm_hypercall_name, KVM_HC_KICK_CPU);
	SAME(vmx_kvm_hypercall_name, KVM_HC_CLOCK_PAIRING);
	SAME(vmx_kvm_hypercall_name, KVM_HC_SEND_IPI);
	SAME(vmx_kvm_hypercall_name, KVM_HC_SCHED_YIELD);
	SAME(vmx_kvm_hypercall_name, KVM_HC_MAP_GPA_RANGE);
	assert_null(vmx_kvm_hypercall_name(0));
	assert_null(vmx_kvm_hypercall_name(UINT64_C(0x100000005)));
}

static void other_names(void **state)
{
	(void)state;
	assert_string_equal(vmx_exception_name(14), "#PF");
	assert_string_equal(vmx_exception_name(0), "#DE");
	assert_string_equal(vmx_exception_name(2), "NMI");
	assert_null(vmx_exception_name(15));
	assert_null(vmx_exception_name(32));
	assert_string_equal(vmx_hv_hypercall_name(0x5c), "HVCALL_POST_MESSAGE");
	assert_string_equal(vmx_hv_hypercall_name(0x2), "HVCALL_FLUSH_VIRTUAL_ADDRESS_SPACE");
	assert_string_equal(vmx_hv_hypercall_name(0xb), "HVCALL_SEND_IPI");
	assert_null(vmx_hv_hypercall_name(0));
	assert_string_equal(vmx_cpuid_name(4), "deterministic cache parameters");
	assert_string_equal(vmx_cpuid_name(0x80000003), "brand string");
	assert_null(vmx_cpuid_name(0x8));
	assert_string_equal(vmx_apic_register_name(0x300), "ICR low");
	assert_string_equal(vmx_apic_register_name(0x170), "ISR");
	assert_null(vmx_apic_register_name(0x1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_are_sorted), cmocka_unit_test(msrs_are_sorted_and_unique),
		cmocka_unit_test(msr_names),	     cmocka_unit_test(x2apic_registers),
		cmocka_unit_test(port_names),	     cmocka_unit_test(gpa_names),
		cmocka_unit_test(kernel_constants),  cmocka_unit_test(other_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
