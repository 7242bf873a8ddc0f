/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_RING_RING_H
#define VMT_RING_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/diag.h"

/*
 * Records of perf's rings (include/uapi/linux/perf_event.h), as they stand in a ring, a .vmt chunk
 * or the data section of a perf.data: little endian, a header of 8 bytes, a size that is a multiple
 * of
 * 8. Pure: bytes in, structs out.
 */

/* One event of a capture: what is needed to read its records. */
struct vmt_ring_attr {
	uint32_t type;	 /* perf_event_attr.type: 2 = tracepoint, 1 = software, … */
	uint64_t config; /* tracepoint: its id */
	uint64_t sample_type;
	uint64_t read_format;
	uint64_t flags; /* the bit field of perf_event_attr at offset 40 */
	uint64_t branch_sample_type;
};

#define VMT_RING_FLAG_SAMPLE_ID_ALL (UINT64_C(1) << 18)

enum vmt_ring_type { /* PERF_RECORD_* */
		     VMT_RING_MMAP = 1,
		     VMT_RING_LOST = 2,
		     VMT_RING_COMM = 3,
		     VMT_RING_EXIT = 4,
		     VMT_RING_THROTTLE = 5,
		     VMT_RING_UNTHROTTLE = 6,
		     VMT_RING_FORK = 7,
		     VMT_RING_SAMPLE = 9,
		     VMT_RING_MMAP2 = 10,
		     VMT_RING_AUX = 11,
		     VMT_RING_ITRACE_START = 12,
		     VMT_RING_LOST_SAMPLES = 13,
		     VMT_RING_SWITCH = 14,
		     VMT_RING_SWITCH_CPU_WIDE = 15,
		     VMT_RING_AUX_OUTPUT_HW_ID = 21,
		     VMT_RING_USER_FIRST = 64, /* from here on: written by perf, no trailer */
};

#define VMT_RING_MISC_SWITCH_OUT	 0x2000u
#define VMT_RING_MISC_SWITCH_OUT_PREEMPT 0x4000u

/* A record taken apart. Pointers point into the input. */
struct vmt_ring_record {
	uint32_t type;
	uint16_t misc;
	uint16_t size;
	const uint8_t *body; /* after the 8 bytes of the header, before any trailer */
	uint16_t body_len;
	bool has_time, has_tid, has_cpu, has_id, has_ip;
	uint64_t time_ns; /* perf clock */
	uint32_t pid, tid, cpu;
	uint64_t id; /* IDENTIFIER or ID */
	uint64_t ip;
	const uint8_t *raw; /* SAMPLE with PERF_SAMPLE_RAW, else NULL */
	uint32_t raw_len;
	uint64_t lost; /* LOST, LOST_SAMPLES: how many records */
};

/* AUX: a stretch of an AUX area was written. */
#define VMT_RING_AUX_TRUNCATED 1u /* the area was full: the trace stopped at its end */
#define VMT_RING_AUX_OVERWRITE 2u /* snapshot mode */
#define VMT_RING_AUX_PARTIAL   4u /* trace is missing inside, as where a guest ran untraced */
#define VMT_RING_AUX_COLLISION 8u

struct vmt_ring_aux {
	uint64_t aux_offset, aux_size;
	uint64_t flags;
};

/* The bodies of records with a layout of their own; false when the record is another or short. */
bool vmt_ring_aux_of(const struct vmt_ring_record *record, struct vmt_ring_aux *out);
/* ITRACE_START: who is traced. SWITCH_CPU_WIDE: the next task when out, the previous when in. */
bool vmt_ring_task_of(const struct vmt_ring_record *record, uint32_t *pid, uint32_t *tid);
/* AUX_OUTPUT_HW_ID: what PEBS records of the event (the trailer's id) carry in PT. */
bool vmt_ring_hw_id_of(const struct vmt_ring_record *record, uint64_t *hw_id);

/*
 * The attrs of a capture and which id belongs to which. Filled before records are read; a record is
 * read by the attr that its id names, or by the only attr when there is one. Owned by the caller
 * through vmt_ring_set_free.
 */
struct vmt_ring_set;

/* NULL when memory is short. */
struct vmt_ring_set *vmt_ring_set_new(void);
void vmt_ring_set_free(struct vmt_ring_set *set);

/*
 * Adds an attr with its ids (nr_ids may be 0). Returns its index >= 0, VMT_E_LIMIT beyond 4096
 * attrs or 1 Mi ids, VMT_E_UNSUPPORTED for sample types this version cannot step over, VMT_E_NOMEM.
 */
int vmt_ring_set_add(struct vmt_ring_set *set, const struct vmt_ring_attr *attr,
		     const uint64_t *ids, size_t nr_ids);

/* How many attrs, and one of them (NULL beyond the end). */
size_t vmt_ring_set_count(const struct vmt_ring_set *set);
const struct vmt_ring_attr *vmt_ring_set_attr(const struct vmt_ring_set *set, size_t index);

/*
 * Takes the first record of bytes[0..len) apart. Returns its size in bytes (> 0) and fills *out
 * and, unless NULL, *attr_index (-1 for none); VMT_E_TRUNCATED when len is shorter than the record
 * or its header; VMT_E_DAMAGED when the size is below 8, not a multiple of 8, or the contents do
 * not fit. On VMT_E_DAMAGED out->size holds the claimed size.
 */
int vmt_ring_parse(const struct vmt_ring_set *set, const uint8_t *bytes, size_t len,
		   struct vmt_ring_record *out, int *attr_index);

/*
 * What nearly all records are: a SAMPLE of a tracepoint with TID, TIME, CPU and RAW and nothing of
 * variable length in front of RAW. The pointer points into the input.
 */
struct vmt_ring_sample {
	uint64_t time_ns;
	uint32_t pid, tid, cpu;
	uint32_t raw_len;
	const uint8_t *raw;
};

/*
 * The short way for these: fills *out and returns the record's size. 0 when the first record is any
 * other, or not whole: then vmt_ring_parse tells what it is.
 */
int vmt_ring_sample(const struct vmt_ring_set *set, const uint8_t *bytes, size_t len,
		    struct vmt_ring_sample *out);

#endif
