// SPDX-License-Identifier: LGPL-2.1-or-later
/* Storms that are known, and quiet streams that have none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decode/analyze/storms.h"
#include "tests/support/events.h"

#define SEC UINT64_C(1000000000)
#define IO  30u
#define MSR 32u

struct stream {
	struct vmt_report_builder *b;
	uint64_t stop;
};

static struct stream begin(void)
{
	struct vmt_report_options o = vmt_make_options();
	struct stream s = { .b = vmt_report_new(&o) };

	assert_non_null(s.b);
	return s;
}

/* `rate` exits a second on a port over [from, to), evenly or with a random gap of the same mean. */
static void add(struct stream *s, uint32_t reason, struct vmt_key key, uint64_t from, uint64_t to,
		uint64_t rate, uint64_t *seed)
{
	uint64_t gap = SEC / rate;

	for (uint64_t t = from; t < to; t += seed ? 1 + vmt_test_random(seed) % (2 * gap) : gap) {
		struct vmt_event e = vmt_make_exit(0, t, 100, reason, 0x1000);

		e.key = key;
		vmt_report_event(s->b, &e);
	}
	if (to > s->stop)
		s->stop = to;
}

static const struct vmt_report *finish(struct stream *s)
{
	struct vmt_input_facts facts = vmt_make_facts(0, s->stop, 1);
	const struct vmt_report *r =
		vmt_report_finish(s->b, &facts, vmt_make_ledger(1), NULL, NULL);

	assert_non_null(r);
	return r;
}

static void storm_is_found_to_one_bucket(void **state)
{
	struct stream s = begin();
	struct vmt_key port = vmt_make_key(VMT_KEY_PORT, 0x608, VMT_ACCESS_READ);
	struct vmt_key quiet = vmt_make_key(VMT_KEY_PORT, 0x3f8, VMT_ACCESS_WRITE);
	const struct vmt_report *r;
	uint64_t seed = 5;

	(void)state;
	/* The stream need not be in order of time here: buckets are. */
	add(&s, IO, quiet, 0, 10 * SEC, 300, &seed);
	add(&s, IO, port, 0, 4 * SEC, 200, &seed);
	add(&s, IO, port, 4 * SEC, 5 * SEC + SEC / 2, 50000, &seed);
	add(&s, IO, port, 5 * SEC + SEC / 2, 10 * SEC, 200, &seed);
	r = finish(&s);
	assert_int_equal(r->nr_storms, 1);
	assert_int_equal(r->storms[0].reason, IO);
	assert_int_equal(r->storms[0].key.number, 0x608);
	assert_in_range(r->storms[0].from_ns, 4 * SEC - 2 * VMT_STORM_WIDTH_NS,
			4 * SEC + VMT_STORM_WIDTH_NS);
	assert_in_range(r->storms[0].to_ns, 5 * SEC + SEC / 2 - VMT_STORM_WIDTH_NS,
			5 * SEC + SEC / 2 + 2 * VMT_STORM_WIDTH_NS);
	assert_true(r->storms[0].rate > 45000 && r->storms[0].rate < 55000);
	assert_true(r->storms[0].rate_before > 100 && r->storms[0].rate_before < 300);
	assert_int_equal(r->storms[0].domain, 0);
	vmt_report_free(s.b);
}

static void steady_streams_have_none(void **state)
{
	struct stream s = begin();
	uint64_t seed = 11;

	(void)state;
	for (uint64_t i = 0; i < 6; i++)
		add(&s, MSR, vmt_make_key(VMT_KEY_MSR, 0x6e0 + i, VMT_ACCESS_WRITE), 0, 8 * SEC,
		    100 << (2 * i), &seed);
	assert_int_equal(finish(&s)->nr_storms, 0);
	vmt_report_free(s.b);
}

static void two_storms_of_one_key(void **state)
{
	struct stream s = begin();
	struct vmt_key msr = vmt_make_key(VMT_KEY_MSR, 0x6e0, VMT_ACCESS_WRITE);
	const struct vmt_report *r;

	(void)state;
	add(&s, MSR, msr, 0, 20 * SEC, 100, NULL);
	add(&s, MSR, msr, 3 * SEC, 4 * SEC, 20000, NULL);
	add(&s, MSR, msr, 12 * SEC, 13 * SEC, 30000, NULL);
	r = finish(&s);
	assert_int_equal(r->nr_storms, 2);
	assert_true(r->storms[0].from_ns >= 11 * SEC && r->storms[1].from_ns < 4 * SEC);
	vmt_report_free(s.b);
}

/* Many addresses, none of them often: the reason as a whole storms. */
static void reason_storms_without_a_key(void **state)
{
	struct stream s = begin();
	struct vmt_key none = { 0 };
	const struct vmt_report *r;

	(void)state;
	add(&s, 48, none, 0, 10 * SEC, 50, NULL);
	for (uint64_t i = 0; i < 20000; i++) {
		struct vmt_event e = vmt_make_exit(0, 6 * SEC + i * 40000, 100, 48, 0x1000);

		e.key = vmt_make_key(VMT_KEY_GPA, i << 12, VMT_ACCESS_WRITE);
		vmt_report_event(s.b, &e);
	}
	r = finish(&s);
	assert_int_equal(r->nr_storms, 1);
	assert_int_equal(r->storms[0].key.kind, VMT_KEY_NONE);
	assert_int_equal(r->storms[0].count >= 20000, 1);
	vmt_report_free(s.b);
}

/* A storm whose key comes after more other keys than there are series. */
static void late_key_is_still_tracked(void **state)
{
	struct stream s = begin();
	struct vmt_key port = vmt_make_key(VMT_KEY_PORT, 0x70, VMT_ACCESS_READ);
	const struct vmt_report *r;

	(void)state;
	for (uint64_t i = 0; i < UINT64_C(2) * VMT_STORM_SERIES; i++)
		add(&s, IO, vmt_make_key(VMT_KEY_PORT, 0x1000 + i, VMT_ACCESS_READ), i, 4 * SEC + i,
		    10 + i % 7, NULL);
	add(&s, IO, port, 7 * SEC, 8 * SEC, 20000, NULL);
	add(&s, IO, port, 8 * SEC, 12 * SEC, 10, NULL);
	r = finish(&s);
	assert_true(r->nr_storms >= 1);
	assert_int_equal(r->storms[0].key.number, 0x70);
	vmt_report_free(s.b);
}

/* An hour: buckets become wider, the memory does not. */
static void long_captures_use_wider_buckets(void **state)
{
	struct stream s = begin();
	struct vmt_key port = vmt_make_key(VMT_KEY_PORT, 0x608, VMT_ACCESS_READ);
	const struct vmt_report *r;

	(void)state;
	add(&s, IO, port, 0, 3600 * SEC, 20, NULL);
	add(&s, IO, port, 1000 * SEC, 1010 * SEC, 5000, NULL);
	r = finish(&s);
	assert_int_equal(r->nr_storms, 1);
	assert_in_range(r->storms[0].from_ns, 998 * SEC, 1001 * SEC);
	assert_in_range(r->storms[0].to_ns, 1009 * SEC, 1012 * SEC);
	vmt_report_free(s.b);
}

static void times_without_sense_end(void **state)
{
	struct stream s = begin();
	uint64_t seed = 3;

	(void)state;
	for (unsigned int i = 0; i < 3000; i++) {
		struct vmt_event e = vmt_make_exit(0, vmt_test_random(&seed), 1, i % 70, i);

		e.key = vmt_make_key(VMT_KEY_MSR, i % 300, VMT_ACCESS_READ);
		vmt_report_event(s.b, &e);
	}
	finish(&s);
	vmt_report_free(s.b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(storm_is_found_to_one_bucket),
		cmocka_unit_test(steady_streams_have_none),
		cmocka_unit_test(two_storms_of_one_key),
		cmocka_unit_test(reason_storms_without_a_key),
		cmocka_unit_test(late_key_is_still_tracked),
		cmocka_unit_test(long_captures_use_wider_buckets),
		cmocka_unit_test(times_without_sense_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
