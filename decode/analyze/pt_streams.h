/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_ANALYZE_PT_STREAMS_H
#define VMT_ANALYZE_PT_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/aux.h"
#include "decode/base/diag.h"
#include "decode/base/event.h"
#include "decode/base/item.h"
#include "decode/correlate/perf_clock.h"
#include "decode/pt/decoder.h"

/*
 * Intel PT of several CPUs or threads as one stream of events in time: a decoder an AUX area, fed
 * only as far as events are asked for. Memory: about 0.8 MiB an area that has many events, however
 * long the areas are.
 */
#define VMT_PT_STREAMS_MAX 4096u /* areas; the bytes of further ones are skipped */

/* Where an event of an area may lie on the perf clock. */
struct vmt_pt_span {
	uint64_t low_ns, high_ns; /* high_ns UINT64_MAX: not bounded */
};

struct vmt_pt_streams_options {
	const struct vmt_aux_index *index; /* outlives the streams */
	/* What goes before that which the index says. */
	struct vmt_pt_cpu cpu;
	struct vmt_pt_clock_params clock;
	const struct vmt_pt_vm *vms; /* outlive the streams; rows may change between pulls */
	size_t nr_vms;
	const struct vmt_pt_vm
		*own_vms; /* of the areas, where no row names the VMCS; may be NULL */
	/* TSC -> perf clock. Without it events have a time when clock.tsc_hz is known, from the
	 * reset of the TSC, else none, and limits are in TSC units. */
	bool has_perf_clock;
	struct vmt_perf_clock perf_clock;
};

struct vmt_pt_streams;

/* NULL when memory is short. */
struct vmt_pt_streams *vmt_pt_streams_new(const struct vmt_pt_streams_options *options);
void vmt_pt_streams_free(struct vmt_pt_streams *streams);

typedef void vmt_pt_streams_fn(void *context, size_t area, const struct vmt_event *event,
			       struct vmt_pt_span span);

/*
 * Hands out, by the earliest time that they may have had, all events that may have happened at or
 * before limit_ns; UINT64_MAX: all. A LOSS comes, and its span begins, with the event before it.
 * Events without a time have that of the one before them in their area for this. 0; VMT_E_IO,
 * VMT_E_NOMEM.
 */
int vmt_pt_streams_pull(struct vmt_pt_streams *streams, uint64_t limit_ns, vmt_pt_streams_fn *emit,
			void *context, struct vmt_diag *diag);

/* Whether some event with a time waits, and the earliest time that it may have had. Valid after a
 * pull. */
bool vmt_pt_streams_next(const struct vmt_pt_streams *streams, uint64_t *time_ns);

/* The area of a CPU, or, where areas are threads', of a thread; SIZE_MAX: none. */
size_t vmt_pt_streams_area(const struct vmt_pt_streams *streams, uint32_t cpu, uint32_t tid);
size_t vmt_pt_streams_count(const struct vmt_pt_streams *streams);

/* Sums over the areas; complete after everything was pulled. The bytes of extents that the index
 * does not hold are not in it. */
struct vmt_ledger vmt_pt_streams_ledger(const struct vmt_pt_streams *streams);
struct vmt_pt_counts vmt_pt_streams_counts(const struct vmt_pt_streams *streams);

#endif
