// SPDX-License-Identifier: LGPL-2.1-or-later
/* Percentiles against an exact sort, and heavy hitters against exact counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/analyze/hist.h"
#include "decode/analyze/hitters.h"
#include "tests/support/events.h"

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void middle_is_near(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		uint64_t value = vmt_test_random(&seed) >> (vmt_test_random(&seed) % 64);
		unsigned int bucket = vmt_hist_bucket(value);
		uint64_t middle = vmt_hist_value(bucket);
		uint64_t off = middle > value ? middle - value : value - middle;

		assert_true(bucket < VMT_HIST_BUCKETS);
		assert_true(off <= value / 100);
		if (value < 128)
			assert_int_equal(middle, value);
		assert_int_equal(vmt_hist_bucket(middle), bucket);
	}
	assert_int_equal(vmt_hist_bucket(UINT64_MAX), VMT_HIST_BUCKETS - 1);
}

/* Values of several shapes: uniform, over many octaves, few different ones. */
static uint64_t value_of(uint64_t *seed, unsigned int shape)
{
	uint64_t r = vmt_test_random(seed);

	switch (shape) {
	case 0:
		return r % 1000000;
	case 1:
		return r >> (r % 63);
	default:
		return r % 5 * 1000 + 77;
	}
}

static void percentiles_are_near(void **state)
{
	static const unsigned int percents[] = { 1, 50, 95, 99, 100 };
	static uint64_t values[4000];
	uint64_t seed = 7;

	(void)state;
	for (unsigned int round = 0; round < 60; round++) {
		struct vmt_hist hist = { 0 };
		uint64_t n = 1 + vmt_test_random(&seed) % 4000, got[5];
		uint32_t row = round * 31;

		for (uint64_t i = 0; i < n; i++) {
			values[i] = value_of(&seed, round % 3);
			assert_true(vmt_hist_add(&hist, row, values[i]));
			assert_true(vmt_hist_add(&hist, row + 1, 12345)); /* a neighbour */
		}
		qsort(values, n, sizeof(values[0]), by_value);
		vmt_hist_sort(&hist);
		assert_int_equal(vmt_hist_rank(&hist, row, percents, 5, got), n);
		for (unsigned int p = 0; p < 5; p++) {
			uint64_t rank = (n * percents[p] + 99) / 100;
			uint64_t exact = values[(rank ? rank : 1) - 1];
			uint64_t off = got[p] > exact ? got[p] - exact : exact - got[p];

			assert_true(off <= exact / 100);
		}
		assert_int_equal(vmt_hist_rank(&hist, row + 2, percents, 5, got), 0);
		vmt_hist_free(&hist);
	}
}

static void full_table_refuses(void **state)
{
	struct vmt_hist hist = { 0 };
	uint64_t refused = 0;

	(void)state;
	for (uint32_t row = 0; row < 300; row++) {
		for (uint32_t i = 0; i < VMT_HIST_BUCKETS; i++)
			refused += !vmt_hist_add(&hist, row, vmt_hist_value(i));
	}
	assert_int_equal(hist.nr_slots, VMT_HIST_SLOTS_MAX);
	assert_int_equal(hist.used + refused, 300u * VMT_HIST_BUCKETS);
	assert_true(vmt_hist_add(&hist, 0, 5)); /* what is there still counts */
	vmt_hist_free(&hist);
}

static void few_are_exact(void **state)
{
	struct vmt_hitters_budget budget = { 1000 };
	struct vmt_hitters h = { 0 };
	struct vmt_hitter top;

	(void)state;
	assert_false(vmt_hitters_top(&h, &top));
	for (unsigned int i = 0; i < 96 * 100; i++)
		vmt_hitters_add(&h, &budget, i % 96);
	vmt_hitters_add(&h, &budget, 17);
	assert_true(vmt_hitters_top(&h, &top));
	assert_int_equal(top.value, 17);
	assert_int_equal(top.count, 101);
	assert_int_equal(h.taken, 0);
	assert_int_equal(budget.slots_left, 1000 - VMT_HITTERS_MAX);
	vmt_hitters_free(&h);
}

/* Every count is a lower bound, at most `taken` too low; a frequent value is never lost. */
static void many_are_bounded(void **state)
{
	uint64_t seed = 99;

	(void)state;
	for (unsigned int round = 0; round < 40; round++) {
		struct vmt_hitters_budget budget = { round % 4 == 3 ? round : 100000 };
		struct vmt_hitters h = { 0 };
		struct vmt_hitter top;
		uint64_t n = 20000, hot = 0;
		unsigned int share = 1 + round % 10; /* tenths of the stream */

		for (uint64_t i = 0; i < n; i++) {
			bool is_hot = vmt_test_random(&seed) % 10 < share;

			hot += is_hot;
			vmt_hitters_add(&h, &budget,
					is_hot ? 0xffffffff81000000u
					       : vmt_test_random(&seed) % 5000);
		}
		assert_true(h.taken <= n / 4 || !h.slots || h.nr_slots < VMT_HITTERS_MAX);
		if (h.nr_slots == VMT_HITTERS_MAX) {
			assert_true(vmt_hitters_top(&h, &top));
			assert_int_equal(top.value, 0xffffffff81000000u);
			assert_true(top.count <= hot && top.count + h.taken >= hot);
		} else if (vmt_hitters_top(&h, &top) && top.value == 0xffffffff81000000u) {
			assert_true(top.count <= hot);
		}
		vmt_hitters_free(&h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(middle_is_near),     cmocka_unit_test(percentiles_are_near),
		cmocka_unit_test(full_table_refuses), cmocka_unit_test(few_are_exact),
		cmocka_unit_test(many_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
