// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The merge with slack: of random rings whose threads move between CPUs, each rec comes out once,
 * those of one thread in order, none further from its place than the slack; and in strict order
 * where a loss is near.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/kvm/merge.h"
#include "tests/support/events.h"

#define CPUS	 4u
#define THREADS	 6u
#define RECS_MAX 200000u
#define SLACK_NS 5000u

struct seen {
	uint64_t newest, inversions, stretches;
	uint64_t last_of[THREADS + 1];
	uint32_t last_tid;
	size_t n;
	bool *was_seen;
};

static void take(void *context, const struct vmt_rec *rec)
{
	struct seen *seen = context;
	uint64_t number = rec->u.words[7];

	assert_true(rec->tid <= THREADS);
	assert_true(rec->time_ns >= seen->last_of[rec->tid]);
	assert_false(seen->was_seen[number]);
	assert_true(rec->time_ns + SLACK_NS >= seen->newest);
	seen->was_seen[number] = true;
	seen->last_of[rec->tid] = rec->time_ns;
	seen->inversions += rec->time_ns < seen->newest;
	seen->stretches += rec->tid != seen->last_tid;
	seen->last_tid = rec->tid;
	if (rec->time_ns > seen->newest)
		seen->newest = rec->time_ns;
	seen->n++;
}

/* What a thread does in a round, on one CPU after the other: in order of time by construction. */
struct world {
	uint64_t random, now;
	uint32_t cpu_of[THREADS + 1];
	struct vmt_rec *rings[CPUS];
	size_t nr[CPUS], pushed;
};

static int by_time(const void *a, const void *b)
{
	const struct vmt_rec *x = a, *y = b;

	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

/* One round: moves is how many of a thousand recs move their thread before them. */
static void make_round(struct world *w, unsigned int moves, bool with_loss)
{
	memset(w->nr, 0, sizeof(w->nr));
	for (unsigned int i = 0; i < 400; i++) {
		uint32_t tid = 1 + (uint32_t)(vmt_test_random(&w->random) % THREADS), cpu;
		struct vmt_rec rec = { .kind = VMT_REC_KVM_EXIT, .flags = VMT_REC_HAS_TIME };

		if (vmt_test_random(&w->random) % 1000 < moves)
			w->cpu_of[tid] = (uint32_t)(vmt_test_random(&w->random) % CPUS);
		if (with_loss && i == 200)
			rec.kind = VMT_REC_LOST;
		cpu = w->cpu_of[tid];
		w->now += vmt_test_random(&w->random) % 100;
		rec.time_ns = w->now;
		rec.tid = tid;
		rec.cpu = cpu;
		rec.u.words[7] = w->pushed++;
		w->rings[cpu][w->nr[cpu]++] = rec;
	}
	for (unsigned int c = 0; c < CPUS; c++)
		qsort(w->rings[c], w->nr[c], sizeof(struct vmt_rec), by_time);
}

static struct seen run(unsigned int moves, unsigned int losses_every, uint64_t slack)
{
	struct world w = { .random = 88172645463325252u, .now = 1000 };
	struct vmt_merge *m = vmt_merge_new(4096);
	struct seen seen = { .was_seen = calloc(RECS_MAX, sizeof(bool)) };

	assert_non_null(m);
	assert_non_null(seen.was_seen);
	for (unsigned int c = 0; c < CPUS; c++)
		assert_non_null(w.rings[c] = calloc(400, sizeof(struct vmt_rec)));
	for (uint32_t t = 1; t <= THREADS; t++)
		w.cpu_of[t] = t % CPUS;
	vmt_merge_relax(m, slack);
	for (unsigned int round = 0; round < 300; round++) {
		make_round(&w, moves, losses_every && round % losses_every == 0);
		for (unsigned int c = 0; c < CPUS; c++)
			for (size_t i = 0; i < w.nr[c]; i++)
				vmt_merge_push(m, &w.rings[c][i], take, &seen);
		vmt_merge_round(m, take, &seen);
	}
	vmt_merge_flush(m, take, &seen);
	assert_int_equal(seen.n, w.pushed);
	assert_int_equal(vmt_merge_late(m), 0);
	vmt_merge_free(m);
	for (unsigned int c = 0; c < CPUS; c++)
		free(w.rings[c]);
	free(seen.was_seen);
	return seen;
}

static void threads_that_stay(void **state)
{
	struct seen strict = run(0, 0, 0), relaxed = run(0, 0, SLACK_NS);

	(void)state;
	assert_int_equal(strict.inversions, 0);
	assert_true(relaxed.inversions > 0);
	assert_true(relaxed.stretches < strict.stretches);
}

static void threads_that_move(void **state)
{
	(void)state;
	for (unsigned int moves = 0; moves < 40; moves++)
		run(moves / 4, 0, SLACK_NS);
	assert_int_equal(run(50, 0, SLACK_NS).inversions, 0);
}

static void losses_make_it_strict(void **state)
{
	(void)state;
	assert_int_equal(run(0, 1, SLACK_NS).inversions, 0);
	assert_true(run(0, 8, SLACK_NS).inversions > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_that_stay),
		cmocka_unit_test(threads_that_move),
		cmocka_unit_test(losses_make_it_strict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
