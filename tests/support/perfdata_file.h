/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PERFDATA_FILE_H
#define VMT_SUPPORT_PERFDATA_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/aux.h"
#include "decode/base/event.h"
#include "decode/ring/ring.h"
#include "tests/support/stream.h"

/*
 * Writes a perf.data as perf 6.1 does (tools/perf/util/header.c, builtin-record.c), which perf
 * itself reads: tracepoints of one kernel's format fixtures, one id a tracepoint and CPU, sample
 * type IDENTIFIER|IP|TID|TIME|CPU|PERIOD|RAW. In memory, or to a descriptor with bounded memory.
 * Aborts when memory is short or a write fails.
 */
struct vmt_perfdata_file_options {
	const char *kernel;	   /* folder of tests/golden/formats */
	const char *const *events; /* names, NULL ended; NULL: every fixture of the kernel */
	enum vmt_isa isa;	   /* decides CPUID; VMT_ISA_UNKNOWN: none */
	unsigned int cpus;	   /* 0: 1 */
	bool pipe;		   /* pipe mode: no table, metadata as records */
	bool zstd;		   /* records in COMPRESSED records */
	bool no_features;	   /* file mode: neither tracing data nor CPUID */
	bool pt;		   /* an event of Intel PT as well */
	bool no_data_size;	   /* file mode: data.size stays 0, as when perf was killed */
	int fd;			   /* -1: in memory */
};

struct vmt_perfdata_file;

/* Writes all that stands before the records. */
struct vmt_perfdata_file *vmt_perfdata_file_new(const struct vmt_perfdata_file_options *options);
void vmt_perfdata_file_free(struct vmt_perfdata_file *file);

/* The formats in the file: attr i has id i + 1 + cpu * number of formats. */
size_t vmt_perfdata_file_formats(const struct vmt_perfdata_file *file,
				 const struct vmt_format **formats);

/*
 * Records of one ring as vmt_machine writes them with the same kernel, in perf's layout: samples of
 * events that are not in the file are left out.
 */
void vmt_perfdata_file_machine(struct vmt_perfdata_file *file, const struct vmt_machine *machine,
			       const struct vmt_stream *records);

/* Records of one ring as they are; a record of perf itself, never compressed. */
void vmt_perfdata_file_records(struct vmt_perfdata_file *file, const uint8_t *bytes, size_t len);
void vmt_perfdata_file_user(struct vmt_perfdata_file *file, uint32_t type, const void *body,
			    size_t len);
/*
 * Intel PT: its event (PMU type VMT_PERFDATA_FILE_PT) stands behind the tracepoints, with an id a
 * CPU. AUXTRACE_INFO with these words of priv[]; a drained buffer (area: idx, cpu, tid);
 * PERF_RECORD_AUX as the kernel writes it, with its trailer.
 */
#define VMT_PERFDATA_FILE_PT	    8u
#define VMT_PERFDATA_FILE_PT_CONFIG 0x300e601u

void vmt_perfdata_file_auxtrace_info(struct vmt_perfdata_file *file, const uint64_t *words,
				     size_t nr);
void vmt_perfdata_file_auxtrace(struct vmt_perfdata_file *file, const struct vmt_aux_area *area,
				const struct vmt_aux_extent *extent, const uint8_t *bytes);
void vmt_perfdata_file_aux(struct vmt_perfdata_file *file, uint32_t cpu, uint64_t time_ns,
			   const struct vmt_ring_aux *aux);

uint64_t vmt_perfdata_file_pt_id(const struct vmt_perfdata_file *file, uint32_t cpu);
/* Bytes as they are, behind what was written last. */
void vmt_perfdata_file_bytes(struct vmt_perfdata_file *file, const uint8_t *bytes, size_t len);

/* FINISHED_ROUND. */
void vmt_perfdata_file_round(struct vmt_perfdata_file *file);

/* Features and data.size. */
void vmt_perfdata_file_finish(struct vmt_perfdata_file *file);

/* What is written so far, in memory; the caller's when taken, freed with free(). */
uint8_t *vmt_perfdata_file_take(struct vmt_perfdata_file *file, size_t *len);
/* Offset and length of the data section so far (file mode: from its header). */
uint64_t vmt_perfdata_file_data_offset(const struct vmt_perfdata_file *file);

/* One sample in the layout of the file: where its members stand, to make many from one. */
#define VMT_PERFDATA_SAMPLE_ID	 8
#define VMT_PERFDATA_SAMPLE_IP	 16
#define VMT_PERFDATA_SAMPLE_PID	 24
#define VMT_PERFDATA_SAMPLE_TID	 28
#define VMT_PERFDATA_SAMPLE_TIME 32
#define VMT_PERFDATA_SAMPLE_CPU	 40
#define VMT_PERFDATA_SAMPLE_RAW	 60

#endif
