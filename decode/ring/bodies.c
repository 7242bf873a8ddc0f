// SPDX-License-Identifier: LGPL-2.1-or-later
/* Bodies of the records that belong to AUX areas and context switches. */
#include "decode/base/cursor.h"
#include "decode/ring/ring.h"

bool vmt_ring_aux_of(const struct vmt_ring_record *record, struct vmt_ring_aux *out)
{
	if (record->type != VMT_RING_AUX || record->body_len < 24)
		return false;
	out->aux_offset = vmt_load_u64(record->body);
	out->aux_size = vmt_load_u64(record->body + 8);
	out->flags = vmt_load_u64(record->body + 16);
	return true;
}

bool vmt_ring_task_of(const struct vmt_ring_record *record, uint32_t *pid, uint32_t *tid)
{
	if ((record->type != VMT_RING_ITRACE_START && record->type != VMT_RING_SWITCH_CPU_WIDE) ||
	    record->body_len < 8)
		return false;
	*pid = vmt_load_u32(record->body);
	*tid = vmt_load_u32(record->body + 4);
	return true;
}

bool vmt_ring_hw_id_of(const struct vmt_ring_record *record, uint64_t *hw_id)
{
	if (record->type != VMT_RING_AUX_OUTPUT_HW_ID || record->body_len < 8)
		return false;
	*hw_id = vmt_load_u64(record->body);
	return true;
}
