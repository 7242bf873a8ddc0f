// SPDX-License-Identifier: LGPL-2.1-or-later
/* Rows: what is one row, what is exact, what is bounded; the filter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decode/analyze/filter.h"
#include "decode/analyze/rows.h"
#include "tests/support/events.h"

static struct vmt_report_builder *begin(const char *by)
{
	struct vmt_report_options o = vmt_make_options();
	struct vmt_report_builder *b;

	o.by = by;
	b = vmt_report_new(&o);
	assert_non_null(b);
	return b;
}

static const struct vmt_report *finish(struct vmt_report_builder *b)
{
	static struct vmt_input_facts facts;
	const struct vmt_report *r;

	facts = vmt_make_facts(0, 1000000, 2);
	r = vmt_report_finish(b, &facts, vmt_make_ledger(1), NULL, NULL);
	assert_non_null(r);
	return r;
}

static void exact_numbers(void **state)
{
	struct vmt_report_builder *b = begin(NULL);
	const struct vmt_report *r;
	uint64_t t = 100;

	(void)state;
	for (uint64_t i = 1; i <= 100; i++) {
		struct vmt_event e = vmt_make_exit(0, t, i, 32, 0x1000 + i % 2);

		e.key = vmt_make_key(VMT_KEY_MSR, 0x6e0, VMT_ACCESS_WRITE);
		t = vmt_feed_exit(b, e) + 10;
	}
	{
		struct vmt_event e = vmt_make_exit(0, t, 0, 32, 0x1001);

		e.key = vmt_make_key(VMT_KEY_MSR, 0x6e0, VMT_ACCESS_WRITE);
		e.has &= ~(uint32_t)VMT_HAS_DURATION;
		vmt_report_event(b, &e);
	}
	r = finish(b);
	assert_int_equal(r->nr_rows, 1);
	assert_int_equal(r->exits, 101);
	assert_int_equal(r->entries, 100);
	assert_int_equal(r->rows[0].count, 101);
	assert_int_equal(r->rows[0].timed, 100);
	assert_int_equal(r->rows[0].total_ns, 5050);
	assert_int_equal(r->rows[0].min_ns, 1);
	assert_int_equal(r->rows[0].p50_ns, 50);
	assert_int_equal(r->rows[0].p95_ns, 95);
	assert_int_equal(r->rows[0].p99_ns, 99);
	assert_int_equal(r->rows[0].max_ns, 100);
	assert_int_equal(r->rows[0].guest_rip, 0x1001);
	assert_int_equal(r->rows[0].rip_count, 51);
	assert_false(r->rows[0].rip_is_bound);
	vmt_report_free(b);
}

static size_t rows_by(const char *by)
{
	struct vmt_report_builder *b = begin(by);
	size_t n;

	for (unsigned int i = 0; i < 64; i++) {
		struct vmt_event e = vmt_make_exit(i & 1, i * UINT64_C(1000), 10, i & 2 ? 30 : 32,
						   0x1000 + (i >> 2 & 1));

		e.key = vmt_make_key(i & 2 ? VMT_KEY_PORT : VMT_KEY_MSR, i >> 3 & 1,
				     VMT_ACCESS_READ);
		vmt_report_event(b, &e);
	}
	n = finish(b)->nr_rows;
	vmt_report_free(b);
	return n;
}

static void dimensions(void **state)
{
	struct vmt_report_options o = vmt_make_options();

	(void)state;
	assert_int_equal(rows_by(NULL), 4);
	assert_int_equal(rows_by("reason"), 2);
	assert_int_equal(rows_by("reason,key,rip"), 8);
	assert_int_equal(rows_by("vcpu"), 2);
	assert_int_equal(rows_by("rip,reason,vcpu"), 8);
	assert_int_equal(rows_by("key"), 4);
	assert_false(vmt_report_by_ok("reason,"));
	assert_false(vmt_report_by_ok(""));
	assert_false(vmt_report_by_ok("cpu"));
	o.by = "nothing";
	assert_null(vmt_report_new(&o));
}

/* Flags, levels and failed entries are rows of their own; a failed entry is no exit. */
static void kinds_are_apart(void **state)
{
	struct vmt_report_builder *b = begin("reason");
	const struct vmt_report *r;

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct vmt_event e = vmt_make_exit(0, i * UINT64_C(1000), 10, 33, 0x1000);

		e.nested = i == 1;
		e.failed_entry = i == 2;
		e.reason_flags = i == 2 ? 0x80000000u : i == 3 ? 0x04000000u : 0;
		vmt_report_event(b, &e);
	}
	r = finish(b);
	assert_int_equal(r->nr_rows, 4);
	assert_int_equal(r->exits, 3);
	assert_int_equal(r->failed_entries, 1);
	vmt_report_free(b);
}

static void rows_are_bounded(void **state)
{
	struct vmt_report_builder *b = begin(NULL);
	const struct vmt_report *r;
	uint64_t count = 0;

	(void)state;
	for (uint64_t i = 0; i < VMT_ROWS_MAX + 500; i++) {
		struct vmt_event e = vmt_make_exit(0, i, 10, 48, 0x1000);

		e.key = vmt_make_key(VMT_KEY_GPA, i << 12, VMT_ACCESS_READ);
		vmt_report_event(b, &e);
	}
	r = finish(b);
	assert_int_equal(r->nr_rows, VMT_ROWS_MAX + 1);
	assert_int_equal(r->rows_dropped, 500);
	assert_int_equal(r->rows[0].key.kind, VMT_KEY_NONE); /* the 500 have the most time */
	assert_int_equal(r->rows[0].count, 500);
	for (size_t i = 0; i < r->nr_rows; i++)
		count += r->rows[i].count;
	assert_int_equal(count, r->exits);
	vmt_report_free(b);
}

static void reasons_without_end(void **state)
{
	struct vmt_report_builder *b = begin(NULL);
	const struct vmt_report *r;
	uint64_t count = 0;

	(void)state;
	for (uint32_t i = 0; i < 2 * VMT_ROWS_MAX; i++) {
		struct vmt_event e = vmt_make_exit(0, i, 10, i, 0x1000 + i);

		vmt_report_event(b, &e);
	}
	r = finish(b);
	for (size_t i = 0; i < r->nr_rows; i++)
		count += r->rows[i].count;
	assert_int_equal(count, 2 * VMT_ROWS_MAX);
	assert_true(r->nr_rows <= VMT_ROWS_MAX + VMT_ROWS_SPARE + 64);
	vmt_report_free(b);
}

static void unknown_stays_unknown(void **state)
{
	struct vmt_report_builder *b = begin(NULL);
	const struct vmt_report *r;
	struct vmt_event e = vmt_make_exit(0, 100, 0, 0, 0);

	(void)state;
	e.has = VMT_HAS_TIME;
	e.isa = VMT_ISA_UNKNOWN;
	vmt_report_event(b, &e);
	e.has = 0;
	vmt_report_event(b, &e);
	r = finish(b);
	assert_int_equal(r->nr_rows, 1);
	assert_false(r->rows[0].has_reason);
	assert_false(r->rows[0].has_rip);
	assert_int_equal(r->rows[0].timed, 0);
	vmt_report_free(b);
}

static void filter(void **state)
{
	struct vmt_filter f = { 0 };
	struct vmt_event exit = vmt_make_exit(1, 5, 5, 30, 1), mark = vmt_make_mark(1, "paused");
	struct vmt_event loss = vmt_make_loss(1, 1);

	(void)state;
	exit.domain = 2;
	assert_true(vmt_filter_passes(&f, &exit));
	assert_false(vmt_filter_add_domain(&f, VMT_FILTER_DOMAINS));
	assert_true(vmt_filter_add_domain(&f, 3));
	assert_false(vmt_filter_passes(&f, &exit));
	assert_false(vmt_filter_passes(&f, &mark)); /* of domain 0 */
	assert_true(vmt_filter_passes(&f, &loss));
	assert_true(vmt_filter_add_pid(&f, 1000));
	assert_true(vmt_filter_passes(&f, &exit));
	f.by_vcpu = true;
	vmt_vcpu_set_add(&f.vcpus, 1000);
	assert_false(vmt_filter_passes(&f, &exit));
	assert_true(vmt_filter_passes(&f, &loss));
	vmt_vcpu_set_add(&f.vcpus, 1);
	assert_true(vmt_filter_passes(&f, &exit));
	exit.vcpu = 1000;
	assert_true(vmt_filter_passes(&f, &exit));
	exit.vcpu = VMT_VCPU_SET_MAX;
	assert_false(vmt_vcpu_set_add(&f.vcpus, VMT_VCPU_SET_MAX));
	assert_false(vmt_filter_passes(&f, &exit));
	exit.has &= ~(uint32_t)VMT_HAS_VCPU;
	assert_false(vmt_filter_passes(&f, &exit));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_numbers),
		cmocka_unit_test(dimensions),
		cmocka_unit_test(kinds_are_apart),
		cmocka_unit_test(rows_are_bounded),
		cmocka_unit_test(reasons_without_end),
		cmocka_unit_test(unknown_stays_unknown),
		cmocka_unit_test(filter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
