// SPDX-License-Identifier: LGPL-2.1-or-later
/* The rule about Intel PT: is it traced as the capture wants it? */
#include <stdio.h>

#include "decode/analyze/rules.h"

#define U(x) ((unsigned long long)(x))

static void tell_stream(const struct vmt_input_facts *facts, unsigned int nth,
			struct vmt_verdict *out)
{
	const struct vmt_pt_controls *c = &facts->pt_controls;

	snprintf(out->text, sizeof(out->text), "The Intel PT stream is not as planned: %s.",
		 facts->pt_differs[nth]);
	snprintf(out->evidence, sizeof(out->evidence), "%s tracing%s, %s",
		 vmx_pt_mode_name(c->mode), c->conceal ? ", concealed" : "",
		 c->known ? "as the session document says" : "which is what perf does");
}

static void tell_word(const struct vmt_pt_controls *c, const struct vmx_pt_control *planned,
		      struct vmt_verdict *out)
{
	snprintf(out->text, sizeof(out->text),
		 "VMX controls are not as planned: bit %u of the %s controls (%s) was %d at VM "
		 "entries.",
		 planned->bit, vmx_ctl_word_name(planned->word), planned->name, !planned->value);
	snprintf(out->evidence, sizeof(out->evidence), "%llu VM entries of %zu vCPUs, read back",
		 U(c->entries), c->nr_vcpus);
}

static bool is_untraced(const struct vmt_pt_controls *c)
{
	return c->known && (c->untraced || c->left || c->rewritten);
}

static void tell_untraced(const struct vmt_pt_controls *c, struct vmt_verdict *out)
{
	snprintf(out->text, sizeof(out->text),
		 "Not every VM entry had the VMX controls for Intel PT.");
	snprintf(out->evidence, sizeof(out->evidence),
		 "%llu entries with; %llu without, since no trace ran; %llu in which the guest "
		 "traces itself; %llu whose words KVM wrote anew",
		 U(c->entries), U(c->untraced), U(c->left), U(c->rewritten));
}

bool vmt_rule_pt_controls(const struct vmt_verdict_facts *f, unsigned int nth,
			  struct vmt_verdict *out, double *score)
{
	const struct vmt_input_facts *facts = f->report->facts;
	const struct vmt_pt_controls *c = &facts->pt_controls;
	const unsigned int streams = facts->nr_pt_differs;
	struct vmx_pt_control planned;

	out->severity = VMT_SEVERITY_WARN;
	*score = 0;
	if (nth < streams) {
		tell_stream(facts, nth, out);
	} else if (vmt_pt_controls_differ(c, nth - streams, &planned)) {
		tell_word(c, &planned, out);
	} else if (is_untraced(c) &&
		   (nth == streams || vmt_pt_controls_differ(c, nth - streams - 1, &planned))) {
		out->severity = VMT_SEVERITY_NOTE;
		tell_untraced(c, out);
	} else {
		return false;
	}
	snprintf(out->remedy, sizeof(out->remedy),
		 "vmtrace vmx plan shows the controls and the packets to expect; somebody else may "
		 "set them: kvm_intel pt_mode, another hypervisor, a loaded module.");
	return true;
}
