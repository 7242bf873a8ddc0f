// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Recs wait in one array in order of arrival, cut into runs: a run is a stretch whose times do not
 * fall, as one ring gives it. Handing out merges the runs with a heap over their heads.
 *
 * Invariant: recs[0..count) holds what waits, runs[] covers it without gaps, and nothing that waits
 * is older than `floor` unless it came late.
 */
#include "decode/kvm/merge.h"

#include <stdlib.h>
#include <string.h>

#define RUNS_MAX 65536

struct run {
	size_t pos, end; /* recs[pos..end) are left */
};

struct vmt_merge {
	struct vmt_rec *recs;
	size_t count, max;
	struct run *runs; /* in order of arrival */
	uint32_t *heap;	  /* indices of runs, the earliest head first */
	size_t nr_runs;
	uint64_t newest; /* time of the newest rec waiting */
	uint64_t
		round_limit; /* newest of the round before: what is not younger may go at a round */
	uint64_t floor;	     /* time of the youngest rec handed out */
	uint64_t late;
};

struct vmt_merge *vmt_merge_new(size_t max_recs)
{
	struct vmt_merge *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->max = max_recs < 16 ? 16 : max_recs;
	m->recs = malloc(m->max * sizeof(*m->recs));
	m->runs = malloc(RUNS_MAX * sizeof(*m->runs));
	m->heap = malloc(RUNS_MAX * sizeof(*m->heap));
	if (!m->recs || !m->heap || !m->runs) {
		vmt_merge_free(m);
		return NULL;
	}
	return m;
}

void vmt_merge_free(struct vmt_merge *m)
{
	if (!m)
		return;
	free(m->recs);
	free(m->heap);
	free(m->runs);
	free(m);
}

/* By time of the head, equal times by order of arrival. */
static bool before(const struct vmt_merge *m, uint32_t a, uint32_t b)
{
	uint64_t ta = m->recs[m->runs[a].pos].time_ns, tb = m->recs[m->runs[b].pos].time_ns;

	return ta != tb ? ta < tb : a < b;
}

static void sift_down(struct vmt_merge *m, size_t at, size_t n)
{
	uint32_t moved = m->heap[at];

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= n)
			break;
		if (child + 1 < n && before(m, m->heap[child + 1], m->heap[child]))
			child++;
		if (!before(m, m->heap[child], moved))
			break;
		m->heap[at] = m->heap[child];
		at = child;
	}
	m->heap[at] = moved;
}

static void hand_out(struct vmt_merge *m, const struct vmt_rec *rec, vmt_rec_fn *emit,
		     void *context)
{
	if (rec->time_ns < m->floor)
		m->late++;
	else
		m->floor = rec->time_ns;
	emit(context, rec);
}

/* Moves what is left of each run to the front; the order of arrival stays. */
static void compact(struct vmt_merge *m)
{
	size_t left = 0, kept = 0;

	m->newest = 0;
	for (size_t r = 0; r < m->nr_runs; r++) {
		struct run run = m->runs[r];
		size_t n = run.end - run.pos;

		if (!n)
			continue;
		memmove(&m->recs[left], &m->recs[run.pos], n * sizeof(*m->recs));
		m->runs[kept++] = (struct run){ left, left + n };
		left += n;
		if (m->recs[left - 1].time_ns > m->newest)
			m->newest = m->recs[left - 1].time_ns;
	}
	m->nr_runs = kept;
	m->count = left;
}

/* The head that follows the first one, or UINT32_MAX. */
static uint32_t second_head(const struct vmt_merge *m, size_t n)
{
	if (n < 2)
		return UINT32_MAX;
	if (n == 2 || before(m, m->heap[1], m->heap[2]))
		return m->heap[1];
	return m->heap[2];
}

/* Hands out everything up to `limit` in order, at most `most` recs. */
static void drain(struct vmt_merge *m, uint64_t limit, size_t most, vmt_rec_fn *emit, void *context)
{
	size_t n = m->nr_runs;

	for (size_t i = 0; i < n; i++)
		m->heap[i] = (uint32_t)i;
	for (size_t i = n / 2; i-- > 0;)
		sift_down(m, i, n);
	while (n) {
		uint32_t first = m->heap[0], second = second_head(m, n);
		struct run *run = &m->runs[first];

		/* A run goes on alone as long as its head stays before every other one. */
		do {
			if (!most || m->recs[run->pos].time_ns > limit) {
				compact(m);
				return;
			}
			hand_out(m, &m->recs[run->pos++], emit, context);
			most--;
		} while (run->pos < run->end && (second == UINT32_MAX || before(m, first, second)));
		if (run->pos == run->end)
			m->heap[0] = m->heap[--n];
		if (n)
			sift_down(m, 0, n);
	}
	compact(m);
}

void vmt_merge_push(struct vmt_merge *m, const struct vmt_rec *rec, vmt_rec_fn *emit, void *context)
{
	if (rec->time_ns < m->floor) { /* its place has been handed out */
		hand_out(m, rec, emit, context);
		return;
	}
	if (m->count == m->max || m->nr_runs == RUNS_MAX)
		drain(m, UINT64_MAX, m->count - m->count / 2, emit, context);
	if (!m->nr_runs || rec->time_ns < m->recs[m->count - 1].time_ns)
		m->runs[m->nr_runs++] = (struct run){ m->count, m->count };
	m->recs[m->count++] = *rec;
	m->runs[m->nr_runs - 1].end = m->count;
	if (rec->time_ns > m->newest)
		m->newest = rec->time_ns;
}

void vmt_merge_round(struct vmt_merge *m, vmt_rec_fn *emit, void *context)
{
	uint64_t limit = m->round_limit;

	if (m->newest > m->round_limit)
		m->round_limit = m->newest;
	if (limit && m->count)
		drain(m, limit, m->count, emit, context);
}

void vmt_merge_flush(struct vmt_merge *m, vmt_rec_fn *emit, void *context)
{
	drain(m, UINT64_MAX, m->count, emit, context);
}

uint64_t vmt_merge_late(const struct vmt_merge *m)
{
	return m->late;
}
