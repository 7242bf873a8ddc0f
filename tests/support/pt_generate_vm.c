/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* VM entries and exits as the SDM's tables 33-52 to 33-54 and 33-56, and 36-50 rows 16 and 17 of
 * the manual of 2016, give their packets. */
#include "decode/pt/errata.h"
#include "tests/support/pt_generate_private.h"

#define CFE_SMI		 3
#define CFE_VMENTRY	 7
#define CFE_VMEXIT	 8
#define CFE_VMEXIT_INTR	 9
#define EVD_VMXQ	 1
#define EVD_VMXR	 2
#define REASON_SMI	 6
#define REASON_FROM_ROOT (1u << 29)

static const struct {
	uint32_t reason;
	uint64_t qualification;
	uint8_t vector;
} exits[] = {
	{ 0, 0, 2 },	     { 0, 0x7f0012345678, 14 },
	{ 1, 0, 0xec },	     { 1, 0, 0x20 },
	{ 3, 0, 0 },	     { 4, 0x9a, 0 },
	{ 7, 0, 0 },	     { 10, 0, 0 },
	{ 12, 0, 0 },	     { 16, 0, 0 },
	{ 18, 0, 0 },	     { 28, 0x103, 0 },
	{ 29, 0x107, 0 },    { 30, 0x3f80008, 0 },
	{ 30, 0x800003, 0 }, { 31, 0, 0 },
	{ 32, 0, 0 },	     { 44, 0x1300, 0 },
	{ 48, 0x182, 0 },    { 48 | 1u << 26, 0x181, 0 },
	{ 49, 0, 0 },	     { 52, 0, 0 },
	{ 54, 0, 0 },	     { 55, 0, 0 },
	{ 56, 0xb0, 0 },     { 62, 0, 0 },
	{ 74, 0, 0 },
};

#define NR_EXITS (sizeof(exits) / sizeof(exits[0]))

/* EVDs in either order (SDM tables 33-53 and 33-59). */
static void put_evds(struct vmt_ptgen_world *w, uint32_t reason, uint64_t qualification)
{
	const bool qualification_first = vmt_ptgen_chance(w, 500);

	if (qualification_first)
		vmt_ptenc_evd(vmt_ptgen_stream(w), EVD_VMXQ, qualification);
	vmt_ptenc_evd(vmt_ptgen_stream(w), EVD_VMXR, reason);
	if (!qualification_first)
		vmt_ptenc_evd(vmt_ptgen_stream(w), EVD_VMXQ, qualification);
}

/* Behind a transition the code may lie in the filter ranges or not. */
static void choose_filter(struct vmt_ptgen_world *w)
{
	if (w->o->filter)
		w->outside = vmt_ptgen_chance(w, 400);
}

/* What ends a transition to `ip`, by PacketEn before and after. */
static void arrive(struct vmt_ptgen_world *w, bool packet_en, uint64_t ip)
{
	if (packet_en && vmt_ptgen_packet_en(w)) {
		vmt_ptgen_ip(w, VMT_PTENC_TIP, ip);
	} else if (packet_en) {
		vmt_ptgen_ip(w, VMT_PTENC_TIP_PGD, ip);
	} else if (vmt_ptgen_packet_en(w)) {
		vmt_ptgen_mode(w);
		vmt_ptgen_ip(w, VMT_PTENC_TIP_PGE, ip);
	}
}

/* Host-only: the VM-exit MSR-load list sets TraceEn. */
static void leave_untraced_guest(struct vmt_ptgen_world *w)
{
	const bool visible = !vmt_ptgen_conceals(w, VMT_PTGEN_CONCEAL_EXIT);
	const bool entry_certain = w->out->truth[w->out->nr_truth - 1].certain;

	vmt_ptgen_begin(w, VMT_PTGEN_EXIT);
	w->in_guest = false;
	choose_filter(w);
	vmt_ptgen_enable(w, visible && w->o->pip_at_enabling, false);
	/* Whose TSC packet it is shows behind it. */
	w->out->truth[w->out->nr_truth - 1].certain &= w->loss.on || w->told;
	w->clock.tsc_packet_at = 0;
	vmt_ptgen_end(w);
	if (w->told && vmt_ptgen_packet_en(w) && (entry_certain || !(w->o->errata & VMT_PT_SKL014)))
		w->told = VMT_PTGEN_TOLD_ROOT;
}

void vmt_ptgen_leave(struct vmt_ptgen_world *w)
{
	const size_t which = vmt_ptgen_random(w, NR_EXITS);
	const bool interruption = exits[which].reason <= 1;
	const bool visible = !vmt_ptgen_conceals(w, VMT_PTGEN_CONCEAL_EXIT);
	const bool named = w->o->event_trace && visible;
	const bool packet_en = vmt_ptgen_packet_en(w);
	const bool guest_only = w->o->tracing == VMT_PTGEN_GUEST_ONLY;
	const bool aborts = !guest_only && visible && vmt_ptgen_chance(w, w->o->abort);
	struct vmt_ptgen_truth *t;

	if (w->o->tracing == VMT_PTGEN_HOST_ONLY) {
		leave_untraced_guest(w);
		return;
	}
	t = vmt_ptgen_begin(w, VMT_PTGEN_EXIT);
	t->reason = exits[which].reason;
	t->qualification = exits[which].qualification;
	t->vector = exits[which].vector;
	t->has_reason = named;
	t->has_vector = named && interruption;
	t->has_rip = named || packet_en;
	if (named) {
		put_evds(w, t->reason, t->qualification);
		vmt_ptgen_cfe(w, interruption ? CFE_VMEXIT_INTR : CFE_VMEXIT, t->vector,
			      !packet_en);
	}
	if (named || packet_en)
		vmt_ptgen_ip(w, VMT_PTENC_FUP, w->guest_ip);
	w->in_guest = false;
	if (visible)
		vmt_ptgen_pip(w, false);
	choose_filter(w);
	if (guest_only && packet_en)
		vmt_ptgen_off(w);
	else if (!guest_only && !aborts)
		arrive(w, packet_en, w->host_ip);
	vmt_ptgen_end(w);
	w->trigger = !guest_only;
	if (guest_only)
		w->outside = false;
	if (!aborts)
		return;
	/* The processor shuts down; when it runs again, a PSB+ comes. */
	w->out->aborts++;
	vmt_ptgen_pass(w, 10000);
	vmt_ptgen_psb(w, false);
}

/* SDM table 33-54, system-wide: NR 0, 1, 0 and no guest code. */
static void fail_entry(struct vmt_ptgen_world *w)
{
	const bool packet_en = vmt_ptgen_packet_en(w);

	vmt_ptgen_begin(w, VMT_PTGEN_FAILED);
	if (w->o->event_trace) {
		vmt_ptgen_cfe(w, CFE_VMENTRY, 0, true);
		vmt_ptgen_ip(w, VMT_PTENC_FUP, w->host_ip);
	}
	w->in_guest = true;
	vmt_ptgen_pip(w, true);
	w->in_guest = false;
	vmt_ptgen_pip(w, false);
	w->host_ip += 0x10;
	arrive(w, packet_en, w->host_ip);
	vmt_ptgen_end(w);
	w->out->failures++;
}

/* The same table: an entry that fails early goes on behind its instruction. */
static void fail_early(struct vmt_ptgen_world *w)
{
	w->host_ip += 3;
	if (vmt_ptgen_packet_en(w))
		vmt_ptgen_ip(w, VMT_PTENC_TIP, w->host_ip);
}

static void enter_guest_only(struct vmt_ptgen_world *w)
{
	struct vmt_ptgen_truth *t = vmt_ptgen_begin(w, VMT_PTGEN_ENTRY);
	const bool visible = !vmt_ptgen_conceals(w, VMT_PTGEN_CONCEAL_ENTRY);
	const bool pip = w->o->pip_at_enabling && visible;

	t->has_cr3 = pip || w->cr3_known;
	w->in_guest = true;
	if (!w->o->branch)
		w->cr3_known = false;
	vmt_ptgen_enable(w, pip, false);
	t->has_rip = vmt_ptgen_packet_en(w);
	t->rip_unclear = !t->has_rip;
	if (visible && w->told != VMT_PTGEN_TOLD_NOTHING && w->o->branch)
		w->told = VMT_PTGEN_TOLD_NONROOT;
	vmt_ptgen_end(w);
}

static void put_entry(struct vmt_ptgen_world *w)
{
	const bool host_only = w->o->tracing == VMT_PTGEN_HOST_ONLY;
	const bool visible = !vmt_ptgen_conceals(w, VMT_PTGEN_CONCEAL_ENTRY);
	const bool packet_en = vmt_ptgen_packet_en(w);
	struct vmt_ptgen_truth *t = vmt_ptgen_begin(w, VMT_PTGEN_ENTRY);

	if (w->o->event_trace && visible) {
		vmt_ptgen_cfe(w, CFE_VMENTRY, 0, true);
		vmt_ptgen_ip(w, VMT_PTENC_FUP, w->host_ip);
	}
	/* Erratum SKD022 */
	if (host_only && packet_en && w->o->errata & VMT_PT_SKD022)
		vmt_ptgen_ip(w, VMT_PTENC_FUP, w->host_ip);
	w->in_guest = true;
	w->cr3_known = false;
	if (visible)
		vmt_ptgen_pip(w, true);
	choose_filter(w);
	if (host_only && packet_en)
		vmt_ptgen_off(w);
	else if (!host_only)
		arrive(w, packet_en, w->guest_ip);
	t->has_rip = !host_only && (packet_en || vmt_ptgen_packet_en(w));
	t->rip_unclear = !t->has_rip;
	vmt_ptgen_end(w);
	w->trigger = !host_only;
	if (host_only)
		w->cr3_known = false;
}

void vmt_ptgen_enter(struct vmt_ptgen_world *w)
{
	const bool guest_only = w->o->tracing == VMT_PTGEN_GUEST_ONLY;
	const bool may_fail = w->o->tracing == VMT_PTGEN_SYSTEM && !w->o->conceal[w->vm] &&
			      (w->o->event_trace || vmt_ptgen_packet_en(w));

	if (may_fail && vmt_ptgen_chance(w, w->o->late_failure)) {
		fail_entry(w);
		return;
	}
	if (!guest_only && vmt_ptgen_chance(w, w->o->late_failure))
		fail_early(w);
	w->guest_ip = 0xffffffff81000000 + vmt_ptgen_random(w, 1 << 24);
	if (vmt_ptgen_chance(w, 200))
		w->guest_ip = 0x400000 + vmt_ptgen_random(w, 1 << 20);
	if (guest_only)
		enter_guest_only(w);
	else
		put_entry(w);
	/* The entry may inject an event. */
	if (w->trigger && w->o->event_trace && vmt_ptgen_chance(w, 100))
		vmt_ptgen_interruption(w);
}

/* ---- the dual-monitor treatment of SMIs (SDM 33.6) ---- */

static void note(struct vmt_ptgen_world *w, const char *name, bool has_ip)
{
	struct vmt_ptgen_truth *t = vmt_ptgen_begin(w, VMT_PTGEN_NOTE);

	t->note = name;
	t->has_rip = has_ip && t->has_vmcs;
}

static void return_from_smm(struct vmt_ptgen_world *w, bool to_guest, uint64_t host_cr3)
{
	const uint64_t stm_ip = 0x7b000140;

	note(w, "pt_rsm", false);
	vmt_ptgen_cfe(w, 4, 0, false);
	vmt_ptgen_end(w);
	w->host_cr3 = host_cr3;
	if (to_guest)
		vmt_ptgen_begin(w, VMT_PTGEN_ENTRY)->has_rip = true;
	else
		note(w, "pt_smm_return", false);
	vmt_ptgen_cfe(w, CFE_VMENTRY, 0, true);
	vmt_ptgen_ip(w, VMT_PTENC_FUP, stm_ip);
	w->in_guest = to_guest;
	vmt_ptgen_vmcs(w, w->out->vms[w->vm].vmcs);
	vmt_ptgen_pip(w, to_guest);
	/* The VMCS that this entry uses is the one it names. */
	if (to_guest)
		w->out->truth[w->out->nr_truth - 1].has_vmcs = true;
	vmt_ptgen_ip(w, VMT_PTENC_TIP, *vmt_ptgen_world_ip(w));
	vmt_ptgen_end(w);
}

void vmt_ptgen_smm_exit(struct vmt_ptgen_world *w)
{
	const bool from_guest = w->in_guest;
	const uint64_t ip = *vmt_ptgen_world_ip(w), host_cr3 = w->host_cr3;
	const uint32_t reason = REASON_SMI | (from_guest ? 0 : REASON_FROM_ROOT);
	struct vmt_ptgen_truth *t;

	if (w->o->tracing != VMT_PTGEN_SYSTEM || !w->o->event_trace || w->o->conceal[w->vm] ||
	    !vmt_ptgen_packet_en(w))
		return;
	note(w, "pt_smi", true);
	vmt_ptgen_cfe(w, CFE_SMI, 0, true);
	vmt_ptgen_ip(w, VMT_PTENC_FUP, ip);
	vmt_ptgen_end(w);
	if (from_guest) {
		t = vmt_ptgen_begin(w, VMT_PTGEN_EXIT);
		t->has_reason = t->has_rip = true;
		t->reason = reason;
	} else {
		note(w, "pt_smm_exit", false);
	}
	/* Nothing else tells that this comes from root operation, and where it returns to. */
	w->unbroken = true;
	put_evds(w, reason, 0);
	vmt_ptgen_cfe(w, CFE_VMEXIT, 0, false);
	vmt_ptgen_ip(w, VMT_PTENC_FUP, ip);
	w->in_guest = false;
	vmt_ptgen_vmcs(w, 0x7b010000);
	w->vmcs_known = false;
	w->host_cr3 = 0x7b002000;
	vmt_ptgen_pip(w, false);
	vmt_ptgen_ip(w, VMT_PTENC_TIP, 0x7b000000);
	vmt_ptgen_end(w);
	w->out->smm_exits++;
	vmt_ptgen_pass(w, 20000);
	return_from_smm(w, from_guest, host_cr3);
	w->unbroken = false;
}
