/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The host's life: guests are entered and left, both worlds branch, take interrupts and change
 * CR3, PSB+ comes now and then, and packets are lost. Every transition happens at one TSC.
 */
#include "tests/support/pt_generate.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/pt_generate_private.h"

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

static uint64_t *ip_of_world(struct vmt_ptgen_world *w)
{
	return w->in_guest ? &w->guest_ip : &w->host_ip;
}

/* Packets that depend on PacketEn. */
static bool packet_en(const struct vmt_ptgen_world *w)
{
	return w->trigger && w->o->branch;
}

static void put_ip(struct vmt_ptgen_world *w, enum vmt_ptenc_ip kind, uint64_t ip)
{
	if (kind != VMT_PTENC_FUP)
		vmt_ptgen_cyc(w);
	vmt_ptenc_ip(&w->out->stream, kind, VMT_PTENC_AUTO, ip);
}

static uint64_t running_cr3(const struct vmt_ptgen_world *w)
{
	return w->in_guest ? w->out->vms[w->vm].cr3 : w->host_cr3;
}

static void put_pip(struct vmt_ptgen_world *w)
{
	vmt_ptgen_cyc(w);
	vmt_ptenc_pip(&w->out->stream, running_cr3(w), w->in_guest && !w->o->conceal);
	w->nr_known = true;
	w->cr3_known = w->in_guest;
}

static void put_vmcs(struct vmt_ptgen_world *w)
{
	vmt_ptgen_cyc(w);
	vmt_ptenc_vmcs(&w->out->stream, w->out->vms[w->vm].vmcs);
	w->vmcs_known = true;
}

static void put_mode(struct vmt_ptgen_world *w)
{
	vmt_ptgen_cyc(w);
	vmt_ptenc_mode_exec(&w->out->stream, 1);
}

/* SDM vol. 3 33.3.7. The order of PIP and VMCS is free. */
static void put_psb(struct vmt_ptgen_world *w, bool enabling)
{
	struct vmt_ptenc *e = &w->out->stream;
	const bool vmcs_first = vmt_ptgen_chance(w, 500);
	const bool with_vmcs = !w->in_guest || !w->o->conceal;

	if (!w->trigger)
		return;
	vmt_ptenc_psb(e);
	w->damaged = false;
	vmt_ptgen_tsc(w);
	if (with_vmcs && vmcs_first)
		put_vmcs(w);
	put_pip(w);
	if (with_vmcs && !vmcs_first)
		put_vmcs(w);
	w->clock.tsc_packet_at = w->o->tsc ? w->clock.tsc : 0;
	vmt_ptenc_cbr(e, w->clock.ratio);
	if (w->o->branch && !enabling) {
		put_mode(w);
		put_ip(w, VMT_PTENC_FUP, *ip_of_world(w));
	}
	vmt_ptenc_psbend(e);
}

/* ---- truth ---- */

static struct vmt_ptgen_truth *begin_truth(struct vmt_ptgen_world *w, bool is_exit)
{
	const struct vmt_ptgen_vm *vm = &w->out->vms[w->vm];
	struct vmt_ptgen_truth *t;

	if (w->out->nr_truth == w->cap_truth) {
		w->cap_truth = 2 * w->cap_truth + 64;
		w->out->truth = realloc(w->out->truth, w->cap_truth * sizeof(*t));
		if (!w->out->truth)
			abort();
	}
	t = &w->out->truth[w->out->nr_truth++];
	*t = (struct vmt_ptgen_truth){
		.is_exit = is_exit,
		.hidden = w->o->conceal || w->damaged,
		.certain = w->nr_known || (w->o->event_trace && (is_exit || !w->o->guest_only)),
		.at_tsc = w->clock.tsc_packet_at == w->clock.tsc,
		.has_vmcs = w->vmcs_known,
		.has_cr3 = is_exit ? w->cr3_known : true,
		.has_rip = w->o->branch || (is_exit && w->o->event_trace),
		.host_tsc = w->clock.tsc,
		.rip = w->guest_ip,
		.cr3 = vm->cr3,
		.vmcs = vm->vmcs,
		.begin = w->out->stream.len,
	};
	return t;
}

/* ---- transitions ---- */

static const struct {
	uint32_t reason;
	uint64_t qualification;
	uint8_t vector;
} exits[] = {
	{ 0, 0, 2 },	     { 0, 0x7f0012345678, 14 },
	{ 1, 0, 0xec },	     { 1, 0, 0x20 },
	{ 7, 0, 0 },	     { 10, 0, 0 },
	{ 12, 0, 0 },	     { 16, 0, 0 },
	{ 18, 0, 0 },	     { 28, 0x103, 0 },
	{ 29, 0x107, 0 },    { 30, 0x3f80008, 0 },
	{ 30, 0x800003, 0 }, { 31, 0, 0 },
	{ 32, 0, 0 },	     { 44, 0x1300, 0 },
	{ 48, 0x182, 0 },    { 48 | 1u << 26, 0x181, 0 },
	{ 49, 0, 0 },	     { 52, 0, 0 },
	{ 54, 0, 0 },	     { 55, 0, 0 },
	{ 56, 0xb0, 0 },     { 62, 0, 0 },
	{ 74, 0, 0 },
};

#define NR_EXITS (sizeof(exits) / sizeof(exits[0]))

/* EVDs in either order and the CFE (SDM tables 33-53 and 33-59). */
static void put_exit_event(struct vmt_ptgen_world *w, struct vmt_ptgen_truth *t, size_t which)
{
	struct vmt_ptenc *e = &w->out->stream;
	const bool interruption = exits[which].reason <= 1;
	const bool qualification_first = vmt_ptgen_chance(w, 500);

	t->has_reason = true;
	t->has_vector = interruption;
	if (qualification_first)
		vmt_ptenc_evd(e, 1, exits[which].qualification);
	vmt_ptenc_evd(e, 2, exits[which].reason);
	if (!qualification_first)
		vmt_ptenc_evd(e, 1, exits[which].qualification);
	vmt_ptenc_cfe(e, interruption ? 9 : 8, exits[which].vector, !w->o->branch);
}

static void leave_guest(struct vmt_ptgen_world *w)
{
	const size_t which = vmt_ptgen_random(w, NR_EXITS);
	struct vmt_ptgen_truth *t = begin_truth(w, true);
	const bool told = w->o->event_trace && !w->o->conceal;

	t->reason = exits[which].reason;
	t->qualification = exits[which].qualification;
	t->vector = exits[which].vector;
	if (told)
		put_exit_event(w, t, which);
	if (told || w->o->branch)
		put_ip(w, VMT_PTENC_FUP, w->guest_ip);
	w->in_guest = false;
	if (!w->o->conceal)
		put_pip(w);
	if (w->o->branch && w->o->guest_only)
		vmt_ptenc_ip(&w->out->stream, VMT_PTENC_TIP_PGD, VMT_PTENC_SUPPRESSED, 0);
	else if (w->o->branch)
		put_ip(w, VMT_PTENC_TIP, w->host_ip);
	t->end = w->out->stream.len;
	w->trigger = !w->o->guest_only;
}

/* Guest-only: TraceEn 0 to 1 (SDM table 33-56 rows 2, 12), with PSB+ the first time. */
static void enable(struct vmt_ptgen_world *w)
{
	w->trigger = true;
	w->clock.cyc_from = w->clock.core >> 32;
	if (!w->out->stream.len) {
		put_psb(w, true);
	} else {
		vmt_ptgen_tsc(w);
		vmt_ptenc_cbr(&w->out->stream, w->clock.ratio);
		if (!w->o->conceal)
			put_pip(w);
	}
	if (!w->o->branch)
		return;
	put_mode(w);
	put_ip(w, VMT_PTENC_TIP_PGE, w->guest_ip);
}

static void enter_guest(struct vmt_ptgen_world *w)
{
	struct vmt_ptgen_truth *t;

	w->guest_ip = 0xffffffff81000000 + vmt_ptgen_random(w, 1 << 24);
	if (vmt_ptgen_chance(w, 200))
		w->guest_ip = 0x400000 + vmt_ptgen_random(w, 1 << 20);
	t = begin_truth(w, false);
	if (w->o->guest_only) {
		w->in_guest = true;
		enable(w);
		t->end = w->out->stream.len;
		return;
	}
	if (w->o->event_trace && !w->o->conceal) {
		vmt_ptenc_cfe(&w->out->stream, 7, 0, true);
		put_ip(w, VMT_PTENC_FUP, w->host_ip);
	}
	w->in_guest = true;
	if (!w->o->conceal)
		put_pip(w);
	if (w->o->branch)
		put_ip(w, VMT_PTENC_TIP, w->guest_ip);
	t->end = w->out->stream.len;
}

/* SDM table 33-54, system-wide: NR 0, 1, 0 and no guest code. */
static void fail_entry(struct vmt_ptgen_world *w)
{
	struct vmt_ptgen_truth *t = begin_truth(w, true);

	t->failed_entry = true;
	t->has_rip = false;
	t->has_cr3 = true;
	if (w->o->event_trace) {
		vmt_ptenc_cfe(&w->out->stream, 7, 0, true);
		put_ip(w, VMT_PTENC_FUP, w->host_ip);
	}
	w->in_guest = true;
	put_pip(w);
	w->in_guest = false;
	put_pip(w);
	w->host_ip += 0x10;
	put_ip(w, VMT_PTENC_TIP, w->host_ip);
	t->end = w->out->stream.len;
	w->out->failures++;
}

/* ---- what happens inside a world ---- */

static void branches(struct vmt_ptgen_world *w)
{
	uint64_t *ip = ip_of_world(w);
	const unsigned int count = 1 + (unsigned int)vmt_ptgen_random(w, 6);

	if (!packet_en(w))
		return;
	vmt_ptgen_cyc(w);
	if (vmt_ptgen_chance(w, 100))
		vmt_ptenc_tnt_long(&w->out->stream, vmt_ptgen_random(w, UINT64_MAX), 8 * count - 1);
	else
		vmt_ptenc_tnt(&w->out->stream, vmt_ptgen_random(w, 64), count);
	if (vmt_ptgen_chance(w, 500))
		return;
	*ip = (*ip & ~UINT64_C(0xfffff)) + vmt_ptgen_random(w, 1 << 20);
	put_ip(w, VMT_PTENC_TIP, *ip);
}

/* An interrupt or a page fault that stays in its world, and the IRET. */
static void interruption(struct vmt_ptgen_world *w)
{
	struct vmt_ptenc *e = &w->out->stream;
	uint64_t *ip = ip_of_world(w);
	const uint64_t from = *ip, handler = (*ip & ~UINT64_C(0xfffff)) + 0x800;
	const bool fault = vmt_ptgen_chance(w, 300);

	if (!w->trigger)
		return;
	if (w->o->event_trace) {
		if (fault)
			vmt_ptenc_evd(e, 0, vmt_ptgen_random(w, UINT64_MAX));
		vmt_ptenc_cfe(e, 1, fault ? 14 : 0x21, !w->o->branch);
	}
	if (w->o->event_trace || w->o->branch)
		put_ip(w, VMT_PTENC_FUP, from);
	if (w->o->branch)
		put_ip(w, VMT_PTENC_TIP, handler);
	if (w->o->event_trace) {
		vmt_ptenc_cfe(e, 2, 0, true);
		put_ip(w, VMT_PTENC_FUP, handler + 0x40);
	}
	if (w->o->branch)
		put_ip(w, VMT_PTENC_TIP, from);
}

static void move_cr3(struct vmt_ptgen_world *w)
{
	const uint64_t cr3 = (1 + vmt_ptgen_random(w, 1 << 20)) << 12;

	if (w->in_guest)
		w->out->vms[w->vm].cr3 = cr3;
	else
		w->host_cr3 = cr3;
	if (w->trigger)
		put_pip(w);
}

static void write_ptw(struct vmt_ptgen_world *w)
{
	if (!w->trigger)
		return;
	vmt_ptgen_cyc(w);
	vmt_ptenc_ptw(&w->out->stream, vmt_ptgen_chance(w, 500) ? 8 : 4,
		      vmt_ptgen_random(w, UINT32_MAX), w->o->branch);
	if (w->o->branch)
		put_ip(w, VMT_PTENC_FUP, *ip_of_world(w));
}

static void change_ratio(struct vmt_ptgen_world *w)
{
	w->clock.ratio = (uint8_t)(8 + vmt_ptgen_random(w, 40));
	if (!w->trigger)
		return;
	vmt_ptgen_tsc(w);
	vmt_ptenc_cbr(&w->out->stream, w->clock.ratio);
}

static void run_world(struct vmt_ptgen_world *w, unsigned int steps)
{
	for (unsigned int i = 0; i < steps; i++) {
		vmt_ptgen_pass(w, 1 + vmt_ptgen_random(w, 1500));
		if (vmt_ptgen_chance(w, w->o->psb))
			put_psb(w, false);
		if (vmt_ptgen_chance(w, w->o->cbr_change))
			change_ratio(w);
		if (vmt_ptgen_chance(w, 40))
			interruption(w);
		if (vmt_ptgen_chance(w, 30))
			move_cr3(w);
		if (vmt_ptgen_chance(w, 30))
			write_ptw(w);
		branches(w);
	}
}

static void load_vmcs(struct vmt_ptgen_world *w)
{
	const unsigned int next = (unsigned int)vmt_ptgen_random(w, w->o->nr_vms);

	if (next == w->vm)
		return;
	w->vm = next;
	if (w->trigger)
		put_vmcs(w);
	else
		w->vmcs_known = false;
}

/* ---- losses ---- */

static void forget(struct vmt_ptgen_world *w)
{
	w->nr_known = false;
	w->vmcs_known = false;
	w->cr3_known = false;
}

static void one_move(struct vmt_ptgen_world *w)
{
	const unsigned int steps = (unsigned int)vmt_ptgen_random(w, 12);

	run_world(w, steps);
	if (vmt_ptgen_chance(w, 100))
		change_ratio(w);
	if (w->in_guest) {
		leave_guest(w);
		return;
	}
	if (vmt_ptgen_chance(w, 200))
		load_vmcs(w);
	if (!w->o->conceal && !w->o->guest_only && w->o->branch &&
	    vmt_ptgen_chance(w, w->o->late_failure))
		fail_entry(w);
	else
		enter_guest(w);
}

/* Erratum SKD007: the first byte of a CYC that says that another follows. */
static void cut_cyc(struct vmt_ptgen_world *w)
{
	const uint8_t first = (uint8_t)(vmt_ptgen_random(w, 32) << 3 | 7);

	if (w->o->skylake && w->o->cyc && vmt_ptgen_chance(w, 500))
		vmt_ptenc_raw(&w->out->stream, &first, 1);
}

/* Things happen, their packets do not come; then OVF, and a FUP where packets go on. */
static void overflow(struct vmt_ptgen_world *w)
{
	struct vmt_ptenc *e = &w->out->stream;
	const size_t len = e->len, nr_truth = w->out->nr_truth;
	const uint64_t last_ip = e->last_ip;
	const bool damaged = w->damaged;

	if (!w->trigger)
		return;
	for (uint64_t n = vmt_ptgen_random(w, 4); n > 0 || !w->trigger; n -= n > 0)
		one_move(w);
	run_world(w, 3);
	e->len = len;
	e->last_ip = last_ip;
	w->damaged = damaged;
	for (size_t i = nr_truth; i < w->out->nr_truth; i++) {
		w->out->truth[i].hidden = true;
		w->out->truth[i].begin = w->out->truth[i].end = len;
	}
	w->clock.cyc_from = w->clock.core >> 32;
	w->clock.tsc_packet_at = 0;
	cut_cyc(w);
	vmt_ptenc_ovf(e);
	forget(w);
	if (w->o->branch && !(w->o->skylake && vmt_ptgen_chance(w, 500)))
		put_ip(w, VMT_PTENC_FUP, *ip_of_world(w));
	w->out->overflows++;
}

/* Bytes that are no packet: nothing is read until the next PSB. */
static void damage(struct vmt_ptgen_world *w)
{
	static const uint8_t bad[] = { 0x02, 0x0f };

	if (!w->trigger)
		return;
	vmt_ptenc_raw(&w->out->stream, bad, sizeof(bad));
	w->damaged = true;
	w->clock.tsc_packet_at = 0;
	forget(w);
	w->out->damages++;
}

/* ---- the whole ---- */

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
	for (unsigned int i = 0; i < w->o->nr_vms; i++) {
		struct vmt_ptgen_vm *vm = &out->vms[i];

		vm->vmcs = 0x1bff6a000 + 0x12000 * i;
		vm->cr3 = 0x1234000 + 0x100000 * i;
		vm->multiplier = UINT64_C(1) << 48;
		if (w->o->scaling)
			vm->multiplier =
				(UINT64_C(1) << 47) + vmt_ptgen_random(w, UINT64_C(1) << 48);
		if (w->o->offset)
			vm->offset = 0 - w->clock.tsc + vmt_ptgen_random(w, UINT64_C(1) << 36);
	}
	w->trigger = !w->o->guest_only;
	put_psb(w, false);
}

void vmt_ptgen_run(struct vmt_ptgen *out, const struct vmt_ptgen_options *options)
{
	struct vmt_ptgen_world w = { .out = out, .o = options, .random = options->seed };

	*out = (struct vmt_ptgen){ 0 };
	prepare(&w);
	for (unsigned int i = 0; i < 2 * options->rounds; i++) {
		one_move(&w);
		if (vmt_ptgen_chance(&w, options->overflow))
			overflow(&w);
		if (vmt_ptgen_chance(&w, options->damage))
			damage(&w);
	}
	out->last_tsc = w.clock.tsc;
}

void vmt_ptgen_free(struct vmt_ptgen *gen)
{
	vmt_ptenc_free(&gen->stream);
	free(gen->truth);
	*gen = (struct vmt_ptgen){ 0 };
}
