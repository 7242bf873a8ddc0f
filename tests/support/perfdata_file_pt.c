// SPDX-License-Identifier: LGPL-2.1-or-later
/* Intel PT in a perf.data of the tests. */
#include "tests/support/perfdata_file.h"

enum {
	AUXTRACE_INFO = 70,
	AUXTRACE = 71,
};

void vmt_perfdata_file_auxtrace_info(struct vmt_perfdata_file *f, const uint64_t *words, size_t nr)
{
	struct vmt_stream body = { 0 };

	vmt_stream_u64(&body, 1); /* PERF_AUXTRACE_INTEL_PT */
	for (size_t i = 0; i < nr; i++)
		vmt_stream_u64(&body, words[i]);
	vmt_perfdata_file_user(f, AUXTRACE_INFO, body.bytes, body.len);
	vmt_stream_free(&body);
}

void vmt_perfdata_file_auxtrace(struct vmt_perfdata_file *f, const struct vmt_aux_area *area,
				const struct vmt_aux_extent *extent, const uint8_t *bytes)
{
	uint32_t tail[] = { area->idx, area->tid, area->cpu, 0 };
	struct vmt_stream body = { 0 };

	vmt_stream_u64(&body, extent->len);
	vmt_stream_u64(&body, extent->aux_offset);
	vmt_stream_u64(&body, extent->reference);
	vmt_stream_append(&body, tail, sizeof(tail));
	vmt_perfdata_file_user(f, AUXTRACE, body.bytes, body.len);
	vmt_stream_free(&body);
	vmt_perfdata_file_bytes(f, bytes, (size_t)extent->len);
}

void vmt_perfdata_file_aux(struct vmt_perfdata_file *f, uint32_t cpu, uint64_t time_ns,
			   const struct vmt_ring_aux *aux)
{
	struct vmt_stream record = { 0 };

	vmt_stream_u64(&record, VMT_RING_AUX | UINT64_C(64) << 48);
	vmt_stream_append(&record, aux, sizeof(*aux));
	vmt_stream_u64(&record, 100 | UINT64_C(100) << 32); /* pid, tid */
	vmt_stream_u64(&record, time_ns);
	vmt_stream_u64(&record, cpu);
	vmt_stream_u64(&record, vmt_perfdata_file_pt_id(f, cpu));
	vmt_perfdata_file_records(f, record.bytes, record.len);
	vmt_stream_free(&record);
}
