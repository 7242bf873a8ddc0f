/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_KVM_REC_PLAN_H
#define VMT_KVM_REC_PLAN_H

#include <string.h>

#include "decode/base/cursor.h"
#include "decode/base/event.h"
#include "decode/kvm/rec.h"
#include "decode/kvm/rec_table.h"

/*
 * A format is compiled once into loads: where in the raw record, how wide, whether signed, and
 * where in the rec. Invariant: every load of a plan lies inside the plan's min_len bytes of raw
 * record, so that one length check a record is enough.
 */

/*
 * A field is read as the 8 bytes that hold it, of which a left and a right shift leave the field:
 * no branch on its width. Most fields need less: they are copied, 8 or 4 bytes.
 */
struct rec_load {
	uint16_t offset; /* in the raw record: of the field when it is copied, else of the 8 bytes */
	uint8_t member;	 /* byte offset in struct vmt_rec */
	uint8_t left, right;
	bool is_signed;
	uint8_t store; /* enum vmt_rec_store */
};

struct rec_plan {
	struct vmt_format format;
	uint8_t kind;
	uint8_t flags;
	uint16_t min_len;
	/* loads[]: first nr_wide copies of 8 bytes, then nr_narrow of 4, then the rest. */
	unsigned int nr_wide, nr_narrow, nr_loads;
	struct rec_load loads[VMT_REC_FIELDS_MAX];
};

struct vmt_catalog {
	struct rec_plan **plans;
	size_t count, cap;
	uint16_t *by_id; /* index + 1 by tracepoint id below nr_by_id */
	size_t nr_by_id;
};

static inline uint64_t rec_load_value(const uint8_t *raw, const struct rec_load *load)
{
	uint64_t v = vmt_load_u64(raw + load->offset) << load->left;

	/* Arithmetic shift of a negative value: what every compiler of the project does. */
	return load->is_signed ? (uint64_t)((int64_t)v >> load->right) : v >> load->right;
}

static inline void rec_store_value(struct vmt_rec *out, const struct rec_load *load, uint64_t value)
{
	uint8_t *member = (uint8_t *)out + load->member;
	uint32_t narrow = (uint32_t)value;

	if (load->store == VMT_STORE_U64) {
		memcpy(member, &value, sizeof(value));
		return;
	}
	if (load->store == VMT_STORE_ACCESS)
		narrow = value ? VMT_ACCESS_WRITE : VMT_ACCESS_READ;
	else if (load->store == VMT_STORE_MMIO_ACCESS)
		narrow = value == 2 ? VMT_ACCESS_WRITE : VMT_ACCESS_READ;
	memcpy(member, &narrow, sizeof(narrow));
}

/* Fills the members of out from min_len bytes of raw record. */
static inline void rec_plan_fill(const struct rec_plan *plan, const uint8_t *raw,
				 struct vmt_rec *out)
{
	const struct rec_load *load = plan->loads, *end = load + plan->nr_wide;
	uint8_t *rec = (uint8_t *)out;

	for (; load < end; load++)
		memcpy(rec + load->member, raw + load->offset, 8);
	for (end += plan->nr_narrow; load < end; load++)
		memcpy(rec + load->member, raw + load->offset, 4);
	for (end = plan->loads + plan->nr_loads; load < end; load++)
		rec_store_value(out, load, rec_load_value(raw, load));
}

#endif
