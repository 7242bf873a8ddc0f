/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Matches what a decoder says of a generated stream with its truth. */
#include "tests/support/pt_generate_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/pt/decoder.h"
#include "tests/support/pt_event_text.h"

static const char *const kinds[] = { "entry", "exit", "failed entry", "note" };

static void wrong(struct vmt_ptgen_check *r, const struct vmt_event *e, const char *what,
		  size_t nth)
{
	const struct vmt_ptgen_options *o = r->options;
	const struct vmt_ptgen_truth *t = nth < r->gen->nr_truth ? &r->gen->truth[nth] : NULL;
	char text[1024], places[96];
	size_t len;

	vmt_pt_event_text(text, sizeof(text), e);
	snprintf(places, sizeof(places), "overflow_at %zu psb_at %zu damage_at %zu of %zu bytes",
		 o->overflow_at, o->psb_at, o->damage_at, r->len);
	if (r->why[0])
		return;
	snprintf(r->why, sizeof(r->why), "seed %" PRIu64 ", %s: %s: %s", o->seed, places, what,
		 text);
	if (!t)
		return;
	len = strlen(r->why);
	snprintf(r->why + len, sizeof(r->why) - len,
		 "\ntruth %zu at 0x%zx: %s %s reason=%u rip=0x%" PRIx64 " cr3=0x%" PRIx64
		 " vmcs=0x%" PRIx64 " tsc=%" PRIu64 "%s%s",
		 nth, t->begin, kinds[t->kind], t->note ? t->note : "", t->reason, t->rip, t->cr3,
		 t->vmcs, t->host_tsc, t->hidden ? " hidden" : "", t->certain ? " certain" : "");
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

static const char *difference(const struct vmt_ptgen_check *r, const struct vmt_event *e,
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

static void check_time(struct vmt_ptgen_check *r, size_t event, size_t nth)
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
static bool may_lack(const struct vmt_ptgen_check *r, size_t nth)
{
	const struct vmt_ptgen_truth *t = &r->gen->truth[nth];

	return t->hidden || !t->certain || t->end > r->len;
}

static bool fits(const struct vmt_ptgen_check *r, size_t event, size_t nth)
{
	const struct vmt_ptgen_truth *t = &r->gen->truth[nth];

	return !t->hidden && !difference(r, &r->seen[event], t);
}

/* Says where the events and the truth part. */
static void explain(struct vmt_ptgen_check *r)
{
	size_t nth = 0;

	for (size_t i = 0; i < r->nr_seen; i++, nth++) {
		while (nth < r->gen->nr_truth && !fits(r, i, nth) && may_lack(r, nth))
			nth++;
		if (nth == r->gen->nr_truth) {
			wrong(r, &r->seen[i], "it did not happen", nth);
			return;
		}
		if (!fits(r, i, nth)) {
			wrong(r, &r->seen[i], difference(r, &r->seen[i], &r->gen->truth[nth]), nth);
			return;
		}
	}
	while (nth + 1 < r->gen->nr_truth && may_lack(r, nth))
		nth++;
	wrong(r, &r->told_last, "the last; this did not come out", nth);
}

/*
 * Events and truth in order: each event is one truth, and each truth that must come out is one
 * event. good[i][j]: the events from i on are matched by the truth from j on.
 */
static void match(struct vmt_ptgen_check *r)
{
	const size_t events = r->nr_seen, truths = r->gen->nr_truth, row = truths + 1;
	bool *good = calloc((events + 1) * row, sizeof(*good));
	size_t j = 0;

	if (!good)
		abort();
	good[events * row + truths] = true;
	for (size_t i = events + 1; i-- > 0;)
		for (size_t k = truths; k-- > 0;)
			good[i * row + k] =
				(may_lack(r, k) && good[i * row + k + 1]) ||
				(i < events && good[(i + 1) * row + k + 1] && fits(r, i, k));
	if (!good[0]) {
		explain(r);
		free(good);
		return;
	}
	for (size_t i = 0; i < events; j++)
		if (good[(i + 1) * row + j + 1] && fits(r, i, j))
			check_time(r, i++, j);
	free(good);
}

static void on_event(void *context, const struct vmt_event *e)
{
	struct vmt_ptgen_check *r = context;

	if (e->type == VMT_EVENT_ENTRY || e->type == VMT_EVENT_EXIT || e->type == VMT_EVENT_NOTE) {
		if (r->nr_seen == VMT_PTGEN_EVENTS_MAX)
			abort();
		r->told_last = *e;
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
static void feed(struct vmt_ptgen_check *r, struct vmt_pt_decoder *decoder, struct vmt_pt_vm *vms,
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

static void decode(struct vmt_ptgen_check *r, uint64_t seed)
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
	if (!decoder)
		abort();
	feed(r, decoder, vms, seed);
	vmt_pt_decoder_end(decoder);
	ledger = vmt_pt_decoder_ledger(decoder);
	vmt_pt_decoder_free(decoder);
	if (ledger.bytes_total != r->len || ledger.bytes_decoded + ledger.bytes_skipped != r->len)
		wrong(r, &r->told_last, "the ledger does not add up behind", SIZE_MAX);
}

void vmt_ptgen_check_begin(struct vmt_ptgen_check *r, const struct vmt_ptgen_options *options)
{
	memset(r, 0, sizeof(*r));
	r->options = options;
	/* The TSC packet of a guest that hides is taken for the host's: with an offset it lies. */
	r->check_times = true;
	for (unsigned int i = 0; i < options->nr_vms; i++)
		if (options->conceal[i] && (options->offset || options->scaling))
			r->check_times = false;
}

bool vmt_ptgen_check(struct vmt_ptgen_check *r, const struct vmt_ptgen *gen, size_t len)
{
	r->gen = gen;
	r->len = len;
	r->nr_seen = 0;
	r->told = 0;
	decode(r, r->options->seed);
	r->events += r->nr_seen;
	if (!vmt_ptgen_ambiguous(r->options))
		match(r);
	r->gen = NULL;
	return !r->why[0];
}
