/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_BASE_ITEM_H
#define VMT_BASE_ITEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What a capture file delivers, in file order, whatever its format: decode/store and
 * decode/perfdata both end here. `data` is valid until the next call.
 */
enum vmt_item_type {
	VMT_ITEM_SESSION = 1, /* JSON text: session document (FORMAT.md), repeated */
	VMT_ITEM_ATTR,	      /* u.attr: ring attr and ids */
	VMT_ITEM_FORMAT,      /* text of one tracepoint's format */
	VMT_ITEM_RECORDS,     /* whole perf ring records of one stream */
	VMT_ITEM_ROUND,	      /* a round of all rings ends here */
	VMT_ITEM_ANCHOR,      /* struct vmt_anchor[] as bytes (base/anchor.h) */
	VMT_ITEM_VCPU_TSC,    /* struct vmt_vcpu_tsc[] as bytes (base/anchor.h) */
	VMT_ITEM_MARK,	      /* JSON text: {"time_ns":N,"domain":N,"name":S,"detail":S} */
	VMT_ITEM_LOSS,	      /* loss: see members */
	VMT_ITEM_AUX, /* a stretch of Intel PT bytes stands here; aux says which, data is NULL */
	VMT_ITEM_VCPU_LINK, /* struct vmt_vcpu_link[] as bytes (base/aux.h) */
	VMT_ITEM_END,	    /* the writer closed the file in order */
	VMT_ITEM_USER, /* a record of perf itself as it stands, where it was asked for (perf.data)
			*/
};

struct vmt_ring_attr;
struct vmt_aux_extent;

struct vmt_item {
	enum vmt_item_type type;
	uint64_t offset; /* of the item's first byte in the file */
	uint32_t stream; /* ring number, unique in the file */
	const uint8_t *data;
	size_t len;
	/* VMT_ITEM_ATTR */
	const struct vmt_ring_attr *attr;
	const uint64_t *ids;
	size_t nr_ids;
	const uint8_t *attr_bytes; /* the perf_event_attr as it stands; NULL: the source has none */
	size_t attr_len;
	/* VMT_ITEM_FORMAT: of the tracepoint, NULL: not known */
	const char *system;
	/* VMT_ITEM_AUX: read through the source's struct vmt_aux_index */
	const struct vmt_aux_extent *aux;
	uint32_t aux_idx, aux_cpu, aux_tid; /* of its area */
	uint32_t
		aux_thread; /* perf.data: the record's tid, UINT32_MAX: any; a CPU's may have one */
	/* VMT_ITEM_LOSS: bytes of the input that were skipped, or records that were never written
	 */
	uint64_t lost_bytes;
	uint64_t lost_records;
	uint64_t lost_chunks;  /* .vmt: chunks that are missing or were refused; 0 if not known */
	bool has_lost_records; /* lost_records is known */
	const char *loss_kind; /* damaged, truncated, missing-chunks, free-space, size-limit, … */
};

/*
 * Account of every byte of an input: total = decoded + skipped. Total counts the bytes that were
 * there to read.
 */
struct vmt_ledger {
	uint64_t bytes_total;
	uint64_t bytes_decoded;
	uint64_t bytes_skipped;
	uint64_t records_lost; /* said so by LOST records or LOSS chunks */
	uint64_t overflows;    /* how often a ring or buffer overflowed */
	bool truncated;	       /* the input ends in the middle */
};

#endif
