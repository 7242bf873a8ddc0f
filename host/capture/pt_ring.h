/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_PT_RING_H
#define VMT_CAPTURE_PT_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/aux.h"
#include "decode/base/diag.h"
#include "decode/store/store.h"

/*
 * The AUX area of one intel_pt event as its reader sees it: the kernel passes trace on by moving
 * aux_head, this process alone moves aux_tail. Both count bytes from the opening on. The AUX
 * records of the event's own ring say where the trace was cut off.
 */
#define VMT_PT_CUTS_MAX 16u

struct vmt_pt_kept;

struct vmt_pt_ring {
	struct perf_event_mmap_page *page; /* of the event's ring */
	uint8_t *aux;			   /* mapped; read only while the kernel writes it */
	size_t aux_bytes;		   /* power of two */
	struct vmt_aux_area area;	   /* idx, cpu, pid, tid */
	uint64_t cuts[VMT_PT_CUTS_MAX];	   /* offsets at which the trace began anew, rising */
	size_t nr_cuts;
	uint64_t last_ns; /* of the records so far */
	uint64_t piece_first_ns;
	bool overwrite; /* the kernel goes round: vmt_pt_ring_snapshot instead of _drain */
	struct vmt_pt_kept *kept; /* rewrites it on the way to the store; NULL: it goes as it is */
};

struct vmt_pt_counts {
	uint64_t bytes;	    /* given to the store, before they are rewritten */
	uint64_t unstored;  /* that it did not take */
	uint64_t truncated; /* AUX records with that flag: the area was full */
	uint64_t partial, collisions;
	uint64_t unnoted; /* places where the trace was cut off that found no room in cuts */
};

/* An AUX record of the event's ring; time_ns 0: not known. */
void vmt_pt_ring_note(struct vmt_pt_ring *ring, uint64_t aux_offset, uint64_t aux_size,
		      uint64_t flags, uint64_t time_ns, struct vmt_pt_counts *counts);

/*
 * Gives all trace to the store, straight from the mapping or rewritten, and the space back to the
 * kernel, at most 1 MiB at a time. After the event's ring was drained: the record of a cut is in
 * the ring before aux_head moves past it. Returns the store's first error, after having emptied the
 * area all the same; VMT_E_DAMAGED when head and tail make no sense.
 */
int vmt_pt_ring_drain(struct vmt_pt_ring *ring, uint64_t head, struct vmt_store_writer *store,
		      struct vmt_pt_counts *counts, struct vmt_diag *diag);

/*
 * Gives what an overwritten area holds to the store, oldest first; aux_head is a place in it. The
 * event must be disabled. What was never written to is zero and left out. The store's first error.
 */
int vmt_pt_ring_snapshot(const struct vmt_pt_ring *ring, uint64_t now_ns,
			 struct vmt_store_writer *store, struct vmt_pt_counts *counts,
			 struct vmt_diag *diag);

/* How far the kernel has passed trace on. */
uint64_t vmt_pt_ring_head(const struct vmt_pt_ring *ring);

#endif
