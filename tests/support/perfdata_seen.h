/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PERFDATA_SEEN_H
#define VMT_SUPPORT_PERFDATA_SEEN_H

#include <stddef.h>
#include <stdint.h>

#include "decode/base/aux.h"
#include "decode/base/item.h"
#include "decode/io/reader.h"
#include "tests/support/stream.h"

/* All that a perf.data holds, one after the other. */
#define VMT_PERFDATA_SEEN_AREAS 4u

struct vmt_perfdata_seen {
	struct vmt_stream attrs, ids, formats, records;
	struct vmt_stream trace[VMT_PERFDATA_SEEN_AREAS]; /* by idx */
	struct vmt_stream links;			  /* struct vmt_vcpu_link */
	size_t rounds, losses, ends;
	struct vmt_pt_info info; /* without the filter's text */
	struct vmt_ledger ledger;
	char cpuid[64], host[64];
};

/*
 * Reads it; the reader is closed. Errors of vmt_perfdata_open, and then there is nothing to forget.
 * Aborts when the trace of an area does not go on where it ended, or its padding is wrong.
 */
int vmt_perfdata_see(struct vmt_perfdata_seen *seen, struct vmt_reader *reader);
void vmt_perfdata_forget(struct vmt_perfdata_seen *seen);

#endif
