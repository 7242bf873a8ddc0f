/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_KVM_REC_TABLE_H
#define VMT_KVM_REC_TABLE_H

#include <stdint.h>

#include "decode/kvm/rec.h"

/* How a value is stored in struct vmt_rec. */
enum vmt_rec_store {
	VMT_STORE_U32,
	VMT_STORE_U64,
	VMT_STORE_ACCESS,      /* 0 read, 1 write -> enum vmt_access */
	VMT_STORE_MMIO_ACCESS, /* 0 unsatisfied read, 1 read, 2 write -> enum vmt_access */
};

/* One value of a tracepoint: from a field of the format to a member of the rec. */
struct vmt_rec_field {
	const char *name; /* field of the format */
	uint8_t member;	  /* byte offset in struct vmt_rec */
	uint8_t store;	  /* enum vmt_rec_store */
	uint8_t flag;	  /* VMT_REC_* to set when the format has the field */
};

#define VMT_REC_FIELDS_MAX 16

struct vmt_rec_row {
	const char *name; /* tracepoint */
	uint8_t kind;	  /* enum vmt_rec_kind */
	struct vmt_rec_field fields[VMT_REC_FIELDS_MAX];
};

/* Row of a tracepoint by its name: exact rows first, then families (kvm_hv_*, kvm_*); NULL if none.
 */
const struct vmt_rec_row *vmt_rec_row_find(const char *name);

#endif
