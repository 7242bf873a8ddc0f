/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_PERFDATA_WRITER_H
#define VMT_PERFDATA_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/aux.h"
#include "decode/base/diag.h"
#include "decode/io/output.h"
#include "decode/ring/ring.h"

/*
 * Writer of perf.data (file mode) that perf reads: header, records, features, and behind them the
 * attrs with their ids, which may be told until the end. What stays in memory is metadata: attrs,
 * ids, format texts, features and 16 bytes for each record of trace. Source: Linux,
 * tools/perf/Documentation/perf.data-file-format.txt, tools/perf/util/{header,auxtrace}.c.
 *
 * Functions that write return 0 or VMT_E_FULL, VMT_E_IO, … of vmt_output_writev, VMT_E_NOMEM, with
 * diag. After an error only vmt_perfdata_discard makes sense.
 */
struct vmt_perfdata_writer;

/*
 * Takes over an output that is open and empty, in any case: *file is closed then. VMT_E_USAGE when
 * it cannot seek (the header is written last), VMT_E_NOMEM, VMT_E_FULL, VMT_E_IO.
 */
int vmt_perfdata_create(struct vmt_perfdata_writer **out, struct vmt_output *file,
			struct vmt_diag *diag);

/* Features, attrs, header; syncs and commits the output. The writer is freed in any case. */
int vmt_perfdata_finish(struct vmt_perfdata_writer *writer, struct vmt_diag *diag);

/* Removes the output. NULL is allowed. */
void vmt_perfdata_discard(struct vmt_perfdata_writer *writer);

/* ---- metadata: may be told at any time ---- */

struct vmt_perfdata_event {
	const struct vmt_ring_attr *attr;
	const uint8_t *bytes; /* the perf_event_attr as another file has it; NULL: made of attr */
	size_t len;
	const uint64_t *ids; /* each one only once in a file */
	size_t nr_ids;
};

/*
 * Adds an event, or, when it is made of its attr and there is an equal one, ids to that. Returns 0,
 * VMT_E_NOMEM, VMT_E_LIMIT for more than 4096 events.
 */
int vmt_perfdata_attr(struct vmt_perfdata_writer *w, const struct vmt_perfdata_event *event,
		      struct vmt_diag *diag);

/* Text of a tracepoint's format; system NULL: told from its name. */
int vmt_perfdata_format(struct vmt_perfdata_writer *w, const char *system, const char *text,
			size_t len, struct vmt_diag *diag);

enum vmt_perfdata_feature { /* HEADER_* of tools/perf/util/header.h */
			    VMT_PERFDATA_TRACING_DATA = 1,
			    VMT_PERFDATA_HOSTNAME = 3,
			    VMT_PERFDATA_OSRELEASE = 4,
			    VMT_PERFDATA_VERSION = 5,
			    VMT_PERFDATA_ARCH = 6,
			    VMT_PERFDATA_CPUDESC = 8,
			    VMT_PERFDATA_CPUID = 9,
			    VMT_PERFDATA_EVENT_DESC = 12,
			    VMT_PERFDATA_PMU_MAPPINGS = 16,
			    VMT_PERFDATA_AUXTRACE = 18,
			    VMT_PERFDATA_DIR_FORMAT = 24,
			    VMT_PERFDATA_COMPRESSED = 27,
			    VMT_PERFDATA_FEATURES = 256,
};

/*
 * A feature's payload, in place of one that was told before or would be made: of TRACING_DATA,
 * EVENT_DESC and PMU_MAPPINGS. AUXTRACE, DIR_FORMAT and COMPRESSED, which tell where things are in
 * another file, are left out.
 */
int vmt_perfdata_feature_bytes(struct vmt_perfdata_writer *w, unsigned int feature,
			       const uint8_t *bytes, size_t len, struct vmt_diag *diag);
/* One that is a text, unless it was told before. */
int vmt_perfdata_feature_text(struct vmt_perfdata_writer *w, unsigned int feature, const char *text,
			      struct vmt_diag *diag);

/* ---- records, in the order of the file ---- */

/* Whole records as they are, the kernel's or perf's own. */
int vmt_perfdata_records(struct vmt_perfdata_writer *w, const uint8_t *bytes, size_t len,
			 struct vmt_diag *diag);
/* FINISHED_ROUND. */
int vmt_perfdata_round(struct vmt_perfdata_writer *w, struct vmt_diag *diag);
/* LOST, with a trailer by the attr told first (nothing is written when there is none). */
int vmt_perfdata_lost(struct vmt_perfdata_writer *w, uint64_t lost, uint64_t time_ns,
		      struct vmt_diag *diag);

/* COMM at the beginning of time, with the same trailer: a thread's name, of which 15 bytes count.
 */
int vmt_perfdata_comm(struct vmt_perfdata_writer *w, uint32_t pid, uint32_t tid, const char *name,
		      struct vmt_diag *diag);

/* TSC -> perf clock, as in perf's mmap page. */
int vmt_perfdata_time_conv(struct vmt_perfdata_writer *w, uint16_t shift, uint32_t mult,
			   uint64_t zero, struct vmt_diag *diag);

/* ID_INDEX with machines: needed where events of a guest are told apart by their id. */
struct vmt_perfdata_id {
	uint64_t id;
	uint64_t idx;
	int64_t cpu; /* -1: any */
	int64_t tid; /* -1: any; thread of the vCPU */
	uint64_t machine_pid;
	uint64_t vcpu;
};
int vmt_perfdata_id_index(struct vmt_perfdata_writer *w, const struct vmt_perfdata_id *ids,
			  size_t nr, struct vmt_diag *diag);

/* How perf learns which thread runs on a CPU (AUXTRACE_INFO, have_sched_switch). */
enum vmt_perfdata_switches {
	VMT_PERFDATA_SWITCHES_NONE = 0,
	VMT_PERFDATA_SWITCHES_TRACEPOINT = 1, /* sched:sched_switch */
	VMT_PERFDATA_SWITCHES_IN = 2,	      /* SWITCH records */
	VMT_PERFDATA_SWITCHES_CPU_WIDE = 3,   /* SWITCH_CPU_WIDE records */
};

/* AUXTRACE_INFO: before any trace. */
int vmt_perfdata_pt_info(struct vmt_perfdata_writer *w, const struct vmt_pt_info *info,
			 enum vmt_perfdata_switches switches, struct vmt_diag *diag);

/* One AUXTRACE record: begin, any number of trace, end. */
struct vmt_perfdata_aux {
	uint64_t size;	    /* at most: what is missing at the end is taken off */
	uint64_t offset;    /* in the area's stream */
	uint64_t reference; /* a TSC near it; 0: not known */
	uint32_t idx;
	uint32_t tid; /* UINT32_MAX: any */
	uint32_t cpu; /* VMT_AUX_NO_CPU: the thread's */
};
int vmt_perfdata_aux_begin(struct vmt_perfdata_writer *w, const struct vmt_perfdata_aux *aux,
			   struct vmt_diag *diag);
int vmt_perfdata_aux_bytes(struct vmt_perfdata_writer *w, const uint8_t *bytes, size_t len,
			   struct vmt_diag *diag);
/* Pads to 8 bytes with PAD packets. */
int vmt_perfdata_aux_end(struct vmt_perfdata_writer *w, struct vmt_diag *diag);

#endif
