// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: a bucket belongs to the quarter whose number it holds, and is emptied when a later one
 * takes its place; quarters up to `checked` are decided and never looked at again.
 */
#include "host/capture/trigger_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/cursor.h"
#include "decode/base/event.h"
#include "decode/kvm/format.h"

#define BUCKETS	      64u
#define QUARTERS      4u
#define THREADS_TAKEN (VMT_TRIGGER_THREADS / 4 * 3)
#define SECOND_NS     1000000000.0
#define TIME_MAX      INT64_MAX /* later times come of damage: sums with them would overflow */

struct bucket {
	uint64_t quarter;
	uint64_t total; /* exits, durations, or the longest wait of one thread in ns */
	uint64_t over;	/* durations above the limit */
	uint64_t above_ns;
	bool is_above;
};

struct state {
	struct vmt_trigger trigger;
	uint64_t quarter_ns;
	uint64_t limit; /* of a quarter: exits, or ns of wait */
	uint64_t start_ns, end_ns;
	struct bucket *now; /* of start_ns to end_ns; NULL: none yet */
	uint64_t checked;   /* quarter */
	unsigned int streak;
	bool fired;
	struct bucket buckets[BUCKETS];
};

struct wait {
	uint64_t quarter, ns;
};

struct thread {
	uint32_t tid; /* 0: free */
	uint32_t reason, isa;
	uint64_t exit_ns;  /* of an exit without an entry so far, 0: none */
	uint64_t entry_ns; /* of an entry without an exit so far, 0: none */
	uint64_t ready_ns; /* since when it waits for a CPU, 0: it does not */
	struct wait waits[VMT_TRIGGERS_MAX];
};

struct vmt_trigger_watch {
	size_t nr_states, nr_threads;
	bool wants_threads, wants_waits;
	bool has_exit, has_entry, has_hit;
	uint16_t exit_id, entry_id;
	uint16_t reason_at, isa_at; /* in the raw record; isa_at 0: not known */
	struct state states[VMT_TRIGGERS_MAX];
	struct thread threads[VMT_TRIGGER_THREADS];
	struct vmt_trigger_hit hit;
};

int vmt_trigger_watch_new(struct vmt_trigger_watch **out, const struct vmt_trigger *triggers,
			  size_t nr, struct vmt_diag *diag)
{
	struct vmt_trigger_watch *w;

	if (nr > VMT_TRIGGERS_MAX)
		return vmt_diag_set(diag, VMT_E_USAGE, "too many triggers", "a session has 8");
	w = calloc(1, sizeof(*w));
	if (!w)
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot watch for triggers",
				    "memory is short");
	w->nr_states = nr;
	for (size_t i = 0; i < nr; i++) {
		struct state *s = &w->states[i];
		double quarter_ns;

		s->trigger = triggers[i];
		s->quarter_ns = triggers[i].for_ns / QUARTERS;
		quarter_ns = (double)s->quarter_ns;
		s->limit = triggers[i].kind == VMT_TRIGGER_STEAL
				   ? (uint64_t)((double)triggers[i].limit / 1e5 * quarter_ns)
				   : (uint64_t)((double)triggers[i].limit / SECOND_NS * quarter_ns);
		w->wants_threads |= triggers[i].kind >= VMT_TRIGGER_PERCENTILE;
		w->wants_waits |= triggers[i].kind == VMT_TRIGGER_STEAL;
	}
	*out = w;
	return 0;
}

void vmt_trigger_watch_free(struct vmt_trigger_watch *watch)
{
	free(watch);
}

void vmt_trigger_watch_format(struct vmt_trigger_watch *w, const char *text, size_t len)
{
	struct vmt_format format;
	const struct vmt_format_field *reason, *isa;

	if (vmt_format_parse(text, len, &format, NULL))
		return;
	if (!strcmp(format.name, "kvm_entry")) {
		w->has_entry = true;
		w->entry_id = (uint16_t)format.id;
	}
	reason = vmt_format_find(&format, "exit_reason");
	isa = vmt_format_find(&format, "isa");
	if (strcmp(format.name, "kvm_exit") != 0 || !reason || reason->size != 4)
		return;
	w->has_exit = true;
	w->exit_id = (uint16_t)format.id;
	w->reason_at = reason->offset;
	w->isa_at = isa && isa->size == 4 ? isa->offset : 0;
}

bool vmt_trigger_watch_wants(const struct vmt_trigger_watch *w, uint16_t tracepoint)
{
	return (w->has_exit && tracepoint == w->exit_id) ||
	       (w->has_entry && w->wants_threads && tracepoint == w->entry_id);
}

/* ---- quarters ---- */

/* The bucket of a quarter; NULL when it was given to a later one. */
static struct bucket *bucket_of(struct state *s, uint64_t quarter)
{
	struct bucket *b = &s->buckets[quarter % BUCKETS];

	if (b->quarter > quarter)
		return NULL;
	if (b->quarter < quarter)
		*b = (struct bucket){ .quarter = quarter };
	return b;
}

static struct bucket *bucket_at(struct state *s, uint64_t time_ns)
{
	uint64_t quarter;

	if (s->now && time_ns >= s->start_ns && time_ns < s->end_ns)
		return s->now;
	quarter = time_ns / s->quarter_ns;
	s->start_ns = quarter * s->quarter_ns;
	s->end_ns = s->start_ns + s->quarter_ns;
	s->now = bucket_of(s, quarter);
	return s->now;
}

/* The percentile by nearest rank lies above the limit when fewer values than its rank do not. */
static bool percentile_is_above(const struct state *s, const struct bucket *b)
{
	uint64_t rank = (b->total * s->trigger.percentile + 99) / 100;

	return b->total - b->over < rank;
}

static void note(const struct state *s, struct bucket *b, uint64_t time_ns)
{
	bool above = s->trigger.kind == VMT_TRIGGER_PERCENTILE ? percentile_is_above(s, b)
							       : b->total > s->limit;

	if (above && !b->is_above)
		b->above_ns = time_ns;
	b->is_above = above;
}

/* ---- exits and entries ---- */

static bool is_reason(const struct vmt_trigger *t, uint32_t isa, uint32_t reason)
{
	if (isa == VMT_ISA_SVM)
		return reason == t->svm_reason;
	if (isa == VMT_ISA_VMX)
		return (reason & 0xffff) == t->vmx_reason;
	return reason == t->svm_reason || (reason & 0xffff) == t->vmx_reason;
}

/* NULL: not there, and not to be added or no room. */
static struct thread *thread_of(struct vmt_trigger_watch *w, uint32_t tid, bool add)
{
	uint32_t at = tid * UINT32_C(2654435761) >> 22;

	while (w->threads[at].tid && w->threads[at].tid != tid)
		at = (at + 1) % VMT_TRIGGER_THREADS;
	if (w->threads[at].tid)
		return &w->threads[at];
	if (!tid || !add || w->nr_threads == THREADS_TAKEN)
		return NULL;
	w->nr_threads++;
	w->threads[at].tid = tid;
	return &w->threads[at];
}

static void count(struct state *s, uint64_t time_ns, bool over)
{
	struct bucket *b = bucket_at(s, time_ns);

	if (!b)
		return;
	b->total++;
	b->over += over;
	note(s, b, time_ns);
}

static void add_duration(struct vmt_trigger_watch *w, uint32_t isa, uint32_t reason,
			 uint64_t exit_ns, uint64_t entry_ns)
{
	for (size_t i = 0; i < w->nr_states; i++) {
		struct state *s = &w->states[i];

		if (s->trigger.kind == VMT_TRIGGER_PERCENTILE &&
		    is_reason(&s->trigger, isa, reason))
			count(s, entry_ns, entry_ns - exit_ns > s->trigger.limit);
	}
}

static void add_exit(struct vmt_trigger_watch *w, uint32_t tid, uint64_t time_ns, uint32_t isa,
		     uint32_t reason)
{
	struct thread *t = w->wants_threads ? thread_of(w, tid, true) : NULL;

	for (size_t i = 0; i < w->nr_states; i++) {
		struct state *s = &w->states[i];

		if (s->trigger.kind == VMT_TRIGGER_EXITS ||
		    (s->trigger.kind == VMT_TRIGGER_REASON && is_reason(&s->trigger, isa, reason)))
			count(s, time_ns, false);
	}
	if (!t)
		return;
	if (t->entry_ns > time_ns) { /* the entry, on another CPU, was read first */
		add_duration(w, isa, reason, time_ns, t->entry_ns);
		t->entry_ns = 0;
		return;
	}
	t->exit_ns = time_ns;
	t->isa = isa;
	t->reason = reason;
}

static void add_entry(struct vmt_trigger_watch *w, uint32_t tid, uint64_t time_ns)
{
	struct thread *t = thread_of(w, tid, false);

	if (!t)
		return;
	if (!t->exit_ns || t->exit_ns > time_ns) {
		t->entry_ns = time_ns;
		return;
	}
	add_duration(w, t->isa, t->reason, t->exit_ns, time_ns);
	t->exit_ns = 0;
}

void vmt_trigger_watch_sample(struct vmt_trigger_watch *w, uint32_t tid, uint64_t time_ns,
			      const uint8_t *raw, size_t len)
{
	uint16_t id = len >= 2 ? vmt_load_u16(raw) : 0;
	uint32_t isa = VMT_ISA_UNKNOWN;

	if (time_ns > TIME_MAX)
		return;
	if (w->has_entry && id == w->entry_id && w->wants_threads)
		add_entry(w, tid, time_ns);
	if (!w->has_exit || id != w->exit_id || len < (size_t)w->reason_at + 4)
		return;
	if (w->isa_at && len >= (size_t)w->isa_at + 4)
		isa = vmt_load_u32(raw + w->isa_at);
	add_exit(w, tid, time_ns, isa, vmt_load_u32(raw + w->reason_at));
}

/* ---- waiting for a CPU ---- */

/* The thread waited from, to: divided among the quarters. */
static void add_wait_of(struct state *s, struct wait *wait, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t span = s->quarter_ns * BUCKETS;

	if (to_ns - from_ns > span)
		from_ns = to_ns - span;
	while (from_ns < to_ns) {
		struct bucket *b = bucket_at(s, from_ns);
		uint64_t end_ns = to_ns < s->end_ns ? to_ns : s->end_ns;
		uint64_t quarter = s->start_ns / s->quarter_ns;

		if (wait->quarter < quarter)
			*wait = (struct wait){ .quarter = quarter };
		if (b && wait->quarter == quarter) {
			wait->ns += end_ns - from_ns;
			if (wait->ns > b->total)
				b->total = wait->ns;
			note(s, b, end_ns);
		}
		from_ns = end_ns;
	}
}

static void add_wait(struct vmt_trigger_watch *w, struct thread *t, uint64_t to_ns)
{
	if (!t->ready_ns || t->ready_ns >= to_ns)
		return;
	for (size_t i = 0; i < w->nr_states; i++) {
		if (w->states[i].trigger.kind == VMT_TRIGGER_STEAL)
			add_wait_of(&w->states[i], &t->waits[i], t->ready_ns, to_ns);
	}
}

void vmt_trigger_watch_switch(struct vmt_trigger_watch *w, uint32_t tid, uint64_t time_ns, bool out,
			      bool ready)
{
	struct thread *t = w->wants_waits ? thread_of(w, tid, false) : NULL;

	if (!t || time_ns > TIME_MAX)
		return;
	if (!out)
		add_wait(w, t, time_ns);
	t->ready_ns = out && ready ? time_ns : 0;
}

/* ---- the decision ---- */

static bool quarter_is_above(const struct state *s, uint64_t quarter)
{
	const struct bucket *b = &s->buckets[quarter % BUCKETS];

	return b->quarter == quarter && b->is_above;
}

/* The trigger, and the mean of the three quarters before the last one. */
static void describe(const struct state *s, uint64_t last, struct vmt_trigger_hit *hit)
{
	double total = 0, over = 0, seconds = (double)s->quarter_ns * 3 / SECOND_NS;
	char text[64] = "";

	hit->time_ns = s->buckets[last % BUCKETS].above_ns;
	for (unsigned int i = 1; i < QUARTERS; i++) {
		const struct bucket *b = &s->buckets[(last - i) % BUCKETS];

		total += b->quarter == last - i ? (double)b->total : 0;
		over += b->quarter == last - i ? (double)b->over : 0;
	}
	switch (s->trigger.kind) {
	case VMT_TRIGGER_EXITS:
	case VMT_TRIGGER_REASON:
		snprintf(text, sizeof(text), "%.0f/s", total / seconds);
		break;
	case VMT_TRIGGER_PERCENTILE:
		snprintf(text, sizeof(text), "%.0f of %.0f took longer", over, total);
		break;
	case VMT_TRIGGER_STEAL:
		snprintf(text, sizeof(text), "%.1f%%", total / SECOND_NS / seconds * 100);
		break;
	}
	snprintf(hit->detail, sizeof(hit->detail), "%s: %s", s->trigger.text, text);
}

/* Decides the quarters that are over at now; true when the trigger fires, in quarter *last. */
static bool decide(struct state *s, uint64_t now_ns, uint64_t *last)
{
	uint64_t current = now_ns / s->quarter_ns;
	bool hit = false;

	if (current <= s->checked)
		return false;
	if (current - s->checked > BUCKETS)
		s->checked = current - BUCKETS;
	for (uint64_t q = s->checked + 1; q < current; q++) {
		bool above = quarter_is_above(s, q);

		s->streak = above ? s->streak + 1 : 0;
		s->fired = s->fired && above;
		if (s->streak < QUARTERS || s->fired)
			continue;
		s->fired = hit = true;
		*last = q;
	}
	s->checked = current - 1;
	if (!s->fired && s->streak + 1 >= QUARTERS && quarter_is_above(s, current)) {
		s->fired = hit = true;
		*last = current;
	}
	return hit;
}

void vmt_trigger_watch_check(struct vmt_trigger_watch *w, uint64_t now_ns)
{
	if (now_ns > TIME_MAX)
		return;
	for (size_t i = 0; w->wants_waits && i < VMT_TRIGGER_THREADS; i++) {
		struct thread *t = &w->threads[i];

		if (!t->ready_ns || t->ready_ns >= now_ns)
			continue;
		add_wait(w, t, now_ns);
		t->ready_ns = now_ns;
	}
	for (size_t i = 0; i < w->nr_states; i++) {
		uint64_t last;

		if (!decide(&w->states[i], now_ns, &last) || w->has_hit)
			continue;
		describe(&w->states[i], last, &w->hit);
		w->has_hit = true;
	}
}

bool vmt_trigger_watch_take(struct vmt_trigger_watch *w, struct vmt_trigger_hit *hit)
{
	bool found = w->has_hit;

	if (found)
		*hit = w->hit;
	w->has_hit = false;
	return found;
}
