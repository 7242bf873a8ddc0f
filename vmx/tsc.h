/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMX_TSC_H
#define VMX_TSC_H

#include <stdbool.h>
#include <stdint.h>

/*
 * TSC offsetting and scaling, exact: guest = floor(host * multiplier / 2^frac_bits) + offset modulo
 * 2^64, the product in 128 bits (SDM vol. 3 25.6.5 "use TSC scaling", APM vol. 2 15.30.5).
 */
struct vmx_tsc_map {
	uint64_t multiplier; /* 1 << frac_bits: ratio 1 */
	uint64_t offset;     /* guest units, two's complement */
	uint8_t frac_bits;   /* 48 on VMX, 32 on SVM; 0 < frac_bits < 64 */
};

#define VMX_TSC_FRAC_BITS_VMX 48
#define VMX_TSC_FRAC_BITS_SVM 32

/* Guest TSC for a host TSC. The map's multiplier may be 0 (guest = offset). */
uint64_t vmx_tsc_to_guest(const struct vmx_tsc_map *map, uint64_t host_tsc);

/*
 * First and last host TSC that read as guest_tsc, with floor(host * mult / 2^frac) = guest - offset
 * mod 2^64 and no wrap of the product. False when no host value does (ratios above 1 skip values,
 * multiplier 0).
 */
bool vmx_tsc_to_host(const struct vmx_tsc_map *map, uint64_t guest_tsc, uint64_t *first,
		     uint64_t *last);

/* Multiplier for a guest and a host rate, truncated as Linux does; false for host_khz 0 or
 * overflow. */
bool vmx_tsc_multiplier(uint64_t guest_khz, uint64_t host_khz, uint8_t frac_bits, uint64_t *mult);

/*
 * The map of an L2 guest under L1 (Linux kvm_calc_nested_tsc_offset/multiplier): both maps must
 * have the same frac_bits.
 */
struct vmx_tsc_map vmx_tsc_nested(const struct vmx_tsc_map *l1, const struct vmx_tsc_map *l2);

#endif
