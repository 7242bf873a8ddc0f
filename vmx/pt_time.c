// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vmx/pt_plan.h"

#include <stddef.h>

typedef unsigned __int128 u128;

static u128 gcd(u128 a, u128 b)
{
	while (b) {
		u128 rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* num/den in lowest terms with both below 2^32, rounded where it must be; false when it is 0. */
static bool fit(u128 num, u128 den, struct vmx_pt_guest_time *out)
{
	u128 g = gcd(num, den);

	out->exact = true;
	num /= g;
	den /= g;
	while (num >> 32 || den >> 32) {
		num >>= 1;
		den >>= 1;
		out->exact = false;
	}
	out->tsc_num = (uint32_t)num;
	out->art_den = (uint32_t)den;
	return num && den;
}

struct vmx_pt_guest_time vmx_pt_guest_time_of(const struct vmx_pt_caps *caps, uint64_t multiplier,
					      uint8_t frac_bits)
{
	struct vmx_pt_guest_time t = { 0 };
	const uint32_t *art = caps->leaf15.reg;
	const uint64_t ratio = caps->platform_info.value >> 8 & 0xff;
	u128 num, one = (u128)1 << frac_bits, scaled;

	if (!caps->leaf15.known || !art[VMX_EAX] || !art[VMX_EBX] || !multiplier)
		return t;
	num = (u128)art[VMX_EBX] * multiplier; /* below 2^96 */
	if (!fit(num, (u128)art[VMX_EAX] << frac_bits, &t))
		return t;
	t.known = true;
	if (art[VMX_ECX])
		t.guest_tsc_hz = (uint64_t)((u128)art[VMX_ECX] * t.tsc_num / t.art_den);
	if (!caps->platform_info.known)
		return t;
	scaled = ((u128)ratio * multiplier + one / 2) >> frac_bits;
	t.max_nonturbo_ratio = scaled > 0xff ? 0xff : (uint8_t)scaled;
	return t;
}
