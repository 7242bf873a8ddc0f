// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * VM entries and exits. A transition is made by a CFE (Event Trace) or by the NR bit of PIP alone,
 * and is under way until its TIP, or a packet that cannot stand inside it. Invariant: an event goes
 * out only for a change that packets of the change itself show; a change that shows across a loss,
 * or by a status, is a gap.
 */
#include "decode/pt/decoder_private.h"

#include "decode/base/exit_key.h"
#include "vmx/exit.h"

#define VMX_INTR_VALID (1u << 31)

/* A TSC packet is taken for a world's when it is less than this ahead of the time known. */
#define PLAUSIBLE_AHEAD (UINT64_C(1) << 40)

const struct vmt_pt_vm *pt_vm_row(const struct vmt_pt_decoder *d)
{
	const struct vmt_pt_vm *any = NULL;

	for (size_t i = 0; i < d->options.nr_vms; i++) {
		const struct vmt_pt_vm *vm = &d->options.vms[i];

		if (d->guest_vmcs.known && vm->vmcs == d->guest_vmcs.value)
			return vm;
		if (vm->vmcs == VMT_PT_ANY_VMCS && !any)
			any = vm;
	}
	return any ? any : d->options.own_vm;
}

/* How the guest's TSC packet is to be read, NULL: not known. */
static const struct vmx_tsc_map *guest_map(const struct vmt_pt_decoder *d, uint64_t payload)
{
	const uint64_t low = d->clock.known ? d->clock.low : d->clock.params.reference;
	const struct vmt_pt_vm *vm = pt_vm_row(d);
	struct vmt_pt_maps maps;

	if (!vm || !vm->has_map)
		return NULL;
	maps = (struct vmt_pt_maps){ &vm->map, vm->changes, vm->nr_changes };
	return vmt_pt_maps_at(&maps, low, payload);
}

static bool plausible(const struct vmt_pt_decoder *d, uint64_t payload, enum vmt_pt_mode mode,
		      const struct vmx_tsc_map *map, uint64_t *first)
{
	uint64_t last;

	if (mode == VMT_PT_MODE_NONROOT && !map)
		return false;
	return vmt_pt_clock_convert(&d->clock, payload, mode, map, first, &last) &&
	       last >= d->clock.low && last - d->clock.low < PLAUSIBLE_AHEAD;
}

enum vmt_pt_mode pt_vm_mode(const struct vmt_pt_decoder *d)
{
	if (d->pending & PT_PEND_EXIT && d->exit.pip)
		return VMT_PT_MODE_ROOT;
	if (d->pending & PT_PEND_ENTRY && d->entry.pip)
		return VMT_PT_MODE_NONROOT;
	return d->mode;
}

enum vmt_pt_mode pt_vm_tsc_mode(const struct vmt_pt_decoder *d, uint64_t payload,
				const struct vmx_tsc_map **map)
{
	const enum vmt_pt_mode mode = pt_vm_mode(d);
	/* Behind an exit of which nothing more is seen, a guest-only trace may go on in the guest.
	 */
	const bool left = d->pending & PT_PEND_EXIT && mode == VMT_PT_MODE_ROOT;
	uint64_t of_root, of_guest;
	bool root, guest, named;

	*map = guest_map(d, payload);
	if (d->away)
		return mode;
	if ((mode == VMT_PT_MODE_NONROOT && !d->untraced && !(d->pending & PT_PEND_OFF)) ||
	    (mode == VMT_PT_MODE_ROOT && d->root_ran && !d->outside && !left))
		return mode;
	/* Nothing says where the CPU is: the value itself may. Behind a loss a VM that is named,
	 * and was not seen yet, may run. */
	named = d->options.nr_vms && d->before_loss != VMT_PT_MODE_UNKNOWN;
	if (!d->counts.nonroot_seen && !named && (!*map || !d->clock.known))
		return VMT_PT_MODE_ROOT;
	if (!*map && mode == VMT_PT_MODE_ROOT && d->root_ran)
		return VMT_PT_MODE_ROOT;
	if (!*map || !d->clock.known)
		return VMT_PT_MODE_UNKNOWN;
	root = plausible(d, payload, VMT_PT_MODE_ROOT, NULL, &of_root);
	guest = plausible(d, payload, VMT_PT_MODE_NONROOT, *map, &of_guest);
	/* A guest that reads the host's TSC leaves no doubt. */
	if (root == guest && !(root && (left || of_root == of_guest)))
		return VMT_PT_MODE_UNKNOWN;
	return root ? VMT_PT_MODE_ROOT : VMT_PT_MODE_NONROOT;
}

/* ---- what goes out ---- */

static void emit_gap(struct vmt_pt_decoder *d)
{
	const struct vmt_pt_stamp stamp = vmt_pt_clock_stamp(&d->clock);
	struct vmt_event e = pt_event_of(d, VMT_EVENT_GAP);

	d->counts.gaps++;
	pt_queue_put(d, &e, &stamp);
}

void pt_vm_learn(struct vmt_pt_decoder *d, enum vmt_pt_mode mode)
{
	enum vmt_pt_mode before = d->mode == VMT_PT_MODE_UNKNOWN ? d->before_loss : d->mode;

	if (mode == VMT_PT_MODE_NONROOT)
		d->counts.nonroot_seen = true;
	if (before != VMT_PT_MODE_UNKNOWN && before != mode) {
		pt_queue_close_exits(d, false);
		emit_gap(d);
	}
	/* A guest that entered unseen is the current VMCS's. */
	if (mode == VMT_PT_MODE_NONROOT && d->mode != mode) {
		d->guest_vmcs = d->vmcs;
		d->guest_cr3.known = false;
	}
	d->mode = mode;
	d->before_loss = VMT_PT_MODE_UNKNOWN;
	d->outside = false;
	d->untraced = false;
}

/* A transition out of `from` is certain: where a loss hides how the CPU came there, say so. */
static void come_from(struct vmt_pt_decoder *d, enum vmt_pt_mode from)
{
	d->counts.nonroot_seen = true;
	if (d->mode == VMT_PT_MODE_UNKNOWN && d->before_loss != VMT_PT_MODE_UNKNOWN)
		pt_vm_learn(d, from);
	d->before_loss = VMT_PT_MODE_UNKNOWN;
}

static void fill_reason(struct vmt_event *e, const struct pt_transition *t)
{
	uint32_t basic = t->evd.reason & VMX_REASON_BASIC_MASK, intr = 0;

	if (t->has_vector) {
		e->vector = t->vector;
		e->has |= VMT_HAS_VECTOR;
		e->key = (struct vmt_key){ .kind = VMT_KEY_VECTOR, .number = t->vector };
		intr = VMX_INTR_VALID | t->vector;
	}
	if (t->evd.has_qualification) {
		e->qualification = t->evd.qualification;
		e->has |= VMT_HAS_QUALIFICATION;
	}
	if (!t->evd.has_reason)
		return;
	e->reason = basic;
	e->reason_flags = t->evd.reason & ~VMX_REASON_BASIC_MASK;
	e->has |= VMT_HAS_REASON;
	if (e->failed_entry)
		return;
	/* Without the qualification only those keys are known that do not come from it. */
	if (t->evd.has_qualification || basic <= 1)
		vmt_exit_key_vmx(e, basic, t->evd.qualification, intr);
	if (e->key.kind == VMT_KEY_NONE)
		e->key.access = VMT_ACCESS_NONE;
}

void pt_vm_out_of_sight(struct vmt_pt_decoder *d)
{
	d->untraced = true;
	d->guest_cr3.known = false;
}

/* What comes is not traced, and so is not root operation. */
static bool leaves_sight(const struct vmt_pt_packet *tip)
{
	return tip && tip->type == VMT_PT_TIP_PGD && !tip->has_ip;
}

static void finish_entry(struct vmt_pt_decoder *d, const struct vmt_pt_packet *tip)
{
	struct vmt_event e = pt_event_of(d, VMT_EVENT_ENTRY);

	d->pending &= ~(uint32_t)PT_PEND_ENTRY;
	d->mode = VMT_PT_MODE_NONROOT;
	d->outside = false;
	d->untraced = false;
	d->counts.entries++;
	pt_event_guest(d, &e);
	if (tip && tip->has_ip && !tip->ip_unsure) {
		e.guest_rip = tip->ip;
		e.has |= VMT_HAS_RIP;
	}
	pt_queue_put_entry(d, &e, &d->entry.stamp);
	if (leaves_sight(tip))
		pt_vm_out_of_sight(d);
}

static void emit_failed(struct vmt_pt_decoder *d, const struct pt_transition *t)
{
	struct vmt_event e = pt_event_of(d, VMT_EVENT_EXIT);

	e.failed_entry = true;
	d->counts.failed_entries++;
	pt_event_guest(d, &e);
	fill_reason(&e, t);
	d->pending &= ~(uint32_t)(PT_PEND_ENTRY | PT_PEND_EXIT);
	d->mode = VMT_PT_MODE_ROOT;
	pt_queue_put(d, &e, &t->stamp);
}

static void finish_exit(struct vmt_pt_decoder *d, const struct vmt_pt_packet *tip)
{
	const struct pt_transition *t = &d->exit;
	struct vmt_event e = pt_event_of(d, VMT_EVENT_EXIT);

	d->pending &= ~(uint32_t)PT_PEND_EXIT;
	d->mode = VMT_PT_MODE_ROOT;
	d->untraced = false;
	d->outside = leaves_sight(tip);
	if (t->failed) {
		emit_failed(d, t);
		return;
	}
	/* The dual-monitor treatment of SMIs leaves root operation too: no guest was there. */
	if (t->evd.has_reason && t->evd.reason & VMX_REASON_FROM_ROOT) {
		pt_note_named(d, "pt_smm_exit", &t->stamp);
		return;
	}
	d->counts.exits++;
	pt_event_guest(d, &e);
	if (t->rip.known) {
		e.guest_rip = t->rip.value;
		e.has |= VMT_HAS_RIP;
	}
	fill_reason(&e, t);
	pt_queue_put_exit(d, &e, &t->stamp);
}

/* Where a TIP comes PacketEn was 1, and an exit has a FUP. */
static bool is_no_exit(const struct vmt_pt_decoder *d, const struct vmt_pt_packet *tip)
{
	return tip->type == VMT_PT_TIP && !d->exit.cfe && !d->exit.fup;
}

/* Behind a loss it was an entry that failed; else an exit was concealed. */
static void take_back_exit(struct vmt_pt_decoder *d)
{
	if (d->pending & PT_PEND_LEARNT) {
		emit_failed(d, &d->exit);
		return;
	}
	d->pending &= ~(uint32_t)PT_PEND_EXIT;
	pt_vm_learn(d, VMT_PT_MODE_ROOT);
}

void pt_vm_settle(struct vmt_pt_decoder *d, const struct vmt_pt_packet *tip)
{
	bool exit = d->pending & PT_PEND_EXIT, entry = d->pending & PT_PEND_ENTRY;

	if (exit && entry) {
		/* NR 1 and 0 again: a guest that ran shows a TIP, a FUP or a CFE in between. */
		if (d->entry.cfe || d->packet_en || (tip && tip->type == VMT_PT_TIP)) {
			emit_failed(d, &d->entry);
			return;
		}
		finish_entry(d, NULL);
	} else if (entry && d->entry.returns && !leaves_sight(tip)) {
		d->pending &= ~(uint32_t)PT_PEND_ENTRY;
	} else if (entry) {
		finish_entry(d, tip);
	}
	if (exit && tip && is_no_exit(d, tip))
		take_back_exit(d);
	else if (exit)
		finish_exit(d, tip);
}

void pt_vm_no_tip(struct vmt_pt_decoder *d)
{
	struct pt_address cr3;

	if (!(d->pending & PT_PEND_ENTRY) || d->pending & PT_PEND_EXIT || d->entry.cfe ||
	    !d->packet_en)
		return;
	d->pending &= ~(uint32_t)PT_PEND_ENTRY;
	cr3 = d->guest_cr3;
	pt_vm_learn(d, VMT_PT_MODE_NONROOT);
	d->guest_cr3 = cr3;
}

/* ---- what comes in ---- */

static void begin_entry(struct vmt_pt_decoder *d)
{
	come_from(d, VMT_PT_MODE_ROOT);
	d->pending |= PT_PEND_ENTRY;
	d->pending &= ~(uint32_t)(PT_PEND_FUP | PT_PEND_VMCS);
	d->guest_vmcs = d->vmcs;
	d->guest_cr3.known = false;
	d->entry = (struct pt_transition){ .stamp = vmt_pt_clock_stamp(&d->clock) };
}

static void begin_exit(struct vmt_pt_decoder *d)
{
	d->pending |= PT_PEND_EXIT;
	d->exit = (struct pt_transition){ .stamp = vmt_pt_clock_stamp(&d->clock) };
}

/* An exit without a CFE: the FUP before it, if any, has the guest's RIP. */
static void begin_plain_exit(struct vmt_pt_decoder *d)
{
	begin_exit(d);
	if (d->pending & PT_PEND_FUP) {
		d->exit.fup = true;
		d->exit.rip = d->fup;
		if (!d->exit.stamp.closed)
			d->exit.stamp = d->fup_stamp;
	}
	d->pending &= ~(uint32_t)PT_PEND_FUP;
}

/* A CYC inside a transition tells the time of all of it. */
static void restamp(struct vmt_pt_decoder *d, struct pt_transition *t)
{
	if (d->clock.here_at_cyc)
		t->stamp = vmt_pt_clock_stamp(&d->clock);
}

/*
 * A MOV to CR3 tells where the CPU is, too. Event Trace names every transition that its controls do
 * not conceal, and where PacketEn is 1 an exit has a FUP: a PIP without them shows a transition
 * that was concealed.
 */
static bool entry_is_concealed(const struct vmt_pt_decoder *d)
{
	return d->event_trace && d->root_ran && !d->outside;
}

static bool exit_is_concealed(const struct vmt_pt_decoder *d)
{
	bool fup = d->pending & PT_PEND_FUP;

	return !d->untraced && (d->event_trace || (d->packet_en && !fup));
}

static void pip_nonroot(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p)
{
	d->counts.nonroot_seen = true;
	d->counts.nonroot_pips++;
	/* A second PIP of a guest that sends no TIP is its MOV to CR3. */
	if (d->pending & PT_PEND_EXIT || (d->pending & PT_PEND_ENTRY && d->entry.pip))
		pt_vm_settle(d, NULL);
	if (d->pending & PT_PEND_ENTRY) {
		restamp(d, &d->entry);
		d->entry.returns = false;
	} else if (d->mode == VMT_PT_MODE_UNKNOWN ||
		   (d->mode == VMT_PT_MODE_ROOT && entry_is_concealed(d))) {
		pt_vm_learn(d, VMT_PT_MODE_NONROOT);
		d->pending |= PT_PEND_LEARNT;
	} else if (d->mode == VMT_PT_MODE_ROOT) {
		begin_entry(d);
	}
	if (d->pending & PT_PEND_ENTRY)
		d->entry.pip = true;
	d->guest_cr3 = (struct pt_address){ true, p->address };
}

static void end_by_pip(struct vmt_pt_decoder *d)
{
	d->exit.pip = true;
	d->counts.exit_pips++;
}

static void pip_root(struct vmt_pt_decoder *d)
{
	/* What an exit loads is the SMM-transfer VMCS: no guest's. */
	if (d->pending & PT_PEND_VMCS)
		d->vmcs.known = false;
	if (d->pending & PT_PEND_EXIT && !d->exit.pip) {
		restamp(d, &d->exit);
		end_by_pip(d);
	} else if (d->pending & PT_PEND_EXIT) {
		pt_vm_settle(d, NULL);
		d->root_ran = true;
	} else if (d->pending & PT_PEND_ENTRY && !d->entry.pip) {
		/* A return from SMM that stays in root operation. */
		d->pending &= ~(uint32_t)PT_PEND_ENTRY;
		d->mode = VMT_PT_MODE_ROOT;
		pt_note_named(d, "pt_smm_return", &d->entry.stamp);
	} else if (d->pending & PT_PEND_ENTRY) {
		begin_exit(d);
		end_by_pip(d);
	} else if (d->mode == VMT_PT_MODE_UNKNOWN ||
		   (d->mode == VMT_PT_MODE_NONROOT && exit_is_concealed(d))) {
		pt_vm_learn(d, VMT_PT_MODE_ROOT);
	} else if (d->mode == VMT_PT_MODE_NONROOT) {
		begin_plain_exit(d);
		end_by_pip(d);
	} else {
		d->root_ran = true;
	}
}

void pt_vm_pip(struct vmt_pt_decoder *d, const struct vmt_pt_packet *packet)
{
	d->counts.pips++;
	if (packet->nr)
		pip_nonroot(d, packet);
	else
		pip_root(d);
}

void pt_vm_vmcs(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p)
{
	const uint64_t none = UINT64_C(0xffffffffff);

	const bool inside = d->pending & PT_PEND_FUP || (d->pending & PT_PEND_EXIT && !d->exit.pip);

	d->vmcs = (struct pt_address){ p->payload != none, p->address };
	pt_queue_close_exits(d, true);
	/* VMPTRLD is an instruction of root operation: an exit was concealed. */
	if (inside)
		d->pending |= PT_PEND_VMCS;
	else if (d->mode == VMT_PT_MODE_NONROOT && !(d->pending & PT_PEND_EXIT))
		pt_vm_learn(d, VMT_PT_MODE_ROOT);
	/* With an exit behind it the entry is over, and the VMCS is for the next one. */
	if (d->pending & PT_PEND_ENTRY && !(d->pending & PT_PEND_EXIT))
		d->guest_vmcs = d->vmcs;
}

static void take_evd(struct vmt_pt_decoder *d, struct pt_transition *t)
{
	if (!(d->pending & PT_PEND_EVD))
		return;
	t->evd = d->evd;
	t->evd.has_fault = false;
	if (!t->stamp.closed)
		t->stamp = d->evd.stamp;
	d->pending &= ~(uint32_t)PT_PEND_EVD;
}

void pt_vm_exit_cfe(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p, bool wants_ip)
{
	bool failed = d->pending & PT_PEND_EVD && d->evd.has_reason &&
		      d->evd.reason & VMX_REASON_ENTRY_FAILURE;
	bool from_root = d->pending & PT_PEND_EVD && d->evd.has_reason &&
			 d->evd.reason & VMX_REASON_FROM_ROOT;

	if (d->pending & PT_PEND_EXIT || !failed)
		pt_vm_settle(d, NULL);
	d->pending &= ~(uint32_t)PT_PEND_ENTRY;
	if (!failed && !from_root)
		come_from(d, VMT_PT_MODE_NONROOT);
	if (d->mode != VMT_PT_MODE_NONROOT && !failed) { /* its entry was not seen */
		d->guest_vmcs = d->vmcs;
		d->guest_cr3.known = false;
	}
	begin_exit(d);
	d->exit.cfe = true;
	d->counts.exit_cfes++;
	d->exit.failed = failed;
	d->exit.wants_ip = wants_ip;
	d->exit.has_vector = p->kind == VMT_PT_CFE_VMEXIT_INTR;
	d->exit.vector = p->vector;
	take_evd(d, &d->exit);
}

void pt_vm_entry_cfe(struct vmt_pt_decoder *d, const struct vmt_pt_packet *p, bool wants_ip)
{
	(void)p;
	pt_vm_settle(d, NULL);
	d->pending &= ~(uint32_t)PT_PEND_EVD;
	if (d->mode != VMT_PT_MODE_NONROOT && !d->outside)
		d->root_ran = true;
	begin_entry(d);
	d->entry.returns = d->pending & PT_PEND_RSM;
	d->entry.cfe = true;
	d->counts.entry_cfes++;
	d->entry.wants_ip = wants_ip;
}

void pt_vm_disabled(struct vmt_pt_decoder *d)
{
	if (d->mode != VMT_PT_MODE_NONROOT || d->root_ran || d->event_trace ||
	    !(d->pending & PT_PEND_FUP))
		return;
	begin_plain_exit(d);
	d->exit.pip = true;
}

void pt_vm_enabled(struct vmt_pt_decoder *d, const struct vmt_pt_packet *tip)
{
	bool first = d->pending & PT_PEND_ENABLE && d->mode == VMT_PT_MODE_NONROOT;

	/* Only the exit from a guest that is not traced switches tracing on again. */
	if (d->untraced)
		pt_vm_learn(d, VMT_PT_MODE_ROOT);
	if (!first && (!d->outside || d->root_ran))
		return;
	if (first) {
		struct pt_address cr3 = d->guest_cr3;

		d->mode = VMT_PT_MODE_ROOT;
		begin_entry(d);
		d->guest_cr3 = cr3;
	} else {
		struct pt_address cr3 = d->guest_cr3, vmcs = d->guest_vmcs;

		begin_entry(d);
		d->guest_cr3 = cr3;
		if (!d->vmcs.known)
			d->guest_vmcs = vmcs;
	}
	finish_entry(d, tip);
}
