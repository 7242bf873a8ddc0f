/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_EXPORT_PERFDATA_H
#define VMT_EXPORT_PERFDATA_H

#include <stdint.h>

#include "decode/analyze/input.h"
#include "decode/base/diag.h"
#include "decode/base/item.h"
#include "decode/io/reader.h"
#include "decode/perfdata/writer.h"

/*
 * A capture as a perf.data that perf reads. Records of the kernel go through as they are. Of a
 * perf.data everything is written again, except that zstd records come unpacked; of a .vmt what
 * perf has a place for: events, formats, records, losses, trace, host, the clock's conversion (of
 * session documents, marks, anchors and TSC maps nothing else). A bare PT stream becomes one event,
 * whose configuration is what its packets show.
 */
struct vmt_perfdata_totals {
	struct vmt_ledger ledger; /* of the input */
	uint64_t records;	  /* of the kernel */
	uint64_t trace_bytes;
	uint64_t lost_trace_bytes;  /* that the input has no more */
	uint64_t sections_left_out; /* header features larger than VMT_READER_MAX */
	const char *format;	    /* of the input: vmt, perf.data, pt */
};

/*
 * Reads the input to its end. Takes over the reader; the writer stays the caller's to finish or
 * discard. pt: the input is a bare PT stream, and what it does not say itself; NULL: a capture.
 * VMT_E_DAMAGED when it is neither; else errors of reading and writing. Damage inside of the input
 * is no error: it is in the ledger, and in the output as LOST records.
 */
int vmt_perfdata_export(struct vmt_reader *reader, const struct vmt_input_pt *pt,
			struct vmt_perfdata_writer *writer, struct vmt_perfdata_totals *totals,
			struct vmt_diag *diag);

#endif
