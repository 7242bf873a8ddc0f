/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_RING_H
#define VMT_CAPTURE_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/diag.h"
#include "decode/store/store.h"
#include "host/capture/pt_ring.h"
#include "host/capture/trigger_watch.h"

/*
 * One mapped perf ring as its reader sees it. The kernel writes at data_head, this process alone
 * moves data_tail. Records are those that vmtrace asks for: sample type IDENTIFIER, TID, TIME, CPU,
 * RAW, with sample_id_all.
 */
struct vmt_capture_ring {
	struct perf_event_mmap_page *page;
	const uint8_t *data;
	size_t data_bytes; /* power of two */
	uint32_t stream;
	int32_t cpu;		/* -1: the ring of a thread */
	struct vmt_pt_ring *pt; /* learns of its AUX records; NULL: the event has no AUX area */
	struct vmt_trigger_watch *watch; /* is shown samples and switches; NULL: nobody is */
};

/* Bytes that go into one chunk at most: a big ring is given back to the kernel piece by piece. */
#define VMT_CAPTURE_CHUNK_BYTES (1u << 20)

struct vmt_capture_counts {
	uint64_t records, bytes;
	uint64_t lost;	    /* records, by LOST and LOST_SAMPLES */
	uint64_t overflows; /* how many LOST records */
	uint64_t throttles;
	uint64_t exits;	   /* samples of exit_id */
	uint64_t unstored; /* bytes that the store did not take */
	struct vmt_pt_counts pt;
	uint64_t first_ns, last_ns; /* least and greatest time seen, 0: none */
};

/* Takes a chunk; the bytes are the kernel's and are only valid during the call. */
typedef int vmt_capture_sink_fn(void *context, const struct vmt_store_chunk *chunk,
				struct vmt_diag *diag);

/*
 * Whether the kernel may have lost records that no LOST record in the ring tells: there is no room
 * for another record, or there was none (was_full) and nothing came since.
 */
bool vmt_capture_ring_is_full(const struct vmt_capture_ring *ring, bool was_full);

/*
 * Moves all whole records of the ring into RECORDS chunks, straight from the mapping, and gives the
 * space back. counts are added to. exit_id: tracepoint id of kvm_exit. Returns 0; the sink's first
 * error after having emptied the ring all the same; VMT_E_DAMAGED when the ring holds no record
 * where one must begin (the rest of the ring is then given up and counted in unstored).
 */
int vmt_capture_ring_drain(const struct vmt_capture_ring *ring, uint64_t exit_id,
			   vmt_capture_sink_fn *sink, void *context,
			   struct vmt_capture_counts *counts, struct vmt_diag *diag);

#endif
