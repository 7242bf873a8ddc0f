// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * PSB+: everything up to PSBEND states what the CPU is in, in any order (SDM vol. 3 33.3.7). Its
 * timing packets wait for the end, because PIP and VMCS say whose TSC the TSC packet holds.
 */
#include "decode/pt/decoder_private.h"

void pt_psb_begin(struct vmt_pt_decoder *d, const struct vmt_pt_packet *packet)
{
	if (d->in_psb)
		pt_psb_end(d);
	pt_settle(d, NULL);
	d->pending &= PT_PEND_RESUME;
	pt_time(d, packet);
	d->in_psb = true;
	d->psb_fup = false;
	d->psb_pip = false;
	d->psb_whole = false;
	d->psb_vmcs.known = false;
	d->nr_times = 0;
}

static void take_time(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p)
{
	if (d->nr_times == PT_TIMES_MAX) {
		/* No more than five belong to a PSB+: this one is not of a processor. */
		d->clock.ignored++;
		return;
	}
	d->times[d->nr_times++] = *p;
}

bool pt_psb_take(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p)
{
	switch (p->type) {
	case VMT_PT_TSC:
	case VMT_PT_TMA:
	case VMT_PT_MTC:
	case VMT_PT_CYC:
	case VMT_PT_CBR:
		take_time(d, p);
		return true;
	case VMT_PT_PIP:
		d->psb_pip = true;
		d->psb_nr = p->nr;
		d->counts.pips++;
		d->counts.nonroot_pips += p->nr;
		d->psb_cr3 = (struct pt_address){ true, p->address };
		return true;
	case VMT_PT_VMCS:
		/* All ones: no VMCS is current. */
		d->psb_vmcs =
			(struct pt_address){ p->payload != UINT64_C(0xffffffffff), p->address };
		return true;
	case VMT_PT_FUP:
		d->psb_fup = true;
		return true;
	case VMT_PT_MODE_EXEC:
	case VMT_PT_MODE_TSX:
	case VMT_PT_PAD:
	case VMT_PT_MNT:
		return true;
	default:
		pt_psb_end(d);
		d->clock.in_psb = false;
		return false;
	}
}

/* A FUP in PSB+ says that PacketEn is 1. With BDM70 it may stand there though PacketEn is 0. */
static bool says_packet_en(const struct vmt_pt_decoder *d)
{
	return d->psb_fup && (d->packet_en || !(d->errata & VMT_PT_BDM70));
}

static void apply_mode(struct vmt_pt_decoder *d)
{
	enum vmt_pt_mode mode = d->psb_nr ? VMT_PT_MODE_NONROOT : VMT_PT_MODE_ROOT;
	bool fup = says_packet_en(d);

	/* A guest that was left with tracing off is entered with a PSB+: no gap, its TIP.PGE comes.
	 */
	if (d->outside && d->psb_nr && !fup) {
		d->guest_cr3 = d->psb_cr3;
		return;
	}
	if (d->mode == VMT_PT_MODE_UNKNOWN && d->before_loss == VMT_PT_MODE_UNKNOWN && d->psb_nr &&
	    !fup && !d->root_ran)
		d->pending |= PT_PEND_ENABLE;
	if (d->mode != mode)
		pt_vm_learn(d, mode);
	if (d->psb_nr)
		d->guest_cr3 = d->psb_cr3;
	else
		d->root_ran = true;
}

void pt_psb_end(struct vmt_pt_decoder *d)
{
	if (!d->in_psb)
		return;
	d->in_psb = false;
	if (d->psb_fup)
		d->pending &= ~(uint32_t)PT_PEND_RESUME;
	if (d->psb_vmcs.known) {
		if (!d->vmcs.known)
			pt_queue_name_exits(d, d->psb_vmcs.value);
		d->vmcs = d->psb_vmcs;
	}
	if (d->psb_pip)
		apply_mode(d);
	d->packet_en = says_packet_en(d);
	if (d->psb_vmcs.known && d->mode == VMT_PT_MODE_NONROOT)
		d->guest_vmcs = d->psb_vmcs;
	/* Without a PIP ContextEn is 0: the world that is not traced runs. */
	d->away = d->psb_whole && !d->psb_pip && (d->outside || d->untraced);
	for (unsigned int i = 0; i < d->nr_times; i++)
		pt_time(d, &d->times[i]);
	d->away = false;
	d->nr_times = 0;
}
