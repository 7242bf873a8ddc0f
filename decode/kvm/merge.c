/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Recs wait in one array in order of arrival, cut into runs: a run is a stretch whose times do not
 * fall, as one ring gives it. A heap over the runs' first recs stays between calls, so that a round
 * costs what it hands out and no more, whatever the input looks like.
 *
 * Invariant: runs[] are in order of arrival; heap[] holds every run that has recs left, exactly
 * once, with the time of its first one; live <= max_recs is the sum of what they have left; no rec
 * that waits is older than `floor`.
 */
#include "decode/kvm/merge.h"

#include <stdlib.h>
#include <string.h>

struct run {
	uint32_t pos, end; /* recs[pos..end) are left */
};

/* When, and by which run: equal times go in order of arrival. */
struct head {
	uint64_t time_ns;
	uint64_t who; /* run << 32 | leaf of the tree */
};

__extension__ typedef unsigned __int128 u128;

/*
 * A tournament over the runs that are being handed out: tree[LEAVES..] are their heads, tree[n] is
 * the earlier of tree[2n] and tree[2n + 1], so that the next head costs one comparison a level and
 * no branch that depends on it. A run that is done has the head DONE.
 */
#define LEAVES_MAX 1024u
#define TIME_DONE  UINT64_MAX /* later than any rec */

/* Where a thread ran last, by the hash of its number. */
struct place {
	uint32_t tid, cpu;
};
#define PLACES 4096u

struct vmt_merge {
	struct vmt_rec *recs;
	struct run *runs;
	struct head *heap; /* the earliest first */
	struct head tree[2 * LEAVES_MAX];
	uint32_t max, cap; /* of what waits, of the arrays */
	uint32_t used, live, nr_runs, nr_heap;
	bool open;	      /* the newest run still waits, and ends at `used` */
	uint64_t newest;      /* time of the newest rec that was pushed */
	uint64_t round_limit; /* what may go at the next round: newest of the round before */
	uint64_t floor;	      /* time of the youngest rec handed out */
	uint64_t late;
	uint64_t slack_ns;	    /* see vmt_merge_relax */
	unsigned int strict_rounds; /* that are still to be handed out in strict order */
	struct place last;	    /* of the newest rec that was pushed */
	struct place places[PLACES];
};

/*
 * All recs that are pushed between two rounds are handed out by the end of the second one, so that
 * what makes strict order necessary does so for two rounds.
 */
#define STRICT_ROUNDS 2u

#define MIN_RECS 16u
#define MAX_RECS (1u << 30)

struct vmt_merge *vmt_merge_new(size_t max_recs)
{
	struct vmt_merge *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->max = max_recs < MIN_RECS   ? MIN_RECS
		 : max_recs > MAX_RECS ? MAX_RECS
				       : (uint32_t)max_recs;
	/* A quarter more, so that closing the gaps of what went is rare. */
	m->cap = m->max + m->max / 4;
	m->recs = malloc(m->cap * sizeof(*m->recs));
	m->runs = malloc(m->cap * sizeof(*m->runs));
	m->heap = malloc(m->cap * sizeof(*m->heap));
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

/* ---- the heap ---- */

static struct head head_of(uint64_t time_ns, uint32_t run, uint32_t leaf)
{
	return (struct head){ .time_ns = time_ns, .who = (uint64_t)run << 32 | leaf };
}

static uint32_t run_of(struct head head)
{
	return (uint32_t)(head.who >> 32);
}

/* Without a branch: which one is earlier is anybody's guess. */
static bool before(struct head a, struct head b)
{
	return ((u128)a.time_ns << 64 | a.who) < ((u128)b.time_ns << 64 | b.who);
}

static void heap_add(struct vmt_merge *m, struct head added)
{
	uint32_t at = m->nr_heap++;

	while (at) {
		uint32_t parent = (at - 1) / 2;

		if (!before(added, m->heap[parent]))
			break;
		m->heap[at] = m->heap[parent];
		at = parent;
	}
	m->heap[at] = added;
}

/*
 * Puts a head in place of the first one: the gap goes down along the earlier children to a leaf,
 * and from there the head goes up. The next rec of a ring that just gave one belongs near the
 * leaves, so that going up is short, and going down needs no comparison with it.
 */
static void heap_replace_first(struct vmt_merge *m, struct head moved)
{
	struct head *heap = m->heap;
	uint32_t at = 0, child;

	while ((child = 2 * at + 2) < m->nr_heap) {
		child -= before(heap[child - 1], heap[child]);
		heap[at] = heap[child];
		at = child;
	}
	if (child == m->nr_heap) {
		heap[at] = heap[child - 1];
		at = child - 1;
	}
	while (at) {
		uint32_t parent = (at - 1) / 2;

		if (!before(moved, heap[parent]))
			break;
		heap[at] = heap[parent];
		at = parent;
	}
	heap[at] = moved;
}

/* The head behind the first one; with no other, one that is never before anything. */
static struct head heap_second(const struct vmt_merge *m)
{
	if (m->nr_heap < 2)
		return head_of(UINT64_MAX, UINT32_MAX, 0);
	if (m->nr_heap == 2 || before(m->heap[1], m->heap[2]))
		return m->heap[1];
	return m->heap[2];
}

/* ---- handing out ---- */

static void hand_out(struct vmt_merge *m, const struct vmt_rec *rec, vmt_rec_fn *emit,
		     void *context)
{
	if (rec->time_ns < m->floor)
		m->late++;
	else
		m->floor = rec->time_ns;
	emit(context, rec);
}

/* Each run is read in order, but one rec here and one there: more streams than a CPU foresees. */
static void prefetch(const struct vmt_rec *rec)
{
	__builtin_prefetch((const uint8_t *)rec + 2 * sizeof(*rec));
	__builtin_prefetch((const uint8_t *)rec + 3 * sizeof(*rec) - 1);
}

/*
 * Hands out from the first run, as long as its head stays before every other one and within the
 * limit; at most `most` recs. Returns how many.
 */
static uint32_t drain_first(struct vmt_merge *m, uint64_t limit, uint32_t most, vmt_rec_fn *emit,
			    void *context)
{
	struct head head = m->heap[0], second = heap_second(m);
	struct run *run = &m->runs[run_of(head)];
	uint32_t pos = run->pos, first = pos;

	do {
		prefetch(&m->recs[pos]);
		hand_out(m, &m->recs[pos++], emit, context);
		if (pos == run->end)
			break;
		head.time_ns = m->recs[pos].time_ns;
	} while (pos - first < most && head.time_ns <= limit && before(head, second));
	run->pos = pos;
	m->live -= pos - first;
	if (pos == run->end) {
		if (run_of(head) == m->nr_runs - 1)
			m->open = false;
		head = m->heap[--m->nr_heap];
	}
	if (m->nr_heap)
		heap_replace_first(m, head);
	return pos - first;
}

/* Takes the earliest run off the heap. */
static struct head heap_pop(struct vmt_merge *m)
{
	struct head first = m->heap[0], last = m->heap[--m->nr_heap];

	if (m->nr_heap)
		heap_replace_first(m, last);
	return first;
}

/* ---- the tree ---- */

/* A mask in place of a branch, which a compiler would make of a choice. */
static struct head earlier(struct head a, struct head b)
{
	uint64_t second = (uint64_t)0 - before(b, a);

	a.time_ns ^= (a.time_ns ^ b.time_ns) & second;
	a.who ^= (a.who ^ b.who) & second;
	return a;
}

/* Moves the runs that begin up to `limit` into the tree; returns its width, 0: too many. */
static uint32_t plant(struct vmt_merge *m, uint64_t limit)
{
	uint32_t n = 0, width = 1;

	while (n < LEAVES_MAX && m->nr_heap && m->heap[0].time_ns <= limit)
		m->tree[n++] = heap_pop(m);
	if (m->nr_heap && m->heap[0].time_ns <= limit) {
		while (n)
			heap_add(m, m->tree[--n]);
		return 0;
	}
	while (width < n)
		width *= 2;
	for (uint32_t i = 2 * width; i-- > width;) {
		struct head head = head_of(TIME_DONE, UINT32_MAX, i);

		if (i - width < n)
			head = head_of(m->tree[i - width].time_ns, run_of(m->tree[i - width]), i);
		m->tree[i] = head;
	}
	for (uint32_t i = width; i-- > 1;)
		m->tree[i] = earlier(m->tree[2 * i], m->tree[2 * i + 1]);
	return width;
}

/* Puts the runs that are not done back. */
static void fell(struct vmt_merge *m, uint32_t width)
{
	for (uint32_t i = width; i < 2 * width; i++) {
		if (m->tree[i].time_ns != TIME_DONE)
			heap_add(m, m->tree[i]);
	}
}

/* The run's head is handed out: the next one, or none, takes part in its place. */
static void advance(struct vmt_merge *m, struct head head)
{
	struct run *run = &m->runs[run_of(head)];
	uint32_t leaf = (uint32_t)head.who;

	run->pos++;
	m->live--;
	if (run->pos < run->end) {
		head.time_ns = m->recs[run->pos].time_ns;
	} else {
		if (run_of(head) == m->nr_runs - 1)
			m->open = false;
		head = head_of(TIME_DONE, UINT32_MAX, leaf);
	}
	m->tree[leaf] = head;
	for (uint32_t i = leaf; i > 1; i /= 2) {
		head = earlier(head, m->tree[i ^ 1]);
		m->tree[i / 2] = head;
	}
}

/*
 * The stretch of one thread at the beginning of a run, as far as the slack goes. Every rec in it is
 * within the slack of the earliest one that waits.
 */
static uint32_t hand_out_stretch(struct vmt_merge *m, struct head head, uint64_t limit,
				 vmt_rec_fn *emit, void *context)
{
	struct run *run = &m->runs[run_of(head)];
	uint32_t first = run->pos, end = first, tid = m->recs[first].tid;

	if (head.time_ns + m->slack_ns < limit && head.time_ns + m->slack_ns >= m->slack_ns)
		limit = head.time_ns + m->slack_ns;
	do {
		if (m->recs[end].time_ns > m->floor)
			m->floor = m->recs[end].time_ns;
		emit(context, &m->recs[end++]);
	} while (end < run->end && m->recs[end].tid == tid && m->recs[end].time_ns <= limit);
	run->pos = end - 1;
	m->live -= end - 1 - first;
	advance(m, head);
	return end - first;
}

/* Hands out what is in the tree up to `limit`, at most `most` recs; returns how many. */
static uint32_t harvest(struct vmt_merge *m, uint64_t limit, uint32_t most, vmt_rec_fn *emit,
			void *context)
{
	bool relaxed = m->slack_ns && !m->strict_rounds && most == m->live;
	uint32_t n = 0;

	while (n < most && m->tree[1].time_ns <= limit && m->tree[1].time_ns != TIME_DONE) {
		struct head head = m->tree[1];
		const struct vmt_rec *rec = &m->recs[m->runs[run_of(head)].pos];

		if (relaxed) {
			n += hand_out_stretch(m, head, limit, emit, context);
			continue;
		}
		prefetch(rec);
		advance(m, head);
		hand_out(m, rec, emit, context);
		n++;
	}
	return n;
}

/* Hands out everything up to `limit` in order, at most `most` recs. */
static void drain(struct vmt_merge *m, uint64_t limit, uint32_t most, vmt_rec_fn *emit,
		  void *context)
{
	while (m->nr_heap && most && m->heap[0].time_ns <= limit) {
		uint32_t width = m->nr_heap > 1 ? plant(m, limit) : 0;

		if (!width) {
			most -= drain_first(m, limit, most, emit, context);
			continue;
		}
		most -= harvest(m, limit, most, emit, context);
		fell(m, width);
	}
	if (!m->live) {
		m->used = 0;
		m->nr_runs = 0;
	}
}

/* Closes the gaps: moves what is left to the front; the order of arrival stays. */
static void compact(struct vmt_merge *m)
{
	uint32_t left = 0, kept = 0;

	m->nr_heap = 0;
	for (uint32_t r = 0; r < m->nr_runs; r++) {
		struct run run = m->runs[r];
		uint32_t n = run.end - run.pos;

		if (!n)
			continue;
		memmove(&m->recs[left], &m->recs[run.pos], n * sizeof(*m->recs));
		m->runs[kept] = (struct run){ left, left + n };
		heap_add(m, head_of(m->recs[left].time_ns, kept, 0));
		kept++;
		left += n;
	}
	m->nr_runs = kept;
	m->used = left;
}

/* A rec without a time keeps its place: it counts as simultaneous with the newest one. */
static uint64_t time_of(const struct vmt_merge *m, const struct vmt_rec *rec)
{
	uint64_t time_ns = rec->flags & VMT_REC_HAS_TIME ? rec->time_ns : m->newest;

	return time_ns < TIME_DONE ? time_ns : TIME_DONE - 1;
}

/* Whether the rec concerns no thread but its own, which was on this CPU when it was last seen. */
static bool keeps_apart(struct vmt_merge *m, const struct vmt_rec *rec)
{
	struct place *place = &m->places[rec->tid % PLACES];
	struct place before = *place, now = { rec->tid, rec->cpu };

	if (rec->kind == VMT_REC_LOST || rec->kind == VMT_REC_SCHED_SWITCH ||
	    rec->kind == VMT_REC_SCHED_WAKING || !(rec->flags & VMT_REC_HAS_TIME) ||
	    rec->cpu == UINT32_MAX)
		return false;
	if (!rec->tid) /* an idle task: no thread at all */
		return true;
	m->last = *place = now;
	return (!before.tid && !before.cpu) || (before.tid == now.tid && before.cpu == now.cpu);
}

static void watch_order(struct vmt_merge *m, const struct vmt_rec *rec)
{
	bool same = rec->tid == m->last.tid && rec->cpu == m->last.cpu &&
		    rec->kind < VMT_REC_SCHED_SWITCH && rec->kind > VMT_REC_LOST;

	if (!same && !keeps_apart(m, rec))
		m->strict_rounds = STRICT_ROUNDS;
}

void vmt_merge_relax(struct vmt_merge *m, uint64_t slack_ns)
{
	if (slack_ns && !m->slack_ns) /* what waits was not watched */
		m->strict_rounds = STRICT_ROUNDS;
	m->slack_ns = slack_ns;
}

struct vmt_rec *vmt_merge_slot(struct vmt_merge *m)
{
	if (m->used == m->cap)
		compact(m);
	return &m->recs[m->used];
}

void vmt_merge_take(struct vmt_merge *m, vmt_rec_fn *emit, void *context)
{
	struct vmt_rec *rec = &m->recs[m->used];
	uint64_t time_ns = time_of(m, rec);

	if (time_ns < m->floor) { /* its place has been handed out */
		hand_out(m, rec, emit, context);
		return;
	}
	if (m->slack_ns)
		watch_order(m, rec);
	if (m->live == m->max) {
		m->strict_rounds = STRICT_ROUNDS;
		drain(m, UINT64_MAX, m->max / 2, emit, context);
	}
	if (m->open && time_ns >= m->recs[m->used - 1].time_ns) {
		m->runs[m->nr_runs - 1].end++;
	} else {
		m->runs[m->nr_runs] = (struct run){ m->used, m->used + 1 };
		heap_add(m, head_of(time_ns, m->nr_runs++, 0));
		m->open = true;
	}
	m->used++;
	rec->time_ns = time_ns;
	m->live++;
	if (time_ns > m->newest)
		m->newest = time_ns;
}

void vmt_merge_push(struct vmt_merge *m, const struct vmt_rec *rec, vmt_rec_fn *emit, void *context)
{
	*vmt_merge_slot(m) = *rec;
	vmt_merge_take(m, emit, context);
}

void vmt_merge_round(struct vmt_merge *m, vmt_rec_fn *emit, void *context)
{
	uint64_t limit = m->round_limit;

	m->round_limit = m->newest;
	if (limit)
		drain(m, limit, m->live, emit, context);
	m->strict_rounds -= m->strict_rounds > 0;
	/* Stay within the cache: what waits is most often a round or two. */
	if (m->live < m->used / 4)
		compact(m);
}

void vmt_merge_flush(struct vmt_merge *m, vmt_rec_fn *emit, void *context)
{
	drain(m, UINT64_MAX, m->live, emit, context);
}

uint64_t vmt_merge_late(const struct vmt_merge *m)
{
	return m->late;
}
