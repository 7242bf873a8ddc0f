/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_PERFDATA_PERFDATA_H
#define VMT_PERFDATA_PERFDATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/diag.h"
#include "decode/base/item.h"
#include "decode/io/reader.h"

/*
 * Reader of perf.data: file and pipe mode, zstd records, files cut off or with data.size 0.
 * Delivers the same items as decode/store: ATTR, FORMAT (from the tracing data), RECORDS, ROUND,
 * LOSS, END. Runs of neighbouring kernel records come as one RECORDS item.
 */
struct vmt_perfdata;

/*
 * Takes over a reader at the start of the input. VMT_E_DAMAGED when it is no perf.data;
 * VMT_E_UNSUPPORTED for foreign endianness. A file through a pipe that needs a look behind the data
 * (file mode: features stand at the end) is refused with a cure.
 */
int vmt_perfdata_open(struct vmt_perfdata **out, struct vmt_reader *reader, struct vmt_diag *diag);
void vmt_perfdata_close(struct vmt_perfdata *perf);

/* Frees all but the reader it had taken over, and gives that back. */
struct vmt_reader *vmt_perfdata_release(struct vmt_perfdata *perf);

/* 1 and the next item, 0 at the end, negative VMT_E_IO, VMT_E_NOMEM. Damage is an item. */
int vmt_perfdata_next(struct vmt_perfdata *perf, struct vmt_item *item, struct vmt_diag *diag);

struct vmt_ledger vmt_perfdata_ledger(const struct vmt_perfdata *perf);

/* HEADER_CPUID, HEADER_HOSTNAME, HEADER_OSRELEASE, HEADER_CMDLINE as text, NULL when absent. */
const char *vmt_perfdata_feature(const struct vmt_perfdata *perf, const char *name);

#endif
