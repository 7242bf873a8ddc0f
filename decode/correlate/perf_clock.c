// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/correlate/perf_clock.h"

#include "vmx/tsc.h"

/*
 * The kernel's quot * mult + ((rem * mult) >> shift) is floor(tsc * mult / 2^shift) as long as
 * rem * mult fits 64 bits, which shift <= 32 ensures: the same map as that of a guest's TSC, with
 * time_zero as offset.
 */
#define SHIFT_MAX 32

__extension__ typedef unsigned __int128 u128;

static struct vmx_tsc_map map_of(const struct vmt_perf_clock *clock)
{
	return (struct vmx_tsc_map){
		.multiplier = clock->mult,
		.offset = clock->zero,
		.frac_bits = (uint8_t)(clock->shift & 63),
	};
}

bool vmt_perf_clock_from_anchor(const struct vmt_anchor *anchor, struct vmt_perf_clock *out)
{
	if (anchor->flags & VMT_ANCHOR_NO_TIME_ZERO || !anchor->time_mult ||
	    anchor->time_shift > SHIFT_MAX)
		return false;
	out->zero = anchor->time_zero;
	out->mult = anchor->time_mult;
	out->shift = anchor->time_shift;
	return true;
}

struct vmt_host_ns vmt_perf_clock_to_ns(const struct vmt_perf_clock *clock, struct vmt_host_tsc tsc)
{
	struct vmx_tsc_map map = map_of(clock);

	return (struct vmt_host_ns){ .host_ns = vmx_tsc_to_guest(&map, tsc.host_tsc) };
}

/* The greatest TSC value whose perf time lies before ns; UINT64_MAX when ns is beyond the last. */
static uint64_t last_before(const struct vmx_tsc_map *map, uint64_t ns)
{
	u128 scaled = (u128)(ns - map->offset) << map->frac_bits;
	u128 tsc = map->multiplier ? (scaled - 1) / map->multiplier : 0;

	return tsc > UINT64_MAX ? UINT64_MAX : (uint64_t)tsc;
}

struct vmt_host_tsc vmt_perf_clock_to_tsc(const struct vmt_perf_clock *clock, struct vmt_host_ns ns,
					  uint64_t *error)
{
	struct vmx_tsc_map map = map_of(clock);
	uint64_t first, last;

	if (!vmx_tsc_to_host(&map, ns.host_ns, &first, &last)) {
		*error = 1;
		return (struct vmt_host_tsc){ .host_tsc = last_before(&map, ns.host_ns) };
	}
	*error = last - first;
	return (struct vmt_host_tsc){ .host_tsc = first };
}

uint64_t vmt_tsc_to_ns(uint64_t tsc, uint64_t hz)
{
	const uint64_t ns_per_s = 1000000000;
	uint64_t whole;

	if (__builtin_mul_overflow(tsc / hz, ns_per_s, &whole))
		return UINT64_MAX;
	if (__builtin_add_overflow(whole, tsc % hz * ns_per_s / hz, &whole))
		return UINT64_MAX;
	return whole;
}
