// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: a map is given only where the guest's TSC alone, or the host time that is known,
 * leaves no other one.
 */
#include "decode/pt/maps.h"

#include "decode/pt/clock_private.h"

#define LOOKED 64u /* a TSC that goes back more often than that ahead is not followed */

void vmt_pt_maps_prepare(struct vmt_pt_map_change *changes, size_t nr)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = nr; i-- > 0;) {
		changes[i].begins = vmx_tsc_to_guest(&changes[i].map, changes[i].first);
		if (changes[i].begins < least)
			least = changes[i].begins;
		changes[i].least = least;
	}
}

/* How many changes have come by a host TSC for certain. */
static size_t past(const struct vmt_pt_maps *maps, uint64_t low)
{
	size_t from = 0, to = maps->nr;

	while (from < to) {
		const size_t middle = from + (to - from) / 2;

		if (maps->changes[middle].last <= low)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* Map n: 0 is the one before the first change. */
static const struct vmx_tsc_map *map_of(const struct vmt_pt_maps *maps, size_t n)
{
	return n ? &maps->changes[n - 1].map : maps->base;
}

/* Whether the guest's TSC has that value somewhere in the stretch of map n. */
static bool holds(const struct vmt_pt_maps *maps, size_t n, uint64_t guest)
{
	if (n && guest < maps->changes[n - 1].begins)
		return false;
	return n == maps->nr || guest <= vmx_tsc_to_guest(map_of(maps, n), maps->changes[n].last);
}

static bool same(const struct vmx_tsc_map *a, const struct vmx_tsc_map *b)
{
	return a->multiplier == b->multiplier && a->offset == b->offset &&
	       a->frac_bits == b->frac_bits;
}

const struct vmx_tsc_map *vmt_pt_maps_at(const struct vmt_pt_maps *maps, uint64_t low,
					 uint64_t payload)
{
	const struct vmx_tsc_map *found = NULL;
	const size_t first = past(maps, low);
	uint64_t guest;

	if (first == maps->nr)
		return map_of(maps, first);
	guest = pt_clock_widen(payload, vmx_tsc_to_guest(map_of(maps, first), low));
	for (size_t n = first; n <= maps->nr; n++) {
		if (n > first && guest < maps->changes[n - 1].least)
			return found;
		if (n - first == LOOKED)
			return NULL;
		if (!holds(maps, n, guest))
			continue;
		if (found && !same(found, map_of(maps, n)))
			return NULL;
		found = map_of(maps, n);
	}
	return found;
}
