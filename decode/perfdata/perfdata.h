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
 * AUX, VCPU_LINK (from ID_INDEX), LOSS, END. Runs of neighbouring kernel records come as one
 * RECORDS item. Source: Linux, tools/perf/Documentation/perf.data-file-format.txt and
 * tools/perf/util/{header,session}.c.
 *
 * Kinds of loss: damaged (a size that cannot be: the records chain by their sizes, so that all that
 * follows is lost; or zstd data, which are one stream), truncated (the input ends inside of a
 * record, or before the data section does), auxtrace (AUX data that is not Intel PT: not read
 * here), aux-limit (more buffers of Intel PT than an index holds), spool-full (the rest of a pipe
 * found no room in a temporary file: vmt_reader_spool).
 * Memory: the reader's buffer, up to 4 MiB of formats, 8 MiB of ids, for zstd records a window
 * of up to 8 MiB, and 40 bytes a buffer of Intel PT.
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

/*
 * From now on records of perf itself that are neither trace, compressed data, attrs nor tracing
 * data nor the end of a round come as VMT_ITEM_USER, whole. For who writes them down again.
 */
void vmt_perfdata_want_user(struct vmt_perfdata *perf);

/* Where a header feature lies in a file (file mode); false when it is absent or cut off. */
bool vmt_perfdata_section(const struct vmt_perfdata *perf, unsigned int feature, uint64_t *offset,
			  uint64_t *size);

/* 1 and the next item, 0 at the end, negative VMT_E_IO, VMT_E_NOMEM. Damage is an item. */
int vmt_perfdata_next(struct vmt_perfdata *perf, struct vmt_item *item, struct vmt_diag *diag);

/*
 * VMT_E_DAMAGED with what and cure when there are tracepoints, but not the format of any: their
 * records cannot be decoded. File mode keeps the formats behind the data, where a killed recorder
 * never writes them. 0 otherwise. In pipe mode both are known only from the first RECORDS item on;
 * in file mode vmt_perfdata_open has asked.
 */
int vmt_perfdata_need_formats(const struct vmt_perfdata *perf, struct vmt_diag *diag);

/*
 * The file's Intel PT: areas, how it was set up, which processor. Never NULL; without Intel PT it
 * has no area, but info.has_time_conv and info.has_cpu_id all the same. A file with events of a
 * dynamic PMU is walked for it when it is opened, any other one at its first AUXTRACE_INFO of Intel
 * PT, and a pipe is spooled there: that is before its first AUX item, and in what perf writes
 * before the first RECORDS. Belongs to perf; ask again after the walk. In the ledger the trace
 * counts as decoded: who decodes it takes off what he skipped.
 */
const struct vmt_aux_index *vmt_perfdata_aux(struct vmt_perfdata *perf);

struct vmt_ledger vmt_perfdata_ledger(const struct vmt_perfdata *perf);

/*
 * perf's header features of text, NULL when absent: HOSTNAME, OSRELEASE, VERSION, ARCH, CPUDESC,
 * CPUID, CMDLINE. The text belongs to perf.
 */
const char *vmt_perfdata_feature(const struct vmt_perfdata *perf, const char *name);

#endif
