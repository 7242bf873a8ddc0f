/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The host's life: guests are entered and left, both worlds branch, take interrupts and change
 * CR3, PSB+ comes now and then, and packets are lost. Every transition happens at one TSC.
 */
#include "tests/support/pt_generate.h"

#include <stdlib.h>

#include "decode/pt/errata.h"
#include "tests/support/pt_generate_private.h"

#define CFE_RSM 4

uint64_t vmt_ptgen_random(struct vmt_ptgen_world *w, uint64_t below)
{
	uint64_t x = w->random += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (x ^ x >> 31) % below;
}

bool vmt_ptgen_chance(struct vmt_ptgen_world *w, unsigned int permille)
{
	return vmt_ptgen_random(w, 1000) < permille;
}

/* ---- packets of the state ---- */

/* A PSB+ tells of the world that is traced, also where TraceEn is about to change. */
static bool is_traced_world(const struct vmt_ptgen_world *w)
{
	return w->o->tracing == VMT_PTGEN_SYSTEM ||
	       w->in_guest == (w->o->tracing == VMT_PTGEN_GUEST_ONLY);
}

struct vmt_ptenc *vmt_ptgen_stream(struct vmt_ptgen_world *w)
{
	const size_t number = ++w->out->nr_packets;

	if (number == w->o->overflow_at)
		vmt_ptgen_lose(w);
	if (number == w->o->damage_at && !w->unbroken)
		vmt_ptgen_damage(w);
	if (number == w->o->psb_at && !w->unbroken && is_traced_world(w)) {
		w->whole = false;
		vmt_ptgen_psb(w, false);
	}
	return &w->out->stream;
}

uint64_t *vmt_ptgen_world_ip(struct vmt_ptgen_world *w)
{
	return w->in_guest ? &w->guest_ip : &w->host_ip;
}

bool vmt_ptgen_packet_en(const struct vmt_ptgen_world *w)
{
	return w->trigger && w->o->branch && !w->outside;
}

bool vmt_ptgen_conceals(const struct vmt_ptgen_world *w, enum vmt_ptgen_conceal control)
{
	return w->o->conceal[w->vm] & control;
}

void vmt_ptgen_ip(struct vmt_ptgen_world *w, enum vmt_ptenc_ip kind, uint64_t ip)
{
	if (kind != VMT_PTENC_FUP)
		vmt_ptgen_cyc(w);
	vmt_ptenc_ip(vmt_ptgen_stream(w), kind, VMT_PTENC_AUTO, ip);
}

void vmt_ptgen_off(struct vmt_ptgen_world *w)
{
	vmt_ptgen_cyc(w);
	vmt_ptenc_ip(vmt_ptgen_stream(w), VMT_PTENC_TIP_PGD, VMT_PTENC_SUPPRESSED, 0);
}

void vmt_ptgen_pip(struct vmt_ptgen_world *w, bool nr)
{
	struct vmt_ptenc *e;

	vmt_ptgen_cyc(w);
	e = vmt_ptgen_stream(w);
	vmt_ptenc_pip(e, w->in_guest ? w->out->vms[w->vm].cr3 : w->host_cr3, nr);
	w->told = nr ? VMT_PTGEN_TOLD_NONROOT : VMT_PTGEN_TOLD_ROOT;
	w->cr3_known = nr;
}

void vmt_ptgen_state_pip(struct vmt_ptgen_world *w)
{
	vmt_ptgen_pip(w, w->in_guest && !vmt_ptgen_conceals(w, VMT_PTGEN_CONCEAL_EXECUTION));
}

void vmt_ptgen_vmcs(struct vmt_ptgen_world *w, uint64_t vmcs)
{
	vmt_ptgen_cyc(w);
	vmt_ptenc_vmcs(vmt_ptgen_stream(w), vmcs);
	w->vmcs_known = true;
}

void vmt_ptgen_mode(struct vmt_ptgen_world *w)
{
	vmt_ptgen_cyc(w);
	vmt_ptenc_mode_exec(vmt_ptgen_stream(w), 1);
}

void vmt_ptgen_cbr(struct vmt_ptgen_world *w)
{
	vmt_ptenc_cbr(vmt_ptgen_stream(w), w->clock.ratio);
}

void vmt_ptgen_cfe(struct vmt_ptgen_world *w, uint8_t type, uint8_t vector, bool ip)
{
	vmt_ptenc_cfe(vmt_ptgen_stream(w), type, vector, ip);
}

/* SDM vol. 3 33.3.7. The order of PIP and VMCS is free. */
void vmt_ptgen_psb(struct vmt_ptgen_world *w, bool enabling)
{
	const bool vmcs_first = vmt_ptgen_chance(w, 500);
	const bool with_vmcs = !w->in_guest || !vmt_ptgen_conceals(w, VMT_PTGEN_CONCEAL_EXECUTION);
	const bool wrong_fup = w->o->errata & VMT_PT_BDM70 && vmt_ptgen_chance(w, 500);

	if (!w->trigger || w->unbroken)
		return;
	w->unbroken = true;
	if (w->o->errata & VMT_PT_SKL168 && vmt_ptgen_chance(w, 300))
		vmt_ptgen_cyc_restart(w);
	vmt_ptenc_psb(vmt_ptgen_stream(w));
	w->damaged = false;
	vmt_ptgen_tsc(w);
	if (with_vmcs && vmcs_first)
		vmt_ptgen_vmcs(w, w->out->vms[w->vm].vmcs);
	vmt_ptgen_state_pip(w);
	if (with_vmcs && !vmcs_first)
		vmt_ptgen_vmcs(w, w->out->vms[w->vm].vmcs);
	w->clock.tsc_packet_at = w->o->tsc ? w->clock.tsc : 0;
	vmt_ptgen_cbr(w);
	if (w->o->branch && (wrong_fup || (!enabling && vmt_ptgen_packet_en(w)))) {
		vmt_ptgen_mode(w);
		vmt_ptgen_ip(w, VMT_PTENC_FUP, *vmt_ptgen_world_ip(w));
	}
	vmt_ptenc_psbend(vmt_ptgen_stream(w));
	w->unbroken = false;
}

void vmt_ptgen_enable(struct vmt_ptgen_world *w, bool pip, bool rsm)
{
	const bool guest_only = w->o->tracing == VMT_PTGEN_GUEST_ONLY;
	/* No TIP.PGE tells of an entry into code outside the filter ranges. */
	const bool may_be_psb = !guest_only || !w->o->filter;

	w->trigger = true;
	if (!w->out->stream.len)
		w->outside = false;
	vmt_ptgen_cyc_restart(w);
	if (!w->out->stream.len || (may_be_psb && vmt_ptgen_chance(w, 2 * w->o->psb))) {
		vmt_ptgen_psb(w, true);
		/* This is a status and no change, but for a guest's TIP.PGE. */
		w->whole = w->whole && w->o->branch && guest_only;
	} else {
		vmt_ptgen_tsc(w);
		vmt_ptgen_cbr(w);
		if (pip)
			vmt_ptgen_state_pip(w);
	}
	if (rsm && w->o->event_trace) {
		vmt_ptgen_begin(w, VMT_PTGEN_NOTE)->note = "pt_rsm";
		vmt_ptgen_cfe(w, CFE_RSM, 0, false);
		vmt_ptgen_end(w);
	}
	if (!vmt_ptgen_packet_en(w))
		return;
	vmt_ptgen_mode(w);
	vmt_ptgen_ip(w, VMT_PTENC_TIP_PGE, *vmt_ptgen_world_ip(w));
}

/* ---- truth ---- */

/* Whether a change out of `from` shows, where Event Trace does not name it. */
static void judge_by_nr(const struct vmt_ptgen_world *w, struct vmt_ptgen_truth *t,
			enum vmt_ptgen_told from)
{
	t->hidden = t->hidden || (w->told != from && w->told != VMT_PTGEN_TOLD_NOTHING);
	t->certain = w->told == from;
}

static void judge_guest_only(const struct vmt_ptgen_world *w, struct vmt_ptgen_truth *t)
{
	const bool is_exit = t->kind == VMT_PTGEN_EXIT;
	const bool losses = w->o->overflow || w->o->damage || w->o->overflow_at ||
			    w->o->damage_at || w->o->psb_at;

	t->certain = w->told != VMT_PTGEN_TOLD_NOTHING || (is_exit && w->o->event_trace);
	if (w->o->pip_at_enabling)
		return;
	t->certain = t->certain && !losses;
}

static void judge(const struct vmt_ptgen_world *w, struct vmt_ptgen_truth *t)
{
	const bool is_exit = t->kind == VMT_PTGEN_EXIT;

	t->hidden = w->damaged;
	t->certain = true;
	if (t->kind == VMT_PTGEN_NOTE)
		return;
	if (vmt_ptgen_conceals(w, is_exit ? VMT_PTGEN_CONCEAL_EXIT : VMT_PTGEN_CONCEAL_ENTRY)) {
		t->hidden = true;
		return;
	}
	if (w->o->tracing == VMT_PTGEN_GUEST_ONLY)
		judge_guest_only(w, t);
	else if (!w->o->event_trace || !w->trigger)
		judge_by_nr(w, t, is_exit ? VMT_PTGEN_TOLD_NONROOT : VMT_PTGEN_TOLD_ROOT);
	if (!w->trigger && !w->o->pip_at_enabling && is_exit)
		t->hidden = true;
}

struct vmt_ptgen_truth *vmt_ptgen_begin(struct vmt_ptgen_world *w, enum vmt_ptgen_kind kind)
{
	const struct vmt_ptgen_vm *vm = &w->out->vms[w->vm];
	const bool told =
		kind != VMT_PTGEN_NOTE || (w->in_guest && w->told == VMT_PTGEN_TOLD_NONROOT);
	struct vmt_ptgen_truth *t;

	if (w->out->nr_truth == w->cap_truth) {
		w->cap_truth = 2 * w->cap_truth + 64;
		w->out->truth = realloc(w->out->truth, w->cap_truth * sizeof(*t));
		if (!w->out->truth)
			abort();
	}
	t = &w->out->truth[w->out->nr_truth++];
	*t = (struct vmt_ptgen_truth){
		.kind = kind,
		.at_tsc = w->clock.tsc_packet_at == w->clock.tsc,
		.has_vmcs = told && w->vmcs_known,
		.has_cr3 = told &&
			   (kind == VMT_PTGEN_ENTRY || kind == VMT_PTGEN_FAILED || w->cr3_known),
		.host_tsc = w->clock.tsc,
		.rip = w->in_guest || kind == VMT_PTGEN_ENTRY ? w->guest_ip : 0,
		.cr3 = vm->cr3,
		.vmcs = vm->vmcs,
		.begin = w->out->stream.len,
	};
	judge(w, t);
	w->whole = true;
	w->hidden_by_damage = w->damaged;
	return t;
}

void vmt_ptgen_end(struct vmt_ptgen_world *w)
{
	struct vmt_ptgen_truth *t = &w->out->truth[w->out->nr_truth - 1];

	t->end = w->out->stream.len;
	t->certain = t->certain && w->whole && !w->hidden_by_damage;
	/* A PSB+ inside made the bytes readable again. */
	if (w->hidden_by_damage && !w->damaged)
		t->hidden = false;
}

/* ---- what happens inside a world ---- */

void vmt_ptgen_branches(struct vmt_ptgen_world *w)
{
	uint64_t *ip = vmt_ptgen_world_ip(w);
	const unsigned int count = 1 + (unsigned int)vmt_ptgen_random(w, 6);

	if (!vmt_ptgen_packet_en(w))
		return;
	vmt_ptgen_cyc(w);
	if (vmt_ptgen_chance(w, 100))
		vmt_ptenc_tnt_long(vmt_ptgen_stream(w), vmt_ptgen_random(w, UINT64_MAX),
				   8 * count - 1);
	else
		vmt_ptenc_tnt(vmt_ptgen_stream(w), vmt_ptgen_random(w, 64), count);
	if (vmt_ptgen_chance(w, 500))
		return;
	*ip = (*ip & ~UINT64_C(0xfffff)) + vmt_ptgen_random(w, 1 << 20);
	vmt_ptgen_ip(w, VMT_PTENC_TIP, *ip);
}

static void move_cr3(struct vmt_ptgen_world *w)
{
	const uint64_t cr3 = (1 + vmt_ptgen_random(w, 1 << 20)) << 12;

	/* Behind a loss nothing shows here that the guest is not traced. */
	if (!w->trigger && w->in_guest && w->o->errata & VMT_PT_SKL014)
		return;
	if (w->in_guest)
		w->out->vms[w->vm].cr3 = cr3;
	else
		w->host_cr3 = cr3;
	if (w->trigger)
		vmt_ptgen_state_pip(w);
	else if (w->in_guest)
		w->cr3_known = false;
}

static void change_ratio(struct vmt_ptgen_world *w)
{
	w->clock.ratio = (uint8_t)(8 + vmt_ptgen_random(w, 40));
	if (!w->trigger)
		return;
	vmt_ptgen_tsc(w);
	vmt_ptgen_cbr(w);
}

/* Table 33-56 rows 4 and 5; erratum SKL014 leaves the IP out. */
static void cross_filter(struct vmt_ptgen_world *w)
{
	uint64_t *ip = vmt_ptgen_world_ip(w);
	const bool without_ip = w->o->errata & VMT_PT_SKL014 && vmt_ptgen_chance(w, 500);

	*ip = (*ip & ~UINT64_C(0xfffff)) + vmt_ptgen_random(w, 1 << 20);
	if (!w->trigger || !w->o->branch) {
		w->outside = !w->outside;
	} else if (w->outside) {
		w->outside = false;
		vmt_ptgen_mode(w);
		vmt_ptgen_ip(w, VMT_PTENC_TIP_PGE, *ip);
	} else if (without_ip) {
		vmt_ptgen_off(w);
		w->outside = true;
	} else {
		vmt_ptgen_ip(w, VMT_PTENC_TIP_PGD, *ip);
		w->outside = true;
	}
}

void vmt_ptgen_run_world(struct vmt_ptgen_world *w, unsigned int steps)
{
	for (unsigned int i = 0; i < steps; i++) {
		vmt_ptgen_pass(w, 1 + vmt_ptgen_random(w, 1500));
		if (vmt_ptgen_chance(w, w->o->psb))
			vmt_ptgen_psb(w, false);
		if (vmt_ptgen_chance(w, w->o->cbr_change))
			change_ratio(w);
		if (vmt_ptgen_chance(w, w->o->events))
			vmt_ptgen_event(w);
		if (vmt_ptgen_chance(w, 30))
			move_cr3(w);
		if (vmt_ptgen_chance(w, w->o->filter))
			cross_filter(w);
		vmt_ptgen_branches(w);
		if (w->loss.on && vmt_ptgen_chance(w, 300))
			vmt_ptgen_recover(w);
	}
}

static void load_vmcs(struct vmt_ptgen_world *w)
{
	const unsigned int next = (unsigned int)vmt_ptgen_random(w, w->o->nr_vms);

	if (next == w->vm)
		return;
	w->vm = next;
	w->cr3_known = false;
	if (!w->trigger) {
		w->vmcs_known = false;
		return;
	}
	vmt_ptgen_vmcs(w, w->out->vms[w->vm].vmcs);
	/* VMPTRLD is an instruction of root operation. */
	if (w->told == VMT_PTGEN_TOLD_NONROOT)
		w->told = VMT_PTGEN_TOLD_ROOT;
}

/* The host's software writes another TSC offset to a VMCS. */
static void step_map(struct vmt_ptgen_world *w)
{
	const unsigned int vm = (unsigned int)vmt_ptgen_random(w, w->o->nr_vms);

	if (w->out->nr_steps == w->cap_steps) {
		w->cap_steps = 2 * w->cap_steps + 16;
		w->out->steps =
			realloc(w->out->steps, w->cap_steps * sizeof(struct vmt_ptgen_step));
		if (!w->out->steps)
			abort();
	}
	w->offsets[vm] += vmt_ptgen_random(w, UINT64_C(1) << 38) - (UINT64_C(1) << 37);
	w->out->steps[w->out->nr_steps++] = (struct vmt_ptgen_step){
		.at = w->out->stream.len,
		.vm = vm,
		.offset = w->offsets[vm],
	};
}

/* ---- the whole ---- */

static void one_move(struct vmt_ptgen_world *w)
{
	const unsigned int steps = (unsigned int)vmt_ptgen_random(w, 12);

	vmt_ptgen_run_world(w, steps);
	if (vmt_ptgen_chance(w, w->o->cbr_change * 20))
		change_ratio(w);
	if (w->in_guest) {
		vmt_ptgen_leave(w);
	} else {
		if (vmt_ptgen_chance(w, 200))
			load_vmcs(w);
		if (vmt_ptgen_chance(w, w->o->map_step))
			step_map(w);
		vmt_ptgen_enter(w);
	}
	if (vmt_ptgen_chance(w, w->o->smm))
		vmt_ptgen_smm_exit(w);
}

static uint64_t some_multiplier(struct vmt_ptgen_world *w, unsigned int vm)
{
	static const uint64_t fixed[] = { UINT64_C(1) << 47, UINT64_C(3) << 47, UINT64_C(1) << 48 };

	if (!w->o->scaling)
		return UINT64_C(1) << 48;
	if (vm < sizeof(fixed) / sizeof(fixed[0]))
		return fixed[vm];
	return (UINT64_C(1) << 47) + vmt_ptgen_random(w, UINT64_C(1) << 48);
}

/* A guest that counts from 0 when it begins, one that runs far ahead, and one near the host. */
static uint64_t some_offset(struct vmt_ptgen_world *w, unsigned int vm)
{
	if (!w->o->offset)
		return 0;
	if (vm == 1)
		return (UINT64_C(1) << 52) + vmt_ptgen_random(w, UINT64_C(1) << 51);
	if (vm == 2)
		return vmt_ptgen_random(w, UINT64_C(1) << 20);
	return 0 - w->clock.tsc + vmt_ptgen_random(w, UINT64_C(1) << 36);
}

static void prepare(struct vmt_ptgen_world *w)
{
	struct vmt_ptgen *out = w->out;

	out->n = 84;
	out->d = 2;
	out->nominal = 21;
	w->clock.ratio = 35;
	w->clock.tsc_at_art_0 = vmt_ptgen_random(w, UINT64_C(1) << 40);
	w->clock.tsc = out->first_tsc = w->clock.tsc_at_art_0 + (UINT64_C(1) << 41) +
					vmt_ptgen_random(w, UINT64_C(1) << 40);
	w->host_cr3 = 0x10a2b000;
	w->host_ip = 0xffffffffc0395030;
	for (unsigned int i = 0; i < w->o->nr_vms; i++)
		out->vms[i] = (struct vmt_ptgen_vm){
			.vmcs = 0x1bff6a000 + 0x12000 * i,
			.cr3 = 0x1234000 + 0x100000 * i,
			.multiplier = some_multiplier(w, i),
			.offset = w->offsets[i] = some_offset(w, i),
			.conceal = w->o->conceal[i],
		};
	w->trigger = w->o->tracing != VMT_PTGEN_GUEST_ONLY;
	vmt_ptgen_psb(w, false);
}

const struct vmt_ptgen_options vmt_ptgen_usual = {
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

void vmt_ptgen_run(struct vmt_ptgen *out, const struct vmt_ptgen_options *options)
{
	struct vmt_ptgen_world w = { .out = out, .o = options, .random = options->seed };

	*out = (struct vmt_ptgen){ 0 };
	prepare(&w);
	for (unsigned int i = 0; i < 2 * options->rounds; i++) {
		one_move(&w);
		if (w.loss.on && vmt_ptgen_chance(&w, 300))
			vmt_ptgen_recover(&w);
		if (vmt_ptgen_chance(&w, options->overflow))
			vmt_ptgen_lose(&w);
		if (vmt_ptgen_chance(&w, options->damage))
			vmt_ptgen_damage(&w);
	}
	while (w.loss.on) {
		one_move(&w);
		vmt_ptgen_recover(&w);
	}
	out->last_tsc = w.clock.tsc;
}

void vmt_ptgen_free(struct vmt_ptgen *gen)
{
	vmt_ptenc_free(&gen->stream);
	free(gen->truth);
	free(gen->steps);
	*gen = (struct vmt_ptgen){ 0 };
}

bool vmt_ptgen_ambiguous(const struct vmt_ptgen_options *o)
{
	const bool guest_only = o->tracing == VMT_PTGEN_GUEST_ONLY;

	if (guest_only && !o->pip_at_enabling && !o->branch)
		return true;
	for (unsigned int i = 0; i < o->nr_vms; i++) {
		const unsigned int c = o->conceal[i];
		const bool in_part = c && c != VMT_PTGEN_CONCEAL_ALL;
		const bool entry_alone_is_hidden =
			c & VMT_PTGEN_CONCEAL_ENTRY && !(c & VMT_PTGEN_CONCEAL_EXECUTION);

		/* A MOV to CR3 behind this entry reads as the entry's failure. */
		const bool seems_to_fail = in_part && !(c & VMT_PTGEN_CONCEAL_ENTRY);

		if (seems_to_fail && (!o->branch || o->filter))
			return true;
		if (o->event_trace)
			continue;
		if (entry_alone_is_hidden || (in_part && (!o->branch || o->filter)))
			return true;
	}
	return false;
}
