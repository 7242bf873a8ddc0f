// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: aux_tail <= aux_head <= aux_tail + aux_bytes. aux_head is read with acquire, so that
 * the trace below it is seen; aux_tail is written with release, after the last byte below it was
 * written to the file (linux/perf_event.h). The head is read before the event's ring is drained: of
 * every cut below it the record has then been noted.
 */
#include "host/capture/pt_ring.h"

#include <string.h>
#include <x86intrin.h>

#include "decode/ring/ring.h"
#include "host/capture/pt_kept.h"

#define PIECE_BYTES (1u << 20)

void vmt_pt_ring_note(struct vmt_pt_ring *ring, uint64_t aux_offset, uint64_t aux_size,
		      uint64_t flags, uint64_t time_ns, struct vmt_pt_counts *counts)
{
	counts->truncated += (flags & VMT_RING_AUX_TRUNCATED) != 0;
	counts->partial += (flags & VMT_RING_AUX_PARTIAL) != 0;
	counts->collisions += (flags & VMT_RING_AUX_COLLISION) != 0;
	if (time_ns > ring->last_ns)
		ring->last_ns = time_ns;
	if (!ring->piece_first_ns)
		ring->piece_first_ns = time_ns;
	if (!(flags & VMT_RING_AUX_TRUNCATED))
		return;
	if (ring->nr_cuts == VMT_PT_CUTS_MAX) {
		counts->unnoted++;
		return;
	}
	ring->cuts[ring->nr_cuts++] = aux_offset + aux_size;
}

uint64_t vmt_pt_ring_head(const struct vmt_pt_ring *ring)
{
	return __atomic_load_n(&ring->page->aux_head, __ATOMIC_ACQUIRE);
}

/* Takes the cuts up to offset at away; true when the last of them lies there. */
static bool take_cuts(struct vmt_pt_ring *ring, uint64_t at)
{
	bool here = false;
	size_t n = 0;

	while (n < ring->nr_cuts && ring->cuts[n] <= at)
		here = ring->cuts[n++] == at;
	memmove(ring->cuts, ring->cuts + n, (ring->nr_cuts - n) * sizeof(ring->cuts[0]));
	ring->nr_cuts -= n;
	return here;
}

static int write_piece(const struct vmt_pt_ring *ring, uint64_t tail, size_t len, bool restart,
		       struct vmt_store_writer *store, struct vmt_diag *diag)
{
	size_t at = (size_t)(tail & (ring->aux_bytes - 1));
	size_t front = ring->aux_bytes - at < len ? ring->aux_bytes - at : len;
	struct vmt_store_trace trace = {
		.aux_offset = tail,
		.reference = __rdtsc(),
		.restart = restart,
		.time_first_ns = ring->piece_first_ns ? ring->piece_first_ns : ring->last_ns,
		.time_last_ns = ring->last_ns,
		.parts = { { ring->aux + at, front }, { ring->aux, len - front } },
	};

	return ring->kept ? vmt_pt_kept_put(ring->kept, &ring->area, &trace,
					    restart ? VMT_PT_KEPT_RESTART : VMT_PT_KEPT_CONTINUES,
					    store, diag)
			  : vmt_store_aux(store, &ring->area, &trace, diag);
}

int vmt_pt_ring_drain(struct vmt_pt_ring *ring, uint64_t head, struct vmt_store_writer *store,
		      struct vmt_pt_counts *counts, struct vmt_diag *diag)
{
	uint64_t tail = ring->page->aux_tail;
	int first_err = 0;

	if (head - tail > ring->aux_bytes) {
		__atomic_store_n(&ring->page->aux_tail, head, __ATOMIC_RELEASE);
		return vmt_diag_set(diag, VMT_E_DAMAGED, "an AUX area of Intel PT makes no sense",
				    "another program wrote into its control page");
	}
	while (tail < head) {
		bool restart = take_cuts(ring, tail);
		uint64_t end = ring->nr_cuts && ring->cuts[0] < head ? ring->cuts[0] : head;
		size_t len = end - tail < PIECE_BYTES ? (size_t)(end - tail) : PIECE_BYTES;
		int err = write_piece(ring, tail, len, restart, store, first_err ? NULL : diag);

		first_err = first_err ? first_err : err;
		counts->bytes += err ? 0 : len;
		counts->unstored += err ? len : 0;
		tail += len;
		__atomic_store_n(&ring->page->aux_tail, tail, __ATOMIC_RELEASE);
	}
	ring->piece_first_ns = 0;
	return first_err;
}

static bool is_zero(const uint8_t *bytes, size_t len)
{
	return !len || (!bytes[0] && !memcmp(bytes, bytes + 1, len - 1));
}

int vmt_pt_ring_snapshot(const struct vmt_pt_ring *ring, uint64_t now_ns,
			 struct vmt_store_writer *store, struct vmt_pt_counts *counts,
			 struct vmt_diag *diag)
{
	size_t at = (size_t)(vmt_pt_ring_head(ring) & (ring->aux_bytes - 1));
	size_t old = is_zero(ring->aux + at, ring->aux_bytes - at) ? 0 : ring->aux_bytes - at;
	struct vmt_store_trace trace = {
		.aux_offset = counts->bytes,
		.reference = __rdtsc(),
		.time_first_ns = now_ns,
		.time_last_ns = now_ns,
		.parts = { { ring->aux + at, old }, { ring->aux, at } },
	};
	int err = ring->kept ? vmt_pt_kept_put(ring->kept, &ring->area, &trace,
					       VMT_PT_KEPT_SNAPSHOT, store, diag)
			     : vmt_store_aux(store, &ring->area, &trace, diag);

	counts->bytes += err ? 0 : old + at;
	counts->unstored += err ? old + at : 0;
	return err;
}
