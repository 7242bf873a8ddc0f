// SPDX-License-Identifier: LGPL-2.1-or-later
/* The packets of VM transitions under a plan, and a stream held against it. */
#include <stddef.h>
#include <string.h>

#include "vmx/pt_plan.h"
#include "vmx/rtit.h"

/* Conditions of a row; all bits must hold. */
enum condition {
	BRANCH = 1u << 0,
	EVENT = 1u << 1,
	SHOWN = 1u << 2, /* not concealed */
	SYSTEM = 1u << 3,
	GUEST = 1u << 4, /* guest-only */
	HOST = 1u << 5,	 /* host-only */
	MTC = 1u << 6,
};

static const struct expect_row {
	uint8_t transition;
	uint8_t needs;
	struct vmx_pt_expect expect;
} rows[] = {
	/* SDM vol. 3 table 33-53; 33.5.2.2; table 33-56 rows 2, 3, 11, 12 */
	{ VMX_PT_ON_ENTRY, SYSTEM | EVENT | SHOWN, { "CFE.VMENTRY(IP=1)", false, NULL } },
	{ VMX_PT_ON_ENTRY,
	  SYSTEM | EVENT | SHOWN,
	  { "FUP(IP of VMLAUNCH or VMRESUME)", false, NULL } },
	{ VMX_PT_ON_ENTRY, SYSTEM | SHOWN, { "PIP(guest CR3, NR=1)", false, NULL } },
	{ VMX_PT_ON_ENTRY,
	  SYSTEM | BRANCH,
	  { "MODE.Exec", true, "when CS.D or CS.L & IA32_EFER.LMA change" } },
	{ VMX_PT_ON_ENTRY, SYSTEM | BRANCH, { "TIP(guest RIP)", false, NULL } },
	{ VMX_PT_ON_ENTRY, GUEST, { "PSB+", true, "when IA32_RTIT_STATUS.PacketByteCnt is 0" } },
	{ VMX_PT_ON_ENTRY, GUEST, { "TSC(guest TSC)", false, NULL } },
	{ VMX_PT_ON_ENTRY, GUEST | MTC, { "TMA", false, NULL } },
	{ VMX_PT_ON_ENTRY, GUEST, { "CBR", false, NULL } },
	{ VMX_PT_ON_ENTRY, GUEST | SHOWN, { "PIP(guest CR3, NR=1)", false, NULL } },
	{ VMX_PT_ON_ENTRY, GUEST | BRANCH, { "MODE.Exec", false, NULL } },
	{ VMX_PT_ON_ENTRY, GUEST | BRANCH, { "TIP.PGE(guest RIP)", false, NULL } },
	{ VMX_PT_ON_ENTRY, HOST | BRANCH, { "TIP.PGD()", false, NULL } },

	{ VMX_PT_ON_EXIT, SYSTEM | EVENT | SHOWN, { "EVD.VMXQ(qualification)", false, NULL } },
	{ VMX_PT_ON_EXIT, SYSTEM | EVENT | SHOWN, { "EVD.VMXR(reason)", false, NULL } },
	{ VMX_PT_ON_EXIT,
	  SYSTEM | EVENT | SHOWN,
	  { "CFE.VMEXIT or CFE.VMEXIT_INTR(vector)", false, NULL } },
	{ VMX_PT_ON_EXIT, SYSTEM | EVENT | SHOWN, { "FUP(guest RIP)", false, NULL } },
	{ VMX_PT_ON_EXIT, SYSTEM | BRANCH, { "FUP(guest RIP)", false, NULL } },
	{ VMX_PT_ON_EXIT, SYSTEM | SHOWN, { "PIP(host CR3, NR=0)", false, NULL } },
	{ VMX_PT_ON_EXIT,
	  SYSTEM | BRANCH,
	  { "MODE.Exec", true, "when CS.D or CS.L & IA32_EFER.LMA change" } },
	{ VMX_PT_ON_EXIT, SYSTEM | BRANCH, { "TIP(host RIP)", false, NULL } },
	{ VMX_PT_ON_EXIT, GUEST | EVENT | SHOWN, { "EVD.VMXQ(qualification)", false, NULL } },
	{ VMX_PT_ON_EXIT, GUEST | EVENT | SHOWN, { "EVD.VMXR(reason)", false, NULL } },
	{ VMX_PT_ON_EXIT,
	  GUEST | EVENT | SHOWN,
	  { "CFE.VMEXIT or CFE.VMEXIT_INTR(vector)", false, NULL } },
	{ VMX_PT_ON_EXIT, GUEST | EVENT | SHOWN, { "FUP(guest RIP)", false, NULL } },
	{ VMX_PT_ON_EXIT, GUEST | BRANCH, { "FUP(guest RIP)", false, NULL } },
	{ VMX_PT_ON_EXIT, GUEST | SHOWN, { "PIP(host CR3, NR=0)", true, "before TIP.PGD" } },
	{ VMX_PT_ON_EXIT, GUEST | BRANCH, { "TIP.PGD()", false, NULL } },
	{ VMX_PT_ON_EXIT, HOST | BRANCH, { "MODE.Exec", true, "when it differs" } },
	{ VMX_PT_ON_EXIT, HOST | BRANCH, { "TIP.PGE(host RIP)", false, NULL } },

	/* 33.5.1: SMM VM exits and VM entries that return from SMM */
	{ VMX_PT_ON_SMM_EXIT, SYSTEM | SHOWN, { "VMCS", false, NULL } },

	/* table 33-54; what may be missing is not marked in its text */
	{ VMX_PT_ON_EARLY_FAILURE, SYSTEM | BRANCH, { "TIP(next IP)", false, NULL } },
	{ VMX_PT_ON_EARLY_FAILURE, HOST | BRANCH, { "TIP(next IP)", false, NULL } },
	{ VMX_PT_ON_LATE_FAILURE, SYSTEM | EVENT | SHOWN, { "CFE.VMENTRY", false, NULL } },
	{ VMX_PT_ON_LATE_FAILURE,
	  SYSTEM | EVENT | SHOWN,
	  { "FUP(IP of VMLAUNCH or VMRESUME)", false, NULL } },
	{ VMX_PT_ON_LATE_FAILURE,
	  SYSTEM | SHOWN,
	  { "PIP(guest CR3, NR=1)", true, "by implementation and point of failure" } },
	{ VMX_PT_ON_LATE_FAILURE,
	  SYSTEM | SHOWN,
	  { "PIP(host CR3, NR=0)", true, "by implementation and point of failure" } },
	{ VMX_PT_ON_LATE_FAILURE, SYSTEM | BRANCH, { "TIP(host RIP)", false, NULL } },
	{ VMX_PT_ON_LATE_FAILURE,
	  HOST | BRANCH,
	  { "TSC, CBR", true, "by implementation and point of failure" } },
	{ VMX_PT_ON_LATE_FAILURE, HOST | BRANCH, { "TIP(host RIP)", false, NULL } },

	/* 33.3.7, 33.5.1 */
	{ VMX_PT_ON_PSB_ROOT, SYSTEM, { "PIP(CR3, NR=0)", false, NULL } },
	{ VMX_PT_ON_PSB_ROOT, HOST, { "PIP(CR3, NR=0)", false, NULL } },
	{ VMX_PT_ON_PSB_ROOT, SYSTEM, { "VMCS", false, NULL } },
	{ VMX_PT_ON_PSB_ROOT, HOST, { "VMCS", false, NULL } },
	{ VMX_PT_ON_PSB_NONROOT, SYSTEM | SHOWN, { "PIP(CR3, NR=1)", false, NULL } },
	{ VMX_PT_ON_PSB_NONROOT, GUEST | SHOWN, { "PIP(CR3, NR=1)", false, NULL } },
	{ VMX_PT_ON_PSB_NONROOT, SYSTEM, { "PIP(CR3, NR=0)", false, "NR is concealed" } },
	{ VMX_PT_ON_PSB_NONROOT, GUEST, { "PIP(CR3, NR=0)", false, "NR is concealed" } },
	{ VMX_PT_ON_PSB_NONROOT, SYSTEM | SHOWN, { "VMCS", false, NULL } },
	{ VMX_PT_ON_PSB_NONROOT, GUEST | SHOWN, { "VMCS", false, NULL } },
	{ VMX_PT_ON_VMPTRLD, SYSTEM, { "VMCS", false, NULL } },
	{ VMX_PT_ON_VMPTRLD, HOST, { "VMCS", false, NULL } },
};

static unsigned int conditions(const struct vmx_pt_plan *plan)
{
	static const uint8_t of_mode[VMX_PT_MODES] = { SYSTEM, GUEST, HOST };
	const struct vmx_pt_request *r = &plan->request;
	unsigned int c = of_mode[r->mode];

	c |= r->no_branches ? 0 : BRANCH;
	c |= r->event_trace ? EVENT : 0;
	c |= r->conceal ? 0 : SHOWN;
	c |= plan->root_ctl & VMX_RTIT_MTC_EN ? MTC : 0;
	return c;
}

/* Two rows may ask for one packet, on different grounds: the first one counts. */
static bool is_twin(const struct vmx_pt_expect *list, unsigned int nr, const char *packet)
{
	const size_t kind = strcspn(packet, ",");

	for (unsigned int i = 0; i < nr; i++) {
		if (!strncmp(list[i].packet, packet, kind))
			return true;
	}
	return false;
}

unsigned int vmx_pt_plan_expect(const struct vmx_pt_plan *plan, enum vmx_pt_transition transition,
				struct vmx_pt_expect out[VMX_PT_EXPECT_MAX])
{
	const unsigned int have = conditions(plan);
	unsigned int nr = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].transition != transition || rows[i].needs & ~have ||
		    is_twin(out, nr, rows[i].expect.packet) || nr == VMX_PT_EXPECT_MAX)
			continue;
		out[nr++] = rows[i].expect;
	}
	return nr;
}

/* What a stream says against a plan: `seen` has the member, and the plan holds otherwise. */
unsigned int vmx_pt_plan_compare(const struct vmx_pt_plan *plan, const struct vmx_pt_seen *seen,
				 const char *texts[VMX_PT_PROBLEMS_MAX])
{
	const struct vmx_pt_request *r = &plan->request;
	const bool shown = !r->conceal, events = r->event_trace && shown;
	const bool ran = seen->nonroot || seen->guest_ran;
	const struct {
		bool differs;
		const char *text;
	} checks[] = {
		{ r->conceal && seen->nonroot,
		  "PIP has NR=1: bit 19 of the secondary processor-based controls seems to be 0" },
		{ r->conceal && seen->exit_event, "VM exits make CFE or EVD packets: bit 24 of the "
						  "VM-exit controls seems to be 0" },
		{ r->conceal && seen->entry_event,
		  "VM entries make CFE packets: bit 17 of the VM-entry controls seems to be 0" },
		{ shown && seen->guest_ran && !seen->nonroot && r->mode == VMX_PT_SYSTEM,
		  "a guest ran and no PIP has NR=1: bit 19 of the secondary processor-based "
		  "controls seems to be 1 on this host" },
		{ shown && seen->nonroot && !seen->exit_pip && r->mode == VMX_PT_SYSTEM,
		  "no PIP goes from NR=1 to NR=0: bit 24 of the VM-exit controls seems to be 1 on "
		  "this host" },
		{ events && ran && seen->entry_event && !seen->exit_event,
		  "VM entries make CFE packets and VM exits none: bit 24 of the VM-exit controls "
		  "seems to be 1 on this host" },
		{ events && ran && seen->exit_event && !seen->entry_event &&
			  r->mode == VMX_PT_SYSTEM,
		  "VM exits make CFE packets and VM entries none: bit 17 of the VM-entry controls "
		  "seems to be 1 on this host" },
		{ r->event_trace && !seen->event_trace && ran,
		  "no CFE or EVD packet is in the stream: EventEn seems to be 0" },
		{ !r->event_trace && seen->event_trace,
		  "CFE or EVD packets are in the stream: EventEn seems to be 1" },
		{ r->mode == VMX_PT_HOST_ONLY && seen->nonroot,
		  "PIP has NR=1: IA32_RTIT_CTL.TraceEn seems to be 1 in VMX non-root operation" },
		{ r->mode == VMX_PT_SYSTEM && ran && !seen->nonroot && seen->enabled && shown,
		  "tracing was off while a guest ran: TraceEn seems to be 0 in VMX non-root "
		  "operation (pt_mode=1, or IA32_VMX_MISC[14] is 0)" },
	};
	unsigned int nr = 0;

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		if (checks[i].differs)
			texts[nr++] = checks[i].text;
	}
	return nr;
}

const char *vmx_pt_transition_name(enum vmx_pt_transition transition)
{
	static const char *const names[VMX_PT_TRANSITIONS] = {
		"VM entry",
		"VM exit",
		"SMM VM exit, and VM entry that returns from SMM",
		"VM entry that fails early",
		"VM entry that fails late",
		"PSB+ in VMX root operation",
		"PSB+ in VMX non-root operation",
		"VMPTRLD",
	};

	return names[transition];
}
