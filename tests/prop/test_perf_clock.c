// SPDX-License-Identifier: LGPL-2.1-or-later
/* Perf clock against the kernel's own formula and against a search. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decode/correlate/perf_clock.h"

static uint64_t random_state = 0x13198a2e03707344u;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* As perf_event.h says: time_zero + quot * mult + ((rem * mult) >> shift). */
static uint64_t kernel_ns(const struct vmt_perf_clock *c, uint64_t tsc)
{
	uint64_t quot = tsc >> c->shift;
	uint64_t rem = tsc & ((UINT64_C(1) << c->shift) - 1);

	return c->zero + quot * c->mult + ((rem * c->mult) >> c->shift);
}

static uint64_t to_ns(const struct vmt_perf_clock *c, uint64_t tsc)
{
	return vmt_perf_clock_to_ns(c, (struct vmt_host_tsc){ tsc }).host_ns;
}

static uint64_t to_tsc(const struct vmt_perf_clock *c, uint64_t ns, uint64_t *error)
{
	return vmt_perf_clock_to_tsc(c, (struct vmt_host_ns){ ns }, error).host_tsc;
}

static struct vmt_perf_clock random_clock(void)
{
	struct vmt_perf_clock c = { .zero = next_random(),
				    .shift = (uint16_t)(next_random() % 33) };

	c.mult = (uint32_t)(next_random() >> (32 + next_random() % 32));
	if (!c.mult)
		c.mult = 1;
	return c;
}

static void as_the_kernel(void **state)
{
	(void)state;
	for (int i = 0; i < 500000; i++) {
		struct vmt_perf_clock c = random_clock();
		uint64_t tsc = next_random() >> (next_random() % 64);

		assert_true(to_ns(&c, tsc) == kernel_ns(&c, tsc));
	}
}

/* Rates of real machines: the interval holds the value that made it, and ends where it says. */
static void round_trips(void **state)
{
	(void)state;
	for (int i = 0; i < 300000; i++) {
		/* mult / 2^31 ns a tick: 0.2 to 1 (5 GHz to 1 GHz) */
		struct vmt_perf_clock c = { next_random(),
					    429496730u + (uint32_t)(next_random() % 1717986918u),
					    31 };
		uint64_t tsc = next_random() >> 3, error, first;

		first = to_tsc(&c, to_ns(&c, tsc), &error);
		assert_true(first <= tsc && tsc <= first + error);
		assert_true(to_ns(&c, first) == to_ns(&c, tsc));
		assert_true(to_ns(&c, first + error) == to_ns(&c, tsc));
		assert_true(to_ns(&c, first - 1) == to_ns(&c, tsc) - 1);
		assert_true(to_ns(&c, first + error + 1) == to_ns(&c, tsc) + 1);
	}
}

static void brute_force(void **state)
{
	enum { TICKS = 64 };

	(void)state;
	for (uint16_t shift = 0; shift <= 4; shift++) {
		for (uint32_t mult = 1; mult <= 40; mult++) {
			struct vmt_perf_clock c = { 1000, mult, shift };
			uint64_t end = (uint64_t)(TICKS - 1) * mult >> shift;

			for (uint64_t ns = 0; ns < end; ns++) {
				uint64_t first = UINT64_MAX, last = 0, before = 0, error, got;

				for (uint64_t t = 0; t < TICKS; t++) {
					uint64_t at = t * mult >> shift;

					if (at == ns && first == UINT64_MAX)
						first = t;
					if (at == ns)
						last = t;
					if (at < ns)
						before = t;
				}
				got = to_tsc(&c, 1000 + ns, &error);
				assert_true(got == (first == UINT64_MAX ? before : first));
				assert_true(error == (first == UINT64_MAX ? 1 : last - first));
			}
		}
	}
}

static void beyond_the_last(void **state)
{
	struct vmt_perf_clock c = { 0, 1, 31 };
	uint64_t error;

	(void)state;
	assert_true(to_tsc(&c, UINT64_MAX, &error) == UINT64_MAX);
}

static void from_anchor(void **state)
{
	struct vmt_anchor a = { .time_zero = 5, .time_mult = 7, .time_shift = 31 };
	struct vmt_perf_clock c = { 0 };

	(void)state;
	assert_true(vmt_perf_clock_from_anchor(&a, &c));
	assert_true(c.zero == 5 && c.mult == 7 && c.shift == 31);
	a.time_shift = 33;
	assert_false(vmt_perf_clock_from_anchor(&a, &c));
	a.time_shift = 65535;
	assert_false(vmt_perf_clock_from_anchor(&a, &c));
	a.time_shift = 32;
	assert_true(vmt_perf_clock_from_anchor(&a, &c));
	a.flags = VMT_ANCHOR_NO_TIME_ZERO;
	assert_false(vmt_perf_clock_from_anchor(&a, &c));
	a.flags = VMT_ANCHOR_NO_PERF_CLOCK;
	assert_true(vmt_perf_clock_from_anchor(&a, &c));
	a.time_mult = 0;
	assert_false(vmt_perf_clock_from_anchor(&a, &c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_the_kernel), cmocka_unit_test(round_trips),
		cmocka_unit_test(brute_force),	 cmocka_unit_test(beyond_the_last),
		cmocka_unit_test(from_anchor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
