/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_EXPORT_PERFDATA_PRIVATE_H
#define VMT_EXPORT_PERFDATA_PRIVATE_H

#include "decode/export/perfdata.h"
#include "decode/perfdata/perfdata.h"
#include "decode/store/store.h"

#define EXPORT_CHUNK (64u << 10)

/* Trace that is being written. Zero-initialise, then set w, diag, aux; end it before the next. */
struct export_trace {
	struct vmt_perfdata_writer *w;
	struct vmt_diag *diag;
	struct vmt_perfdata_aux aux; /* offset: of the next byte; reference: near it */
	bool keep_whole;	     /* one record, whatever is in it */
	bool has_size;
	uint64_t size;	  /* what is left to come, with has_size; may be too much */
	bool is_open;	  /* a record has begun */
	uint64_t written; /* of it */
};

/* At most EXPORT_CHUNK bytes. */
int export_trace_bytes(struct export_trace *t, const uint8_t *bytes, size_t len);
int export_trace_end(struct export_trace *t);

/* How far an area's extents are. */
struct export_area {
	size_t seen;	/* items */
	size_t written; /* extents */
};

/* A thread that session documents name. */
struct export_thread {
	uint32_t pid, tid;
	bool is_vcpu;
	uint32_t vcpu;
	bool linked; /* in an ID_INDEX */
	bool told;   /* in a COMM record, or it has no name */
	char name[16];
};

#define EXPORT_THREADS_MAX 4096u /* more get no name */

/* Exactly one of store and perf is set. */
struct vmt_perfdata_export {
	struct vmt_store_reader *store;
	struct vmt_perfdata *perf;
	struct vmt_perfdata_writer *w;
	struct vmt_perfdata_totals *totals;
	struct vmt_diag *diag;
	struct vmt_ring_set *ring; /* to tell the time of a record */
	uint64_t last_ns;
	bool has_time_conv, has_pt_info;
	bool has_sched_switch, has_switch_records;
	uint64_t next_id; /* above every id so far */
	char vendor[17];  /* of the host's CPUs, empty: not known */
	struct export_thread *threads;
	size_t nr_threads, cap_threads;
	bool has_new_threads;
	const struct vmt_aux_index *index;
	struct export_area *areas; /* as many as index->areas */
	uint8_t chunk[EXPORT_CHUNK];
};

/* perfdata_session.c: what perf's features have of a session document. */
int export_session(struct vmt_perfdata_export *e, const uint8_t *json, size_t len);

/* COMM records of the threads that are new; before any record that they wrote. */
int export_names(struct vmt_perfdata_export *e);
/* vCPU threads that are new, for who follows trace into a guest. */
int export_links(struct vmt_perfdata_export *e);

/* CPUID as perf writes it; family 0: only the vendor. */
int export_cpuid(struct vmt_perfdata_writer *w, const char *vendor, unsigned int family,
		 unsigned int model, unsigned int stepping, struct vmt_diag *diag);

/*
 * perfdata_aux.c: trace of an AUX item, unless it was written with one before that it follows
 * without a gap.
 */
int export_extent(struct vmt_perfdata_export *e, const struct vmt_item *item);

/* perfdata_raw.c: a bare stream. */
int export_raw(struct vmt_reader *reader, const struct vmt_input_pt *pt,
	       struct vmt_perfdata_writer *w, struct vmt_perfdata_totals *totals,
	       struct vmt_diag *diag);

#endif
