// SPDX-License-Identifier: LGPL-2.1-or-later
/* TSC arithmetic: round trips over ratios 0.25..4, both fraction widths, offsets that wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "vmx/tsc.h"

#define ROUND_TRIPS 1200000

__extension__ typedef unsigned __int128 u128;

static uint64_t random_state = 0x243f6a8885a308d3u;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* A multiplier between 0.25 and 4, the ends and 1.0 among them. */
static uint64_t random_multiplier(uint8_t frac_bits)
{
	uint64_t one = UINT64_C(1) << frac_bits;
	uint64_t choice = next_random() % 16;

	if (choice == 0)
		return one;
	if (choice == 1)
		return one / 4;
	if (choice == 2)
		return one * 4;
	return one / 4 + next_random() % (one * 4 - one / 4 + 1);
}

static uint64_t random_offset(void)
{
	static const uint64_t corners[] = {
		0, 1, UINT64_MAX, UINT64_C(1) << 63, (UINT64_C(1) << 63) - 1, (uint64_t)-2995683791
	};
	uint64_t choice = next_random() % 12;

	if (choice < sizeof(corners) / sizeof(corners[0]))
		return corners[choice];
	return next_random() >> (next_random() % 64);
}

/* The guest value before the offset, without the wrap of 64 bits. */
static u128 scaled(const struct vmx_tsc_map *map, uint64_t host)
{
	return ((u128)host * map->multiplier) >> map->frac_bits;
}

/* A host value whose scaled value fits 64 bits lies in the interval of its guest value. */
static void round_trip(uint8_t frac_bits)
{
	struct vmx_tsc_map map = { .multiplier = random_multiplier(frac_bits),
				   .offset = random_offset(),
				   .frac_bits = frac_bits };
	uint64_t host = next_random() >> (2 + next_random() % 62);
	uint64_t guest = vmx_tsc_to_guest(&map, host), first = 0, last = 0;

	assert_true(vmx_tsc_to_host(&map, guest, &first, &last));
	assert_true(first <= host && host <= last);
	assert_true(vmx_tsc_to_guest(&map, first) == guest);
	assert_true(vmx_tsc_to_guest(&map, last) == guest);
	assert_true(first == 0 || scaled(&map, first - 1) < scaled(&map, host));
	assert_true(last == UINT64_MAX || scaled(&map, last + 1) > scaled(&map, host));
}

static void random_round_trips(void **state)
{
	(void)state;
	for (int i = 0; i < ROUND_TRIPS; i++)
		round_trip(i % 2 ? VMX_TSC_FRAC_BITS_VMX : VMX_TSC_FRAC_BITS_SVM);
}

/* floor(host * mult / 2^frac) modulo 2^64 by 32-bit halves, as on paper. */
static uint64_t by_halves(uint64_t host, uint64_t mult, uint8_t frac)
{
	uint64_t h0 = host & UINT32_MAX, h1 = host >> 32, m0 = mult & UINT32_MAX, m1 = mult >> 32;
	uint64_t low = h0 * m0, middle = h1 * m0 + (low >> 32), other = h0 * m1;
	uint64_t carry, high;

	carry = (middle & UINT32_MAX) + (other & UINT32_MAX);
	high = h1 * m1 + (middle >> 32) + (other >> 32) + (carry >> 32);
	low = carry << 32 | (low & UINT32_MAX);
	return frac ? high << (64 - frac) | low >> frac : low;
}

/* Every host value, also where the product wraps. */
static void against_paper(void **state)
{
	(void)state;
	for (int i = 0; i < 500000; i++) {
		struct vmx_tsc_map map = { next_random() >> (next_random() % 64), random_offset(),
					   (uint8_t)(next_random() % 64) };
		uint64_t host = next_random();

		assert_true(vmx_tsc_to_guest(&map, host) ==
			    by_halves(host, map.multiplier, map.frac_bits) + map.offset);
	}
}

/* Any guest value: the answer is exact, or there is none because its neighbours' host values meet.
 */
static void random_inverses(void **state)
{
	(void)state;
	for (int i = 0; i < 400000; i++) {
		uint8_t frac = i % 2 ? VMX_TSC_FRAC_BITS_VMX : VMX_TSC_FRAC_BITS_SVM;
		struct vmx_tsc_map map = { random_multiplier(frac), random_offset(), frac };
		uint64_t guest = next_random(), d = guest - map.offset, first, last;

		if (vmx_tsc_to_host(&map, guest, &first, &last)) {
			assert_true(first <= last);
			assert_true(scaled(&map, first) == d && scaled(&map, last) == d);
			assert_true(first == 0 || scaled(&map, first - 1) < d);
			assert_true(last == UINT64_MAX || scaled(&map, last + 1) > d);
		} else {
			u128 near = ((u128)d << frac) / map.multiplier;

			if (near < UINT64_MAX) {
				assert_true(scaled(&map, (uint64_t)near) < d);
				assert_true(scaled(&map, (uint64_t)near + 1) > d);
			} else {
				assert_true(scaled(&map, UINT64_MAX) < d);
			}
		}
	}
}

/* Every guest value of small maps against a search over all host values. */
static void brute_force(void **state)
{
	enum { HOSTS = 96, GUESTS = 420 };

	(void)state;
	for (uint8_t frac = 1; frac <= 6; frac++) {
		for (uint64_t mult = 0; mult <= UINT64_C(4) << frac; mult++) {
			struct vmx_tsc_map map = { mult, (uint64_t)-7, frac };

			for (uint64_t d = 0; d < GUESTS && d < (HOSTS * mult) >> frac; d++) {
				uint64_t want_first = UINT64_MAX, want_last = 0, first, last;

				for (uint64_t h = 0; h < HOSTS; h++) {
					if ((h * mult) >> frac != d)
						continue;
					if (want_first == UINT64_MAX)
						want_first = h;
					want_last = h;
				}
				if (want_last == HOSTS - 1)
					continue; /* the interval may go on beyond the search */
				if (want_first == UINT64_MAX) {
					assert_false(vmx_tsc_to_host(&map, d - 7, &first, &last));
					continue;
				}
				assert_true(vmx_tsc_to_host(&map, d - 7, &first, &last));
				assert_true(first == want_first && last == want_last);
			}
		}
	}
}

static void check_values(void **state)
{
	static const struct {
		uint64_t guest_khz, mult;
	} rates[] = { { 1749956, UINT64_C(140737488355328) },
		      { 3501146, UINT64_C(281574219240542) },
		      { 1166644, UINT64_C(93825528393178) },
		      { 1750000, UINT64_C(140741026986863) } };
	struct vmx_tsc_map map = { UINT64_C(1) << 47, (uint64_t)-2995683791, 48 };
	uint64_t mult, first, last;

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		assert_true(vmx_tsc_multiplier(rates[i].guest_khz, 3499912, 48, &mult));
		assert_true(mult == rates[i].mult);
	}
	assert_true(vmx_tsc_to_guest(&map, 2995838767) == UINT64_C(18446744072211787208));
	assert_true(vmx_tsc_to_host(&map, UINT64_C(18446744072211787208), &first, &last));
	assert_true(first == 2995838766 && last == 2995838767);
}

static void edges(void **state)
{
	struct vmx_tsc_map zero = { 0, 5, 48 };
	struct vmx_tsc_map one = { UINT64_C(1) << 48, 1, 48 };
	struct vmx_tsc_map largest = { UINT64_MAX, 0, 48 };
	struct vmx_tsc_map tiny = { 1, 0, 63 };
	uint64_t first, last, mult;

	(void)state;
	assert_true(vmx_tsc_to_guest(&zero, 12345) == 5);
	assert_false(vmx_tsc_to_host(&zero, 5, &first, &last));
	assert_true(vmx_tsc_to_guest(&one, UINT64_MAX) == 0);
	assert_true(vmx_tsc_to_host(&one, 0, &first, &last));
	assert_true(first == UINT64_MAX && last == UINT64_MAX);
	assert_true(vmx_tsc_to_host(&largest, 0, &first, &last) && first == 0 && last == 0);
	assert_true(vmx_tsc_to_host(&tiny, 0, &first, &last));
	assert_true(first == 0 && last == (UINT64_C(1) << 63) - 1);
	assert_true(vmx_tsc_to_host(&tiny, 1, &first, &last));
	assert_true(first == UINT64_C(1) << 63 && last == UINT64_MAX);
	assert_false(vmx_tsc_to_host(&tiny, 2, &first, &last));

	assert_false(vmx_tsc_multiplier(1, 0, 48, &mult));
	assert_false(vmx_tsc_multiplier(UINT64_C(1) << 16, 1, 48, &mult));
	assert_true(vmx_tsc_multiplier((UINT64_C(1) << 16) - 1, 1, 48, &mult));
	assert_true(vmx_tsc_multiplier(0, 1, 48, &mult) && mult == 0);
}

/* The nested map against the two steps that it stands for, and the cases of Linux's rules. */
static void nested(void **state)
{
	struct vmx_tsc_map l1 = { UINT64_C(1) << 47, (uint64_t)-1001, 48 };
	struct vmx_tsc_map plain = { UINT64_C(1) << 48, 77, 48 };
	struct vmx_tsc_map half = { UINT64_C(1) << 47, 5, 48 };
	struct vmx_tsc_map map = vmx_tsc_nested(&l1, &plain);

	(void)state;
	assert_true(map.multiplier == l1.multiplier && map.offset == l1.offset + 77);
	assert_int_equal(map.frac_bits, 48);
	map = vmx_tsc_nested(&l1, &half);
	assert_true(map.multiplier == UINT64_C(1) << 46);
	assert_true(map.offset == (uint64_t)-500 + 5); /* -1001 / 2 towards zero */
	for (int i = 0; i < 200000; i++) {
		uint8_t frac = i % 2 ? VMX_TSC_FRAC_BITS_VMX : VMX_TSC_FRAC_BITS_SVM;
		struct vmx_tsc_map a = { random_multiplier(frac), next_random() >> 24, frac };
		struct vmx_tsc_map b = { random_multiplier(frac), random_offset(), frac };
		uint64_t host = next_random() >> 16, two_steps, error;

		if (i % 3 == 0)
			a.multiplier = UINT64_C(1) << frac; /* both products are exact then */
		map = vmx_tsc_nested(&a, &b);
		two_steps = vmx_tsc_to_guest(&b, vmx_tsc_to_guest(&a, host));
		error = two_steps - vmx_tsc_to_guest(&map, host);
		/* Truncations: up to 2 units of each step, and the multiplier's last bit. */
		if ((int64_t)error < 0)
			error = -error;
		assert_true(error <= 6 + (host >> frac));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_values),	   cmocka_unit_test(edges),
		cmocka_unit_test(brute_force),	   cmocka_unit_test(random_round_trips),
		cmocka_unit_test(random_inverses), cmocka_unit_test(against_paper),
		cmocka_unit_test(nested),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
