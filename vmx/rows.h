/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMX_ROWS_H
#define VMX_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "vmx/exit.h"
#include "vmx/names.h"

/* The constant tables behind exit.h and names.h. Each is sorted by number without overlaps. */
extern const struct vmx_reason_row vmx_reason_table[];
extern const size_t vmx_reason_table_count;
extern const struct vmx_reason_row svm_exit_table[];
extern const size_t svm_exit_table_count;
extern const struct vmx_msr_row vmx_msr_table[];
extern const size_t vmx_msr_table_count;

/* One table a kind of vmx_name_rows. */
struct vmx_range_table {
	const struct vmx_range_row *rows;
	size_t count;
};
extern const struct vmx_range_table vmx_range_tables[VMX_NAME_KIND_COUNT];

#endif
