// SPDX-License-Identifier: LGPL-2.1-or-later
/* The bill sums to the wall time, whatever the stream; and what each part is, on small streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/analyze/bill.h"
#include "tests/support/events.h"

#define HLT  12u
#define IO   30u
#define MSEC UINT64_C(1000000)

static void assert_balanced(const struct vmt_bill *b)
{
	uint64_t classes = 0;

	for (unsigned int c = 0; c < VMX_CLASS_COUNT; c++)
		classes += b->class_ns[c];
	assert_int_equal(classes, b->exits_ns);
	assert_int_equal(b->guest_ns + b->exits_ns + b->userspace_ns + b->halt_poll_ns +
				 b->halted_ns + b->preempted_ns + b->stopped_ns + b->residual_ns,
			 b->wall_ns);
}

/* Runs events through a bill; frees nothing but returns the bills. */
static struct vmt_bill *bill_of(const struct vmt_event *events, size_t n, uint64_t start,
				uint64_t stop, bool switches, bool complete, size_t *nr)
{
	struct vmt_bill_set *set = vmt_bill_new();
	struct vmt_bill *bills;

	assert_non_null(set);
	for (size_t i = 0; i < n; i++)
		assert_true(
			vmt_bill_event(set, &events[i],
				       events[i].reason == HLT ? VMX_CLASS_HALT : VMX_CLASS_IO));
	bills = vmt_bill_finish(set, start, stop, switches, complete, nr);
	assert_non_null(bills);
	for (size_t i = 0; i < *nr; i++)
		assert_balanced(&bills[i]);
	vmt_bill_free(set);
	return bills;
}

static void parts_of_an_exit(void **state)
{
	struct vmt_event e[4] = { vmt_make_entry(0, 100), vmt_make_exit(0, 1100, 1000, IO, 1),
				  vmt_make_entry(0, 2100), vmt_make_exit(0, 2600, 400, HLT, 1) };
	struct vmt_bill *b;
	size_t nr;

	(void)state;
	e[1].userspace_part_ns = 300;
	e[1].preempted_part_ns = 200;
	e[3].halt_poll_part_ns = 50;
	e[3].blocked_part_ns = 250;
	b = bill_of(e, 4, 0, 4000, true, true, &nr);
	assert_int_equal(nr, 1);
	assert_int_equal(b->wall_ns, 4000);
	assert_int_equal(b->guest_ns, 1000 + 500);
	assert_int_equal(b->userspace_ns, 300);
	assert_int_equal(b->preempted_ns, 200);
	assert_int_equal(b->class_ns[VMX_CLASS_IO], 500);
	assert_int_equal(b->halt_poll_ns, 50);
	assert_int_equal(b->halted_ns, 250);
	assert_int_equal(b->class_ns[VMX_CLASS_HALT], 100);
	assert_int_equal(b->residual_ns, 100 + 1000); /* before the entry, after the last exit */
	assert_int_equal(b->exits, 2);
	assert_int_equal(b->entries, 2);
	free(b);
}

static void without_switches_hlt_is_halted(void **state)
{
	struct vmt_event e[] = { vmt_make_entry(0, 0), vmt_make_exit(0, 100, 900, HLT, 1),
				 vmt_make_entry(0, 1000) };
	struct vmt_bill *b;
	size_t nr;

	(void)state;
	b = bill_of(e, 3, 0, 1500, false, true, &nr);
	assert_false(b->has_switches);
	assert_int_equal(b->halted_ns, 900);
	assert_int_equal(b->exits_ns, 0);
	assert_int_equal(b->guest_ns, 100 + 500); /* still in the guest at the end */
	free(b);
	b = bill_of(e, 3, 0, 1500, false, false, &nr);
	assert_int_equal(b->guest_ns, 100); /* cut off: who knows */
	assert_int_equal(b->residual_ns, 500);
	free(b);
}

static void loss_is_residual(void **state)
{
	struct vmt_event e[] = { vmt_make_entry(0, 100), vmt_make_loss(400, 5),
				 vmt_make_exit(0, 1000, 100, IO, 1), vmt_make_entry(0, 1100) };
	struct vmt_bill *b;
	size_t nr;

	(void)state;
	b = bill_of(e, 4, 100, 1200, true, true, &nr);
	assert_int_equal(b->guest_ns, 100);
	assert_int_equal(b->residual_ns, 900);
	assert_int_equal(b->exits_ns, 100);
	free(b);
}

/* An exit before a loss is handed out behind it. */
static void exit_before_the_loss_ends_guest_time(void **state)
{
	struct vmt_event e[] = { vmt_make_entry(0, 100), vmt_make_loss(400, 5),
				 vmt_make_exit(0, 300, 0, IO, 1), vmt_make_entry(0, 1100) };
	struct vmt_bill *b;
	size_t nr;

	(void)state;
	e[2].has &= ~(uint32_t)(VMT_HAS_DURATION | VMT_HAS_PARTS);
	b = bill_of(e, 4, 100, 1200, true, true, &nr);
	assert_int_equal(b->guest_ns, 200 + 100);
	assert_int_equal(b->residual_ns, 800);
	free(b);
}

static void helper_threads_have_no_bill(void **state)
{
	struct vmt_event e[] = { vmt_make_entry(0, 100), vmt_make_entry(0, 100) };
	struct vmt_bill *b;
	size_t nr;

	(void)state;
	e[0].type = e[1].type = VMT_EVENT_SWITCH;
	e[0].has &= ~(uint32_t)VMT_HAS_VCPU;
	e[0].tid = 99;
	b = bill_of(e, 2, 0, 1000, true, true, &nr);
	assert_int_equal(nr, 1);
	assert_int_equal(b->tid, 1000);
	assert_int_equal(b->residual_ns, 1000); /* nothing is known but that it exists */
	free(b);
}

static void loss_of_another_thread_does_not_matter(void **state)
{
	struct vmt_event e[] = { vmt_make_entry(0, 100), vmt_make_loss(400, 5),
				 vmt_make_exit(0, 1000, 100, IO, 1) };
	struct vmt_bill *b;
	size_t nr;

	(void)state;
	e[1].has |= VMT_HAS_TID;
	e[1].tid = 4711;
	b = bill_of(e, 3, 100, 1100, true, true, &nr);
	assert_int_equal(b->guest_ns, 900);
	free(b);
}

static void exit_without_duration_is_residual(void **state)
{
	struct vmt_event e[] = { vmt_make_entry(0, 0), vmt_make_exit(0, 500, 0, IO, 1),
				 vmt_make_entry(0, 900) };
	struct vmt_bill *b;
	size_t nr;

	(void)state;
	e[1].has &= ~(uint32_t)(VMT_HAS_DURATION | VMT_HAS_PARTS);
	b = bill_of(e, 3, 0, 1000, true, true, &nr);
	assert_int_equal(b->guest_ns, 600);
	assert_int_equal(b->residual_ns, 400);
	free(b);
}

static void failed_entry_is_no_guest_time(void **state)
{
	struct vmt_event e[] = { vmt_make_entry(0, 0), vmt_make_exit(0, 300, 100, 33, 1) };
	struct vmt_bill *b;
	size_t nr;

	(void)state;
	e[1].failed_entry = true;
	b = bill_of(e, 2, 0, 400, true, true, &nr);
	assert_int_equal(b->guest_ns, 0);
	assert_int_equal(b->exits_ns, 400);
	assert_int_equal(b->exits, 0);
	free(b);
}

/* An exit that spans a pause is handed out after the marks; marks may come early. */
static void pause_is_stopped(void **state)
{
	struct vmt_event e[] = {
		vmt_make_entry(0, 0),		vmt_make_mark(2000, "paused"),
		vmt_make_mark(7000, "resumed"), vmt_make_exit(0, 1000, 9000, IO, 1),
		vmt_make_entry(0, 10000),	vmt_make_mark(12000, "stopped")
	};
	struct vmt_bill *b;
	size_t nr;

	(void)state;
	e[3].blocked_part_ns = 6000;
	b = bill_of(e, 6, 0, 20000, true, true, &nr);
	assert_int_equal(b->stopped_ns, 5000 + 8000);
	free(b);
	e[0] = vmt_make_mark(2000, "paused");
	e[1] = vmt_make_mark(7000, "resumed");
	e[2] = vmt_make_entry(0, 0);
	b = bill_of(e, 6, 0, 20000, true, true, &nr);
	assert_int_equal(b->guest_ns, 1000 + 2000);
	assert_int_equal(b->stopped_ns, 5000 + 8000);
	assert_int_equal(b->halted_ns, 1000);
	assert_int_equal(b->exits_ns, 3000);
	free(b);
}

/* A vCPU that is first seen while or after the domain was paused. */
static void late_vcpu_knows_of_the_pause(void **state)
{
	struct vmt_event e[] = { vmt_make_mark(1000, "paused"), vmt_make_mark(3000, "resumed"),
				 vmt_make_mark(4000, "paused"), vmt_make_entry(1, 6000),
				 vmt_make_mark(6000, "resumed") };
	struct vmt_bill *b;
	size_t nr;

	(void)state;
	b = bill_of(e, 5, 0, 10000, true, true, &nr);
	assert_int_equal(b->stopped_ns, 2000 + 2000);
	assert_int_equal(b->residual_ns, 2000);
	assert_int_equal(b->guest_ns, 4000);
	free(b);
}

static void thread_learns_its_vcpu(void **state)
{
	struct vmt_event e[] = { vmt_make_exit(3, 100, 100, IO, 1), vmt_make_entry(3, 200),
				 vmt_make_exit(3, 300, 100, IO, 1) };
	struct vmt_bill *b;
	size_t nr;

	(void)state;
	e[0].has &= ~(uint32_t)(VMT_HAS_VCPU | VMT_HAS_DOMAIN);
	e[2].tid = 77; /* another thread runs the vCPU */
	b = bill_of(e, 3, 0, 400, true, true, &nr);
	assert_int_equal(nr, 1);
	assert_int_equal(b->vcpu, 3);
	assert_int_equal(b->exits, 2);
	assert_int_equal(b->guest_ns, 100);
	free(b);
}

/* A capture, or --time, that ends inside an exit. */
static void exit_is_cut_off_at_the_end(void **state)
{
	struct vmt_event e[] = { vmt_make_entry(0, 0), vmt_make_exit(0, 500, 10000, IO, 1) };
	struct vmt_bill *b;
	size_t nr;

	(void)state;
	e[1].userspace_part_ns = 400;
	b = bill_of(e, 2, 0, 1500, true, true, &nr);
	assert_int_equal(b->guest_ns, 500);
	assert_int_equal(b->userspace_ns, 400);
	assert_int_equal(b->exits_ns, 600);
	free(b);
}

/* What the join can make: per vCPU exits that end at the next entry, switches, losses, marks. */
struct vcpu_state {
	uint64_t now;
	bool in_guest;
};

static struct vmt_event next_event(struct vcpu_state *v, uint32_t vcpu, uint64_t *seed)
{
	uint64_t r = vmt_test_random(seed), step = vmt_test_random(seed) % (3 * MSEC);
	struct vmt_event e;

	switch (r % 12) {
	case 0:
		return vmt_make_loss(v->now, r % 100);
	case 1:
		return vmt_make_mark(v->now, r % 24 < 12 ? "paused" : "resumed");
	case 2:
		e = vmt_make_entry(vcpu, v->now);
		e.type = VMT_EVENT_SWITCH;
		return e;
	case 3:
	case 4:
	case 5:
	case 6:
		v->now += step;
		v->in_guest = true;
		return vmt_make_entry(vcpu, v->now);
	default:
		e = vmt_make_exit(vcpu, v->now + step / 2, step, r % 24 < 12 ? HLT : IO, r);
		if (r % 7 == 0)
			e.has &= ~(uint32_t)(VMT_HAS_DURATION | VMT_HAS_PARTS);
		e.failed_entry = r % 31 == 0;
		e.userspace_part_ns = vmt_test_random(seed) % (step + 1);
		e.halt_poll_part_ns = vmt_test_random(seed) % (step + 1) / 2;
		e.blocked_part_ns = vmt_test_random(seed) % (step + 1);
		e.preempted_part_ns = vmt_test_random(seed) % (step + 1) / 3;
		v->now += step / 2 + (r % 5 ? step : 0);
		return e;
	}
}

static void any_stream_balances(void **state)
{
	static struct vmt_event events[2000];
	uint64_t seed = 42;

	(void)state;
	for (unsigned int round = 0; round < 300; round++) {
		struct vcpu_state vcpus[4] = { { 0 } };
		struct vmt_bill_set *set = vmt_bill_new();
		uint64_t first, last, end;
		struct vmt_bill *bills;
		size_t n = 1 + vmt_test_random(&seed) % 2000, nr;

		for (size_t i = 0; i < n; i++) {
			uint32_t vcpu = (uint32_t)(vmt_test_random(&seed) % 4);

			events[i] = next_event(&vcpus[vcpu], vcpu, &seed);
			events[i].domain = round % 3 == 0 ? 0 : vcpu & 1;
			if (round % 10 == 9) /* hostile: any time, any duration */
				events[i].time.host_ns = vmt_test_random(&seed);
			if (round % 20 == 19)
				events[i].duration_ns = vmt_test_random(&seed);
			assert_true(vmt_bill_event(set, &events[i], VMX_CLASS_IO));
		}
		if (!vmt_bill_span(set, &first, &last, &end))
			first = last = end = 0;
		if (round % 4 == 1)
			last = end; /* else what ends later is cut off */
		bills = vmt_bill_finish(set, first - first % 1000, last, round & 1, round & 2, &nr);
		assert_non_null(bills);
		for (size_t i = 0; i < nr; i++) {
			assert_balanced(&bills[i]);
			assert_int_equal(bills[i].wall_ns, last - (first - first % 1000));
		}
		free(bills);
		vmt_bill_free(set);
	}
}

static void vcpus_are_bounded(void **state)
{
	struct vmt_bill_set *set = vmt_bill_new();
	struct vmt_bill *bills;
	size_t nr;

	(void)state;
	for (uint32_t i = 0; i < VMT_BILL_VCPUS_MAX + 10; i++) {
		struct vmt_event e = vmt_make_entry(i, 1000 + i);

		e.has &= ~(uint32_t)VMT_HAS_DOMAIN;
		assert_true(vmt_bill_event(set, &e, VMX_CLASS_OTHER));
	}
	assert_int_equal(vmt_bill_unbilled(set), 10);
	bills = vmt_bill_finish(set, 0, 100000, true, true, &nr);
	assert_int_equal(nr, VMT_BILL_VCPUS_MAX);
	free(bills);
	vmt_bill_free(set);
	vmt_bill_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_of_an_exit),
		cmocka_unit_test(without_switches_hlt_is_halted),
		cmocka_unit_test(loss_is_residual),
		cmocka_unit_test(exit_before_the_loss_ends_guest_time),
		cmocka_unit_test(helper_threads_have_no_bill),
		cmocka_unit_test(loss_of_another_thread_does_not_matter),
		cmocka_unit_test(exit_without_duration_is_residual),
		cmocka_unit_test(failed_entry_is_no_guest_time),
		cmocka_unit_test(pause_is_stopped),
		cmocka_unit_test(late_vcpu_knows_of_the_pause),
		cmocka_unit_test(thread_learns_its_vcpu),
		cmocka_unit_test(exit_is_cut_off_at_the_end),
		cmocka_unit_test(any_stream_balances),
		cmocka_unit_test(vcpus_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
