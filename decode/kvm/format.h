/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_KVM_FORMAT_H
#define VMT_KVM_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/diag.h"

/*
 * The `format` text of one tracepoint (tracefs events/SYS/NAME/format), parsed. Never fixed
 * offsets: field sets differ between kernels (4.18 to 6.18 are fixtures).
 */
#define VMT_FORMAT_NAME_MAX   48
#define VMT_FORMAT_FIELDS_MAX 48

struct vmt_format_field {
	char name[VMT_FORMAT_NAME_MAX];
	uint16_t offset;
	uint16_t size;
	bool is_signed;
	bool is_dynamic; /* __data_loc: the value is offset | length << 16 */
};

struct vmt_format {
	char name[VMT_FORMAT_NAME_MAX]; /* kvm_exit */
	uint32_t id;
	unsigned int nr_fields;
	struct vmt_format_field fields[VMT_FORMAT_FIELDS_MAX];
};

/*
 * Parses one format text of len bytes (no NUL needed). VMT_E_DAMAGED with the offset where it is
 * not one; VMT_E_LIMIT for more than VMT_FORMAT_FIELDS_MAX fields.
 */
int vmt_format_parse(const char *text, size_t len, struct vmt_format *out, struct vmt_diag *diag);

/* The field of that name, or NULL. */
const struct vmt_format_field *vmt_format_find(const struct vmt_format *format, const char *name);

#endif
