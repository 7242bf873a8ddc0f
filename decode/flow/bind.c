// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * From packets to steps of the walk (SDM vol. 3 tables 33-53 to 33-59). A packet that belongs to an
 * instruction makes the flow go to that instruction; what stands between a FUP and its TIP, and
 * what a far branch sends before its TIP, waits for the TIP.
 */
#include "decode/flow/flow_private.h"

typedef void take_fn(struct vmt_flow *f, const struct vmt_pt_packet *p);

static uint8_t mode_of(const struct vmt_pt_packet *p)
{
	return p->payload & 1 ? VMT_INSN_64 : p->payload & 2 ? VMT_INSN_32 : VMT_INSN_16;
}

static void wait_for_fup(struct vmt_flow *f, const struct vmt_flow_event *event)
{
	if (f->nr_waiting < FLOW_WAITING_MAX)
		f->waiting[f->nr_waiting++] = *event;
	else
		flow_tell(f, event);
}

static void take_pip(struct vmt_flow *f, const struct vmt_pt_packet *p);

/*
 * A packet has come that cannot stand inside an event: a FUP without a TIP was none (INIT that
 * waits for SIPI), and a PIP behind it is that of a MOV to CR3.
 */
void flow_abandon(struct vmt_flow *f)
{
	const uint32_t pending = f->pending;
	const struct vmt_pt_packet pip = { .nr = f->pip.nr, .address = f->pip.cr3 };

	if (!pending && !f->nr_waiting)
		return;
	flow_deliver(f, NULL);
	f->pending = 0;
	if (f->phase == FLOW_BLIND && pending & FLOW_PIP)
		flow_set_pip(f, &f->pip);
	if (f->phase == FLOW_BLIND && pending & FLOW_MODE)
		flow_set_mode(f, f->mode);
	if (f->phase != FLOW_ON || !(pending & FLOW_PIP))
		return;
	if (pending & FLOW_FUP)
		take_pip(f, &pip);
	else
		flow_lose(f, "a far branch comes, but no TIP of it");
}

/* Goes to a FUP's instruction; all results must have been spent on the way. */
static bool go_to_fup(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	flow_confirm(f);
	if (!p->has_ip || p->ip_unsure) {
		flow_lose(f, "a FUP without an address");
		return false;
	}
	if (!flow_go_to(f, p->ip))
		return false;
	if (!f->nr_tnt)
		return true;
	flow_lose(f, "results of branches are left over");
	return false;
}

/* ---- PSB+ ---- */

static void psb_end(struct vmt_flow *f)
{
	const struct flow_psb *psb = &f->psb;

	if (!psb->inside)
		return;
	f->psb.inside = false;
	if (f->phase == FLOW_ON && f->unconfirmed && psb->has_ip &&
	    flow_reaches(f, &psb->ip, 0, FLOW_TRY_MAX))
		flow_confirm(f);
	if (f->phase == FLOW_ON && !f->unconfirmed && psb->has_ip)
		flow_go_to(f, psb->ip);
	if (psb->has_vmcs) {
		f->vmcs_known = psb->vmcs != UINT64_MAX;
		f->vmcs = psb->vmcs;
		flow_set_world(f, f->state.where.nonroot);
	}
	if (psb->has_pip)
		flow_set_pip(f, &psb->pip);
	if (psb->has_mode)
		flow_set_mode(f, psb->mode);
	f->stack_nr = 0;
	if (psb->has_ip) {
		if (f->phase != FLOW_ON || f->unconfirmed)
			flow_start(f, psb->ip);
		return;
	}
	if (f->phase == FLOW_ON && !f->unconfirmed)
		flow_tell(f, &(struct vmt_flow_event){ .type = VMT_FLOW_DISABLED });
	f->phase = FLOW_OFF;
	f->unconfirmed = false;
}

static void take_psb(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	(void)p;
	psb_end(f);
	flow_abandon(f);
	if (f->nr_tnt)
		flow_lose(f, "results of branches are left over");
	f->psb = (struct flow_psb){ .inside = true };
}

/* A status inside PSB+; false: the packet does not belong there, and PSB+ is over. */
static bool psb_take(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	struct flow_psb *psb = &f->psb;

	switch (p->type) {
	case VMT_PT_FUP:
		psb->has_ip = p->has_ip && !p->ip_unsure;
		psb->ip = p->ip;
		return true;
	case VMT_PT_PIP:
		psb->has_pip = true;
		psb->pip = (struct flow_pip){ p->nr, p->address };
		return true;
	case VMT_PT_MODE_EXEC:
		psb->has_mode = true;
		psb->mode = mode_of(p);
		return true;
	case VMT_PT_VMCS:
		psb->has_vmcs = true;
		psb->vmcs = p->payload == UINT64_C(0xffffffffff) ? UINT64_MAX : p->address;
		return true;
	case VMT_PT_MODE_TSX:
	case VMT_PT_PAD:
	case VMT_PT_MNT:
	case VMT_PT_TSC:
	case VMT_PT_TMA:
	case VMT_PT_MTC:
	case VMT_PT_CYC:
	case VMT_PT_CBR:
		return true;
	default:
		psb_end(f);
		return false;
	}
}

/* ---- FUP ---- */

/* A FUP that belongs to packets before it: an instruction's address, no branch. */
static void take_own_fup(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	const bool opens = f->pending & FLOW_OPENS;

	f->pending &= ~(uint32_t)(FLOW_OWN | FLOW_OPENS);
	if (f->phase == FLOW_ON && !go_to_fup(f, p))
		return;
	flow_deliver(f, p);
	if (f->phase == FLOW_ON && opens)
		f->pending |= FLOW_FUP;
}

static void take_if(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	f->pending &= ~(uint32_t)FLOW_MODE;
	if (!go_to_fup(f, p))
		return;
	flow_set_mode(f, f->mode);
	flow_tell(f, &(struct vmt_flow_event){ .type = VMT_FLOW_IF,
					       .has_ip = true,
					       .ip = p->ip,
					       .has_value = true,
					       .value = f->mode_if });
}

/* MODE.Exec directly before a FUP that nothing else waits for. */
static bool is_if_change(const struct vmt_flow *f)
{
	return f->pending & FLOW_MODE && !(f->pending & (FLOW_FUP | FLOW_PIP));
}

/* Where the flow is not known the FUP is all that is known of the source of an event. */
static void take_blind_fup(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	if (is_if_change(f)) {
		flow_set_mode(f, f->mode);
		f->pending = 0;
		return;
	}
	if (f->pending & FLOW_FUP)
		flow_abandon(f);
	f->ip = p->ip;
	f->blind_tnt = false;
	f->pending |= FLOW_FUP;
	flow_deliver(f, p);
}

static void take_fup(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	if (f->pending & FLOW_OWN) {
		take_own_fup(f, p);
		return;
	}
	if (f->phase == FLOW_RESUME) {
		if (p->has_ip && !p->ip_unsure)
			flow_start(f, p->ip);
		return;
	}
	if (f->phase == FLOW_BLIND && p->has_ip && !p->ip_unsure) {
		take_blind_fup(f, p);
		return;
	}
	if (flow_is_lost(f))
		return;
	if (is_if_change(f)) {
		take_if(f, p);
		return;
	}
	if (f->pending & FLOW_FUP)
		flow_abandon(f);
	if (f->pending & FLOW_ABORT && f->errata & VMT_PT_BDM64 &&
	    !flow_reaches(f, &p->ip, 0, FLOW_ABORT_MAX))
		flow_jump(f, p->ip);
	f->pending &= ~(uint32_t)FLOW_ABORT;
	if (f->phase != FLOW_ON)
		return;
	if (!go_to_fup(f, p)) {
		if (f->phase == FLOW_BLIND)
			take_blind_fup(f, p);
		return;
	}
	f->pending |= FLOW_FUP;
	flow_deliver(f, p);
}

/* ---- context ---- */

static void take_pip(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	static const uint32_t senders = FLOW_CLASS(MOV_CR3) | FLOW_CLASS(VMENTRY) | FLOW_FAR;
	const struct flow_pip pip = { p->nr, p->address };
	struct flow_block *b;

	if (f->phase == FLOW_ON && f->unconfirmed) {
		if (!(f->errata & VMT_PT_BDM70) || flow_reaches(f, NULL, senders, FLOW_TRY_MAX)) {
			flow_confirm(f);
		} else { /* packets are off, or its code is not known */
			f->unconfirmed = false;
			f->phase = FLOW_BLIND;
		}
	}
	if (f->phase != FLOW_ON && f->phase != FLOW_BLIND) {
		flow_set_pip(f, &pip);
		return;
	}
	if (f->phase == FLOW_ON && !(f->pending & (FLOW_FUP | FLOW_PIP))) {
		b = flow_go_to_class(f, senders);
		if (!b) {
			flow_set_pip(f, &pip);
			return;
		}
		if (b->class == VMT_INSN_MOV_CR3) {
			const uint64_t ip = flow_last_ip(b);

			flow_run(f, b, true, flow_behind(b));
			flow_set_pip(f, &pip);
			flow_tell(f, &(struct vmt_flow_event){
					     .type = VMT_FLOW_CR3, .has_ip = true, .ip = ip });
			return;
		}
	}
	f->blind_tnt = false;
	f->pending |= FLOW_PIP | (pip.nr ? FLOW_ENTRY : 0);
	f->pip = pip;
}

static void take_vmcs(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	f->vmcs_known = p->payload != UINT64_C(0xffffffffff);
	f->vmcs = p->address;
}

static void take_mode_exec(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	f->mode = mode_of(p);
	f->mode_if = p->payload >> 2 & 1;
	if (f->phase == FLOW_ON || f->phase == FLOW_BLIND)
		f->pending |= FLOW_MODE;
	else
		flow_set_mode(f, f->mode);
}

static void take_mode_tsx(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	const struct vmt_flow_event e = { .type = VMT_FLOW_TSX,
					  .has_value = true,
					  .value = p->payload & 3 };

	if (f->pending & FLOW_FUP)
		flow_abandon(f);
	if (f->phase != FLOW_ON) {
		flow_tell(f, &e);
		return;
	}
	wait_for_fup(f, &e);
	f->pending |= p->payload & 2 ? FLOW_ABORT : FLOW_OWN;
}

/* ---- events that an instruction or a condition sends ---- */

static void take_cfe(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	static const uint32_t shares = 1u << VMT_PT_CFE_INTR | 1u << VMT_PT_CFE_SMI |
				       1u << VMT_PT_CFE_INIT | 1u << VMT_PT_CFE_VMEXIT |
				       1u << VMT_PT_CFE_VMEXIT_INTR | 1u << VMT_PT_CFE_UINTR |
				       1u << VMT_PT_CFE_SWINTR;
	const bool share = shares >> p->kind & 1;
	const struct vmt_flow_event note = {
		.type = VMT_FLOW_NOTE,
		.name = vmt_pt_cfe_name(p->kind) ? vmt_pt_cfe_name(p->kind) : "reserved",
		.has_vector = p->kind == VMT_PT_CFE_INTR || p->kind == VMT_PT_CFE_SIPI ||
			      p->kind == VMT_PT_CFE_UINTR || p->kind == VMT_PT_CFE_SWINTR,
		.vector = p->vector,
		.has_value = f->pending & FLOW_EVD && f->evd.has_fault,
		.value = f->evd.fault,
	};

	if (f->pending & FLOW_FUP && !(f->pending & (FLOW_PIP | FLOW_EVD)))
		flow_abandon(f);
	if (p->ip_bit)
		f->pending |= FLOW_OWN | (share ? FLOW_OPENS : 0);
	if (p->kind == VMT_PT_CFE_VMEXIT || p->kind == VMT_PT_CFE_VMEXIT_INTR) {
		f->exit = f->pending & FLOW_EVD ? f->evd : (struct flow_evd){ 0 };
		f->exit_has_vector = p->kind == VMT_PT_CFE_VMEXIT_INTR;
		f->exit_vector = p->vector;
		f->pending |= FLOW_EXIT;
	} else if (p->kind != VMT_PT_CFE_VMENTRY) {
		if (p->ip_bit || (share && f->phase == FLOW_ON))
			wait_for_fup(f, &note);
		else
			flow_tell(f, &note);
	}
	f->pending &= ~(uint32_t)FLOW_EVD;
}

static void take_evd(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	if (f->pending & FLOW_FUP && !(f->pending & FLOW_PIP))
		flow_abandon(f);
	if (!(f->pending & FLOW_EVD))
		f->evd = (struct flow_evd){ 0 };
	f->pending |= FLOW_EVD;
	if (p->kind == VMT_PT_EVD_VMXQ) {
		f->evd.has_qualification = true;
		f->evd.qualification = p->payload;
	} else if (p->kind == VMT_PT_EVD_PFA) {
		f->evd.has_fault = true;
		f->evd.fault = p->payload;
	} else if (p->kind == VMT_PT_EVD_VMXR) {
		f->evd.has_reason = true;
		f->evd.reason = (uint32_t)p->payload;
	}
}

static void take_ptw(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	struct vmt_flow_event e = { .type = VMT_FLOW_PTWRITE,
				    .has_value = true,
				    .value = p->payload };
	struct flow_block *b;

	if (p->ip_bit) {
		wait_for_fup(f, &e);
		f->pending |= FLOW_OWN;
		return;
	}
	if (f->phase == FLOW_ON) {
		flow_confirm(f);
		flow_abandon(f);
		b = f->phase == FLOW_ON ? flow_go_to_class(f, FLOW_CLASS(PTWRITE)) : NULL;
		if (b) {
			e.has_ip = true;
			e.ip = flow_last_ip(b);
			flow_run(f, b, true, flow_behind(b));
		}
	}
	flow_tell(f, &e);
}

static void take_mwait(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	f->has_mwait = true;
	f->mwait = p->payload & 0xff;
}

static void take_exstop(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	const struct vmt_flow_event e = { .type = VMT_FLOW_STOPPED,
					  .has_value = f->has_mwait,
					  .value = f->mwait };

	f->has_mwait = false;
	if (!p->ip_bit) {
		flow_tell(f, &e);
		return;
	}
	wait_for_fup(f, &e);
	f->pending |= FLOW_OWN;
}

static void take_bound(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	if (p->ip_bit)
		f->pending |= FLOW_OWN;
}

static void take_tracestop(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	(void)p;
	flow_tell(f, &(struct vmt_flow_event){ .type = VMT_FLOW_TRACESTOP });
}

/* ---- losses ---- */

static void take_ovf(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	const struct vmt_flow_event e = { .type = VMT_FLOW_OVERFLOW,
					  .has_ip = f->phase == FLOW_ON,
					  .ip = f->ip };

	(void)p;
	flow_deliver(f, NULL);
	f->pending = 0;
	f->nr_tnt = 0;
	f->stack_nr = 0;
	f->unconfirmed = false;
	f->has_mwait = false;
	f->phase = FLOW_RESUME;
	f->counts.overflows++;
	flow_tell(f, &e);
}

static void nothing(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	(void)f;
	(void)p;
}

static take_fn *const handlers[VMT_PT_TYPE_COUNT] = {
	[VMT_PT_PAD] = nothing,
	[VMT_PT_TNT] = flow_take_tnt,
	[VMT_PT_TNT_LONG] = flow_take_tnt,
	[VMT_PT_TIP] = flow_take_tip,
	[VMT_PT_TIP_PGE] = flow_take_pge,
	[VMT_PT_TIP_PGD] = flow_take_pgd,
	[VMT_PT_FUP] = take_fup,
	[VMT_PT_PIP] = take_pip,
	[VMT_PT_MODE_EXEC] = take_mode_exec,
	[VMT_PT_MODE_TSX] = take_mode_tsx,
	[VMT_PT_TRACESTOP] = take_tracestop,
	[VMT_PT_CBR] = nothing,
	[VMT_PT_TSC] = nothing,
	[VMT_PT_MTC] = nothing,
	[VMT_PT_TMA] = nothing,
	[VMT_PT_CYC] = nothing,
	[VMT_PT_VMCS] = take_vmcs,
	[VMT_PT_OVF] = take_ovf,
	[VMT_PT_PSB] = take_psb,
	[VMT_PT_PSBEND] = nothing,
	[VMT_PT_MNT] = nothing,
	[VMT_PT_PTW] = take_ptw,
	[VMT_PT_EXSTOP] = take_exstop,
	[VMT_PT_MWAIT] = take_mwait,
	[VMT_PT_PWRE] = nothing,
	[VMT_PT_PWRX] = nothing,
	[VMT_PT_BBP] = nothing,
	[VMT_PT_BIP] = nothing,
	[VMT_PT_BEP] = take_bound,
	[VMT_PT_CFE] = take_cfe,
	[VMT_PT_EVD] = take_evd,
	[VMT_PT_TRIG] = take_bound,
};

/* Bytes that an erratum spoiled are no loss; bytes up to a PSB are. */
static void after_skip(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	f->skipped = false;
	if (p->type == VMT_PT_PSB && f->phase == FLOW_ON)
		flow_lose(f, "bytes are missing or damaged");
	else if (p->type == VMT_PT_PSB)
		f->phase = FLOW_LOST;
	if (p->type == VMT_PT_PSB)
		f->psb.inside = false;
}

void flow_packet(void *context, uint64_t offset, const uint8_t *bytes,
		 const struct vmt_pt_packet *p)
{
	struct vmt_flow *f = context;

	(void)bytes;
	f->state.offset = offset;
	f->state.has_tsc = f->clock->known;
	f->state.tsc = f->clock->tsc;
	if (f->skipped)
		after_skip(f, p);
	if (f->psb.inside && p->type != VMT_PT_PSB && psb_take(f, p))
		return;
	handlers[p->type](f, p);
}

void flow_skipped(void *context, uint64_t offset, uint64_t len, const char *why)
{
	struct vmt_flow *f = context;

	(void)offset;
	(void)len;
	(void)why;
	f->skipped = true;
}
