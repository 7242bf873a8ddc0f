/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Packets that do not come. A loss may begin between any two packets; what happens from there on
 * happens all the same, and its packets are taken back where an instruction ends and OVF stands.
 */
#include "decode/pt/errata.h"
#include "tests/support/pt_generate_private.h"

static void forget(struct vmt_ptgen_world *w)
{
	w->told = VMT_PTGEN_TOLD_NOTHING;
	w->vmcs_known = false;
	w->cr3_known = false;
	w->clock.tsc_packet_at = 0;
}

void vmt_ptgen_lose(struct vmt_ptgen_world *w)
{
	if (!w->trigger || w->loss.on || w->unbroken)
		return;
	w->loss = (struct vmt_ptgen_loss){
		.on = true,
		.len = w->out->stream.len,
		.nr_truth = w->out->nr_truth,
		.nr_steps = w->out->nr_steps,
		.last_ip = w->out->stream.last_ip,
		.damaged = w->damaged,
	};
}

static void take_back(struct vmt_ptgen_world *w)
{
	const size_t len = w->loss.len;

	w->out->stream.len = len;
	w->out->stream.last_ip = w->loss.last_ip;
	w->damaged = w->loss.damaged;
	for (size_t i = w->loss.nr_truth; i < w->out->nr_truth; i++) {
		w->out->truth[i].hidden = true;
		w->out->truth[i].begin = w->out->truth[i].end = len;
	}
	/* What was under way when the loss began. */
	if (w->loss.nr_truth && w->out->truth[w->loss.nr_truth - 1].end > len) {
		w->out->truth[w->loss.nr_truth - 1].end = len;
		w->out->truth[w->loss.nr_truth - 1].certain = false;
	}
	for (size_t i = w->loss.nr_steps; i < w->out->nr_steps; i++)
		w->out->steps[i].at = len;
	w->loss.on = false;
}

/* Erratum SKD007: the first byte of a CYC that says that another follows. */
static void cut_cyc(struct vmt_ptgen_world *w)
{
	const uint8_t first = (uint8_t)(vmt_ptgen_random(w, 32) << 3 | 7);

	if (w->o->errata & VMT_PT_SKD007 && w->o->cyc && vmt_ptgen_chance(w, 500))
		vmt_ptenc_raw(vmt_ptgen_stream(w), &first, 1);
}

void vmt_ptgen_recover(struct vmt_ptgen_world *w)
{
	const uint32_t errata = w->o->errata;
	const uint64_t ip = *vmt_ptgen_world_ip(w);

	if (!w->trigger || !w->loss.on)
		return;
	take_back(w);
	w->out->overflows++;
	vmt_ptgen_cyc_restart(w);
	cut_cyc(w);
	vmt_ptenc_ovf(vmt_ptgen_stream(w));
	forget(w);
	if (vmt_ptgen_chance(w, 200)) {
		vmt_ptgen_psb(w, false);
	} else if (vmt_ptgen_packet_en(w)) {
		if (!(errata & VMT_PT_SKD010) || vmt_ptgen_chance(w, 500))
			vmt_ptgen_ip(w, VMT_PTENC_FUP, ip);
	} else if (w->o->branch) {
		if (errata & VMT_PT_APL11 && vmt_ptgen_chance(w, 500))
			vmt_ptgen_off(w);
		else if (errata & VMT_PT_APL12 && vmt_ptgen_chance(w, 500))
			vmt_ptgen_ip(w, VMT_PTENC_FUP, ip);
	}
}

void vmt_ptgen_damage(struct vmt_ptgen_world *w)
{
	static const uint8_t bad[] = { 0x02, 0x0f };

	if (!w->trigger)
		return;
	vmt_ptenc_raw(&w->out->stream, bad, sizeof(bad));
	w->damaged = true;
	w->whole = false;
	forget(w);
	w->out->damages++;
}
