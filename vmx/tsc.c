// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vmx/tsc.h"

__extension__ typedef unsigned __int128 u128;

/* floor(value * multiplier / 2^frac_bits) modulo 2^64 */
static uint64_t scale(uint64_t value, uint64_t multiplier, uint8_t frac_bits)
{
	return (uint64_t)(((u128)value * multiplier) >> frac_bits);
}

/* ceil(value * 2^frac_bits / multiplier) for value <= 2^64, frac_bits < 64, multiplier > 0 */
static u128 unscale_up(u128 value, uint64_t multiplier, uint8_t frac_bits)
{
	return ((value << frac_bits) + multiplier - 1) / multiplier;
}

uint64_t vmx_tsc_to_guest(const struct vmx_tsc_map *map, uint64_t host_tsc)
{
	return scale(host_tsc, map->multiplier, map->frac_bits) + map->offset;
}

bool vmx_tsc_to_host(const struct vmx_tsc_map *map, uint64_t guest_tsc, uint64_t *first,
		     uint64_t *last)
{
	uint64_t scaled = guest_tsc - map->offset;
	u128 from, to;

	if (!map->multiplier)
		return false;
	from = unscale_up(scaled, map->multiplier, map->frac_bits);
	to = unscale_up((u128)scaled + 1, map->multiplier, map->frac_bits);
	if (from == to || from > UINT64_MAX)
		return false;
	*first = (uint64_t)from;
	*last = to - 1 > UINT64_MAX ? UINT64_MAX : (uint64_t)(to - 1);
	return true;
}

bool vmx_tsc_multiplier(uint64_t guest_khz, uint64_t host_khz, uint8_t frac_bits, uint64_t *mult)
{
	u128 ratio;

	if (!host_khz)
		return false;
	ratio = ((u128)guest_khz << frac_bits) / host_khz;
	if (ratio > UINT64_MAX)
		return false;
	*mult = (uint64_t)ratio;
	return true;
}

/* Scales a signed offset as Linux's mul_s64_u64_shr: magnitude first, so towards zero. */
static uint64_t scale_signed(uint64_t offset, uint64_t multiplier, uint8_t frac_bits)
{
	if (offset >> 63)
		return -scale(-offset, multiplier, frac_bits);
	return scale(offset, multiplier, frac_bits);
}

struct vmx_tsc_map vmx_tsc_nested(const struct vmx_tsc_map *l1, const struct vmx_tsc_map *l2)
{
	struct vmx_tsc_map map = *l1;

	if (l2->multiplier != UINT64_C(1) << l2->frac_bits) {
		map.multiplier = scale(l1->multiplier, l2->multiplier, l1->frac_bits);
		map.offset = scale_signed(l1->offset, l2->multiplier, l1->frac_bits);
	}
	map.offset += l2->offset;
	return map;
}
