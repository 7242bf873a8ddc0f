// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which packets come when (SDM vol. 3, "Intel Processor Trace": packet generation scenarios).
 * Invariant: context_en and filter_en are those before the event that is being reported until
 * transfer() has sent the packets of both sides; FilterEn changes on transfers of control only.
 */
#include "virt-fixtures/ptcpu/ptcpu.h"
#include "virt-fixtures/ptcpu/truth_log.h"

enum cfe {
	CFE_INTR = 1,
	CFE_IRET = 2,
	CFE_VMENTRY = 7,
	CFE_VMEXIT = 8,
	CFE_VMEXIT_INTR = 9,
};
enum evd { EVD_PFA = 0, EVD_VMXQ = 1, EVD_VMXR = 2 };
enum { ADDR_FILTER = 1, ADDR_STOP = 2, VECTOR_PF = 14 };
enum { EXIT_EXCEPTION_NMI = 0, EXIT_INTERRUPT = 1 };
enum { VMCS_EXIT_INTERRUPTION = 0x4404 };

unsigned int ptcpu_mode(const struct ptcpu *p)
{
	const uint32_t fetch = bochs_u32(p->cpu, BOCHS_FETCH_MODE);
	unsigned int mode = fetch & 2 ? 1 : (fetch & 1) << 1;

	if (p->ctl & RTIT_EVENT_EN)
		mode |= bochs_u32(p->cpu, BOCHS_EFLAGS) >> 9 << 2 & 4;
	return mode;
}

bool ptcpu_in_context(const struct ptcpu *p)
{
	const bool user = bochs_u8(p->cpu, BOCHS_CPL) > 0;

	if (!(p->ctl & (user ? RTIT_USER : RTIT_OS)))
		return false;
	return !(p->ctl & RTIT_CR3_FILTER) ||
	       !((bochs_u64(p->cpu, BOCHS_CR3) ^ p->cr3_match) & ~0xfffULL);
}

/* Whether ip lies in a range of that kind; *any tells whether there is one. */
static bool in_range(const struct ptcpu *p, unsigned int kind, uint64_t ip, bool *any)
{
	bool inside = false;

	*any = false;
	for (unsigned int n = 0; n < PTCPU_RANGES; n++) {
		if (RTIT_ADDR_CFG(p->ctl, n) != kind)
			continue;
		*any = true;
		inside |= ip >= p->addr[2 * n] && ip <= p->addr[2 * n + 1];
	}
	return inside;
}

static bool in_filter(const struct ptcpu *p, uint64_t ip)
{
	bool any, inside = in_range(p, ADDR_FILTER, ip, &any);

	return inside || !any;
}

static bool in_stop(const struct ptcpu *p, uint64_t ip)
{
	bool any;

	return in_range(p, ADDR_STOP, ip, &any);
}

static bool events(const struct ptcpu *p)
{
	return ptcpu_trigger_en(p) && (p->ctl & RTIT_EVENT_EN);
}

static void pip(struct ptcpu *p, bool nr)
{
	if (ptcpu_trigger_en(p) && ptcpu_in_context(p) && (p->ctl & RTIT_OS))
		packet_pip(p, bochs_u64(p->cpu, BOCHS_CR3), nr);
}

struct transfer {
	uint64_t from, to;
	bool async; /* FUP(from) comes first */
	bool pip;
	bool bare_pgd; /* a decoder learns the target from the code */
};

static void transfer(struct ptcpu *p, const struct transfer *t)
{
	const bool was = ptcpu_packet_en(p);
	bool is, stop;

	if (was && t->async)
		packet_ip(p, PACKET_FUP, t->from);
	p->context_en = ptcpu_in_context(p);
	p->filter_en = in_filter(p, t->to);
	stop = ptcpu_trigger_en(p) && p->context_en && in_stop(p, t->to);
	if (stop)
		p->filter_en = false;
	is = ptcpu_packet_en(p);
	if (t->pip)
		pip(p, vmx_nr(p));
	if (is) {
		if (!was || ptcpu_mode(p) != p->mode)
			packet_mode(p);
		packet_ip(p, was ? PACKET_TIP : PACKET_PGE, t->to);
	} else if (was && p->context_en && !t->bare_pgd) {
		packet_ip(p, PACKET_PGD, t->to);
	} else if (was) {
		packet_ip_suppressed(p, PACKET_PGD);
	}
	if (stop) {
		packet_trace_stop(p);
		p->status |= RTIT_STOPPED;
		truth_lost(p, TRUTH_LOST_STOP);
	}
	if (!is)
		p->ret_count = 0;
	if (was != is)
		truth_trace(p, is, t->to);
}

static void push_return(struct ptcpu *p, uint64_t ip)
{
	p->ret_top = (p->ret_top + 1) % PTCPU_RET_DEPTH;
	p->ret_stack[p->ret_top] = ip;
	if (p->ret_count < PTCPU_RET_DEPTH)
		p->ret_count++;
}

/* A RET that goes elsewhere empties the stack: some decoders drop an entry at an uncompressed RET
 * and some do not, and both then find the calls that come after it. */
static bool pop_return(struct ptcpu *p, uint64_t ip)
{
	const bool match = p->ret_count && p->ret_stack[p->ret_top] == ip;

	p->ret_top = (p->ret_top + PTCPU_RET_DEPTH - 1) % PTCPU_RET_DEPTH;
	p->ret_count = match ? p->ret_count - 1 : 0;
	return match && !(p->ctl & RTIT_DIS_RETC);
}

/* A near branch to `to`; the return address of a call is `next`. */
static void near_branch(struct ptcpu *p, enum ptcpu_note note, uint64_t to, uint64_t next)
{
	const bool was = ptcpu_packet_en(p);
	const bool stays = in_filter(p, to) && !in_stop(p, to);
	bool compressed = false;

	if (was && note == NOTE_RET)
		compressed = pop_return(p, to);
	if (!was || !stays) {
		const struct transfer t = { .to = to,
					    .bare_pgd = note == NOTE_TAKEN || compressed };

		if (p->context_en)
			transfer(p, &t);
		return;
	}
	if (note == NOTE_TAKEN || compressed)
		packet_tnt(p, true);
	else if (note == NOTE_RET || note == NOTE_INDIRECT || note == NOTE_CALL_INDIRECT)
		packet_ip(p, PACKET_TIP, to);
	if (note == NOTE_CALL_INDIRECT || (note == NOTE_CALL && to != next))
		push_return(p, next);
}

static void far_branch(struct ptcpu *p, uint64_t to)
{
	const struct transfer t = { .from = p->ip, .to = to };

	if (events(p) && p->note == NOTE_IRET && (p->context_en || ptcpu_in_context(p))) {
		packet_cfe(p, CFE_IRET, p->context_en, 0);
		if (p->context_en)
			packet_ip(p, PACKET_FUP, p->ip);
	}
	transfer(p, &t);
}

/* MOV CR3 is no branch, but it may move the trace in or out of the CR3 filter. */
static void move_to_cr3(struct ptcpu *p, uint64_t next)
{
	const bool was = ptcpu_packet_en(p);
	const struct transfer t = { .to = next, .pip = true };

	if (p->context_en != ptcpu_in_context(p)) {
		transfer(p, &t);
		return;
	}
	if (was || p->context_en)
		pip(p, vmx_nr(p));
}

static void flags_changed(struct ptcpu *p)
{
	if (!ptcpu_packet_en(p) || !(p->ctl & RTIT_EVENT_EN) || p->mode == ptcpu_mode(p) ||
	    (p->mode ^ ptcpu_mode(p)) != 4)
		return;
	packet_mode(p);
	packet_ip(p, PACKET_FUP, p->ip);
}

void engine_retire(struct ptcpu *p, uint64_t to)
{
	if (p->mov_cr3)
		move_to_cr3(p, to);
	if (p->vmptrld && ptcpu_trigger_en(p) && p->context_en)
		packet_vmcs(p, bochs_u64(p->cpu, BOCHS_VMCS));
	switch (p->note) {
	case NOTE_NONE:
		flags_changed(p);
		break;
	case NOTE_NOT_TAKEN:
		if (ptcpu_packet_en(p))
			packet_tnt(p, false);
		break;
	case NOTE_FAR:
	case NOTE_IRET:
		far_branch(p, to);
		break;
	default:
		near_branch(p, p->note, to, p->note_next);
	}
}

void engine_interrupt(struct ptcpu *p, unsigned int vector, uint64_t from, uint64_t to)
{
	const bool was = ptcpu_packet_en(p);
	const struct transfer t = { .from = from, .to = to, .async = true };

	if (!ptcpu_trigger_en(p))
		return;
	if (events(p) && p->context_en) {
		if (vector == VECTOR_PF)
			packet_evd(p, EVD_PFA, bochs_u64(p->cpu, BOCHS_CR2));
		packet_cfe(p, CFE_INTR, !was, vector);
		if (!was)
			packet_ip(p, PACKET_FUP, from);
	} else if (events(p) && ptcpu_in_context(p) && vector != VECTOR_PF) {
		packet_cfe(p, CFE_INTR, false, vector);
	}
	transfer(p, &t);
}

void engine_enable(struct ptcpu *p, uint64_t ctl, uint64_t ip)
{
	p->ctl = ctl;
	topa_start(p);
	p->context_en = ptcpu_in_context(p);
	p->filter_en = false; /* a PSB+ here says that packets are still off */
	p->tnt_count = p->ret_count = 0;
	p->tnt = 0;
	p->mode = ~0U;
	p->cyc_tsc = bochs.get_tsc(p->cpu);
	p->next_mtc_tsc = UINT64_MAX;
	p->slept = false;
	truth_control(p);
	if (!ptcpu_trigger_en(p))
		return;
	if (!p->bytes_since_psb)
		packet_psb(p, ip);
	else
		packet_time(p);
	p->filter_en = in_filter(p, ip) && !in_stop(p, ip);
	if (!ptcpu_packet_en(p))
		return;
	packet_mode(p);
	packet_ip(p, PACKET_PGE, ip);
	truth_trace(p, true, ip);
}

static void end_overflow(struct ptcpu *p, uint64_t ip)
{
	p->overflow_left = 0;
	packet_overflow(p);
	if (ptcpu_packet_en(p))
		packet_ip(p, PACKET_FUP, ip);
	truth_lost(p, TRUTH_LOST_OVERFLOW_END);
	p->bytes_since_psb = 2048ULL << RTIT_PSB_FREQ(p->ctl);
}

static void stop_tracing(struct ptcpu *p, uint64_t ctl, uint64_t ip)
{
	const bool was = ptcpu_packet_en(p);

	packet_flush_tnt(p);
	p->mask_ptrs = topa_mask_ptrs(p);
	p->ctl = ctl;
	if (was)
		truth_trace(p, false, ip);
	truth_control(p);
}

void engine_disable(struct ptcpu *p, uint64_t ctl, uint64_t ip)
{
	if (p->overflow_left)
		end_overflow(p, ip);
	if (ptcpu_packet_en(p)) {
		packet_ip(p, PACKET_FUP, ip);
		packet_ip_suppressed(p, PACKET_PGD);
	}
	stop_tracing(p, ctl, ip);
}

void engine_overflow(struct ptcpu *p, uint64_t instructions)
{
	if (!ptcpu_trigger_en(p) || p->overflow_left)
		return;
	packet_flush_tnt(p);
	truth_lost(p, TRUTH_LOST_OVERFLOW_BEGIN);
	p->overflow_left = instructions;
}

void engine_boundary(struct ptcpu *p, uint64_t ip)
{
	const uint64_t tsc = bochs.get_tsc(p->cpu);

	if (p->overflow_left && p->overflow_left-- == 1)
		end_overflow(p, ip);
	if (p->slept) {
		p->slept = false;
		packet_time(p);
	} else if (tsc >= p->next_mtc_tsc) {
		packet_mtc(p, tsc);
	}
	if (p->bytes_since_psb >= 2048ULL << RTIT_PSB_FREQ(p->ctl))
		packet_psb(p, ip);
	if (p->pmi)
		topa_deliver_pmi(p);
}

/* VM entry with IA32_RTIT_CTL old_ctl before and p->ctl after it; RIP is the guest's. */
void engine_entry(struct ptcpu *p)
{
	const uint64_t rip = bochs_u64(p->cpu, BOCHS_RIP), ctl = p->ctl;
	const bool visible = !(vmx_entry_controls(p) & VMENTRY_PT_CONCEAL);
	const struct transfer t = { .to = rip, .pip = visible };

	p->transition = TRANSITION_NONE;
	p->guest_pa = bochs_u32(p->cpu, BOCHS_SECONDARY) & VMX2_PT_GUEST_PA;
	truth_entry(p);
	if (!(p->old_ctl & RTIT_TRACE_EN)) {
		if (!(ctl & RTIT_TRACE_EN))
			return;
		p->ctl = 0;
		engine_enable(p, ctl, rip);
		return;
	}
	p->ctl = p->old_ctl;
	if (events(p) && visible && (p->context_en || ptcpu_in_context(p))) {
		packet_cfe(p, CFE_VMENTRY, p->context_en, 0);
		if (p->context_en)
			packet_ip(p, PACKET_FUP, p->transition_ip);
	}
	if (ctl & RTIT_TRACE_EN) {
		transfer(p, &t);
		return;
	}
	if (visible)
		pip(p, true);
	if (ptcpu_packet_en(p))
		packet_ip_suppressed(p, PACKET_PGD);
	stop_tracing(p, ctl, rip);
}

static void exit_events(struct ptcpu *p)
{
	const uint32_t basic = p->exit_reason & 0xffff;
	const bool was = ptcpu_packet_en(p);
	const bool interrupt = basic == EXIT_EXCEPTION_NMI || basic == EXIT_INTERRUPT;

	if (!events(p) || !p->context_en || p->exit_concealed)
		return;
	packet_evd(p, EVD_VMXQ, p->exit_qualification);
	packet_evd(p, EVD_VMXR, p->exit_reason);
	packet_cfe(p, interrupt ? CFE_VMEXIT_INTR : CFE_VMEXIT, !was,
		   interrupt ? bochs.vmread32(p->cpu, VMCS_EXIT_INTERRUPTION) & 0xff : 0);
	if (!was)
		packet_ip(p, PACKET_FUP, p->guest_rip);
}

/* A VM entry that failed late looks like an entry and an exit with nothing between them. */
static void failed_entry(struct ptcpu *p)
{
	const bool visible = !(vmx_entry_controls(p) & VMENTRY_PT_CONCEAL);

	if (!ptcpu_trigger_en(p) || !p->context_en || !visible)
		return;
	if (events(p)) {
		packet_cfe(p, CFE_VMENTRY, true, 0);
		packet_ip(p, PACKET_FUP, p->transition_ip);
	}
	if (p->ctl & RTIT_OS)
		packet_pip(p, p->guest_cr3, true);
}

/* VM exit, complete: the CPU is at the host's first instruction. */
static void exit_packets(struct ptcpu *p)
{
	const uint64_t rip = bochs_u64(p->cpu, BOCHS_RIP), ctl = p->ctl;
	const bool failed = p->exit_reason >> 31;
	const struct transfer t = {
		.from = p->guest_rip, .to = rip, .async = !failed, .pip = !p->exit_concealed
	};

	p->transition = TRANSITION_NONE;
	truth_exit(p);
	if (!(p->old_ctl & RTIT_TRACE_EN)) {
		if (!(ctl & RTIT_TRACE_EN))
			return;
		p->ctl = 0;
		engine_enable(p, ctl, rip);
		return;
	}
	p->ctl = p->old_ctl;
	if (failed)
		failed_entry(p);
	else
		exit_events(p);
	if (ctl & RTIT_TRACE_EN) {
		transfer(p, &t);
		return;
	}
	if (ptcpu_packet_en(p) && !failed)
		packet_ip(p, PACKET_FUP, p->guest_rip);
	if (!p->exit_concealed)
		pip(p, false);
	if (ptcpu_packet_en(p))
		packet_ip_suppressed(p, PACKET_PGD);
	stop_tracing(p, ctl, rip);
}

void engine_exit(struct ptcpu *p)
{
	exit_packets(p);
	p->guest_pa = false;
}
