/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What happens in one world and stays there, as the SDM's tables 33-55 to 33-59 give its packets.
 */
#include "decode/pt/errata.h"
#include "tests/support/pt_generate_private.h"

enum cfe {
	CFE_INTR = 1,
	CFE_IRET = 2,
	CFE_SMI = 3,
	CFE_SIPI = 5,
	CFE_INIT = 6,
	CFE_UINTR = 12,
	CFE_UIRET = 13,
};

#define EVD_PFA	  0
#define VECTOR_PF 14

/* A CFE as a note: its FUP comes by it (IP=1) or by the branch. */
static struct vmt_ptgen_truth *begin_note(struct vmt_ptgen_world *w, const char *name, uint64_t ip)
{
	struct vmt_ptgen_truth *t = vmt_ptgen_begin(w, VMT_PTGEN_NOTE);

	t->note = name;
	t->rip = ip;
	t->has_rip = w->in_guest && w->told == VMT_PTGEN_TOLD_NONROOT;
	return t;
}

/* The source of an event: named by a CFE, by the branch's FUP, or by both. */
static void source(struct vmt_ptgen_world *w, enum cfe type, uint8_t vector, uint64_t ip)
{
	const bool packet_en = vmt_ptgen_packet_en(w);

	if (w->o->event_trace)
		vmt_ptgen_cfe(w, (uint8_t)type, vector, !packet_en);
	if (w->o->event_trace || packet_en)
		vmt_ptgen_ip(w, VMT_PTENC_FUP, ip);
}

static void return_from(struct vmt_ptgen_world *w, uint64_t at, uint64_t to)
{
	if (w->o->event_trace) {
		begin_note(w, "pt_iret", at);
		vmt_ptgen_cfe(w, CFE_IRET, 0, true);
		vmt_ptgen_ip(w, VMT_PTENC_FUP, at);
		vmt_ptgen_end(w);
	}
	if (vmt_ptgen_packet_en(w))
		vmt_ptgen_ip(w, VMT_PTENC_TIP, to);
}

/* An interrupt or a page fault that stays in its world, and the IRET. */
void vmt_ptgen_interruption(struct vmt_ptgen_world *w)
{
	const uint64_t from = *vmt_ptgen_world_ip(w), handler = (from & ~UINT64_C(0xfffff)) + 0x800;
	const bool fault = vmt_ptgen_chance(w, 300);
	const uint64_t address = vmt_ptgen_random(w, UINT64_MAX);
	const uint8_t vector = fault ? VECTOR_PF : 0x21;

	if (w->o->event_trace) {
		struct vmt_ptgen_truth *t =
			begin_note(w, fault ? "pt_page_fault" : "pt_intr", from);

		t->has_vector = true;
		t->vector = vector;
		t->has_value = fault;
		t->value = address;
		if (fault)
			vmt_ptenc_evd(vmt_ptgen_stream(w), EVD_PFA, address);
	}
	source(w, CFE_INTR, vector, from);
	if (w->o->event_trace)
		vmt_ptgen_end(w);
	if (vmt_ptgen_packet_en(w))
		vmt_ptgen_ip(w, VMT_PTENC_TIP, handler);
	vmt_ptgen_pass(w, vmt_ptgen_random(w, 300));
	return_from(w, handler + 0x40, from);
}

/* Table 33-50 and 33-55 rows 26, 27: a FUP and no TIP. */
static void user_interrupt(struct vmt_ptgen_world *w)
{
	const uint64_t from = *vmt_ptgen_world_ip(w);

	if (w->o->event_trace) {
		struct vmt_ptgen_truth *t = begin_note(w, "pt_uintr", from);

		t->has_vector = true;
		t->vector = 3;
		vmt_ptgen_cfe(w, CFE_UINTR, 3, true);
		vmt_ptgen_ip(w, VMT_PTENC_FUP, from);
		vmt_ptgen_end(w);
		begin_note(w, "pt_uiret", from + 8);
		vmt_ptgen_cfe(w, CFE_UIRET, 0, true);
		vmt_ptgen_ip(w, VMT_PTENC_FUP, from + 8);
		vmt_ptgen_end(w);
	} else if (vmt_ptgen_packet_en(w)) {
		vmt_ptgen_ip(w, VMT_PTENC_FUP, from);
		vmt_ptgen_branches(w);
		vmt_ptgen_ip(w, VMT_PTENC_FUP, *vmt_ptgen_world_ip(w));
		vmt_ptgen_branches(w);
	}
}

/* The default treatment: TraceEn is cleared, and restored by RSM; no PIP. */
static void smi(struct vmt_ptgen_world *w)
{
	const uint64_t ip = *vmt_ptgen_world_ip(w);

	/* Without Event Trace this reads as an exit where guests alone are traced. */
	if (w->o->tracing == VMT_PTGEN_GUEST_ONLY && !w->o->event_trace)
		return;
	if (w->o->event_trace)
		begin_note(w, "pt_smi", ip);
	source(w, CFE_SMI, 0, ip);
	if (w->o->event_trace)
		vmt_ptgen_end(w);
	if (vmt_ptgen_packet_en(w))
		vmt_ptgen_off(w);
	w->trigger = false;
	vmt_ptgen_pass(w, 1 + vmt_ptgen_random(w, 30000));
	vmt_ptgen_enable(w, false, true);
}

/* INIT on the bootstrap processor and on another one, which waits for SIPI. */
static void init(struct vmt_ptgen_world *w)
{
	const bool other = vmt_ptgen_chance(w, 500);
	const bool packet_en = vmt_ptgen_packet_en(w);

	if (w->in_guest || w->o->tracing == VMT_PTGEN_GUEST_ONLY)
		return;
	/* FUP and PIP with NR=0: behind a concealed exit this reads as one. */
	if (!w->o->event_trace && w->told == VMT_PTGEN_TOLD_NONROOT)
		return;
	if (w->o->event_trace)
		begin_note(w, "pt_init", w->host_ip);
	source(w, CFE_INIT, 0, w->host_ip);
	if (w->o->event_trace)
		vmt_ptgen_end(w);
	w->host_ip = other ? 0x9a000 : 0xfffffff0;
	if (!other) {
		w->host_cr3 = 0;
		vmt_ptgen_pip(w, false);
		if (packet_en)
			vmt_ptgen_ip(w, VMT_PTENC_TIP, w->host_ip);
		return;
	}
	if (packet_en)
		vmt_ptgen_off(w);
	vmt_ptgen_pass(w, 1000);
	if (w->o->event_trace) {
		struct vmt_ptgen_truth *t = begin_note(w, "pt_sipi", 0);

		t->has_vector = true;
		t->vector = 0x9a;
		vmt_ptgen_cfe(w, CFE_SIPI, 0x9a, false);
		vmt_ptgen_end(w);
	}
	if (!packet_en)
		return;
	vmt_ptgen_mode(w);
	vmt_ptgen_ip(w, VMT_PTENC_TIP_PGE, w->host_ip);
}

static void write_ptw(struct vmt_ptgen_world *w)
{
	const bool ip = vmt_ptgen_packet_en(w);

	vmt_ptgen_cyc(w);
	vmt_ptenc_ptw(vmt_ptgen_stream(w), vmt_ptgen_chance(w, 500) ? 8 : 4,
		      vmt_ptgen_random(w, UINT32_MAX), ip);
	if (ip)
		vmt_ptgen_ip(w, VMT_PTENC_FUP, *vmt_ptgen_world_ip(w));
}

/* MWAIT that sleeps and wakes (table 33-57 rows 4 and 7). */
static void sleep_and_wake(struct vmt_ptgen_world *w)
{
	const bool ip = vmt_ptgen_packet_en(w);

	vmt_ptenc_mwait(vmt_ptgen_stream(w), 0x20, 0);
	vmt_ptenc_pwre(vmt_ptgen_stream(w), 2, 0, false);
	vmt_ptgen_cyc(w);
	vmt_ptenc_exstop(vmt_ptgen_stream(w), ip);
	if (ip)
		vmt_ptgen_ip(w, VMT_PTENC_FUP, *vmt_ptgen_world_ip(w));
	vmt_ptgen_pass(w, vmt_ptgen_random(w, 5000));
	vmt_ptgen_tsc(w);
	vmt_ptgen_cbr(w);
	vmt_ptenc_pwrx(vmt_ptgen_stream(w), 3, 3, 1);
}

/* A transaction that begins and ends, or aborts (rows 19 to 21); erratum BDM64. */
static void transaction(struct vmt_ptgen_world *w)
{
	uint64_t *ip = vmt_ptgen_world_ip(w);
	const bool aborts = vmt_ptgen_chance(w, 500);

	if (!vmt_ptgen_packet_en(w))
		return;
	vmt_ptgen_cyc(w);
	vmt_ptenc_mode_tsx(vmt_ptgen_stream(w), 1);
	vmt_ptgen_ip(w, VMT_PTENC_FUP, *ip);
	vmt_ptgen_branches(w);
	if (aborts && w->o->errata & VMT_PT_BDM64)
		vmt_ptgen_ip(w, VMT_PTENC_TIP, vmt_ptgen_random(w, UINT64_C(1) << 47));
	vmt_ptgen_cyc(w);
	vmt_ptenc_mode_tsx(vmt_ptgen_stream(w), aborts ? 2 : 0);
	vmt_ptgen_ip(w, VMT_PTENC_FUP, *ip);
	if (aborts)
		vmt_ptgen_ip(w, VMT_PTENC_TIP, *ip + 0x20);
}

/* A PEBS record of two groups, and its FUP. */
static void pebs_record(struct vmt_ptgen_world *w)
{
	const bool ip = vmt_ptgen_packet_en(w);

	w->unbroken = true;
	vmt_ptenc_bbp(vmt_ptgen_stream(w), 4, 8);
	vmt_ptenc_bip(vmt_ptgen_stream(w), 0, 8, *vmt_ptgen_world_ip(w));
	vmt_ptenc_bip(vmt_ptgen_stream(w), 1, 8, 1);
	vmt_ptenc_bbp(vmt_ptgen_stream(w), 1, 8);
	for (uint8_t id = 0; id < 18; id++)
		vmt_ptenc_bip(vmt_ptgen_stream(w), id, 8, vmt_ptgen_random(w, UINT64_MAX));
	vmt_ptenc_bep(vmt_ptgen_stream(w), ip);
	w->unbroken = false;
	if (ip)
		vmt_ptgen_ip(w, VMT_PTENC_FUP, *vmt_ptgen_world_ip(w));
}

/* STI, CLI or POPF with Event Trace: MODE.Exec and FUP (table 33-59 row 22). */
static void interrupt_flag(struct vmt_ptgen_world *w)
{
	if (!w->o->event_trace || !vmt_ptgen_packet_en(w))
		return;
	vmt_ptgen_cyc(w);
	vmt_ptenc_mode_exec(vmt_ptgen_stream(w), vmt_ptgen_chance(w, 500) ? 5 : 1);
	vmt_ptgen_ip(w, VMT_PTENC_FUP, *vmt_ptgen_world_ip(w));
}

void vmt_ptgen_event(struct vmt_ptgen_world *w)
{
	static void (*const events[])(struct vmt_ptgen_world *) = {
		vmt_ptgen_interruption,
		vmt_ptgen_interruption,
		user_interrupt,
		smi,
		init,
		write_ptw,
		sleep_and_wake,
		transaction,
		pebs_record,
		interrupt_flag,
	};

	if (w->trigger)
		events[vmt_ptgen_random(w, sizeof(events) / sizeof(events[0]))](w);
}
