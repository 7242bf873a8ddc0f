// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * TMA and MTC: the crystal's edges. An MTC shows eight bits of the crystal counter (ART), so it
 * stands for one edge in 256 periods: the first one that is not before the time known. Lost MTC
 * packets and wraps come out of that by themselves.
 */
#include "decode/pt/clock_private.h"

void pt_clock_tma(struct vmt_pt_clock *clock, const struct vmt_pt_packet *p)
{
	const struct vmt_pt_clock_params *params = &clock->params;
	struct vmt_pt_crystal *crystal = &clock->crystal;
	uint64_t below, ctc_rest;

	if (!params->tsc_num)
		return;
	/* FC counts TSC ticks since an edge: there are N/D of them between two. */
	if (p->fc > params->tsc_num / params->art_den + 1) {
		clock->ignored++;
		return;
	}
	ctc_rest = p->payload & ((UINT64_C(1) << params->mtc_freq) - 1);
	below = p->fc + pt_clock_scale(ctc_rest, params->tsc_num, params->art_den);
	if (below > clock->root_tsc)
		return;
	*crystal = (struct vmt_pt_crystal){
		.known = true,
		.bits = 16,
		.base = clock->root_tsc - below,
		.ctc = p->payload - ctc_rest,
	};
}

static uint64_t edge_at(const struct vmt_pt_clock *clock, uint64_t ticks)
{
	uint64_t since = pt_clock_scale(ticks, clock->params.tsc_num, clock->params.art_den);
	uint64_t edge;

	return __builtin_add_overflow(clock->crystal.base, since, &edge) ? UINT64_MAX : edge;
}

/* Crystal ticks from the base to the first edge at or behind a host TSC, less one period. */
static uint64_t first_ticks(const struct vmt_pt_clock *clock, uint64_t tsc)
{
	const struct vmt_pt_clock_params *params = &clock->params;
	uint64_t period = UINT64_C(1) << params->mtc_freq, ticks;

	if (tsc <= clock->crystal.base)
		return 0;
	ticks = pt_clock_scale(tsc - clock->crystal.base, params->art_den, params->tsc_num);
	return ticks > period ? ticks - period : 0;
}

static void set_edge(struct vmt_pt_clock *clock, uint64_t edge)
{
	uint64_t low = edge < PT_EDGE_ERROR ? 0 : edge - PT_EDGE_ERROR;
	uint64_t high = edge + PT_EDGE_ERROR;

	if (high < clock->sure)
		high = VMT_PT_NO_BOUND; /* an edge from before the last TSC, written late */
	else if (high < clock->low)
		clock->low = clock->sure; /* CYC ran ahead of the crystal */
	if (clock->sure < low)
		clock->sure = low;
	pt_clock_set(clock, edge, clock->sure, high);
}

void pt_clock_mtc(struct vmt_pt_clock *clock, const struct vmt_pt_packet *p)
{
	struct vmt_pt_crystal *crystal = &clock->crystal;
	unsigned int freq = clock->params.mtc_freq, all = freq + 8u;
	unsigned int bits = crystal->bits < all ? crystal->bits : all;
	uint64_t modulus = UINT64_C(1) << bits, from, ticks, steps, edge;

	if (!clock->known || !clock->params.tsc_num || !crystal->known)
		return;
	from = first_ticks(clock, clock->sure);
	if (crystal->has_last && from <= crystal->last)
		from = crystal->last + 1;
	ticks = from + (((p->payload << freq) - crystal->ctc - from) & (modulus - 1));
	edge = edge_at(clock, ticks);
	if (ticks < from || edge >= UINT64_MAX - PT_EDGE_ERROR)
		return;
	steps = crystal->has_last ? (ticks - crystal->last) >> freq : 1;
	if (steps > 1 && !clock->ambiguous)
		clock->drops += steps - 1;
	crystal->has_last = true;
	crystal->last = ticks;
	crystal->ctc = ((p->payload << freq) - ticks) & ((UINT64_C(1) << all) - 1);
	crystal->bits = (uint8_t)all;
	set_edge(clock, edge);
	if (!clock->ambiguous && clock->next_counted)
		pt_clock_cycles_anchor(clock, clock->tsc, 2 * PT_EDGE_ERROR, false);
	clock->after_psb = false;
}

uint64_t pt_clock_next_edge(const struct vmt_pt_clock *clock)
{
	const struct vmt_pt_crystal *crystal = &clock->crystal;
	uint64_t period = UINT64_C(1) << clock->params.mtc_freq, ticks, edge;

	if (!clock->known || !crystal->known || !crystal->has_last)
		return VMT_PT_NO_BOUND;
	ticks = first_ticks(clock, clock->low) + 2 * period;
	if (ticks < crystal->last + period)
		ticks = crystal->last + period;
	edge = edge_at(clock, ticks);
	return edge > UINT64_MAX - PT_EDGE_ERROR ? VMT_PT_NO_BOUND : edge + PT_EDGE_ERROR;
}
