// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * From one side to the other. A transition is written when it is certain and not later than the
 * next packet that tells time, so that its time is that of the input. Cycles that were counted
 * since it began stand behind its packets and before its TIP.
 */
#include "decode/rewrite/privacy_private.h"

#include "vmx/exit.h"

static bool keeps_guest(const struct vmt_rewrite *r)
{
	return r->options.keep == VMT_PRIVACY_GUEST;
}

static void clear(struct vmt_rewrite *r, uint32_t bits)
{
	r->wait &= ~bits;
}

static bool is_exit_cfe(const struct vmt_pt_packet *p)
{
	return p->kind == VMT_PT_CFE_VMEXIT || p->kind == VMT_PT_CFE_VMEXIT_INTR;
}

/* ---- cycles of a transition that may be taken back ---- */

static void hold_cycles(struct vmt_rewrite *r)
{
	if (r->spent)
		rw_flush_cycles(r);
	r->before = r->cycles;
	r->between = 0;
	r->cycles = 0;
}

/* Those up to its PIP are written. */
static void give_cycles(struct vmt_rewrite *r)
{
	const uint64_t since = r->cycles;

	r->cycles = r->before;
	r->before = 0;
	rw_flush_cycles(r);
	r->cycles = since;
}

static void take_back_cycles(struct vmt_rewrite *r)
{
	r->cycles += r->before + r->between;
	r->before = r->between = 0;
	r->spent = true;
}

/* ---- the guests are kept ---- */

/* A reader who knows of no side yet learns it by a PSB+. */
static void tell_first_entry(struct vmt_rewrite *r)
{
	vmt_pt_put_psb(&r->out);
	if (r->cbr)
		vmt_pt_put_cbr(&r->out, r->cbr);
	r->told_vmcs.known = false;
	rw_tell_vmcs(r);
	vmt_pt_put_pip(&r->out, r->cr3, true);
	vmt_pt_put_psbend(&r->out);
}

/* ip NULL: the guest is in, and no TIP tells where. */
static void enter(struct vmt_rewrite *r, const uint64_t *ip)
{
	clear(r, RW_ENTERING | RW_AFTER_FUP);
	r->counts.entries++;
	give_cycles(r);
	if (r->told != RW_TOLD_AWAY && !ip)
		r->by_cfe = true;
	if (r->by_cfe)
		vmt_pt_put_cfe(&r->out, VMT_PT_CFE_VMENTRY, 0, false);
	if (!r->by_cfe && r->told != RW_TOLD_AWAY) {
		tell_first_entry(r);
	} else {
		rw_tell_vmcs(r);
		vmt_pt_put_pip(&r->out, r->cr3, true);
	}
	r->side = RW_KEPT;
	r->told = RW_TOLD_KEPT;
	if (ip)
		rw_begin_span(r, *ip);
}

/* The exit is told. */
static void leave(struct vmt_rewrite *r)
{
	rw_close_span(r, r->by_cfe);
	r->side = RW_OTHER;
	r->told = RW_TOLD_AWAY;
	r->wait = 0;
}

/* The guest was left, and what told it is concealed. */
static void leave_unseen(struct vmt_rewrite *r)
{
	rw_close_span(r, false);
	r->side = RW_OTHER;
	r->by_cfe = true;
	r->wait = 0;
}

static void put_held_fup(struct vmt_rewrite *r)
{
	if (r->wait & RW_FUP)
		vmt_pt_put_ip(&r->out, VMT_PT_FUP, r->fup, false);
	clear(r, RW_FUP);
}

/* By the NR bit: with a FUP, or where packets are off. */
static void leave_by_pip(struct vmt_rewrite *r)
{
	if (r->wait & RW_LEAVING) {
		leave(r);
	} else if (r->event_trace || (r->on && !(r->wait & RW_AFTER_FUP))) {
		put_held_fup(r);
		leave_unseen(r);
	} else if (r->wait & RW_AFTER_FUP) {
		const bool out = !(r->wait & RW_FUP);

		/* A FUP that is out already stands for itself; the CFE has one more. */
		if (r->by_cfe)
			vmt_pt_put_cfe(&r->out, VMT_PT_CFE_VMEXIT, 0, out);
		if (r->by_cfe || !out)
			vmt_pt_put_ip(&r->out, VMT_PT_FUP, r->fup, false);
		leave(r);
	} else {
		rw_flush_cycles(r);
		r->side = RW_OTHER;
		r->by_cfe = true;
		r->wait = RW_LEFT;
	}
	r->wait |= RW_AFTER_PIP;
}

/*
 * NR is 0 again, and nothing came since it was 1: the entry failed. Where packets are off a guest
 * may have run, if no TIP follows.
 */
static void come_back(struct vmt_rewrite *r, uint32_t turn)
{
	if (r->event_trace || r->packet_en) {
		clear(r, turn);
		take_back_cycles(r);
		return;
	}
	r->wait |= RW_LEFT;
	r->between = r->cycles;
	r->cycles = 0;
}

static void guest_pip(struct vmt_rewrite *r, const struct vmt_pt_packet *p)
{
	if (!p->nr) {
		if (r->wait & RW_LEFT)
			rw_settle(r, p);
		if (r->wait & RW_ENTERING)
			come_back(r, RW_ENTERING);
		else if (r->side == RW_KEPT)
			leave_by_pip(r);
		r->side = RW_OTHER;
		return;
	}
	if (r->wait & (RW_ENTERING | RW_LEFT | RW_LEAVING | RW_FUP)) {
		const uint32_t after = r->wait & (RW_AFTER_FUP | RW_MODE);

		rw_settle(r, p);
		r->wait |= r->side == RW_KEPT ? after : 0;
	}
	if (r->side == RW_OTHER) {
		hold_cycles(r);
		r->cr3 = p->address;
		r->wait = RW_ENTERING | RW_AFTER_PIP;
		return;
	}
	if (r->side == RW_UNKNOWN)
		rw_tell_vmcs(r);
	rw_flush_cycles(r);
	vmt_pt_put_pip(&r->out, p->address, true);
	r->side = RW_KEPT;
	r->told = RW_TOLD_KEPT;
}

static bool is_real_exit(const struct vmt_rewrite *r)
{
	return r->has_reason && !(r->reason & (VMX_REASON_ENTRY_FAILURE | VMX_REASON_FROM_ROOT));
}

static void put_evds(struct vmt_rewrite *r)
{
	if (r->has_reason)
		rw_flush_cycles(r);
	if (r->has_qualification && keeps_guest(r))
		vmt_pt_put_evd(&r->out, VMT_PT_EVD_VMXQ, r->qualification);
	if (r->has_reason)
		vmt_pt_put_evd(&r->out, VMT_PT_EVD_VMXR, r->reason);
}

static void guest_exit_cfe(struct vmt_rewrite *r, const struct vmt_pt_packet *p)
{
	if (r->wait & RW_ENTERING) {
		clear(r, RW_ENTERING);
		if (!is_real_exit(r))
			return;
		enter(r, NULL);
	} else if (r->side == RW_UNKNOWN && is_real_exit(r)) {
		r->side = RW_KEPT;
	} else if (r->side != RW_KEPT) {
		return;
	}
	put_held_fup(r);
	rw_flush_cycles(r);
	put_evds(r);
	vmt_pt_put_cfe(&r->out, p->kind, p->vector, p->ip_bit);
	r->wait = RW_LEAVING;
}

static void guest_cfe(struct vmt_rewrite *r, const struct vmt_pt_packet *p)
{
	r->by_cfe = true;
	if (is_exit_cfe(p)) {
		guest_exit_cfe(r, p);
		return;
	}
	rw_settle(r, p);
	if (p->kind == VMT_PT_CFE_VMENTRY) {
		if (r->side == RW_KEPT)
			leave_unseen(r);
		r->side = RW_OTHER;
	} else if (r->side == RW_KEPT) {
		rw_flush_cycles(r);
		vmt_pt_put_cfe(&r->out, p->kind, p->vector, p->ip_bit);
		r->wait |= p->ip_bit ? RW_BOUND : 0;
	}
}

/* ---- the host is kept ---- */

/* What named the entry is written. */
static void name_entry(struct vmt_rewrite *r)
{
	if (!(r->wait & RW_GOING))
		return;
	vmt_pt_put_cfe(&r->out, VMT_PT_CFE_VMENTRY, 0, r->has_fup);
	if (r->has_fup)
		vmt_pt_put_ip(&r->out, VMT_PT_FUP, r->fup, false);
	clear(r, RW_GOING);
}

static void go(struct vmt_rewrite *r)
{
	const bool named = r->wait & (RW_GOING | RW_LEAVING);

	give_cycles(r);
	name_entry(r);
	r->side = RW_OTHER;
	r->wait = 0;
	/* With Event Trace an entry without a CFE is one that is concealed. */
	if (r->event_trace && !named) {
		rw_close_span(r, false);
		return;
	}
	if (!named)
		vmt_pt_put_cfe(&r->out, VMT_PT_CFE_VMENTRY, 0, false);
	rw_close_span(r, true);
	r->told = RW_TOLD_AWAY;
}

static void host_exit_cfe(struct vmt_rewrite *r, uint8_t kind, uint8_t vector)
{
	put_evds(r);
	vmt_pt_put_cfe(&r->out, kind, vector, false);
	r->counts.entries += r->side != RW_KEPT;
	r->side = RW_KEPT;
	r->told = RW_TOLD_KEPT;
	r->wait = RW_DROP_FUP;
}

static void host_pip(struct vmt_rewrite *r, const struct vmt_pt_packet *p)
{
	if (r->wait & RW_LEFT || (p->nr && r->wait & RW_GONE))
		rw_settle(r, p);
	if (p->nr) {
		if (r->side == RW_KEPT) {
			hold_cycles(r);
			r->wait = (r->wait & (RW_GOING | RW_LEAVING)) | RW_GONE | RW_AFTER_PIP;
		} else if (r->side == RW_UNKNOWN) {
			r->side = RW_OTHER;
			r->wait = RW_AFTER_PIP;
		}
		return;
	}
	/* Behind a loss: the guest was left, or could not be entered. */
	if (r->side == RW_OTHER && r->wait & RW_AFTER_PIP) {
		hold_cycles(r);
		r->cr3 = p->address;
		r->wait = RW_LEFT;
		return;
	}
	if (r->wait & RW_GONE) {
		r->cr3 = p->address;
		come_back(r, RW_GONE | RW_GOING | RW_LEAVING);
		return;
	}
	rw_flush_cycles(r);
	if (r->wait & RW_GOING)
		name_entry(r);
	else if (r->side == RW_OTHER)
		host_exit_cfe(r, VMT_PT_CFE_VMEXIT, 0);
	vmt_pt_put_pip(&r->out, p->address, false);
	if (r->wait & RW_DROP_FUP || r->side != RW_KEPT)
		r->wait = RW_AFTER_PIP;
	r->side = RW_KEPT;
	r->told = RW_TOLD_KEPT;
}

static void host_cfe(struct vmt_rewrite *r, const struct vmt_pt_packet *p)
{
	rw_settle(r, p);
	rw_flush_cycles(r);
	if (is_exit_cfe(p)) {
		host_exit_cfe(r, p->kind, p->vector);
	} else if (p->kind == VMT_PT_CFE_VMENTRY) {
		r->side = RW_KEPT;
		r->has_fup = false;
		r->wait = RW_GOING;
	} else if (r->side == RW_KEPT) {
		vmt_pt_put_cfe(&r->out, p->kind, p->vector, p->ip_bit);
		r->wait |= p->ip_bit ? RW_BOUND : 0;
	}
}

/* ---- either ---- */

/* A PIP of the host that a TIP follows, without a FUP before: no guest was there. */
static void settle_left(struct vmt_rewrite *r, const struct vmt_pt_packet *p)
{
	clear(r, RW_LEFT);
	if (!keeps_guest(r)) {
		if (!p || p->type != VMT_PT_TIP)
			host_exit_cfe(r, VMT_PT_CFE_VMEXIT, 0);
		give_cycles(r);
		vmt_pt_put_pip(&r->out, r->cr3, false);
		r->side = RW_KEPT;
		r->told = RW_TOLD_KEPT;
		r->wait = 0;
		return;
	}
	if (p && p->type == VMT_PT_TIP)
		return;
	vmt_pt_put_cfe(&r->out, VMT_PT_CFE_VMEXIT, 0, false);
	rw_close_span(r, true);
	r->told = RW_TOLD_AWAY;
}

/* NR was 1 and 0 again. */
static void settle_both(struct vmt_rewrite *r, const struct vmt_pt_packet *p)
{
	const uint64_t since = r->cycles;
	const bool failed = p && p->type == VMT_PT_TIP;

	clear(r, RW_LEFT | RW_ENTERING | RW_GONE);
	if (failed) {
		take_back_cycles(r);
		return;
	}
	r->by_cfe = true;
	r->cycles = 0;
	if (keeps_guest(r))
		enter(r, NULL);
	else
		go(r);
	r->cycles = r->between;
	rw_flush_cycles(r);
	if (keeps_guest(r)) {
		r->side = RW_OTHER;
		r->wait |= RW_LEFT;
		settle_left(r, p);
	} else {
		host_exit_cfe(r, VMT_PT_CFE_VMEXIT, 0);
		vmt_pt_put_pip(&r->out, r->cr3, false);
		r->wait = 0;
	}
	r->cycles += since;
}

static bool settle_entering(struct vmt_rewrite *r, const struct vmt_pt_packet *p)
{
	const bool tip = p && (p->type == VMT_PT_TIP || p->type == VMT_PT_TIP_PGE);
	const bool pgd = p && p->type == VMT_PT_TIP_PGD;

	if (tip && p->has_ip && !p->ip_unsure) {
		enter(r, &p->ip);
		return true;
	}
	enter(r, NULL);
	if (!pgd)
		return false;
	rw_flush_cycles(r);
	if (p->has_ip && !p->ip_unsure) {
		/* Outside of the filter ranges. */
		vmt_pt_put_ip(&r->out, VMT_PT_TIP_PGD, p->ip, true);
		return true;
	}
	/* The guest runs out of sight. */
	vmt_pt_put_no_ip(&r->out, VMT_PT_TIP_PGD);
	r->side = RW_UNKNOWN;
	return true;
}

static bool tells_time(const struct vmt_pt_packet *p)
{
	return p && (p->type == VMT_PT_TSC || p->type == VMT_PT_TMA || p->type == VMT_PT_MTC ||
		     p->type == VMT_PT_CBR);
}

bool rw_settle(struct vmt_rewrite *r, const struct vmt_pt_packet *p)
{
	const uint32_t wait = r->wait;
	const bool time = tells_time(p);
	bool taken = false;

	if (!wait)
		return false;
	if (wait & RW_LEFT && wait & (RW_ENTERING | RW_GONE)) {
		settle_both(r, p);
	} else if (wait & RW_ENTERING) {
		taken = settle_entering(r, p);
	} else if (wait & RW_LEFT) {
		settle_left(r, p);
	} else if (wait & RW_GONE) {
		go(r);
	} else if (wait & RW_GOING) {
		name_entry(r);
		r->wait |= time ? RW_LEAVING : 0;
	} else if (wait & RW_LEAVING && !time) {
		clear(r, RW_LEAVING);
		if (keeps_guest(r))
			leave(r);
	}
	/* Tracing goes off inside the guest: with a FUP it would read as an exit, which it is where
	 * guests alone are traced. */
	if (p && p->type == VMT_PT_TIP_PGD && !p->has_ip && r->other_ran)
		clear(r, RW_FUP);
	put_held_fup(r);
	if (!time)
		clear(r, RW_AFTER_FUP | RW_AFTER_PIP | RW_MODE | RW_DROP_FUP);
	/* A PSB+ may stand between a packet and its FUP. */
	if (!time && p && p->type != VMT_PT_PSB)
		clear(r, RW_BOUND);
	return taken;
}

void rw_turn_pip(struct vmt_rewrite *r, const struct vmt_pt_packet *p)
{
	clear(r, RW_UNSURE);
	r->has_reason = r->has_qualification = false;
	if (keeps_guest(r))
		guest_pip(r, p);
	else
		host_pip(r, p);
}

void rw_turn_vmcs(struct vmt_rewrite *r, const struct vmt_pt_packet *p)
{
	const bool inside = r->wait & (RW_AFTER_FUP | RW_LEAVING);

	if (r->wait & RW_LEFT)
		rw_settle(r, p);
	r->vmcs = (struct rw_address){ p->payload != UINT64_C(0xffffffffff), p->address };
	if (keeps_guest(r)) {
		/* VMPTRLD is an instruction of root operation, but for what an SMI does. */
		if (r->side == RW_KEPT && !inside)
			leave_unseen(r);
		return;
	}
	rw_flush_cycles(r);
	if (r->wait & RW_GOING) {
		name_entry(r);
		r->wait |= RW_LEAVING;
	}
	/* The host's address, wherever it stands. */
	vmt_pt_put_vmcs(&r->out, p->address);
}

void rw_turn_cfe(struct vmt_rewrite *r, const struct vmt_pt_packet *p)
{
	r->event_trace = true;
	clear(r, RW_UNSURE);
	if (keeps_guest(r))
		guest_cfe(r, p);
	else
		host_cfe(r, p);
	r->has_reason = r->has_qualification = false;
}

void rw_turn_evd(struct vmt_rewrite *r, const struct vmt_pt_packet *p)
{
	r->event_trace = true;
	if (p->kind == VMT_PT_EVD_VMXR) {
		r->has_reason = true;
		r->reason = (uint32_t)p->payload;
	} else if (p->kind == VMT_PT_EVD_VMXQ) {
		r->has_qualification = true;
		r->qualification = p->payload;
	} else {
		rw_settle(r, p);
		if (r->side != RW_KEPT || p->kind != VMT_PT_EVD_PFA)
			return;
		rw_flush_cycles(r);
		vmt_pt_put_evd(&r->out, p->kind, p->payload);
	}
}

void rw_turn_fup(struct vmt_rewrite *r, const struct vmt_pt_packet *p)
{
	const bool ip = p->has_ip && !p->ip_unsure;
	const uint32_t wait = r->wait;

	if (wait & RW_DROP_FUP)
		return;
	if (wait & RW_GOING) {
		r->has_fup = ip;
		r->fup = p->ip;
		return;
	}
	if (wait & RW_LEAVING && keeps_guest(r)) {
		if (ip)
			vmt_pt_put_ip(&r->out, VMT_PT_FUP, p->ip, false);
		leave(r);
		return;
	}
	rw_settle(r, p);
	if (r->side != RW_KEPT || !ip)
		return;
	rw_flush_cycles(r);
	if (wait & RW_BOUND) {
		vmt_pt_put_ip(&r->out, VMT_PT_FUP, p->ip, false);
		return;
	}
	if (!r->on)
		rw_begin_span(r, p->ip);
	r->fup = p->ip;
	r->wait |= RW_AFTER_FUP;
	if (keeps_guest(r) && !r->event_trace)
		r->wait |= RW_FUP;
	else
		vmt_pt_put_ip(&r->out, VMT_PT_FUP, p->ip, false);
}
