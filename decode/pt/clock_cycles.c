// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * CYC and CBR: time between the other timing packets, by core cycles. The ratio of TSC ticks to
 * cycles is nominal (max non-turbo ratio : CBR) until it has been measured between two edges at one
 * frequency. It is trusted to a part in 64; when an edge contradicts it, to half of that.
 */
#include "decode/pt/clock_private.h"

/* Ticks that a measurement must span, so that rounding at its ends stays far below the slack. */
#define MIN_SPAN 1024u

static uint64_t add_sat(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* Estimate, and how far the truth may be from it, after the cycles counted since the anchor. */
static uint64_t estimate(const struct vmt_pt_cycles *c, uint64_t *error)
{
	uint64_t ticks = pt_clock_scale(c->count, c->num, c->den);

	*error = add_sat(c->anchor_error, (ticks >> c->slack_shift) + c->num / c->den + 2);
	return add_sat(c->anchor, ticks);
}

static void set_ratio(struct vmt_pt_cycles *c, uint64_t ticks, uint64_t cycles)
{
	while ((ticks | cycles) >> 32) {
		ticks >>= 1;
		cycles >>= 1;
	}
	if (!ticks || !cycles)
		return;
	c->num = ticks;
	c->den = cycles;
}

void pt_clock_cyc(struct vmt_pt_clock *clock, const struct vmt_pt_packet *p)
{
	struct vmt_pt_cycles *c = &clock->cycles;
	bool bounds = !clock->ambiguous && !(clock->after_psb && clock->params.cyc_drops_at_psb);
	uint64_t value, error;

	c->cal_count = add_sat(c->cal_count, p->payload);
	if (!clock->known || !c->anchored)
		return;
	c->count = add_sat(c->count, p->payload);
	if (!c->den)
		return;
	if (c->partial)
		c->anchor_error =
			add_sat(c->anchor_error, pt_clock_scale(p->payload, c->num, c->den));
	c->partial = false;
	value = estimate(c, &error);
	if (value == UINT64_MAX || add_sat(value, error) == UINT64_MAX)
		return;
	pt_clock_set(clock, value, value > error ? value - error : 0,
		     bounds ? value + error : VMT_PT_NO_BOUND);
	clock->next_at_cyc = bounds;
}

void pt_clock_cbr(struct vmt_pt_clock *clock, const struct vmt_pt_packet *p)
{
	struct vmt_pt_cycles *c = &clock->cycles;
	uint64_t value, error;

	if (p->payload == c->cbr || !p->payload)
		return;
	c->cbr = (uint8_t)p->payload;
	c->cal_open = false;
	if (c->anchored && c->den) {
		value = estimate(c, &error);
		c->partial = c->partial || c->count;
		c->anchor = value;
		c->anchor_error = error;
		c->count = 0;
	}
	c->num = clock->params.nom_ratio;
	c->den = c->num ? c->cbr : 0;
}

/* Measures the ratio between two anchors with cycles counted from one to the other. */
static void calibrate(struct vmt_pt_cycles *c, uint64_t tsc, bool usable)
{
	uint64_t span = tsc - c->cal_tsc;

	if (usable && c->cal_open && tsc >= c->cal_tsc) {
		if (span < MIN_SPAN)
			return;
		set_ratio(c, span, c->cal_count);
	}
	c->cal_open = true;
	c->cal_tsc = tsc;
	c->cal_count = 0;
}

/* Whether the cycles counted so far say another time than an anchor, which is true to +- tolerance.
 */
static bool contradicts(const struct vmt_pt_cycles *c, uint64_t tsc, uint64_t tolerance)
{
	uint64_t value, error, apart;

	if (!c->den)
		return false;
	value = estimate(c, &error);
	apart = value > tsc ? value - tsc : tsc - value;
	return apart > add_sat(error, tolerance);
}

/* An anchor that the cycles contradict: trust the ratio less. */
static void compare(struct vmt_pt_clock *clock, uint64_t tsc, uint64_t tolerance)
{
	struct vmt_pt_cycles *c = &clock->cycles;

	if (!c->anchored || c->partial || !contradicts(c, tsc, tolerance))
		return;
	clock->drops++;
	if (c->slack_shift)
		c->slack_shift--;
}

void pt_clock_cycles_anchor(struct vmt_pt_clock *clock, uint64_t tsc, uint64_t error, bool stopped)
{
	struct vmt_pt_cycles *c = &clock->cycles;
	bool dropped = clock->after_psb && clock->params.cyc_drops_at_psb;

	if (clock->next_counted) {
		if (!stopped && !dropped)
			compare(clock, tsc, error);
		calibrate(c, tsc, !stopped && !dropped);
	} else {
		c->cal_open = false;
		/* Time that was not counted went by where the anchor lies elsewhere. */
		if (!stopped && c->anchored && !contradicts(c, tsc, error))
			return;
	}
	c->anchored = true;
	c->partial = !clock->next_counted;
	c->anchor = tsc;
	c->anchor_error = error;
	c->count = 0;
}

void pt_clock_cycles_lost(struct vmt_pt_clock *clock)
{
	clock->cycles.cal_open = false;
	clock->cycles.anchored = false;
}
