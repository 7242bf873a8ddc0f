// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: both tables are sorted by code without duplicates (tests/unit/test_vmx_exit.c), so
 * that a binary search finds a row.
 */
#include "vmx/exit.h"

#include <string.h>
#include <strings.h>

#include "vmx/rows.h"
#include "vmx/text.h"

static const struct vmx_reason_row *find_code(const struct vmx_reason_row *rows, size_t count,
					      uint32_t code)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (rows[middle].code < code)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && rows[low].code == code ? &rows[low] : NULL;
}

const struct vmx_reason_row *vmx_reason_find(uint32_t basic)
{
	return find_code(vmx_reason_table, vmx_reason_table_count, basic);
}

const struct vmx_reason_row *svm_exit_find(uint32_t code)
{
	return find_code(svm_exit_table, svm_exit_table_count, code);
}

const struct vmx_reason_row *vmx_reason_rows(size_t *count)
{
	*count = vmx_reason_table_count;
	return vmx_reason_table;
}

const struct vmx_reason_row *svm_exit_rows(size_t *count)
{
	*count = svm_exit_table_count;
	return svm_exit_table;
}

static const struct vmx_reason_row *find_name(const char *name, bool *is_svm,
					      int (*compare)(const char *, const char *))
{
	for (size_t i = 0; i < vmx_reason_table_count + svm_exit_table_count; i++) {
		bool svm = i >= vmx_reason_table_count;
		const struct vmx_reason_row *row =
			svm ? &svm_exit_table[i - vmx_reason_table_count] : &vmx_reason_table[i];

		if (!compare(row->name, name)) {
			*is_svm = svm;
			return row;
		}
	}
	return NULL;
}

const struct vmx_reason_row *vmx_reason_by_name(const char *name, bool *is_svm)
{
	const struct vmx_reason_row *row = find_name(name, is_svm, strcmp);

	return row ? row : find_name(name, is_svm, strcasecmp);
}

const char *vmx_class_name(enum vmx_exit_class class)
{
	static const char *const names[VMX_CLASS_COUNT] = {
		[VMX_CLASS_OTHER] = "other",
		[VMX_CLASS_INTERRUPT] = "interrupts",
		[VMX_CLASS_IO] = "port I/O",
		[VMX_CLASS_MMIO] = "memory and MMIO",
		[VMX_CLASS_MSR] = "MSR",
		[VMX_CLASS_CPUID] = "CPUID",
		[VMX_CLASS_HALT] = "halt",
		[VMX_CLASS_PAUSE] = "pause loops",
		[VMX_CLASS_CR_DR] = "control and debug registers",
		[VMX_CLASS_APIC] = "APIC",
		[VMX_CLASS_EXCEPTION] = "exceptions",
		[VMX_CLASS_HYPERCALL] = "hypercalls",
		[VMX_CLASS_NESTED] = "nested virtualization",
		[VMX_CLASS_TSC] = "TSC and counters",
		[VMX_CLASS_FAILURE] = "failures",
	};

	return (unsigned int)class < VMX_CLASS_COUNT ? names[class] : names[VMX_CLASS_OTHER];
}

char *vmx_reason_text(char *buf, size_t size, bool is_svm, uint32_t code)
{
	const struct vmx_reason_row *row = is_svm ? svm_exit_find(code) : vmx_reason_find(code);
	struct vmx_text t = vmx_text_of(buf, size);

	if (row) {
		vmx_text_str(&t, row->name);
	} else {
		vmx_text_str(&t, "UNKNOWN_");
		vmx_text_hex(&t, code);
	}
	return buf;
}

char *vmx_reason_flags_text(char *buf, size_t size, uint32_t flags)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} names[] = {
		{ VMX_REASON_BUS_LOCK, "BUS_LOCK" },
		{ VMX_REASON_ENCLAVE, "ENCLAVE" },
		{ VMX_REASON_PENDING_MTF, "PENDING_MTF" },
		{ VMX_REASON_FROM_ROOT, "FROM_ROOT" },
		{ VMX_REASON_ENTRY_FAILURE, "FAILED_VMENTRY" },
	};
	struct vmx_text t = vmx_text_of(buf, size);

	flags &= ~VMX_REASON_BASIC_MASK;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (flags & names[i].bit)
			vmx_text_item(&t, "|", names[i].name);
		flags &= ~names[i].bit;
	}
	if (flags) {
		vmx_text_item(&t, "|", "");
		vmx_text_hex(&t, flags);
	}
	return buf;
}
