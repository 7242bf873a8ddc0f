/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Generated streams (tests/support/pt_generate.h) against their truth: every entry and exit that
 * the stream tells comes out with every member that it tells, its time lies inside the bound that
 * is stated, and nothing comes out that did not happen, also where packets are lost, concealed or
 * cut off.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/pt/decoder.h"
#include "tests/support/pt_event_text.h"
#include "tests/support/pt_generate.h"

#define SEEDS	   12
#define MAX_EVENTS 1024

struct run {
	const struct vmt_ptgen_options *options;
	const struct vmt_ptgen *gen;
	size_t len; /* bytes of the stream that were fed */
	struct vmt_event seen[MAX_EVENTS];
	uint64_t told_before[MAX_EVENTS]; /* host TSC of the event before it */
	size_t nr_seen;
	uint64_t told;
	size_t events, timed, bounded, exact;
};

static void wrong(const struct run *r, const struct vmt_event *e, const char *what, size_t nth)
{
	char text[512];
	const struct vmt_ptgen_truth *t = nth < r->gen->nr_truth ? &r->gen->truth[nth] : NULL;

	vmt_pt_event_text(text, sizeof(text), e);
	if (!t)
		fail_msg("seed %" PRIu64 ": %s: %s", r->options->seed, what, text);
	fail_msg("seed %" PRIu64 ": %s: %s\ntruth %zu at 0x%zx: %s%s reason=%u rip=0x%" PRIx64
		 " cr3=0x%" PRIx64 " vmcs=0x%" PRIx64 " tsc=%" PRIu64 "%s%s",
		 r->options->seed, what, text, nth, t->begin, t->is_exit ? "exit" : "entry",
		 t->failed_entry ? " failed" : "", t->reason, t->rip, t->cr3, t->vmcs, t->host_tsc,
		 t->hidden ? " hidden" : "", t->certain ? " certain" : "");
}

/* A member is there exactly when the stream tells it, and then it is right. */
static bool same(const struct vmt_event *e, uint32_t has, bool told, uint64_t got, uint64_t truth)
{
	if (!(e->has & has))
		return !told;
	return got == truth;
}

static bool outside_bound(const struct vmt_event *e, const struct vmt_ptgen_truth *t)
{
	const uint64_t tsc = e->host_tsc.host_tsc;
	const uint64_t distance = tsc > t->host_tsc ? tsc - t->host_tsc : t->host_tsc - tsc;

	return e->has & VMT_HAS_HOST_TSC && e->host_tsc_error != VMT_PT_NO_BOUND &&
	       distance > e->host_tsc_error;
}

static const char *difference(const struct run *r, const struct vmt_event *e,
			      const struct vmt_ptgen_truth *t)
{
	/* What ends inside the transition may lack what stands behind. */
	const bool whole = t->certain && t->end <= r->len;

	/* Cut off before its second PIP, an entry that fails is an entry. */
	if (t->failed_entry && t->end > r->len && e->type == VMT_EVENT_ENTRY)
		return NULL;
	if ((e->type == VMT_EVENT_EXIT) != t->is_exit || e->failed_entry != t->failed_entry)
		return "another kind";
	if (outside_bound(e, t))
		return "the time lies outside its bound";
	if (!same(e, VMT_HAS_RIP, whole && t->has_rip, e->guest_rip, t->rip))
		return "RIP";
	if (!same(e, VMT_HAS_CR3, whole && t->has_cr3, e->guest_cr3, t->cr3))
		return "CR3";
	if (!same(e, VMT_HAS_VMCS, whole && t->has_vmcs, e->vmcs, t->vmcs))
		return "VMCS";
	if (!t->is_exit || t->failed_entry)
		return NULL;
	if (!same(e, VMT_HAS_REASON, whole && t->has_reason, e->reason | e->reason_flags,
		  t->reason))
		return "reason";
	if (!same(e, VMT_HAS_QUALIFICATION, whole && t->has_reason, e->qualification,
		  t->qualification))
		return "qualification";
	if (!same(e, VMT_HAS_VECTOR, whole && t->has_vector, e->vector, t->vector))
		return "vector";
	return NULL;
}

static void check_time(struct run *r, size_t event, size_t nth)
{
	const struct vmt_event *e = &r->seen[event];
	const struct vmt_ptgen_truth *t = &r->gen->truth[nth];
	if (!(e->has & VMT_HAS_HOST_TSC))
		return;
	r->timed++;
	r->bounded += e->host_tsc_error != VMT_PT_NO_BOUND;
	if (t->at_tsc && t->certain && !(r->options->scaling && t->is_exit)) {
		r->exact++;
		/* Time does not go back: an estimate that was told before may be later. */
		if (e->host_tsc.host_tsc != t->host_tsc &&
		    e->host_tsc.host_tsc != r->told_before[event])
			wrong(r, e, "a TSC packet beside it has another time", nth);
	}
}

/* Whether a truth may stay without an event. */
static bool may_lack(const struct run *r, size_t nth)
{
	const struct vmt_ptgen_truth *t = &r->gen->truth[nth];

	return t->hidden || !t->certain || t->end > r->len;
}

static bool fits(const struct run *r, size_t event, size_t nth)
{
	const struct vmt_ptgen_truth *t = &r->gen->truth[nth];

	return !t->hidden && !difference(r, &r->seen[event], t);
}

/* Says where the events and the truth part. */
static void explain(const struct run *r)
{
	size_t nth = 0;

	for (size_t i = 0; i < r->nr_seen; i++, nth++) {
		while (nth < r->gen->nr_truth && !fits(r, i, nth) && may_lack(r, nth))
			nth++;
		if (nth == r->gen->nr_truth)
			wrong(r, &r->seen[i], "it did not happen", nth);
		if (!fits(r, i, nth))
			wrong(r, &r->seen[i], difference(r, &r->seen[i], &r->gen->truth[nth]), nth);
	}
	for (; nth < r->gen->nr_truth; nth++)
		if (!may_lack(r, nth))
			break;
	fail_msg("seed %" PRIu64 ": truth %zu of %zu did not come out", r->options->seed, nth,
		 r->gen->nr_truth);
}

/*
 * Events and truth in order: each event is one truth, and each truth that must come out is one
 * event. good[i][j]: the events from i on are matched by the truth from j on.
 */
static void match(struct run *r)
{
	const size_t events = r->nr_seen, truths = r->gen->nr_truth, row = truths + 1;
	bool *good = calloc((events + 1) * row, sizeof(*good));
	size_t j = 0;

	assert_non_null(good);
	good[events * row + truths] = true;
	for (size_t i = events + 1; i-- > 0;)
		for (size_t k = truths; k-- > 0;)
			good[i * row + k] =
				(may_lack(r, k) && good[i * row + k + 1]) ||
				(i < events && good[(i + 1) * row + k + 1] && fits(r, i, k));
	if (!good[0])
		explain(r);
	for (size_t i = 0; i < events; j++)
		if (good[(i + 1) * row + j + 1] && fits(r, i, j))
			check_time(r, i++, j);
	free(good);
}

static void on_event(void *context, const struct vmt_event *e)
{
	struct run *r = context;

	if (e->type == VMT_EVENT_ENTRY || e->type == VMT_EVENT_EXIT) {
		assert_true(r->nr_seen < MAX_EVENTS);
		r->told_before[r->nr_seen] = r->told;
		r->seen[r->nr_seen++] = *e;
	}
	if (e->has & VMT_HAS_HOST_TSC)
		r->told = e->host_tsc.host_tsc;
}

static void decode(struct run *r, uint64_t seed)
{
	const struct vmt_ptgen *gen = r->gen;
	struct vmt_pt_vm vms[VMT_PTGEN_VMS_MAX];
	struct vmt_pt_decoder_options options = {
		.clock = { .mtc_freq = r->options->mtc_freq,
			   .tsc_num = gen->n,
			   .art_den = gen->d,
			   .nom_ratio = gen->nominal,
			   .reference = gen->first_tsc },
		.vms = vms,
		.nr_vms = r->options->nr_vms,
		.host_cpu = UINT32_MAX,
		.emit = on_event,
		.context = r,
	};
	struct vmt_pt_decoder *decoder;

	if (r->options->skz84)
		options.cpu = (struct vmt_pt_cpu){ true, 6, 0x55, 4 };
	if (r->options->skylake)
		options.cpu = (struct vmt_pt_cpu){ true, 6, 0x5e, 3 };
	for (unsigned int i = 0; i < r->options->nr_vms; i++)
		vms[i] = (struct vmt_pt_vm){
			.vmcs = gen->vms[i].vmcs,
			.map = { gen->vms[i].multiplier, gen->vms[i].offset, 48 },
			.has_map = true,
		};
	decoder = vmt_pt_decoder_new(&options);
	assert_non_null(decoder);
	for (size_t at = 0; at < r->len;) {
		size_t n = 1 + (size_t)(seed % 4096);

		seed = seed * 6364136223846793005 + 1442695040888963407;
		n = n < r->len - at ? n : r->len - at;
		vmt_pt_decoder_feed(decoder, gen->stream.bytes + at, n);
		at += n;
	}
	vmt_pt_decoder_end(decoder);
	vmt_pt_decoder_free(decoder);
}

static void run_one(struct run *r, size_t len)
{
	r->len = len;
	r->nr_seen = 0;
	r->told = 0;
	decode(r, r->options->seed);
	r->events += r->nr_seen;
	match(r);
}

/* Runs a setting with some seeds, whole and cut off anywhere. */
static const struct run *run_setting(struct vmt_ptgen_options options)
{
	static struct run r;
	const uint64_t first = 1000 * options.seed;

	r.options = &options;
	r.events = r.timed = r.bounded = r.exact = 0;
	for (unsigned int i = 0; i < SEEDS; i++) {
		struct vmt_ptgen gen;

		options.seed = first + i;
		vmt_ptgen_run(&gen, &options);
		r.gen = &gen;
		run_one(&r, gen.stream.len);
		for (unsigned int cut = 1; cut < 4; cut++)
			run_one(&r, gen.stream.len * (cut * 7 + i % 12) / 40);
		vmt_ptgen_free(&gen);
	}
	r.options = NULL;
	r.gen = NULL;
	return &r;
}

static const struct vmt_ptgen_options base = {
	.seed = 7,
	.rounds = 120,
	.nr_vms = 3,
	.event_trace = true,
	.branch = true,
	.tsc = true,
	.mtc = true,
	.cyc = true,
	.mtc_freq = 3,
	.offset = true,
	.psb = 20,
	.cbr_change = 5,
};

static void every_transition_of_a_whole_stream(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		struct vmt_ptgen_options o = base;
		const struct run *r;

		o.seed += i;
		o.event_trace = i & 1;
		o.branch = i & 2;
		o.scaling = i & 4;
		o.late_failure = 100;
		r = run_setting(o);
		assert_true(r->timed > r->events / 2 && r->bounded > r->events / 2);
		assert_true(r->exact > r->events / 20);
	}
}

static void time_from_each_mix_of_packets(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		struct vmt_ptgen_options o = base;

		o.seed += 100 + i;
		o.tsc = true;
		o.mtc = i & 1;
		o.cyc = i & 2;
		o.mtc_freq = i & 4 ? 9 : 0;
		run_setting(o);
	}
}

static void nothing_is_known_of_time_without_tsc(void **state)
{
	struct vmt_ptgen_options o = base;
	const struct run *r;

	(void)state;
	o.seed += 200;
	o.tsc = false;
	r = run_setting(o);
	assert_true(r->events && !r->timed);
}

static void none_invented_across_overflows(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct vmt_ptgen_options o = base;

		o.seed += 300 + i;
		o.event_trace = i & 1;
		o.branch = i & 2;
		o.overflow = 100;
		run_setting(o);
	}
}

static void none_invented_across_damage(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct vmt_ptgen_options o = base;

		o.seed += 400 + i;
		o.event_trace = i & 1;
		o.branch = i & 2;
		o.damage = 60;
		o.overflow = 30;
		run_setting(o);
	}
}

static void none_invented_when_concealed(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		struct vmt_ptgen_options o = base;
		const struct run *r;

		o.seed += 500 + i;
		o.conceal = true;
		o.event_trace = i & 1;
		o.branch = i & 2;
		o.guest_only = i & 4;
		o.overflow = 30;
		r = run_setting(o);
		assert_int_equal(r->events, 0);
	}
}

static void guest_only_streams(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		struct vmt_ptgen_options o = base;

		o.seed += 600 + i;
		o.guest_only = true;
		o.nr_vms = 1;
		o.event_trace = i & 1;
		o.branch = i & 2;
		o.offset = i & 4;
		run_setting(o);
	}
}

static void corrupt_tma_in_guests(void **state)
{
	struct vmt_ptgen_options o = base;

	(void)state;
	o.seed += 700;
	o.skz84 = true;
	run_setting(o);
}

static void overflows_of_skylake(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct vmt_ptgen_options o = base;

		o.seed += 800 + i;
		o.event_trace = i & 1;
		o.branch = i & 2;
		o.skylake = true;
		o.overflow = 100;
		run_setting(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_transition_of_a_whole_stream),
		cmocka_unit_test(time_from_each_mix_of_packets),
		cmocka_unit_test(nothing_is_known_of_time_without_tsc),
		cmocka_unit_test(none_invented_across_overflows),
		cmocka_unit_test(none_invented_across_damage),
		cmocka_unit_test(none_invented_when_concealed),
		cmocka_unit_test(guest_only_streams),
		cmocka_unit_test(corrupt_tma_in_guests),
		cmocka_unit_test(overflows_of_skylake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
