// SPDX-License-Identifier: LGPL-2.1-or-later
/* Order, completeness and the bound of the reordering, over random streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/analyze/reorder.h"
#include "tests/support/events.h"

struct sink {
	uint64_t count, newest, disorders, sum;
	uint32_t last_cpu; /* arrival number of events of one time */
};

static void take(void *context, const struct vmt_event *event)
{
	struct sink *s = context;

	s->count++;
	s->sum += event->cpu;
	if (event->has & VMT_HAS_TIME) {
		s->disorders += event->time.host_ns < s->newest;
		if (event->time.host_ns == s->newest)
			assert_true(event->cpu > s->last_cpu);
		if (event->time.host_ns >= s->newest) {
			s->newest = event->time.host_ns;
			s->last_cpu = event->cpu;
		}
	}
}

static void run(size_t max, uint32_t n, uint64_t displacement, uint64_t seed, struct sink *s,
		uint64_t *late)
{
	struct vmt_reorder *r = vmt_reorder_new(max, take, s);

	assert_non_null(r);
	for (uint32_t i = 1; i <= n; i++) {
		struct vmt_event e =
			vmt_make_entry(0,
				       1000000 + i * 10ull - vmt_test_random(&seed) % displacement);

		e.cpu = i;
		vmt_reorder_push(r, &e);
	}
	vmt_reorder_flush(r);
	*late = vmt_reorder_late(r);
	vmt_reorder_free(r);
}

static void within_the_bound_all_is_in_order(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 30; seed++) {
		struct sink s = { 0 };
		uint64_t late;

		run(1000, 5000, 1 + seed * 300, seed, &s, &late);
		assert_int_equal(s.count, 5000);
		assert_int_equal(s.sum, 5000ull * 5001 / 2);
		assert_int_equal(late, 0);
		assert_int_equal(s.disorders, 0);
	}
}

static void beyond_the_bound_late_is_counted(void **state)
{
	struct sink s = { 0 };
	uint64_t late;

	(void)state;
	run(16, 5000, 100000, 3, &s, &late);
	assert_int_equal(s.count, 5000);
	assert_true(late > 0);
	assert_int_equal(s.disorders, late);
}

static void without_time_keeps_its_place(void **state)
{
	struct sink s = { 0 };
	struct vmt_reorder *r = vmt_reorder_new(0, take, &s);
	struct vmt_event a = vmt_make_entry(0, 500), b = vmt_make_entry(0, 0);

	(void)state;
	a.cpu = 1;
	b.cpu = 2;
	b.has &= ~(uint32_t)VMT_HAS_TIME;
	vmt_reorder_push(r, &a);
	vmt_reorder_push(r, &b);
	a.time.host_ns = 600;
	a.cpu = 3;
	vmt_reorder_push(r, &a);
	vmt_reorder_flush(r);
	vmt_reorder_flush(r);
	assert_int_equal(s.count, 3);
	assert_int_equal(s.disorders, 0);
	vmt_reorder_free(r);
	vmt_reorder_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(within_the_bound_all_is_in_order),
		cmocka_unit_test(beyond_the_bound_late_is_counted),
		cmocka_unit_test(without_time_keeps_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
