// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Any bytes exported as a perf.data, as a file and as a pipe, or as a bare PT stream. What is
 * written is a perf.data that reads to its end with nothing damaged or cut off, is no larger than
 * what came in can make it, and holds as many bytes of trace as were counted.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/export/perfdata.h"
#include "decode/perfdata/perfdata.h"
#include "tests/support/memory_file.h"
#include "tests/support/store_sample.h"

#define EXPANDS 65536u /* zstd, and what an attr or a name becomes */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

/* A sound file up to its last byte; a source may hold what the reader refuses as a whole. */
static void check_output(int fd, const struct vmt_perfdata_totals *totals)
{
	struct vmt_perfdata *perf;
	struct vmt_reader *reader;
	struct vmt_item item;
	uint64_t trace = 0;
	int more;

	require(lseek(fd, 0, SEEK_SET) == 0);
	require(vmt_reader_from_fd(&reader, fd, NULL, NULL) == 0);
	if (vmt_perfdata_open(&perf, reader, NULL) != 0) {
		vmt_reader_close(reader);
		return;
	}
	while ((more = vmt_perfdata_next(perf, &item, NULL)) == 1)
		trace += item.type == VMT_ITEM_AUX ? item.aux->len : 0;
	require(more == 0);
	require(trace >= totals->trace_bytes || totals->ledger.bytes_skipped);
	vmt_perfdata_close(perf);
}

static void export_one(struct vmt_reader *reader, const struct vmt_input_pt *pt, size_t size)
{
	struct vmt_output file = { .ops = &vmt_io_system, .is_device = true };
	struct vmt_perfdata_totals totals;
	struct vmt_perfdata_writer *w;
	struct stat st;
	int copy;

	file.fd = memfd_create("export", MFD_CLOEXEC);
	file.path = strdup("export");
	copy = dup(file.fd);
	require(file.fd >= 0 && file.path && copy >= 0);
	require(vmt_perfdata_create(&w, &file, NULL) == 0);
	if (vmt_perfdata_export(reader, pt, w, &totals, NULL)) {
		vmt_perfdata_discard(w);
		close(copy);
		return;
	}
	require(vmt_perfdata_finish(w, NULL) == 0);
	require(totals.ledger.bytes_total ==
		totals.ledger.bytes_decoded + totals.ledger.bytes_skipped);
	require(fstat(copy, &st) == 0 && (uint64_t)st.st_size <= (size + 64) * EXPANDS);
	check_output(copy, &totals);
}

static int is_capture(const uint8_t *data, size_t size)
{
	return size >= 4 && (!memcmp(data, "PERF", 4) || !memcmp(data, "\x8bVMT", 4));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct vmt_input_pt pt = { .clock = { .tsc_hz = UINT64_C(2000000000) } };
	struct vmt_reader *reader;

	require(vmt_reader_from_fd(&reader, vmt_memory_file(data, size), NULL, NULL) == 0);
	export_one(reader, NULL, size);
	export_one(vmt_sample_reader(data, size), is_capture(data, size) ? NULL : &pt, size);
	return 0;
}
