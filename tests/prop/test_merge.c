/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The merge against a stable sort: random rings drained in rounds, ordered input, hostile input,
 * and a bound that is too small. Every rec comes out exactly once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "decode/kvm/merge.h"

#define MAX 20000

struct sequence {
	uint64_t time_ns[MAX];
	uint64_t number[MAX]; /* of arrival */
	size_t n;
};

static struct sequence in, out;
static uint64_t random_state = 0x2545f4914f6cdd1d;

static uint64_t next_random(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % below;
}

static void on_rec(void *context, const struct vmt_rec *rec)
{
	struct sequence *s = context;

	assert_true(s->n < MAX);
	s->time_ns[s->n] = rec->time_ns;
	s->number[s->n++] = rec->u.words[0];
}

static void push(struct vmt_merge *m, uint64_t time_ns)
{
	struct vmt_rec rec = { .time_ns = time_ns,
			       .kind = VMT_REC_KVM_EXIT,
			       .flags = VMT_REC_HAS_TIME };

	rec.u.words[0] = in.n;
	in.time_ns[in.n] = time_ns;
	in.number[in.n] = in.n;
	in.n++;
	vmt_merge_push(m, &rec, on_rec, &out);
}

static void start(void)
{
	in.n = out.n = 0;
}

static int by_time_and_arrival(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	if (in.time_ns[x] != in.time_ns[y])
		return in.time_ns[x] < in.time_ns[y] ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void assert_sorted_and_stable(void)
{
	static size_t order[MAX];

	for (size_t i = 0; i < in.n; i++)
		order[i] = i;
	qsort(order, in.n, sizeof(order[0]), by_time_and_arrival);
	assert_int_equal(out.n, in.n);
	for (size_t i = 0; i < in.n; i++)
		assert_int_equal(out.number[i], order[i]);
}

/* Nothing missing and nothing twice, in whatever order. */
static void assert_complete(void)
{
	static uint8_t seen[MAX];

	memset(seen, 0, sizeof(seen));
	assert_int_equal(out.n, in.n);
	for (size_t i = 0; i < out.n; i++) {
		assert_int_equal(seen[out.number[i]], 0);
		assert_int_equal(in.time_ns[out.number[i]], out.time_ns[i]);
		seen[out.number[i]] = 1;
	}
}

/*
 * What a drain loop does: every round each ring gives all it has up to a moment that may lie beyond
 * the rings drained before it, but not beyond the next round.
 */
static void rings_in_rounds(size_t max_recs, unsigned int nr_rings, uint64_t dense)
{
	struct vmt_merge *m = vmt_merge_new(max_recs);
	uint64_t clock[16], now = 1000;

	assert_non_null(m);
	start();
	for (unsigned int r = 0; r < nr_rings; r++)
		clock[r] = now;
	while (in.n < MAX - 4000) {
		for (unsigned int r = 0; r < nr_rings; r++) {
			now += next_random(50);
			while (clock[r] < now && in.n < MAX - 100) {
				clock[r] += next_random(dense);
				if (clock[r] <= now)
					push(m, clock[r]);
			}
			clock[r] = now;
		}
		vmt_merge_round(m, on_rec, &out);
	}
	vmt_merge_flush(m, on_rec, &out);
	assert_int_equal(vmt_merge_late(m), 0);
	assert_sorted_and_stable();
	vmt_merge_free(m);
}

static void random_rings(void **state)
{
	(void)state;
	for (int i = 0; i < 60; i++)
		rings_in_rounds(MAX, 1 + (unsigned int)next_random(16), 1 + next_random(12));
}

static void random_order_without_rounds(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		struct vmt_merge *m = vmt_merge_new(MAX);
		uint64_t spread = 1 + next_random(100000);

		start();
		for (int k = 0; k < 5000; k++)
			push(m, next_random(spread));
		vmt_merge_flush(m, on_rec, &out);
		assert_sorted_and_stable();
		vmt_merge_free(m);
	}
}

static void ordered_input_through_a_small_bound(void **state)
{
	struct vmt_merge *m = vmt_merge_new(64);
	uint64_t now = 5;

	(void)state;
	start();
	while (in.n < MAX) {
		now += next_random(3);
		push(m, now);
	}
	vmt_merge_flush(m, on_rec, &out);
	assert_int_equal(vmt_merge_late(m), 0);
	assert_sorted_and_stable();
	vmt_merge_free(m);
}

static void nearly_ordered_input_through_a_bound(void **state)
{
	struct vmt_merge *m = vmt_merge_new(1024);

	(void)state;
	start();
	/* no rec is displaced by more than the half that always stays */
	for (uint64_t i = 0; i < 15000; i++)
		push(m, 10000 + i * 10 - next_random(4000));
	vmt_merge_flush(m, on_rec, &out);
	assert_int_equal(vmt_merge_late(m), 0);
	assert_sorted_and_stable();
	vmt_merge_free(m);
}

static void late_recs_are_passed_on_and_counted(void **state)
{
	(void)state;
	for (int i = 0; i < 30; i++) {
		struct vmt_merge *m = vmt_merge_new(16 + next_random(100));
		uint64_t late = 0, youngest = 0;

		start();
		for (int k = 0; k < 6000; k++) {
			push(m, next_random(1000000));
			if (next_random(40) == 0)
				vmt_merge_round(m, on_rec, &out);
		}
		vmt_merge_flush(m, on_rec, &out);
		assert_complete();
		for (size_t k = 0; k < out.n; k++) {
			late += out.time_ns[k] < youngest;
			youngest = out.time_ns[k] > youngest ? out.time_ns[k] : youngest;
		}
		assert_int_equal(vmt_merge_late(m), late);
		vmt_merge_free(m);
	}
}

static void falling_times(void **state)
{
	struct vmt_merge *m = vmt_merge_new(MAX);

	(void)state;
	start();
	for (uint64_t i = 0; i < 10000; i++) {
		push(m, 1000000 - i);
		vmt_merge_round(m, on_rec, &out);
		if (i == 0)
			assert_int_equal(out.n, 0);
	}
	vmt_merge_flush(m, on_rec, &out);
	assert_complete();
	vmt_merge_free(m);
}

static void recs_without_time_keep_their_place(void **state)
{
	struct vmt_merge *m = vmt_merge_new(100);
	struct vmt_rec lost = { .kind = VMT_REC_LOST };

	(void)state;
	start();
	push(m, 10);
	push(m, 20);
	lost.u.words[0] = 77;
	vmt_merge_push(m, &lost, on_rec, &out);
	push(m, 15);
	push(m, 30);
	vmt_merge_flush(m, on_rec, &out);
	assert_int_equal(out.n, 5);
	assert_int_equal(out.number[3], 77);
	assert_int_equal(out.time_ns[3], 20);
	assert_int_equal(vmt_merge_late(m), 0);
	vmt_merge_free(m);
}

static void rounds_hold_back_one_round(void **state)
{
	struct vmt_merge *m = vmt_merge_new(100);

	(void)state;
	start();
	push(m, 10);
	push(m, 20);
	vmt_merge_round(m, on_rec, &out);
	assert_int_equal(out.n, 0);
	push(m, 21);
	push(m, 20);
	vmt_merge_round(m, on_rec, &out);
	assert_int_equal(out.n, 3);
	vmt_merge_round(m, on_rec, &out);
	assert_int_equal(out.n, 4);
	assert_sorted_and_stable();
	vmt_merge_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_rings),
		cmocka_unit_test(random_order_without_rounds),
		cmocka_unit_test(ordered_input_through_a_small_bound),
		cmocka_unit_test(nearly_ordered_input_through_a_bound),
		cmocka_unit_test(late_recs_are_passed_on_and_counted),
		cmocka_unit_test(falling_times),
		cmocka_unit_test(recs_without_time_keep_their_place),
		cmocka_unit_test(rounds_hold_back_one_round),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
