// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * COMPRESSED records are pieces of one zstd stream (perf record -z), and a piece may end inside of
 * a record: the remainder stays in front of what comes next. Invariant: plain_pos <= plain_len <=
 * PLAIN_CAP; a remainder is shorter than a record.
 */
#include <stdlib.h>
#include <string.h>

#include "decode/perfdata/private.h"

#define PLAIN_CAP (512u << 10)
/* 8 MiB, the window of level 19: --ultra levels of zstd would not fit the reader's memory. */
#define WINDOW_LOG_MAX 23

int perf_packed_begin(struct vmt_perfdata *p, const uint8_t *bytes, size_t len)
{
	if (!p->zstd) {
		p->zstd = ZSTD_createDCtx();
		p->plain = malloc(PLAIN_CAP);
		if (!p->zstd || !p->plain)
			return VMT_E_NOMEM;
		ZSTD_DCtx_setParameter(p->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	}
	p->at.packed = (ZSTD_inBuffer){ bytes, len, 0 };
	p->at.packed_more = true;
	return 0;
}

int perf_packed_more(struct vmt_perfdata *p)
{
	size_t rest = p->at.plain_len - p->at.plain_pos;
	ZSTD_outBuffer o;

	if (!p->at.packed_more)
		return 0;
	memmove(p->plain, p->plain + p->at.plain_pos, rest);
	o = (ZSTD_outBuffer){ p->plain, PLAIN_CAP, rest };
	while (o.pos < o.size) {
		size_t before = o.pos, hint = ZSTD_decompressStream(p->zstd, &o, &p->at.packed);

		if (ZSTD_isError(hint))
			return VMT_E_DAMAGED;
		if (p->at.packed.pos == p->at.packed.size && (o.pos == before || o.pos < o.size)) {
			p->at.packed_more = false;
			break;
		}
	}
	p->at.plain_pos = 0;
	p->at.plain_len = o.pos;
	return o.pos > rest;
}
