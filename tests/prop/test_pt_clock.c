/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A processor that writes timing packets, simulated with its own arithmetic (thousandths of a TSC
 * tick), against the clock: the true TSC of every packet lies inside the stated bound, times never
 * go back, and the time is exact behind a TSC packet.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "decode/pt/clock.h"

#define UNIT	 1000u /* of simulated time in a TSC tick */
#define MAX_OPEN 4096

struct machine {
	uint64_t random;
	/* fixed */
	uint32_t num, den, nom_ratio;
	uint8_t mtc_freq;
	bool mtc, cyc, tell_ratio;
	uint64_t threshold, art_offset; /* host TSC at crystal tick 0 */
	struct vmx_tsc_map map;
	bool scaled_guest;
	/* state */
	uint64_t now; /* units */
	uint64_t cyc_at;
	uint64_t edge; /* crystal tick of the next MTC */
	uint8_t cbr;
	bool guest, silent;
	/* the clock and the stamps that wait */
	struct vmt_pt_clock clock;
	struct {
		struct vmt_pt_stamp stamp;
		uint64_t truth;
	} open[MAX_OPEN];
	size_t nr_open;
	uint64_t bounds, last_time, checked, tight;
	bool behind_tsc;
};

static uint64_t draw(struct machine *m, uint64_t n)
{
	m->random ^= m->random << 13;
	m->random ^= m->random >> 7;
	m->random ^= m->random << 17;
	return (m->random >> 11) % n;
}

static uint64_t cycle_units(const struct machine *m)
{
	return (uint64_t)UNIT * m->nom_ratio / m->cbr;
}

static uint64_t edge_units(const struct machine *m, uint64_t tick)
{
	return m->art_offset * UNIT + tick * m->num * UNIT / m->den;
}

static void check(struct machine *m, const struct vmt_pt_stamp *stamp, uint64_t truth)
{
	struct vmt_pt_time t = vmt_pt_clock_tell(&m->clock, stamp);
	uint64_t apart = truth > t.tsc.host_tsc ? truth - t.tsc.host_tsc : t.tsc.host_tsc - truth;

	if (apart > t.error)
		fail_msg("true %llu, told %llu +- %llu", (unsigned long long)truth,
			 (unsigned long long)t.tsc.host_tsc, (unsigned long long)t.error);
	if (t.tsc.host_tsc < m->last_time)
		fail_msg("time went back from %llu to %llu", (unsigned long long)m->last_time,
			 (unsigned long long)t.tsc.host_tsc);
	m->last_time = t.tsc.host_tsc;
	m->checked++;
	m->tight += t.error < 1000;
}

static void settle(struct machine *m)
{
	if (m->bounds == m->clock.bounds)
		return;
	m->bounds = m->clock.bounds;
	for (size_t i = 0; i < m->nr_open; i++) {
		vmt_pt_stamp_close(&m->open[i].stamp, &m->clock);
		check(m, &m->open[i].stamp, m->open[i].truth);
	}
	m->nr_open = 0;
}

static void feed(struct machine *m, uint8_t type, uint64_t payload, uint16_t fc)
{
	const struct vmt_pt_packet p = { .type = type, .len = 1, .payload = payload, .fc = fc };

	if (m->silent)
		return;
	vmt_pt_clock_packet(&m->clock, &p, m->guest ? VMT_PT_MODE_NONROOT : VMT_PT_MODE_ROOT,
			    m->guest ? &m->map : NULL);
	settle(m);
}

/* A CYC where the protocol wants one before an eligible packet. */
static void count(struct machine *m)
{
	uint64_t n = (m->now - m->cyc_at) / cycle_units(m);

	if (!m->cyc || m->silent || n < m->threshold)
		return;
	m->cyc_at += n * cycle_units(m);
	feed(m, VMT_PT_CYC, n, 0);
}

static void packet(struct machine *m, uint8_t type)
{
	uint64_t truth = m->now / UNIT;
	struct vmt_pt_stamp stamp;

	count(m);
	feed(m, type, 0, 0);
	if (m->silent)
		return;
	stamp = vmt_pt_clock_stamp(&m->clock);
	if (m->behind_tsc && !m->guest)
		assert_true(stamp.known && stamp.tsc == truth);
	m->behind_tsc = false;
	if (stamp.closed) {
		check(m, &stamp, truth);
	} else if (stamp.known) {
		assert_true(m->nr_open < MAX_OPEN);
		m->open[m->nr_open].stamp = stamp;
		m->open[m->nr_open++].truth = truth;
	}
}

static void tsc(struct machine *m)
{
	uint64_t host = m->now / UNIT, at = m->now;
	uint64_t value = m->guest ? vmx_tsc_to_guest(&m->map, host) : host;
	uint64_t tick = (at / UNIT - m->art_offset) * m->den / m->num + 2;

	feed(m, VMT_PT_TSC, value & 0xffffffffffffff, 0);
	if (!m->mtc)
		return;
	while (edge_units(m, tick) > at)
		tick--;
	if (m->guest && draw(m, 2)) /* corrupt */
		feed(m, VMT_PT_TMA, draw(m, 65536), (uint16_t)draw(m, 512));
	else
		feed(m, VMT_PT_TMA, tick & 0xffff, (uint16_t)((at - edge_units(m, tick)) / UNIT));
}

static void pass(struct machine *m, uint64_t units)
{
	uint64_t until = m->now + units;

	while (m->mtc && edge_units(m, m->edge << m->mtc_freq) <= until) {
		m->now = edge_units(m, m->edge << m->mtc_freq);
		count(m);
		feed(m, VMT_PT_MTC, m->edge & 0xff, 0);
		m->edge++;
	}
	m->now = until;
}

static void psb(struct machine *m)
{
	count(m);
	feed(m, VMT_PT_PSB, 0, 0);
	tsc(m);
	feed(m, VMT_PT_CBR, m->cbr, 0);
	feed(m, VMT_PT_PSBEND, 0, 0);
}

/* Cycles stop for a while, MTC too; the ratio may be another one then. */
static void stop(struct machine *m)
{
	uint64_t sleep = draw(m, 1u << 20) * UNIT;

	count(m);
	m->now += sleep;
	m->cyc_at += sleep;
	while (m->mtc && edge_units(m, m->edge << m->mtc_freq) <= m->now)
		m->edge++;
	count(m);
	m->cyc_at = m->now;
	tsc(m);
	m->cbr = (uint8_t)(8 + draw(m, 30));
	feed(m, VMT_PT_CBR, m->cbr, 0);
	m->behind_tsc = true;
	packet(m, VMT_PT_MODE_EXEC);
}

static void overflow(struct machine *m)
{
	m->silent = true;
	pass(m, draw(m, 1u << 18) * UNIT);
	m->silent = false;
	feed(m, VMT_PT_OVF, 0, 0);
	m->cyc_at = m->now;
}

static void step(struct machine *m)
{
	pass(m, draw(m, 1 + (UINT64_C(1) << draw(m, 24))));
	switch (draw(m, 40)) {
	case 0:
		psb(m);
		break;
	case 1:
		stop(m);
		break;
	case 2:
		if (draw(m, 10) == 0)
			overflow(m);
		break;
	case 3:
	case 4:
		m->guest = !m->guest && m->scaled_guest;
		packet(m, VMT_PT_PIP);
		break;
	default:
		packet(m, VMT_PT_TNT);
		break;
	}
}

static void run(uint64_t seed)
{
	static const uint32_t ratios[][3] = {
		{ 176, 2, 21 }, { 88, 1, 21 }, { 250, 3, 20 }, { 217, 2, 26 }
	};
	struct machine *m = calloc(1, sizeof(*m));
	struct vmt_pt_clock_params params = { 0 };
	unsigned int pick;

	assert_non_null(m);
	m->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	pick = (unsigned int)draw(m, 4);
	m->num = ratios[pick][0];
	m->den = ratios[pick][1];
	m->nom_ratio = ratios[pick][2];
	m->mtc = draw(m, 3);
	m->mtc_freq = (uint8_t)(draw(m, 4) ? draw(m, 8) : draw(m, 16));
	m->cyc = draw(m, 3);
	m->threshold = draw(m, 2) ? 0 : UINT64_C(1) << draw(m, 12);
	m->tell_ratio = draw(m, 3);
	m->art_offset = draw(m, UINT64_C(1) << 40) + (draw(m, 2) ? UINT64_C(3) << 56 : 0) / UNIT;
	m->scaled_guest = draw(m, 3);
	m->map = (struct vmx_tsc_map){ .multiplier =
					       (UINT64_C(1) << 46) + draw(m, UINT64_C(1) << 48),
				       .offset = 0 - draw(m, UINT64_C(1) << 41),
				       .frac_bits = 48 };
	m->cbr = (uint8_t)(8 + draw(m, 30));
	m->now = (m->art_offset + 1000000) * UNIT;
	m->cyc_at = m->now;
	while (edge_units(m, m->edge << m->mtc_freq) <= m->now)
		m->edge += 1 + ((m->now - edge_units(m, m->edge << m->mtc_freq)) / UNIT * m->den /
					m->num >>
				(m->mtc_freq + 1));
	params.mtc_freq = m->mtc_freq;
	params.tsc_num = m->num;
	params.art_den = m->den;
	params.nom_ratio = m->tell_ratio ? m->nom_ratio : 0;
	params.reference = m->now / UNIT + draw(m, 1000000);
	vmt_pt_clock_init(&m->clock, &params);
	psb(m);
	for (int i = 0; i < 3000; i++)
		step(m);
	for (size_t i = 0; i < m->nr_open; i++) {
		vmt_pt_stamp_finish(&m->open[i].stamp, &m->clock);
		if (m->mtc && !m->clock.ambiguous)
			check(m, &m->open[i].stamp, m->open[i].truth);
	}
	assert_true(m->checked > 1000);
	/* Without losses nearly all of a cycle-accurate trace is told to within 1000 ticks. */
	if (m->cyc && !m->threshold && m->tell_ratio)
		assert_true(m->tight * 2 > m->checked);
	free(m);
}

static void truth_lies_inside(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		run(seed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(truth_lies_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
