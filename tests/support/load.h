/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_LOAD_H
#define VMT_SUPPORT_LOAD_H

#include <stddef.h>
#include <stdint.h>

#include "decode/base/event.h"
#include "tests/support/stream.h"

/*
 * A load of any length: one vCPU a host CPU, each with its own ring, in rounds as perf drains them.
 * Nothing repeats: reasons, addresses and durations follow a seeded random sequence. Each exit is
 * followed by an entry, also the last one.
 */
struct vmt_load_options {
	uint64_t events; /* samples at least; the rounds are completed */
	uint64_t seed;
	unsigned int cpus; /* 1..64 */
	enum vmt_isa isa;
	const char *kernel; /* whose formats: "6.1" */
	uint64_t round_ns;  /* 0: 8 ms */
};

struct vmt_load;
struct vmt_load *vmt_load_new(const struct vmt_load_options *options);
void vmt_load_free(struct vmt_load *load);
/* The formats in use; format i has the event id i + 1. */
size_t vmt_load_formats(const struct vmt_load *load, const struct vmt_format **formats);
/* Writes the next round; 0 at the end. Then vmt_load_ring gives what each ring got in it. */
int vmt_load_round(struct vmt_load *load);
const struct vmt_stream *vmt_load_ring(const struct vmt_load *load, unsigned int cpu);
/* Samples and VM exits so far. */
uint64_t vmt_load_events(const struct vmt_load *load);
uint64_t vmt_load_exits(const struct vmt_load *load);

#endif
