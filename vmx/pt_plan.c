// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The plan: six controls by mode and conceal, each held against the allowed-0/allowed-1 rule, and
 * IA32_RTIT_CTL on both sides of a VM transition.
 */
#include "vmx/pt_plan.h"

#include <stddef.h>
#include <string.h>

#include "vmx/rtit.h"

#define MTC_FREQ_USUAL 3u /* what Linux takes */

/* A control is 1 where the mask of its row has the request's column. */
enum column {
	ALWAYS_0 = 0,
	CONCEAL = 1u << 0,    /* with conceal, in any mode */
	GUEST_ONLY = 1u << 1, /* guest-only by controls */
};

static const struct control_row {
	enum vmx_ctl_word word;
	uint8_t bit;
	uint8_t when; /* enum column */
	const char *name;
} control_rows[VMX_PT_CONTROLS] = {
	/* SDM vol. 3 table 33-52, 25.6.2, 25.7.1, 25.8.1 */
	{ VMX_CTL_PROC2, 19, CONCEAL, "conceal VMX from PT" },
	{ VMX_CTL_PROC2, 24, ALWAYS_0, "Intel PT uses guest physical addresses" },
	{ VMX_CTL_EXIT, 24, CONCEAL, "conceal VMX from PT" },
	{ VMX_CTL_EXIT, 25, GUEST_ONLY, "clear IA32_RTIT_CTL" },
	{ VMX_CTL_ENTRY, 17, CONCEAL, "conceal VMX from PT" },
	{ VMX_CTL_ENTRY, 18, GUEST_ONLY, "load IA32_RTIT_CTL" },
};

static void problem(struct vmx_pt_plan *plan, bool fails, const char *text)
{
	plan->entry_fails = plan->entry_fails || fails;
	plan->unsure = plan->unsure || !fails;
	if (plan->nr_problems < VMX_PT_PROBLEMS_MAX)
		plan->problems[plan->nr_problems++] = text;
}

static void note(struct vmx_pt_plan *plan, const char *text)
{
	if (plan->nr_notes < VMX_PT_PROBLEMS_MAX)
		plan->notes[plan->nr_notes++] = text;
}

/* ---- controls ---- */

static enum vmx_pt_verdict judge(const struct vmx_pt_caps *caps, enum vmx_ctl_word word,
				 unsigned int bit, bool value)
{
	uint32_t must, may;

	if (!vmx_ctl_allowed(caps, word, &must, &may))
		return VMX_PT_UNKNOWN;
	return (value ? may >> bit & 1 : ~must >> bit & 1) ? VMX_PT_FITS : VMX_PT_REFUSED;
}

/* Whether guest-only tracing can be had by the two controls for IA32_RTIT_CTL. */
static bool has_load_and_clear(const struct vmx_pt_caps *caps)
{
	return judge(caps, VMX_CTL_ENTRY, 18, true) != VMX_PT_REFUSED &&
	       judge(caps, VMX_CTL_EXIT, 25, true) != VMX_PT_REFUSED;
}

static void set_controls(const struct vmx_pt_caps *caps, struct vmx_pt_plan *plan)
{
	unsigned int columns = plan->request.conceal ? CONCEAL : 0;
	bool refused = false, unknown = false;

	if (plan->request.mode == VMX_PT_GUEST_ONLY && !plan->msr_lists)
		columns |= GUEST_ONLY;
	for (unsigned int i = 0; i < VMX_PT_CONTROLS; i++) {
		const struct control_row *row = &control_rows[i];
		bool value = row->when & columns;
		enum vmx_pt_verdict verdict = judge(caps, row->word, row->bit, value);

		plan->controls[i] =
			(struct vmx_pt_control){ row->word, row->bit, row->name, value, verdict };
		refused = refused || verdict == VMX_PT_REFUSED;
		unknown = unknown || (value && verdict == VMX_PT_UNKNOWN);
	}
	if (refused)
		problem(plan, true,
			"a control has a value that this CPU does not allow: VM entry fails with "
			"VM-instruction error 7");
	if (unknown)
		problem(plan, false,
			"the capability MSRs of a control that is to be 1 are not known");
}

/* ---- IA32_RTIT_CTL ---- */

static uint64_t timing(const struct vmx_pt_caps *caps, struct vmx_pt_plan *plan)
{
	const bool period =
		caps->leaf14_1.known && caps->leaf14_1.reg[VMX_EAX] >> (16 + MTC_FREQ_USUAL) & 1;

	if (vmx_pt_caps_bit(caps, VMX_EBX, VMX_PT_EBX_MTC) != VMX_YES || !period)
		return VMX_RTIT_TSC_EN;
	if (caps->tma_wrong_in_nonroot) {
		note(plan, "MTC stays off: TMA packets in VMX non-root operation are wrong on this "
			   "CPU (erratum SKZ84)");
		return VMX_RTIT_TSC_EN;
	}
	return VMX_RTIT_TSC_EN | VMX_RTIT_MTC_EN | (uint64_t)MTC_FREQ_USUAL << VMX_RTIT_MTC_FREQ;
}

static uint64_t rtit_ctl(const struct vmx_pt_caps *caps, struct vmx_pt_plan *plan)
{
	uint64_t ctl = VMX_RTIT_TRACE_EN | VMX_RTIT_OS | VMX_RTIT_USER | timing(caps, plan);

	if (vmx_pt_caps_bit(caps, VMX_ECX, VMX_PT_ECX_TOPA) != VMX_NO)
		ctl |= VMX_RTIT_TOPA;
	if (!plan->request.no_branches)
		ctl |= VMX_RTIT_BRANCH_EN;
	if (plan->request.event_trace)
		ctl |= VMX_RTIT_EVENT_EN;
	return ctl;
}

static void set_ctl(const struct vmx_pt_caps *caps, struct vmx_pt_plan *plan)
{
	const uint64_t on = rtit_ctl(caps, plan);
	const bool guest = plan->request.mode != VMX_PT_HOST_ONLY;
	const bool root = plan->request.mode != VMX_PT_GUEST_ONLY;

	plan->has_root_ctl = true;
	plan->root_ctl = root ? on : on & ~VMX_RTIT_TRACE_EN;
	plan->has_guest_ctl = plan->request.mode != VMX_PT_SYSTEM;
	plan->guest_ctl = guest ? on : on & ~VMX_RTIT_TRACE_EN;
}

/* ---- what is in the way ---- */

static void check_cpu(const struct vmx_pt_caps *caps, struct vmx_pt_plan *plan)
{
	const struct vmx_pt_request *r = &plan->request;
	enum vmx_known pt = vmx_pt_caps_pt(caps), in_vmx = vmx_pt_caps_in_vmx(caps);
	enum vmx_known event = vmx_pt_caps_bit(caps, VMX_EBX, VMX_PT_EBX_EVENT);

	if (pt == VMX_NO)
		problem(plan, true, "the CPU has no Intel PT (CPUID.7.0:EBX[25] is 0)");
	if (pt == VMX_NO)
		return;
	if (pt == VMX_UNKNOWN)
		problem(plan, false, "whether the CPU has Intel PT is not known (CPUID.7)");
	if (in_vmx == VMX_NO)
		problem(plan, true,
			"Intel PT cannot be used in VMX operation (IA32_VMX_MISC[14] is 0): VMXON "
			"clears TraceEn");
	if (in_vmx == VMX_UNKNOWN)
		problem(plan, false,
			"whether Intel PT can be used in VMX operation is not known "
			"(IA32_VMX_MISC)");
	if (r->event_trace && event == VMX_NO)
		problem(plan, true,
			"the CPU has no Event Trace (CPUID.14H.0:EBX[7] is 0): EventEn raises #GP");
	if (r->event_trace && event == VMX_UNKNOWN)
		problem(plan, false, "whether the CPU has Event Trace is not known (CPUID.14H)");
	if (r->no_branches && caps->needs_branch_en)
		problem(plan, true, "this CPU raises #GP when BranchEn is 0 (erratum BDM106)");
}

static void add_notes(struct vmx_pt_plan *plan)
{
	const struct vmx_pt_request *r = &plan->request;

	if (r->mode == VMX_PT_GUEST_ONLY && !plan->msr_lists) {
		note(plan, "TraceEn must be 0 in VMX root operation at each VM entry: with \"load "
			   "IA32_RTIT_CTL\" VM entry fails otherwise (SDM 27.2.1.1)");
		note(plan, "VM exit stores IA32_RTIT_CTL to field 2814H before it clears it: write "
			   "the field again for a fixed value");
	}
	if (plan->msr_lists)
		note(plan, "an entry for MSR 570H in the VM-entry and in the VM-exit MSR-load list "
			   "writes IA32_RTIT_CTL");
	if (r->conceal && !r->event_trace && r->no_branches)
		note(plan, "without BranchEn, Event Trace and VMX packets next to nothing is left "
			   "in the stream");
	if (r->conceal && r->mode == VMX_PT_SYSTEM)
		note(plan, "a decoder cannot tell host from guest in this stream by its packets");
	if (!r->event_trace)
		note(plan, "without Event Trace an exit has no reason, qualification and vector in "
			   "the stream: the kvm_exit tracepoint gives them");
}

void vmx_pt_plan_make(const struct vmx_pt_request *request, const struct vmx_pt_caps *caps,
		      struct vmx_pt_plan *plan)
{
	memset(plan, 0, sizeof(*plan));
	plan->request = *request;
	plan->msr_lists = request->mode == VMX_PT_HOST_ONLY ||
			  (request->mode == VMX_PT_GUEST_ONLY && !has_load_and_clear(caps));
	check_cpu(caps, plan);
	set_controls(caps, plan);
	set_ctl(caps, plan);
	add_notes(plan);
}

void vmx_pt_plan_word(const struct vmx_pt_plan *plan, enum vmx_ctl_word word, uint32_t *set,
		      uint32_t *clear)
{
	*set = *clear = 0;
	for (unsigned int i = 0; i < VMX_PT_CONTROLS; i++) {
		const struct vmx_pt_control *c = &plan->controls[i];

		if (c->word == word)
			*(c->value ? set : clear) |= 1u << c->bit;
	}
}

const char *vmx_pt_mode_name(enum vmx_pt_mode mode)
{
	static const char *const names[VMX_PT_MODES] = { "system", "guest-only", "host-only" };

	return names[mode];
}

const char *vmx_ctl_word_name(enum vmx_ctl_word word)
{
	static const char *const names[VMX_CTL_WORDS] = {
		"primary processor-based",
		"secondary processor-based",
		"VM-exit",
		"VM-entry",
	};

	return names[word];
}
