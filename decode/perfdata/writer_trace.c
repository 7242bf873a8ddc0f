// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Intel PT: what perf needs to know of it, and AUXTRACE records. Invariant: between begin and end
 * of an AUXTRACE record aux_left bytes of trace are missing.
 */
#include <string.h>

#include "decode/perfdata/private.h"
#include "decode/perfdata/writer_private.h"

#define AUXTRACE_LEN	48u
#define AUXTRACE_PT	1u /* AUXTRACE_INFO.type: intel_pt */
#define RECORD_MAX	0xfff8u
#define CONFIG_CYC	(UINT64_C(1) << 1)
#define CONFIG_MTC	(UINT64_C(1) << 9)
#define CONFIG_TSC	(UINT64_C(1) << 10)
#define CONFIG_NORETCMP (UINT64_C(1) << 11)
#define CONFIG_MTC_FREQ (UINT64_C(15) << 14)

static uint64_t header(uint32_t type, size_t len)
{
	return type | (uint64_t)len << 48;
}

int vmt_perfdata_time_conv(struct vmt_perfdata_writer *w, uint16_t shift, uint32_t mult,
			   uint64_t zero, struct vmt_diag *diag)
{
	const uint64_t record[4] = { header(PERF_USER_TIME_CONV, 32), shift, mult, zero };

	return writer_put(w, record, sizeof(record), diag);
}

int vmt_perfdata_id_index(struct vmt_perfdata_writer *w, const struct vmt_perfdata_id *ids,
			  size_t nr, struct vmt_diag *diag)
{
	const size_t most = (RECORD_MAX - 16) / 48;
	int err = 0;

	while (!err && nr) {
		const size_t n = nr < most ? nr : most;
		const uint64_t head[2] = { header(PERF_USER_ID_INDEX, 16 + 48 * n), n };

		err = writer_put(w, head, sizeof(head), diag);
		for (size_t i = 0; !err && i < n; i++) {
			const uint64_t row[4] = { ids[i].id, ids[i].idx, (uint64_t)ids[i].cpu,
						  (uint64_t)ids[i].tid };

			err = writer_put(w, row, sizeof(row), diag);
		}
		for (size_t i = 0; !err && i < n; i++) {
			const uint64_t row[2] = { ids[i].machine_pid, ids[i].vcpu };

			err = writer_put(w, row, sizeof(row), diag);
		}
		ids += n;
		nr -= n;
	}
	return err;
}

int vmt_perfdata_pt_info(struct vmt_perfdata_writer *w, const struct vmt_pt_info *info,
			 enum vmt_perfdata_switches switches, struct vmt_diag *diag)
{
	static const uint8_t zeros[8];
	const char *filter = info->filter ? info->filter : "";
	/* Without a filter there is no text, not even an empty one. */
	const size_t len = strnlen(filter, 4096);
	const size_t padded = len ? (len + 1 + 7) & ~(size_t)7 : 0;
	const uint64_t event_trace = info->event_trace;
	const uint64_t record[] = {
		header(PERF_USER_AUXTRACE_INFO, 16 + 17 * 8 + padded + 8),
		AUXTRACE_PT,
		info->pmu_type,
		info->time_shift,
		info->time_mult,
		info->time_zero,
		info->has_time_conv,
		CONFIG_TSC,
		CONFIG_NORETCMP,
		(uint64_t)switches,
		info->snapshot,
		info->per_cpu,
		CONFIG_MTC,
		CONFIG_MTC_FREQ,
		info->tsc_num,
		info->art_den,
		CONFIG_CYC,
		info->nom_ratio,
		len,
	};
	int err;

	w->has_pt = true;
	w->pt_type = info->pmu_type;
	err = writer_put(w, record, sizeof(record), diag);
	if (!err)
		err = writer_put(w, filter, len, diag);
	for (size_t at = len; !err && at < padded; at++)
		err = writer_put(w, zeros, 1, diag);
	return err ? err : writer_put(w, &event_trace, sizeof(event_trace), diag);
}

int vmt_perfdata_aux_begin(struct vmt_perfdata_writer *w, const struct vmt_perfdata_aux *aux,
			   struct vmt_diag *diag)
{
	const uint64_t size = (aux->size + 7) & ~UINT64_C(7);
	/* perf 6.1 takes a reference of 0 for a buffer that it has not read. */
	const uint64_t reference = aux->reference ? aux->reference : 1;
	const uint64_t record[AUXTRACE_LEN / 8] = {
		header(PERF_USER_AUXTRACE, AUXTRACE_LEN), size,	    aux->offset, reference,
		aux->idx | (uint64_t)aux->tid << 32,	  aux->cpu,
	};

	w->aux_at = w->at;
	w->aux_size = size;
	w->aux_left = aux->size;
	if (!writer_add_u64(&w->aux_rows, w->at) || !writer_add_u64(&w->aux_rows, AUXTRACE_LEN))
		return writer_no_memory(diag);
	return writer_put(w, record, sizeof(record), diag);
}

int vmt_perfdata_aux_bytes(struct vmt_perfdata_writer *w, const uint8_t *bytes, size_t len,
			   struct vmt_diag *diag)
{
	if (len > w->aux_left)
		len = (size_t)w->aux_left;
	w->aux_left -= len;
	return writer_put(w, bytes, len, diag);
}

int vmt_perfdata_aux_end(struct vmt_perfdata_writer *w, struct vmt_diag *diag)
{
	static const uint8_t pads[8];
	uint64_t size = w->at - w->aux_at - AUXTRACE_LEN;
	const size_t padding = (size_t)(-size & 7);
	int err = writer_put(w, pads, padding, diag);

	size += padding;
	if (!err && size != w->aux_size)
		err = writer_patch(w, w->aux_at + 8, &size, sizeof(size), diag);
	return err;
}
