/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The clocks. ART edge number a lies at TSC ceil(a * N/D) + K; all packets are read from the TSC.
 */
#include "decode/pt/errata.h"
#include "tests/support/pt_generate_private.h"

static uint64_t art_now(const struct vmt_ptgen_world *w)
{
	return (w->clock.tsc - w->clock.tsc_at_art_0) * w->out->d / w->out->n;
}

static uint64_t tsc_of_art(const struct vmt_ptgen_world *w, uint64_t art)
{
	return (art * w->out->n + w->out->d - 1) / w->out->d + w->clock.tsc_at_art_0;
}

static uint64_t whole_cycles(const struct vmt_ptgen_world *w)
{
	return w->clock.core >> 32;
}

/* The TSC and the core clock run on, without packets. */
static void run_to(struct vmt_ptgen_world *w, uint64_t tsc)
{
	const uint64_t ticks = tsc - w->clock.tsc;

	w->clock.core += (ticks << 32) / w->out->nominal * w->clock.ratio;
	w->clock.tsc = tsc;
}

void vmt_ptgen_cyc(struct vmt_ptgen_world *w)
{
	struct vmt_ptenc *e;
	uint64_t cycles;

	if (!w->o->cyc || !w->trigger || whole_cycles(w) == w->clock.cyc_from)
		return;
	/* What stands here instead may have told the cycles. */
	e = vmt_ptgen_stream(w);
	cycles = whole_cycles(w) - w->clock.cyc_from;
	if (!cycles)
		return;
	vmt_ptenc_cyc(e, cycles);
	w->clock.cyc_from += cycles;
}

void vmt_ptgen_cyc_restart(struct vmt_ptgen_world *w)
{
	w->clock.cyc_from = whole_cycles(w);
}

void vmt_ptgen_pass(struct vmt_ptgen_world *w, uint64_t ticks)
{
	const uint64_t end = w->clock.tsc + ticks;

	while (w->o->mtc && w->trigger) {
		const uint64_t period = art_now(w) >> w->o->mtc_freq;
		const uint64_t edge = tsc_of_art(w, (period + 1) << w->o->mtc_freq);

		if (edge > end)
			break;
		run_to(w, edge);
		vmt_ptgen_cyc(w);
		vmt_ptenc_mtc(vmt_ptgen_stream(w), (uint8_t)(period + 1));
	}
	run_to(w, end);
}

static uint64_t guest_tsc(const struct vmt_ptgen_world *w)
{
	const struct vmt_ptgen_vm *vm = &w->out->vms[w->vm];
	const unsigned __int128 product = (unsigned __int128)w->clock.tsc * vm->multiplier;

	return (uint64_t)(product >> 48) + w->offsets[w->vm];
}

/* TMA as erratum SKZ84 leaves it: garbage, a reserved byte that is not 0, one byte too many. */
static void corrupt_tma(struct vmt_ptgen_world *w)
{
	const uint64_t noise = vmt_ptgen_random(w, UINT64_MAX);
	uint8_t bytes[8] = { 0x02, 0x73 };

	for (unsigned int i = 2; i < 8; i++)
		bytes[i] = (uint8_t)(noise >> 8 * i);
	bytes[4] |= 1;
	vmt_ptenc_raw(vmt_ptgen_stream(w), bytes, sizeof(bytes));
}

void vmt_ptgen_tsc(struct vmt_ptgen_world *w)
{
	const uint64_t art = art_now(w);
	bool known;

	if (!w->o->tsc)
		return;
	vmt_ptgen_cyc(w);
	vmt_ptenc_tsc(vmt_ptgen_stream(w), w->in_guest ? guest_tsc(w) : w->clock.tsc);
	/* Whose TSC it is must be known; PSB+ tells it behind the packet. */
	known = w->told == (w->in_guest ? VMT_PTGEN_TOLD_NONROOT : VMT_PTGEN_TOLD_ROOT) ||
		(w->told && w->o->tracing == VMT_PTGEN_GUEST_ONLY);
	w->clock.tsc_packet_at = known && (w->vmcs_known || !w->in_guest) ? w->clock.tsc : 0;
	if (!w->o->mtc)
		return;
	if (w->in_guest && w->o->errata & VMT_PT_SKZ84 && (w->o->offset || w->o->scaling))
		corrupt_tma(w);
	else
		vmt_ptenc_tma(vmt_ptgen_stream(w), (uint16_t)art,
			      (uint16_t)(w->clock.tsc - tsc_of_art(w, art)));
}
