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

#define SEEDS	   6
#define LONG_SEEDS 150
#define MAX_EVENTS 4096

struct run {
	const struct vmt_ptgen_options *options;
	const struct vmt_ptgen *gen;
	size_t len; /* bytes of the stream that were fed */
	struct vmt_event seen[MAX_EVENTS];
	uint64_t told_before[MAX_EVENTS]; /* host TSC of the event before it */
	size_t nr_seen;
	uint64_t told;
	bool check_times;
	size_t events, timed, bounded, exact;
	size_t kinds[VMT_PTGEN_NOTE + 1]; /* of the truths that came out */
};

static const char *const kinds[] = { "entry", "exit", "failed entry", "note" };

static void wrong(const struct run *r, const struct vmt_event *e, const char *what, size_t nth)
{
	const struct vmt_ptgen_options *o = r->options;
	const struct vmt_ptgen_truth *t = nth < r->gen->nr_truth ? &r->gen->truth[nth] : NULL;
	char text[1024], places[96];

	if (getenv("DUMP")) { FILE *f = fopen(getenv("DUMP"), "w"); fwrite(r->gen->stream.bytes, 1, r->len, f); fclose(f);
		for (size_t i = nth > 4 ? nth - 4 : 0; i < nth + 4 && i < r->gen->nr_truth; i++) { const struct vmt_ptgen_truth *t1 = &r->gen->truth[i];
		fprintf(stderr, "  T%zu 0x%zx-0x%zx %s %s%s%s rip %lx cr3 %lx vmcs %lx tsc %lu has %d%d%d\n", i, t1->begin, t1->end, kinds[t1->kind], t1->note ? t1->note : "", t1->hidden ? " hidden": "", t1->certain ? " certain":"", t1->rip, t1->cr3, t1->vmcs, t1->host_tsc, t1->has_rip, t1->has_cr3, t1->has_vmcs); }
		size_t at = 0; while (at < r->nr_seen && &r->seen[at] != e) at++;
		for (size_t i = at > 4 ? at - 4 : 0; i < at + 3 && i < r->nr_seen; i++) fprintf(stderr, "  E%zu %s\n", i, vmt_pt_event_text(text, sizeof(text), &r->seen[i])); }
	vmt_pt_event_text(text, sizeof(text), e);
	snprintf(places, sizeof(places), "overflow_at %zu psb_at %zu damage_at %zu of %zu bytes",
		 o->overflow_at, o->psb_at, o->damage_at, r->len);
	if (!t)
		fail_msg("seed %" PRIu64 ", %s: %s: %s", o->seed, places, what, text);
	fail_msg("seed %" PRIu64 ", %s: %s: %s\ntruth %zu at 0x%zx: %s %s reason=%u rip=0x%" PRIx64
		 " cr3=0x%" PRIx64 " vmcs=0x%" PRIx64 " tsc=%" PRIu64 "%s%s",
		 o->seed, places, what, text, nth, t->begin, kinds[t->kind], t->note ? t->note : "",
		 t->reason, t->rip, t->cr3, t->vmcs, t->host_tsc, t->hidden ? " hidden" : "",
		 t->certain ? " certain" : "");
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

static bool same_kind(const struct vmt_event *e, const struct vmt_ptgen_truth *t, bool whole)
{
	static const enum vmt_event_type types[] = { VMT_EVENT_ENTRY, VMT_EVENT_EXIT,
						     VMT_EVENT_EXIT, VMT_EVENT_NOTE };

	if (e->type != types[t->kind] || e->failed_entry != (t->kind == VMT_PTGEN_FAILED))
		return false;
	if (t->kind != VMT_PTGEN_NOTE || !strcmp(e->name, t->note))
		return true;
	/* Without its EVD a page fault is an interruption. */
	return !whole && !strcmp(e->name, "pt_intr") && !strcmp(t->note, "pt_page_fault");
}

static const char *difference(const struct run *r, const struct vmt_event *e,
			      const struct vmt_ptgen_truth *t)
{
	/* What ends inside the transition may lack what stands behind. */
	const bool whole = t->certain && t->end <= r->len;

	/* Cut off before its second PIP, an entry that fails is an entry. */
	if (t->kind == VMT_PTGEN_FAILED && !whole && e->type == VMT_EVENT_ENTRY)
		return NULL;
	if (!same_kind(e, t, whole))
		return "another kind";
	if (r->check_times && outside_bound(e, t))
		return "the time lies outside its bound";
	if (!t->rip_unclear && !same(e, VMT_HAS_RIP, whole && t->has_rip, e->guest_rip, t->rip))
		return "RIP";
	if (!same(e, VMT_HAS_CR3, whole && t->has_cr3, e->guest_cr3, t->cr3))
		return "CR3";
	if (!same(e, VMT_HAS_VMCS, whole && t->has_vmcs, e->vmcs, t->vmcs))
		return "VMCS";
	if (t->kind == VMT_PTGEN_FAILED)
		return NULL;
	if (!same(e, VMT_HAS_REASON, whole && t->has_reason, e->reason | e->reason_flags,
		  t->reason))
		return "reason";
	if (!same(e, VMT_HAS_QUALIFICATION, whole && t->has_reason, e->qualification,
		  t->qualification))
		return "qualification";
	if (!same(e, VMT_HAS_VECTOR, whole && t->has_vector, e->vector, t->vector))
		return "vector";
	if (!same(e, VMT_HAS_VALUE, whole && t->has_value, (uint64_t)e->value, t->value))
		return "value";
	return NULL;
}

static void check_time(struct run *r, size_t event, size_t nth)
{
	const struct vmt_event *e = &r->seen[event];
	const struct vmt_ptgen_truth *t = &r->gen->truth[nth];

	r->kinds[t->kind]++;
	if (!(e->has & VMT_HAS_HOST_TSC) || !r->check_times)
		return;
	r->timed++;
	r->bounded += e->host_tsc_error != VMT_PT_NO_BOUND;
	if (t->at_tsc && t->certain && (t->kind == VMT_PTGEN_ENTRY || !r->options->scaling)) {
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
	wrong(r, &r->seen[r->nr_seen - 1], "the last; this did not come out", nth);
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

	if (e->type == VMT_EVENT_ENTRY || e->type == VMT_EVENT_EXIT || e->type == VMT_EVENT_NOTE) {
		assert_true(r->nr_seen < MAX_EVENTS);
		r->told_before[r->nr_seen] = r->told;
		r->seen[r->nr_seen++] = *e;
	}
	if (e->has & VMT_HAS_HOST_TSC)
		r->told = e->host_tsc.host_tsc;
}

/* A processor that has the errata of these settings. */
static struct vmt_pt_cpu cpu_of(const struct vmt_ptgen_options *o)
{
	static const uint8_t models[] = { 0x3d, 0x5e, 0x55, 0x8f, 0x7e, 0x97, 0x5c, 0x7a };

	for (size_t i = 0; o->errata && i < sizeof(models); i++) {
		const struct vmt_pt_cpu cpu = { true, 6, models[i], 1 };

		if (vmt_pt_errata_of(&cpu) == o->errata)
			return cpu;
	}
	return (struct vmt_pt_cpu){ 0 };
}

/* In pieces of any size; a VM's map changes where the host changed it. */
static void feed(struct run *r, struct vmt_pt_decoder *decoder, struct vmt_pt_vm *vms,
		 uint64_t seed)
{
	const struct vmt_ptgen *gen = r->gen;
	size_t step = 0;

	for (size_t at = 0; at < r->len;) {
		size_t n = 1 + (size_t)(seed % 4096), end = r->len;

		for (; step < gen->nr_steps && gen->steps[step].at <= at; step++)
			vms[gen->steps[step].vm].map.offset = gen->steps[step].offset;
		if (step < gen->nr_steps && gen->steps[step].at < end)
			end = gen->steps[step].at;
		seed = seed * 6364136223846793005 + 1442695040888963407;
		n = n < end - at ? n : end - at;
		vmt_pt_decoder_feed(decoder, gen->stream.bytes + at, n);
		at += n;
	}
}

static void decode(struct run *r, uint64_t seed)
{
	const struct vmt_ptgen *gen = r->gen;
	struct vmt_pt_vm vms[VMT_PTGEN_VMS_MAX];
	const struct vmt_pt_decoder_options options = {
		.cpu = cpu_of(r->options),
		.clock = { .mtc_freq = r->options->mtc_freq,
			   .tsc_num = gen->n,
			   .art_den = gen->d,
			   .nom_ratio = gen->nominal,
			   .reference = gen->first_tsc },
		.event_trace = r->options->event_trace,
		.vms = vms,
		.nr_vms = r->options->nr_vms,
		.host_cpu = UINT32_MAX,
		.emit = on_event,
		.context = r,
	};
	struct vmt_pt_decoder *decoder;
	struct vmt_ledger ledger;

	for (unsigned int i = 0; i < r->options->nr_vms; i++)
		vms[i] = (struct vmt_pt_vm){
			.vmcs = gen->vms[i].vmcs,
			.map = { gen->vms[i].multiplier, gen->vms[i].offset, 48 },
			.has_map = true,
		};
	decoder = vmt_pt_decoder_new(&options);
	assert_non_null(decoder);
	feed(r, decoder, vms, seed);
	vmt_pt_decoder_end(decoder);
	ledger = vmt_pt_decoder_ledger(decoder);
	assert_int_equal(ledger.bytes_total, r->len);
	assert_int_equal(ledger.bytes_decoded + ledger.bytes_skipped, r->len);
	vmt_pt_decoder_free(decoder);
}

static void run_one(struct run *r, size_t len)
{
	r->len = len;
	r->nr_seen = 0;
	r->told = 0;
	decode(r, r->options->seed);
	r->events += r->nr_seen;
	if (!vmt_ptgen_ambiguous(r->options))
		match(r);
}

static bool is_long(void)
{
	const char *text = getenv("VMT_TEST_LONG");

	return text && *text && strcmp(text, "0") != 0;
}

static struct run *run_of(const struct vmt_ptgen_options *options)
{
	static struct run r;

	memset(&r, 0, sizeof(r));
	r.options = options;
	/* The TSC packet of a guest that hides is taken for the host's: with an offset it lies. */
	r.check_times = true;
	for (unsigned int i = 0; i < options->nr_vms; i++)
		if (options->conceal[i] && (options->offset || options->scaling))
			r.check_times = false;
	return &r;
}

/* Runs a setting with some seeds, whole and cut off anywhere. */
static const struct run *run_setting(struct vmt_ptgen_options options)
{
	const unsigned int seeds = is_long() ? LONG_SEEDS : SEEDS;
	struct run *r = run_of(&options);
	const uint64_t first = 1000 * options.seed;

	for (unsigned int i = 0; i < seeds; i++) {
		struct vmt_ptgen gen;

		options.seed = first + i;
		vmt_ptgen_run(&gen, &options);
		r->gen = &gen;
		run_one(r, gen.stream.len);
		for (unsigned int cut = 1; cut < 4; cut++)
			run_one(r, gen.stream.len * (cut * 7 + i % 12) / 40);
		vmt_ptgen_free(&gen);
	}
	r->options = NULL;
	r->gen = NULL;
	return r;
}

static void run_at(struct run *r, struct vmt_ptgen_options *options)
{
	struct vmt_ptgen gen;

	vmt_ptgen_run(&gen, options);
	r->gen = &gen;
	run_one(r, gen.stream.len);
	vmt_ptgen_free(&gen);
}

/* A short stream with a loss, a PSB+ or bad bytes before each of its packets, and cut off behind
 * each of its bytes. */
static void run_every_place(struct vmt_ptgen_options options)
{
	const unsigned int seeds = is_long() ? LONG_SEEDS / 5 : 2;
	const uint64_t first = 1000 * options.seed;
	struct run *r = run_of(&options);

	for (unsigned int i = 0; i < seeds; i++) {
		struct vmt_ptgen gen;
		size_t packets;

		options.seed = first + i;
		vmt_ptgen_run(&gen, &options);
		packets = gen.nr_packets;
		r->gen = &gen;
		for (size_t len = 1; len <= gen.stream.len; len++)
			run_one(r, len);
		vmt_ptgen_free(&gen);
		for (size_t at = 1; at <= packets; at++) {
			options.overflow_at = at;
			run_at(r, &options);
			options.overflow_at = 0;
			options.psb_at = at;
			run_at(r, &options);
			options.psb_at = 0;
			options.damage_at = at;
			run_at(r, &options);
			options.damage_at = 0;
		}
	}
}

static const struct vmt_ptgen_options base = {
	.seed = 7,
	.rounds = 100,
	.nr_vms = 3,
	.event_trace = true,
	.branch = true,
	.tsc = true,
	.mtc = true,
	.cyc = true,
	.pip_at_enabling = true,
	.mtc_freq = 3,
	.offset = true,
	.psb = 20,
	.cbr_change = 5,
	.events = 60,
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
		o.abort = 20;
		o.smm = 30;
		r = run_setting(o);
		assert_true(r->timed > r->events / 2 && r->bounded > r->events / 2);
		assert_true(r->exact > r->events / 40);
		assert_true(r->kinds[VMT_PTGEN_ENTRY] && r->kinds[VMT_PTGEN_EXIT]);
		if (o.event_trace || o.branch)
			assert_true(r->kinds[VMT_PTGEN_FAILED]);
		if (o.event_trace)
			assert_true(r->kinds[VMT_PTGEN_NOTE]);
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

static void a_map_that_changes_in_time(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct vmt_ptgen_options o = base;

		o.seed += 150 + i;
		o.map_step = 200;
		o.scaling = i & 1;
		o.overflow = i & 2 ? 50 : 0;
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
	for (unsigned int i = 0; i < 8; i++) {
		struct vmt_ptgen_options o = base;

		o.seed += 300 + i;
		o.event_trace = i & 1;
		o.branch = i & 2;
		o.filter = i & 4 ? 30 : 0;
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
		memset(o.conceal, VMT_PTGEN_CONCEAL_ALL, sizeof(o.conceal));
		o.event_trace = i & 1;
		o.branch = i & 2;
		o.tracing = i & 4 ? VMT_PTGEN_GUEST_ONLY : VMT_PTGEN_SYSTEM;
		o.overflow = 30;
		r = run_setting(o);
		assert_int_equal(r->kinds[VMT_PTGEN_ENTRY], 0);
		assert_int_equal(r->kinds[VMT_PTGEN_EXIT], 0);
	}
}

/* Each of the controls, alone and with others, with and without Event Trace. */
static void each_control_that_conceals(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 64; i++) {
		struct vmt_ptgen_options o = base;

		o.seed += 900 + i;
		memset(o.conceal, (int)(i & VMT_PTGEN_CONCEAL_ALL), sizeof(o.conceal));
		o.event_trace = i & 8;
		o.branch = i & 16;
		o.offset = false;
		o.overflow = i & 32 ? 40 : 0;
		o.filter = o.event_trace && o.conceal[0] & VMT_PTGEN_CONCEAL_ENTRY ? 20 : 0;
		run_setting(o);
	}
}

static void guests_of_different_settings_on_one_cpu(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 32; i++) {
		struct vmt_ptgen_options o = base;

		o.seed += 1000 + i;
		o.nr_vms = 4;
		for (unsigned int vm = 1; vm < 4; vm++)
			o.conceal[vm] = (uint8_t)((i + vm * 3) & VMT_PTGEN_CONCEAL_ALL);
		o.event_trace = i < 24;
		o.branch = i & 1 || !o.event_trace;
		o.offset = i & 2;
		o.overflow = i & 16 ? 40 : 0;
		run_setting(o);
	}
}

static void guest_only_streams(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 32; i++) {
		struct vmt_ptgen_options o = base;

		o.seed += 600 + i;
		o.tracing = VMT_PTGEN_GUEST_ONLY;
		o.nr_vms = 1;
		o.event_trace = i & 1;
		o.branch = i & 2;
		o.offset = i & 4;
		o.pip_at_enabling = i & 8;
		o.overflow = i & 16 ? 40 : 0;
		run_setting(o);
	}
}

static void host_only_streams(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 16; i++) {
		struct vmt_ptgen_options o = base;

		o.seed += 650 + i;
		o.tracing = VMT_PTGEN_HOST_ONLY;
		o.event_trace = i & 1;
		o.pip_at_enabling = i & 2;
		o.offset = i & 4;
		o.overflow = i & 8 ? 40 : 0;
		run_setting(o);
	}
}

static void packets_switched_by_address_filters(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct vmt_ptgen_options o = base;

		o.seed += 670 + i;
		o.event_trace = i & 1;
		o.filter = 60;
		o.scaling = i & 2;
		run_setting(o);
	}
}

/* Each processor with all of its errata. */
static void errata_of_each_processor(void **state)
{
	static const uint8_t models[] = { 0x3d, 0x5e, 0x55, 0x8f, 0x7e, 0x97, 0x5c, 0x7a };

	(void)state;
	for (unsigned int i = 0; i < 8 * sizeof(models); i++) {
		const struct vmt_pt_cpu cpu = { true, 6, models[i / 8], 1 };
		struct vmt_ptgen_options o = base;

		o.seed += 700 + i;
		o.errata = vmt_pt_errata_of(&cpu);
		o.event_trace = i & 1;
		o.branch = i & 2 || i & 4;
		o.filter = 30;
		o.overflow = 60;
		if ((i & 6) == 6)
			o.tracing = VMT_PTGEN_GUEST_ONLY;
		else if ((i & 6) == 4)
			o.tracing = VMT_PTGEN_HOST_ONLY;
		/* The lists switch TraceEn, no filter PacketEn besides. */
		if (o.tracing != VMT_PTGEN_SYSTEM)
			o.filter = 0;
		o.nr_vms = o.tracing == VMT_PTGEN_GUEST_ONLY ? 1 : 3;
		run_setting(o);
	}
}

static void losses_and_status_at_every_place(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 16; i++) {
		struct vmt_ptgen_options o = base;

		o.seed += 800 + i;
		o.rounds = 8;
		o.event_trace = i & 1;
		o.branch = i & 2;
		o.late_failure = 150;
		o.abort = 50;
		o.smm = 100;
		o.filter = i & 4 ? 30 : 0;
		if (i & 8) {
			o.filter = 0;
			o.tracing = i & 4 ? VMT_PTGEN_HOST_ONLY : VMT_PTGEN_GUEST_ONLY;
			o.branch = o.branch || i & 4;
			o.nr_vms = 1;
		}
		run_every_place(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_transition_of_a_whole_stream),
		cmocka_unit_test(time_from_each_mix_of_packets),
		cmocka_unit_test(a_map_that_changes_in_time),
		cmocka_unit_test(nothing_is_known_of_time_without_tsc),
		cmocka_unit_test(none_invented_across_overflows),
		cmocka_unit_test(none_invented_across_damage),
		cmocka_unit_test(none_invented_when_concealed),
		cmocka_unit_test(each_control_that_conceals),
		cmocka_unit_test(guests_of_different_settings_on_one_cpu),
		cmocka_unit_test(guest_only_streams),
		cmocka_unit_test(host_only_streams),
		cmocka_unit_test(packets_switched_by_address_filters),
		cmocka_unit_test(errata_of_each_processor),
		cmocka_unit_test(losses_and_status_at_every_place),
	};

	return (getenv("CMOCKA_TEST_FILTER") ? cmocka_set_test_filter(getenv("CMOCKA_TEST_FILTER")) : (void)0, cmocka_run_group_tests(tests, NULL, NULL));
}
