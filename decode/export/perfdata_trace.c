// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Trace that follows without a gap, as records that perf can follow: it decodes no packet that two
 * records share, so that a record ends in front of a PSB, or where the trace does.
 */
#include <string.h>

#include "decode/export/perfdata_private.h"

#define RECORD_BYTES (UINT64_C(4) << 20) /* from here on a PSB ends a record */
#define SIZE_UNKNOWN (UINT64_C(1) << 62)
#define PSB_LEN	     16u

/* Where a PSB begins in bytes[from..len), else len. */
static size_t find_psb(const uint8_t *bytes, size_t from, size_t len)
{
	static const uint8_t psb[PSB_LEN] = { 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
					      0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82 };
	const uint8_t *at = from < len ? memmem(bytes + from, len - from, psb, PSB_LEN) : NULL;

	return at ? (size_t)(at - bytes) : len;
}

static int put(struct export_trace *t, const uint8_t *bytes, size_t len)
{
	int err = 0;

	if (!t->is_open) {
		t->aux.size = t->has_size ? t->size : SIZE_UNKNOWN;
		err = vmt_perfdata_aux_begin(t->w, &t->aux, t->diag);
		t->is_open = true;
		t->written = 0;
	}
	if (!err)
		err = vmt_perfdata_aux_bytes(t->w, bytes, len, t->diag);
	t->written += len;
	t->aux.offset += len;
	t->size -= t->has_size ? len : 0;
	return err;
}

int export_trace_end(struct export_trace *t)
{
	if (!t->is_open)
		return 0;
	t->is_open = false;
	return vmt_perfdata_aux_end(t->w, t->diag);
}

int export_trace_bytes(struct export_trace *t, const uint8_t *bytes, size_t len)
{
	size_t from = 0, at;
	int err;

	if (t->keep_whole)
		return put(t, bytes, len);
	if (t->is_open && t->written < RECORD_BYTES)
		from = RECORD_BYTES - t->written < len ? (size_t)(RECORD_BYTES - t->written) : len;
	at = t->is_open ? find_psb(bytes, from, len) : len;
	err = at ? put(t, bytes, at) : 0;
	if (err || at == len)
		return err;
	err = export_trace_end(t);
	/* A buffer is shorter than a record: one cut is enough. */
	return err ? err : put(t, bytes + at, len - at);
}
