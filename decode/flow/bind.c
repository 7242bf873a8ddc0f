// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * From packets to steps of the walk (SDM vol. 3 tables 33-53 to 33-59). A packet that belongs to an
 * instruction makes the flow go to that instruction; what stands between a FUP and its TIP, and
 * what a far branch sends before its TIP, waits for the TIP.
 */
#include <string.h>

#include "decode/flow/flow_private.h"

typedef void take_fn(struct vmt_flow *f, const struct vmt_pt_packet *p);

void flow_tell(struct vmt_flow *f, const struct vmt_flow_event *event)
{
	f->state.instructions = f->counts.instructions;
	if (f->options.event)
		f->options.event(f->options.context, &f->state, event);
}

static void tell_to(struct vmt_flow *f, enum vmt_flow_event_type type, uint64_t to)
{
	flow_tell(f, &(struct vmt_flow_event){ .type = (uint8_t)type, .has_to = true, .to = to });
}

/* ---- the state ---- */

static void set_world(struct vmt_flow *f, bool nonroot)
{
	struct vmt_image_context *where = &f->state.where;
	const bool has_vmcs = nonroot && f->vmcs_known;

	if (where->nonroot == nonroot && where->has_vmcs == has_vmcs &&
	    (!has_vmcs || where->vmcs == f->vmcs))
		return;
	where->nonroot = nonroot;
	where->has_vmcs = has_vmcs;
	where->vmcs = f->vmcs;
	flow_view_changed(f);
}

static void set_pip(struct vmt_flow *f, const struct flow_pip *pip)
{
	struct vmt_image_context *where = &f->state.where;

	if (where->nonroot != pip->nr)
		set_world(f, pip->nr);
	if (where->has_cr3 && where->cr3 == pip->cr3)
		return;
	where->has_cr3 = true;
	where->cr3 = pip->cr3;
	flow_view_changed(f);
}

static void set_mode(struct vmt_flow *f, uint8_t mode)
{
	if (f->state.mode == mode)
		return;
	f->state.mode = mode;
	flow_view_changed(f);
}

static uint8_t mode_of(const struct vmt_pt_packet *p)
{
	return p->payload & 1 ? VMT_INSN_64 : p->payload & 2 ? VMT_INSN_32 : VMT_INSN_16;
}

/* ---- what waits ---- */

static void wait_for_fup(struct vmt_flow *f, const struct vmt_flow_event *event)
{
	if (f->nr_waiting < FLOW_WAITING_MAX)
		f->waiting[f->nr_waiting++] = *event;
	else
		flow_tell(f, event);
}

static void deliver(struct vmt_flow *f, const struct vmt_pt_packet *fup)
{
	for (unsigned int i = 0; i < f->nr_waiting; i++) {
		if (fup) {
			f->waiting[i].has_ip = fup->has_ip && !fup->ip_unsure;
			f->waiting[i].ip = fup->ip;
		}
		flow_tell(f, &f->waiting[i]);
	}
	f->nr_waiting = 0;
}

/* PacketEn is 1 for certain: a start that a PSB+ or FUP gave was one. */
static void confirm(struct vmt_flow *f)
{
	if (!f->unconfirmed)
		return;
	f->unconfirmed = false;
	f->counts.resumed++;
	tell_to(f, VMT_FLOW_RESUMED, f->ip);
}

static void start(struct vmt_flow *f, uint64_t ip)
{
	flow_jump(f, ip);
	f->phase = FLOW_ON;
	f->unconfirmed = true;
	f->nr_tnt = 0;
	f->stack_nr = 0;
}

static void take_pip(struct vmt_flow *f, const struct vmt_pt_packet *p);

/*
 * A packet has come that cannot stand inside an event: a FUP without a TIP was none (INIT that
 * waits for SIPI), and a PIP behind it is that of a MOV to CR3.
 */
static void abandon(struct vmt_flow *f)
{
	const uint32_t pending = f->pending;
	const struct vmt_pt_packet pip = { .nr = f->pip.nr, .address = f->pip.cr3 };

	if (!pending && !f->nr_waiting)
		return;
	deliver(f, NULL);
	f->pending = 0;
	if (f->phase != FLOW_ON || !(pending & FLOW_PIP))
		return;
	if (pending & FLOW_FUP)
		take_pip(f, &pip);
	else
		flow_lose(f, "a far branch comes, but no TIP of it");
}

static bool lost(struct vmt_flow *f)
{
	if (f->phase == FLOW_ON)
		return false;
	f->counts.lost_packets += f->phase != FLOW_OFF;
	return true;
}

/* Goes to a FUP's instruction; all results must have been spent on the way. */
static bool go_to_fup(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	confirm(f);
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
		confirm(f);
	if (f->phase == FLOW_ON && !f->unconfirmed && psb->has_ip)
		flow_go_to(f, psb->ip);
	if (psb->has_vmcs) {
		f->vmcs_known = psb->vmcs != UINT64_MAX;
		f->vmcs = psb->vmcs;
		set_world(f, f->state.where.nonroot);
	}
	if (psb->has_pip)
		set_pip(f, &psb->pip);
	if (psb->has_mode)
		set_mode(f, psb->mode);
	f->stack_nr = 0;
	if (psb->has_ip) {
		if (f->phase != FLOW_ON || f->unconfirmed)
			start(f, psb->ip);
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
	abandon(f);
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

/* ---- branches ---- */

static void take_tnt(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	confirm(f);
	abandon(f);
	if (lost(f))
		return;
	if (f->nr_tnt + p->count > 64) {
		flow_lose(f, "results of branches are left over");
		return;
	}
	f->tnt = f->tnt << p->count | p->payload;
	f->nr_tnt += p->count;
	flow_spend_tnt(f);
}

/*
 * What the packets before a TIP or TIP.PGD changed; told before the state becomes the new one
 * (VM_EXIT), or behind it. class: of the instruction at `ip` that branched, OTHER when the event
 * was asynchronous.
 */
static void transit(struct vmt_flow *f, const struct vmt_pt_packet *tip, uint64_t ip,
		    unsigned int class, uint64_t behind)
{
	const bool was = f->state.where.nonroot;
	const uint32_t pending = f->pending;
	const bool now = pending & FLOW_PIP ? f->pip.nr : was && !(pending & FLOW_EXIT);
	struct vmt_flow_event e = {
		.has_ip = true, .ip = ip, .has_to = tip->has_ip, .to = tip->ip
	};

	f->pending &= ~(uint32_t)(FLOW_PIP | FLOW_ENTRY | FLOW_MODE | FLOW_FUP | FLOW_EXIT |
				  FLOW_ABORT | FLOW_OWN | FLOW_OPENS | FLOW_EVD);
	deliver(f, NULL);
	if (was && !now) {
		e.type = VMT_FLOW_VM_EXIT;
		f->counts.exits++;
		if (pending & FLOW_EXIT) {
			e.has_reason = f->exit.has_reason;
			e.reason = f->exit.reason;
			e.has_qualification = f->exit.has_qualification;
			e.qualification = f->exit.qualification;
			e.has_vector = f->exit_has_vector;
			e.vector = f->exit_vector;
		}
		flow_tell(f, &e);
	}
	if (pending & FLOW_PIP)
		set_pip(f, &f->pip);
	else
		set_world(f, now);
	if (pending & FLOW_MODE)
		set_mode(f, f->mode);
	if (was && !now)
		return;
	if (!was && now) {
		e.type = VMT_FLOW_VM_ENTRY;
		f->counts.entries++;
	} else if (class == VMT_INSN_VMENTRY && !now &&
		   (pending & FLOW_ENTRY || (tip->has_ip && tip->ip == behind))) {
		e.type = VMT_FLOW_ENTRY_FAILED;
		e.early = !(pending & FLOW_ENTRY);
		f->counts.failed_entries++;
	} else if (class == VMT_INSN_OTHER && tip->type == VMT_PT_TIP) {
		e.type = VMT_FLOW_ASYNC;
	} else {
		return;
	}
	flow_tell(f, &e);
}

static void async_tip(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	const uint64_t ip = f->ip;

	flow_jump(f, p->ip);
	transit(f, p, ip, VMT_INSN_OTHER, 0);
	f->counts.branches++;
	if (f->nr_tnt)
		flow_spend_tnt(f);
}

/* Spends the TIP of a branch; p NULL: nothing waits for a TIP. */
static void sync_tip(struct vmt_flow *f, uint64_t to, const struct vmt_pt_packet *p)
{
	struct flow_block *b = flow_go_to_class(f, FLOW_TIPS);
	uint64_t ip, behind;
	unsigned int class;

	if (!b)
		return;
	ip = flow_last_ip(b);
	behind = flow_behind(b);
	class = b->class;
	flow_run_indirect(f, b, to);
	if (p || class == VMT_INSN_VMENTRY) {
		const struct vmt_pt_packet tip = { .type = VMT_PT_TIP, .has_ip = true, .ip = to };

		transit(f, p ? p : &tip, ip, class, behind);
	}
	if (f->nr_tnt)
		flow_spend_tnt(f);
}

static void take_tip(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	const bool known = p->has_ip && !p->ip_unsure;

	if (f->phase == FLOW_RESUME && known) {
		start(f, p->ip); /* SKD010: no FUP came behind an overflow */
		f->pending = 0;
		confirm(f);
		return;
	}
	if (f->phase == FLOW_ON && !known)
		flow_lose(f, "a TIP without an address");
	if (lost(f)) {
		f->pending = 0;
		return;
	}
	confirm(f);
	if (f->pending & FLOW_FUP)
		async_tip(f, p);
	else
		sync_tip(f, p->ip, f->pending || f->nr_waiting ? p : NULL);
}

static void take_pge(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	const uint32_t pending = f->pending;

	deliver(f, NULL);
	f->pending = 0;
	f->unconfirmed = false;
	if (!p->has_ip || p->ip_unsure) {
		if (f->phase == FLOW_ON)
			flow_lose(f, "TIP.PGE without an address");
		f->phase = FLOW_LOST;
		return;
	}
	if (pending & FLOW_PIP)
		set_pip(f, &f->pip);
	if (pending & FLOW_MODE)
		set_mode(f, f->mode);
	start(f, p->ip);
	f->unconfirmed = false;
	tell_to(f, VMT_FLOW_ENABLED, p->ip);
}

static bool leaves_filter(const struct vmt_flow *f, uint64_t ip)
{
	for (size_t i = 0; i < f->options.nr_filters; i++)
		if (ip >= f->options.filters[i].first && ip <= f->options.filters[i].last)
			return false;
	return f->options.nr_filters != 0;
}

/* The branch or MOV to CR3 that switches tracing off; NULL: told. */
static struct flow_block *find_disabling(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	const uint32_t direct = FLOW_CLASS(JMP) | FLOW_CLASS(CALL);
	const uint32_t classes =
		FLOW_TIPS | FLOW_CLASS(JCC) | direct | (p->has_ip ? 0 : FLOW_CLASS(MOV_CR3));
	struct flow_block *b;

	for (;;) {
		b = flow_go_to_class(f, classes);
		if (!b || !(direct >> b->class & 1))
			return b;
		if (p->has_ip ? b->target == p->ip
			      : f->errata & VMT_PT_SKL014 && leaves_filter(f, b->target))
			return b;
		if (!flow_pass(f, b))
			return NULL;
	}
}

/* SKD022: a VM entry that clears TraceEn sends a FUP. */
static bool entry_at_fup(struct vmt_flow *f)
{
	const char *why;
	const struct flow_block *b = flow_block_at(f, f->ip, &why);

	return b && b->class == VMT_INSN_VMENTRY && b->count == 1;
}

static void take_pgd(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	struct vmt_flow_event e = { .type = VMT_FLOW_DISABLED,
				    .has_to = p->has_ip && !p->ip_unsure,
				    .to = p->ip };
	bool async = f->pending & FLOW_FUP;
	struct flow_block *b;

	if (f->phase != FLOW_ON) {
		f->phase = FLOW_OFF;
		f->pending = 0;
		f->unconfirmed = false;
		return;
	}
	confirm(f);
	if (async && f->errata & VMT_PT_SKD022 && entry_at_fup(f)) {
		f->pending &= ~(uint32_t)FLOW_FUP;
		async = false;
	}
	e.has_ip = async;
	e.ip = f->ip;
	if (async) {
		transit(f, p, f->ip, VMT_INSN_OTHER, 0);
	} else {
		b = find_disabling(f, p);
		if (b) {
			const uint64_t ip = flow_last_ip(b), behind = flow_behind(b);
			const unsigned int class = b->class;

			flow_run(f, b, e.has_to, e.to);
			transit(f, p, ip, class, behind);
		}
	}
	if (f->phase == FLOW_ON && f->nr_tnt)
		flow_lose(f, "results of branches are left over");
	else if (f->phase == FLOW_ON)
		flow_tell(f, &e);
	f->phase = FLOW_OFF;
	f->nr_tnt = 0;
	f->stack_nr = 0;
}

/* ---- FUP ---- */

/* A FUP that belongs to packets before it: an instruction's address, no branch. */
static void take_own_fup(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	const bool opens = f->pending & FLOW_OPENS;

	f->pending &= ~(uint32_t)(FLOW_OWN | FLOW_OPENS);
	if (f->phase == FLOW_ON && !go_to_fup(f, p))
		return;
	deliver(f, p);
	if (f->phase == FLOW_ON && opens)
		f->pending |= FLOW_FUP;
}

static void take_if(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	f->pending &= ~(uint32_t)FLOW_MODE;
	if (!go_to_fup(f, p))
		return;
	set_mode(f, f->mode);
	flow_tell(f, &(struct vmt_flow_event){ .type = VMT_FLOW_IF,
					       .has_ip = true,
					       .ip = p->ip,
					       .has_value = true,
					       .value = f->mode_if });
}

static void take_fup(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	if (f->pending & FLOW_OWN) {
		take_own_fup(f, p);
		return;
	}
	if (f->phase == FLOW_RESUME) {
		if (p->has_ip && !p->ip_unsure)
			start(f, p->ip);
		return;
	}
	if (lost(f))
		return;
	if (f->pending & FLOW_MODE && !(f->pending & (FLOW_FUP | FLOW_PIP))) {
		take_if(f, p);
		return;
	}
	if (f->pending & FLOW_FUP)
		abandon(f);
	if (f->pending & FLOW_ABORT && f->errata & VMT_PT_BDM64 &&
	    !flow_reaches(f, &p->ip, 0, FLOW_ABORT_MAX))
		flow_jump(f, p->ip);
	f->pending &= ~(uint32_t)FLOW_ABORT;
	if (f->phase != FLOW_ON || !go_to_fup(f, p))
		return;
	f->pending |= FLOW_FUP;
	deliver(f, p);
}

/* ---- context ---- */

static void take_pip(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	static const uint32_t senders = FLOW_CLASS(MOV_CR3) | FLOW_CLASS(VMENTRY) | FLOW_FAR;
	const struct flow_pip pip = { p->nr, p->address };
	struct flow_block *b;

	if (f->phase == FLOW_ON && f->unconfirmed &&
	    (!(f->errata & VMT_PT_BDM70) || flow_reaches(f, NULL, senders, FLOW_TRY_MAX)))
		confirm(f);
	if (f->phase != FLOW_ON || f->unconfirmed) {
		set_pip(f, &pip);
		return;
	}
	if (!(f->pending & (FLOW_FUP | FLOW_PIP))) {
		b = flow_go_to_class(f, senders);
		if (!b)
			return;
		if (b->class == VMT_INSN_MOV_CR3) {
			const uint64_t ip = flow_last_ip(b);

			flow_run(f, b, true, flow_behind(b));
			set_pip(f, &pip);
			flow_tell(f, &(struct vmt_flow_event){
					     .type = VMT_FLOW_CR3, .has_ip = true, .ip = ip });
			return;
		}
	}
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
	if (f->phase == FLOW_ON)
		f->pending |= FLOW_MODE;
	else
		set_mode(f, f->mode);
}

static void take_mode_tsx(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	const struct vmt_flow_event e = { .type = VMT_FLOW_TSX,
					  .has_value = true,
					  .value = p->payload & 3 };

	if (f->pending & FLOW_FUP)
		abandon(f);
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
	};

	if (f->pending & FLOW_FUP && !(f->pending & (FLOW_PIP | FLOW_EVD)))
		abandon(f);
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
		abandon(f);
	if (!(f->pending & FLOW_EVD))
		f->evd = (struct flow_evd){ 0 };
	f->pending |= FLOW_EVD;
	if (p->kind == VMT_PT_EVD_VMXQ) {
		f->evd.has_qualification = true;
		f->evd.qualification = p->payload;
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
		confirm(f);
		abandon(f);
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
	deliver(f, NULL);
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
	[VMT_PT_TNT] = take_tnt,
	[VMT_PT_TNT_LONG] = take_tnt,
	[VMT_PT_TIP] = take_tip,
	[VMT_PT_TIP_PGE] = take_pge,
	[VMT_PT_TIP_PGD] = take_pgd,
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

/* A PAD or TNT at the reader; false: it is another packet, or stands not whole. */
static inline bool plain_tnt(struct vmt_flow *f, struct vmt_pt_reader *r)
{
	const unsigned int byte = *r->pos;
	unsigned int len = 1, top;
	uint64_t bits = byte >> 1;

	if (byte == 0x02) {
		if (r->end - r->pos < 8 || r->pos[1] != 0xa3)
			return false;
		memcpy(&bits, r->pos, 8);
		bits >>= 16;
		len = 8;
	}
	if (bits <= 1) {
		r->pos += !byte; /* PAD */
		return !byte;
	}
	top = 63u - (unsigned int)__builtin_clzll(bits);
	if (f->nr_tnt + top > 64)
		return false;
	r->pos += len;
	f->tnt = f->tnt << top | (bits & ((UINT64_C(1) << top) - 1));
	f->nr_tnt += top;
	flow_spend_tnt(f);
	return true;
}

/* A TIP at the reader whose IP can be rebuilt. */
static inline bool plain_tip(struct vmt_flow *f, struct vmt_pt_reader *r)
{
	static const uint8_t payload[8] = { 0, 2, 4, 6, 6, 0, 8, 0 };
	const unsigned int byte = *r->pos, n = payload[byte >> 5];
	uint64_t ip = 0;

	if ((byte & 0x1f) != 0x0d || !n || !r->last_ip_known || r->end - r->pos < 1 + (ptrdiff_t)n)
		return false;
	memcpy(&ip, r->pos + 1, n);
	if (byte >> 5 == 3)
		ip = (uint64_t)((int64_t)(ip << 16) >> 16);
	else if (n < 8)
		ip |= r->last_ip & UINT64_MAX << (8 * n);
	r->last_ip = ip;
	r->pos += 1 + n;
	sync_tip(f, ip, NULL);
	return true;
}

/*
 * The many TNT and TIP packets between all others, taken from their bytes at once. What is not
 * plain stays for flow_packet: packets that something waits for, IPs that cannot be rebuilt.
 */
size_t flow_branches(void *context, uint64_t offset, struct vmt_pt_reader *r, const uint8_t *limit)
{
	struct vmt_flow *f = context;
	const uint8_t *const begin = r->pos;
	size_t packets = 0;

	if (f->phase != FLOW_ON || f->unconfirmed || f->pending || f->nr_waiting || f->psb.inside ||
	    f->skipped)
		return 0;
	f->state.has_tsc = f->clock->known;
	f->state.tsc = f->clock->tsc;
	for (; r->pos < limit && f->phase == FLOW_ON && !f->pending; packets++) {
		f->state.offset = offset + (uint64_t)(r->pos - begin);
		if (!(*r->pos & 1 ? plain_tip(f, r) : plain_tnt(f, r)))
			break;
	}
	return packets;
}
