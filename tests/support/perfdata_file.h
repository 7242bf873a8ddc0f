/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PERFDATA_FILE_H
#define VMT_SUPPORT_PERFDATA_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "decode/kvm/format.h"

/*
 * Writes a perf.data of tracepoint streams as `perf record -e kvm:*` does (sample_type
 * IP|TID|TIME|CPU|PERIOD|RAW|IDENTIFIER), so that perf itself reads it. Aborts when memory is short
 * or a write fails.
 */
struct vmt_perf_file_options {
	FILE *out;	    /* stays the caller's; file mode needs one that can seek */
	bool pipe;	    /* pipe mode: all metadata in records before the data */
	bool compress;	    /* kernel records go into zstd records */
	const char *kernel; /* whose format fixtures: "6.1" */
	const char *cpuid;  /* HEADER_CPUID: "GenuineIntel,6,143,8"; NULL: none */
	bool no_data_size;  /* as a killed recorder leaves it: data.size 0 */
	bool no_features;   /* nothing behind the data */
};

struct vmt_perf_file;

/* Format i has the event id i + 1, as in tests/support/stream.h's machine. */
struct vmt_perf_file *vmt_perf_file_new(const struct vmt_perf_file_options *options,
					const struct vmt_format *formats, size_t nr_formats);

/* Whole records as tests/support/stream.h writes them, of any ring. */
void vmt_perf_file_records(struct vmt_perf_file *file, const uint8_t *bytes, size_t len);

/* FINISHED_ROUND. */
void vmt_perf_file_round(struct vmt_perf_file *file);

/* Any other bytes into the data section as they are. */
void vmt_perf_file_raw(struct vmt_perf_file *file, const void *bytes, size_t len);

/* Writes what stands behind the data, completes the header and frees the file. */
void vmt_perf_file_finish(struct vmt_perf_file *file);

#endif
