// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a packet belongs to (SDM vol. 3 33.4.1, tables 33-51, 33-53 to 33-59): one handler a type,
 * which says what must be over before it. A FUP goes to whatever waits for it: PSB+, OVF, the
 * packets with an IP bit, a CFE; else it is the source of an asynchronous branch.
 */
#include "decode/pt/decoder_private.h"

typedef void take_fn(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p);

static void bound_stamps(struct vmt_pt_decoder *d)
{
	vmt_pt_stamp_close(&d->fup_stamp, &d->clock);
	vmt_pt_stamp_close(&d->evd.stamp, &d->clock);
	vmt_pt_stamp_close(&d->exit.stamp, &d->clock);
	vmt_pt_stamp_close(&d->entry.stamp, &d->clock);
	for (unsigned int i = 0; i < d->nr_notes; i++)
		vmt_pt_stamp_close(&d->notes[i].stamp, &d->clock);
	pt_queue_bound(d);
}

void pt_time(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p)
{
	enum vmt_pt_mode mode = pt_vm_mode(d);
	const struct vmx_tsc_map *map = NULL;

	if (p->type == VMT_PT_TSC)
		mode = pt_vm_tsc_mode(d, p->payload, &map);
	else if (p->type == VMT_PT_TMA && (mode == VMT_PT_MODE_UNKNOWN || d->outside))
		mode = d->clock.has_root_tsc ? VMT_PT_MODE_ROOT : VMT_PT_MODE_NONROOT;
	vmt_pt_clock_packet(&d->clock, p, mode, map);
	if (d->bounds != d->clock.bounds) {
		d->bounds = d->clock.bounds;
		bound_stamps(d);
	}
}

void pt_settle(struct vmt_pt_decoder *d, const struct vmt_pt_packet *tip)
{
	const uint32_t stay = PT_PEND_EVD | PT_PEND_RESUME;

	if (!(d->pending & ~stay))
		return;
	if (d->pending & PT_PEND_NOTES)
		pt_note_flush(d, NULL);
	pt_vm_settle(d, tip);
	d->pending &= stay;
}

void pt_lost(struct vmt_pt_decoder *d, const char *name, uint64_t bytes)
{
	if (d->options.lost)
		d->options.lost(d->options.packet_context, name);
	pt_settle(d, NULL);
	d->pending = 0;
	if (d->mode != VMT_PT_MODE_UNKNOWN)
		d->before_loss = d->mode;
	d->mode = VMT_PT_MODE_UNKNOWN;
	d->outside = false;
	d->untraced = false;
	d->packet_en = false;
	d->vmcs.known = false;
	d->guest_vmcs.known = false;
	d->guest_cr3.known = false;
	pt_queue_close_exits(d, false);
	vmt_pt_clock_lost(&d->clock);
	vmt_pt_pebs_lost(&d->pebs);
	pt_note_loss(d, name, bytes);
}

/* ---- handlers; the clock has had the packet ---- */

static void nothing(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p)
{
	(void)d;
	(void)p;
}

static void over(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p)
{
	(void)p;
	pt_settle(d, NULL);
	d->pending &= ~(uint32_t)(PT_PEND_EVD | PT_PEND_RESUME);
}

static void ran(struct vmt_pt_decoder *d)
{
	d->packet_en = true;
	if (d->mode == VMT_PT_MODE_ROOT)
		d->root_ran = true;
}

static void take_tnt(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p)
{
	if (d->pending)
		pt_vm_no_tip(d);
	if (d->pending)
		over(d, p);
	ran(d);
}

static void take_tip(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p)
{
	pt_settle(d, p);
	d->pending = 0;
	ran(d);
}

static void take_pge(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p)
{
	pt_note_flush(d, NULL);
	if (d->pending & (PT_PEND_EXIT | PT_PEND_ENTRY))
		pt_settle(d, p);
	else
		pt_vm_enabled(d, p);
	d->pending = 0;
	ran(d);
}

static void take_pgd(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p)
{
	/* By erratum SKL014 a branch that leaves the filter ranges looks like the entry. */
	bool left = d->pending & PT_PEND_EXIT && d->exit.cfe;
	bool entered = !p->has_ip && d->pending & PT_PEND_LEARNT && !left;
	bool branched = entered && d->errata & VMT_PT_SKL014;

	if (!p->has_ip && !(d->pending & (PT_PEND_EXIT | PT_PEND_ENTRY)))
		pt_vm_disabled(d);
	if (entered && !branched)
		pt_vm_out_of_sight(d);
	pt_settle(d, p);
	d->pending = branched ? PT_PEND_OFF : 0;
	d->packet_en = false;
	/* Where root operation is not traced, what goes off here comes back in a guest. */
	if (!p->has_ip && d->mode == VMT_PT_MODE_ROOT && !d->root_ran)
		d->outside = true;
}

/* The IP goes to the CFEs that wait for one. */
static void give_ip(struct vmt_pt_decoder *d, const struct pt_address *ip)
{
	if (d->pending & PT_PEND_EXIT && d->exit.wants_ip) {
		d->exit.rip = *ip;
		d->exit.wants_ip = false;
	}
	pt_note_flush(d, ip);
}

static void take_fup(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p)
{
	const uint32_t own = PT_PEND_BOUND | PT_PEND_CFE | PT_PEND_MODE;
	struct pt_address ip = { p->has_ip && !p->ip_unsure, p->ip };
	uint32_t waiting = d->pending;

	d->pending &= ~(own | PT_PEND_ABORT | PT_PEND_CFE_SHARED | PT_PEND_RESUME);
	if (waiting & PT_PEND_RESUME) {
		return;
	}
	if (waiting & (PT_PEND_CFE | PT_PEND_CFE_SHARED))
		give_ip(d, &ip);
	if (waiting & own || waiting & PT_PEND_CFE_SHARED)
		return;
	/* Erratum SKD022: the instruction's IP, once more. */
	if (d->errata & VMT_PT_SKD022 && d->pending & PT_PEND_ENTRY && !d->entry.pip)
		return;
	if (d->pending)
		over(d, p);
	if (d->mode == VMT_PT_MODE_ROOT)
		d->root_ran = true;
	d->pending |= PT_PEND_FUP;
	d->fup = ip;
	d->fup_stamp = vmt_pt_clock_stamp(&d->clock);
}

static void take_pip(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p)
{
	d->pending &= ~(uint32_t)(PT_PEND_MODE | PT_PEND_RESUME | PT_PEND_EVD);
	if (!p->nr)
		d->pending &= ~(uint32_t)PT_PEND_ENABLE;
	pt_vm_pip(d, p);
}

static void take_vmcs(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p)
{
	d->pending &= ~(uint32_t)(PT_PEND_MODE | PT_PEND_RESUME);
	pt_vm_vmcs(d, p);
}

static void take_mode_exec(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p)
{
	(void)p;
	d->pending &= ~(uint32_t)PT_PEND_RESUME;
	d->pending |= PT_PEND_MODE;
}

static void take_mode_tsx(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p)
{
	over(d, p);
	d->pending |= p->payload & 2 ? PT_PEND_ABORT : PT_PEND_BOUND;
}

/* PTW, EXSTOP, BEP, TRIG: they do not end a transition under way, but their FUP comes first. */
static void take_bound(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p)
{
	d->pending &= ~(uint32_t)(PT_PEND_MODE | PT_PEND_RESUME);
	if (p->ip_bit)
		d->pending |= PT_PEND_BOUND;
}

static void take_evd(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p)
{
	bool vmx = p->kind == VMT_PT_EVD_VMXQ || p->kind == VMT_PT_EVD_VMXR;

	/* An entry stays under way: the exit may say that it failed. An SMI may share its FUP. */
	if (!vmx || d->pending & PT_PEND_EXIT || !(d->pending & (PT_PEND_ENTRY | PT_PEND_NOTES)))
		pt_settle(d, NULL);
	d->pending &= ~(uint32_t)(PT_PEND_MODE | PT_PEND_RESUME);
	d->event_trace = true;
	d->counts.events++;
	if (!(d->pending & PT_PEND_EVD))
		d->evd = (struct pt_evd){ .stamp = vmt_pt_clock_stamp(&d->clock) };
	d->pending |= PT_PEND_EVD;
	switch (p->kind) {
	case VMT_PT_EVD_PFA:
		d->evd.has_fault = true;
		d->evd.fault = p->payload;
		break;
	case VMT_PT_EVD_VMXQ:
		d->evd.has_qualification = true;
		d->evd.qualification = p->payload;
		break;
	case VMT_PT_EVD_VMXR:
		d->evd.has_reason = true;
		d->evd.reason = (uint32_t)p->payload;
		break;
	default:
		break;
	}
}

/* CFE types whose FUP is the branch's own when the IP bit is 0 (RSM and SIPI have none). */
static bool shares_fup(uint8_t kind)
{
	switch (kind) {
	case VMT_PT_CFE_INTR:
	case VMT_PT_CFE_SMI:
	case VMT_PT_CFE_INIT:
	case VMT_PT_CFE_VMEXIT:
	case VMT_PT_CFE_VMEXIT_INTR:
	case VMT_PT_CFE_UINTR:
	case VMT_PT_CFE_SWINTR:
		return true;
	default:
		return false;
	}
}

/* A transition whose PIP has come: nothing but its TIP belongs to it any more. */
static bool has_arrived(const struct vmt_pt_decoder *d)
{
	return (d->pending & PT_PEND_EXIT && d->exit.pip) ||
	       (d->pending & PT_PEND_ENTRY && d->entry.pip);
}

static void take_cfe(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p)
{
	bool shared = !p->ip_bit && shares_fup(p->kind);
	bool waits = p->ip_bit || shared;

	d->event_trace = true;
	d->counts.events++;
	d->pending &= ~(uint32_t)(PT_PEND_MODE | PT_PEND_RESUME | PT_PEND_FUP | PT_PEND_ENABLE);
	switch (p->kind) {
	case VMT_PT_CFE_VMEXIT:
	case VMT_PT_CFE_VMEXIT_INTR:
		pt_vm_exit_cfe(d, p, waits);
		break;
	case VMT_PT_CFE_VMENTRY:
		pt_vm_entry_cfe(d, p, waits);
		break;
	case VMT_PT_CFE_SMI:
	case VMT_PT_CFE_RSM:
		if (has_arrived(d))
			pt_settle(d, NULL);
		pt_note_cfe(d, p, waits);
		if (p->kind == VMT_PT_CFE_RSM)
			d->pending |= PT_PEND_RSM;
		break;
	default:
		pt_settle(d, NULL);
		pt_note_cfe(d, p, waits);
		break;
	}
	if (waits)
		d->pending |= shared ? PT_PEND_CFE_SHARED : PT_PEND_CFE;
}

static void take_ovf(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p)
{
	(void)p;
	d->counts.overflows++;
	d->ledger.overflows++;
	pt_lost(d, "overflow", 0);
	d->pending = PT_PEND_RESUME;
}

static take_fn *const handlers[VMT_PT_TYPE_COUNT] = {
	[VMT_PT_PAD] = nothing,
	[VMT_PT_TNT] = take_tnt,
	[VMT_PT_TNT_LONG] = take_tnt,
	[VMT_PT_TIP] = take_tip,
	[VMT_PT_TIP_PGE] = take_pge,
	[VMT_PT_TIP_PGD] = take_pgd,
	[VMT_PT_FUP] = take_fup,
	[VMT_PT_PIP] = take_pip,
	[VMT_PT_MODE_EXEC] = take_mode_exec,
	[VMT_PT_MODE_TSX] = take_mode_tsx,
	[VMT_PT_TRACESTOP] = over,
	[VMT_PT_CBR] = nothing,
	[VMT_PT_TSC] = nothing,
	[VMT_PT_MTC] = nothing,
	[VMT_PT_TMA] = nothing,
	[VMT_PT_CYC] = nothing,
	[VMT_PT_VMCS] = take_vmcs,
	[VMT_PT_OVF] = take_ovf,
	[VMT_PT_PSB] = nothing,
	[VMT_PT_PSBEND] = nothing,
	[VMT_PT_MNT] = nothing,
	[VMT_PT_PTW] = take_bound,
	[VMT_PT_EXSTOP] = take_bound,
	[VMT_PT_MWAIT] = nothing,
	[VMT_PT_PWRE] = nothing,
	[VMT_PT_PWRX] = nothing,
	[VMT_PT_BBP] = nothing,
	[VMT_PT_BIP] = nothing,
	[VMT_PT_BEP] = take_bound,
	[VMT_PT_CFE] = take_cfe,
	[VMT_PT_EVD] = take_evd,
	[VMT_PT_TRIG] = take_bound,
};

/* TNT and TIP, where nothing waits for them: code runs. */
static bool runs_on(const struct vmt_pt_decoder *d, const struct vmt_pt_packet *p)
{
	return (p->type == VMT_PT_TNT || p->type == VMT_PT_TIP || p->type == VMT_PT_TNT_LONG) &&
	       !d->pending && !d->in_psb && !d->pebs.open && !d->pebs.wants_fup;
}

void pt_take(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p)
{
	if (p->type == VMT_PT_PAD)
		return;
	if (runs_on(d, p)) {
		vmt_pt_clock_plain(&d->clock);
		ran(d);
		return;
	}
	if (d->options.pebs && vmt_pt_pebs_packet(&d->pebs, p))
		d->options.pebs(d->options.context, &d->pebs.record, pt_vm_mode(d));
	if (p->type == VMT_PT_PSB) {
		pt_psb_begin(d, p);
		return;
	}
	if (d->in_psb) {
		d->psb_whole = p->type == VMT_PT_PSBEND;
		if (d->psb_whole)
			pt_psb_end(d);
		else if (pt_psb_take(d, p))
			return;
	}
	pt_time(d, p);
	handlers[p->type](d, p);
}

bool pt_branches_are_plain(const struct vmt_pt_decoder *d)
{
	return !d->pending && !d->in_psb && !d->options.pebs &&
	       d->reader.block == VMT_PT_BLOCK_NONE;
}

void pt_take_branches(struct vmt_pt_decoder *d, size_t packets)
{
	const struct vmt_pt_packet branch = { .type = VMT_PT_TNT };

	d->counts.packets += packets;
	pt_time(d, &branch);
	ran(d);
}
