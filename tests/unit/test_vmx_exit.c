// SPDX-License-Identifier: LGPL-2.1-or-later
/* The tables of exit reasons: complete, sorted, spelled as the kernel prints them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <linux/types.h>

#include <asm/kvm.h>
#include <asm/svm.h>
#include <asm/vmx.h>

#include "vmx/exit.h"

static void check_table(const struct vmx_reason_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		assert_true(i == 0 || rows[i - 1].code < rows[i].code);
		assert_true(rows[i].name[0] && rows[i].title[0] && rows[i].source[0]);
		assert_true(!rows[i].advice || rows[i].advice[0]);
		assert_true(rows[i].class < VMX_CLASS_COUNT);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(rows[k].name, rows[i].name);
	}
}

static void tables_are_sorted_and_unique(void **state)
{
	const struct vmx_reason_row *rows;
	size_t count;

	(void)state;
	rows = vmx_reason_rows(&count);
	check_table(rows, count);
	rows = svm_exit_rows(&count);
	check_table(rows, count);
}

static void every_row_is_found(void **state)
{
	const struct vmx_reason_row *rows;
	bool is_svm;
	size_t count;

	(void)state;
	rows = vmx_reason_rows(&count);
	for (size_t i = 0; i < count; i++) {
		assert_ptr_equal(vmx_reason_find(rows[i].code), &rows[i]);
		assert_ptr_equal(vmx_reason_by_name(rows[i].name, &is_svm), &rows[i]);
		assert_false(is_svm);
	}
	rows = svm_exit_rows(&count);
	for (size_t i = 0; i < count; i++) {
		assert_ptr_equal(svm_exit_find(rows[i].code), &rows[i]);
		assert_ptr_equal(vmx_reason_by_name(rows[i].name, &is_svm), &rows[i]);
		assert_true(is_svm);
	}
}

/* Every basic reason of the manuals has a row: 0..85 but the unassigned 38, 82 and 83. */
static void vmx_numbers(void **state)
{
	(void)state;
	for (uint32_t basic = 0; basic < 0x10000; basic++) {
		bool known = basic <= 85 && basic != 38 && basic != 82 && basic != 83;

		assert_int_equal(vmx_reason_find(basic) != NULL, known);
	}
	assert_null(vmx_reason_find(0x80000021));
}

static void svm_numbers(void **state)
{
	static const uint32_t gaps[] = { 0x001, 0x005, 0x011, 0x01f, 0x0a7, 0x3ff, 0x404 };
	static const uint32_t special[] = { 0x80000001, 0x80000005, 0x80000010, 0x80000013,
					    0x8000fffd, 0x8000ffff, 0xf0000000, 0xffffffff };

	(void)state;
	for (uint32_t dr = 0; dr < 16; dr++) {
		assert_int_equal(svm_exit_find(0x20 + dr) != NULL, dr < 8);
		assert_int_equal(svm_exit_find(0x30 + dr) != NULL, dr < 8);
	}
	for (uint32_t code = 0x40; code <= 0xa6; code++)
		assert_non_null(svm_exit_find(code));
	for (uint32_t code = 0x400; code <= 0x403; code++)
		assert_non_null(svm_exit_find(code));
	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
		assert_non_null(svm_exit_find(special[i]));
	for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++)
		assert_null(svm_exit_find(gaps[i]));
}

struct kernel_name {
	uint32_t code;
	const char *name;
};

/* The kernel's own header says how kvm_exit prints each reason. */
static void names_are_the_kernels(void **state)
{
	static const struct kernel_name vmx[] = { VMX_EXIT_REASONS };
	static const struct {
		int64_t code;
		const char *name;
	} svm[] = { SVM_EXIT_REASONS };

	(void)state;
	for (size_t i = 0; i < sizeof(vmx) / sizeof(vmx[0]); i++)
		assert_string_equal(vmx_reason_find(vmx[i].code)->name, vmx[i].name);
	for (size_t i = 0; i < sizeof(svm) / sizeof(svm[0]); i++)
		assert_string_equal(svm_exit_find((uint32_t)svm[i].code)->name, svm[i].name);
}

static void names_of_newer_kernels(void **state)
{
	(void)state;
	assert_string_equal(vmx_reason_find(77)->name, "TDCALL");
	assert_string_equal(vmx_reason_find(84)->name, "MSR_READ_IMM");
	assert_string_equal(vmx_reason_find(85)->name, "MSR_WRITE_IMM");
	assert_string_equal(svm_exit_find(0xa5)->name, "buslock");
	assert_string_equal(svm_exit_find(0xa6)->name, "idle-halt");
}

static void lookup_by_name(void **state)
{
	bool is_svm = true;

	(void)state;
	assert_int_equal(vmx_reason_by_name("ept_violation", &is_svm)->code, 48);
	assert_false(is_svm);
	assert_int_equal(vmx_reason_by_name("NPF", &is_svm)->code, 0x400);
	assert_true(is_svm);
	/* Both tables have it: the spelling decides, VMX otherwise. */
	assert_int_equal(vmx_reason_by_name("cpuid", &is_svm)->code, 0x72);
	assert_int_equal(vmx_reason_by_name("CPUID", &is_svm)->code, 10);
	assert_int_equal(vmx_reason_by_name("Cpuid", &is_svm)->code, 10);
	assert_null(vmx_reason_by_name("", &is_svm));
	assert_null(vmx_reason_by_name("EPT", &is_svm));
}

static void texts(void **state)
{
	char buf[96];

	(void)state;
	assert_string_equal(vmx_reason_text(buf, sizeof(buf), false, 30), "IO_INSTRUCTION");
	assert_string_equal(vmx_reason_text(buf, sizeof(buf), true, 0x7b), "io");
	assert_string_equal(vmx_reason_text(buf, 24, false, 86), "UNKNOWN_0x56");
	assert_string_equal(vmx_reason_text(buf, 24, true, 0xfffffffe), "UNKNOWN_0xfffffffe");
	assert_string_equal(vmx_reason_flags_text(buf, sizeof(buf), 0), "");
	assert_string_equal(vmx_reason_flags_text(buf, sizeof(buf), 0xffff), "");
	assert_string_equal(vmx_reason_flags_text(buf, sizeof(buf), 0x80000000), "FAILED_VMENTRY");
	assert_string_equal(vmx_reason_flags_text(buf, sizeof(buf), 0x0c000030),
			    "BUS_LOCK|ENCLAVE");
	assert_string_equal(vmx_reason_flags_text(buf, sizeof(buf), 0x42010000), "0x42010000");
	assert_string_equal(vmx_reason_flags_text(buf, sizeof(buf), 0xffff0000),
			    "BUS_LOCK|ENCLAVE|PENDING_MTF|FROM_ROOT|FAILED_VMENTRY|0x43ff0000");
}

static void class_names(void **state)
{
	(void)state;
	for (int c = 0; c < VMX_CLASS_COUNT; c++)
		assert_true(vmx_class_name((enum vmx_exit_class)c)[0] != '\0');
	assert_string_equal(vmx_class_name(VMX_CLASS_IO), "port I/O");
	assert_string_equal(vmx_class_name((enum vmx_exit_class)99), "other");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_sorted_and_unique),
		cmocka_unit_test(every_row_is_found),
		cmocka_unit_test(vmx_numbers),
		cmocka_unit_test(svm_numbers),
		cmocka_unit_test(names_are_the_kernels),
		cmocka_unit_test(names_of_newer_kernels),
		cmocka_unit_test(lookup_by_name),
		cmocka_unit_test(texts),
		cmocka_unit_test(class_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
