// SPDX-License-Identifier: LGPL-2.1-or-later
/* Rules about the capture and the guest: what is missing, and what the figures mean. */
#include "decode/analyze/rules.h"

#include <stdio.h>
#include <string.h>

#define U(x) ((unsigned long long)(x))

bool vmt_rule_tsc_writes(const struct vmt_verdict_facts *f, unsigned int nth,
			 struct vmt_verdict *out, double *score)
{
	double rate = vmt_verdict_rate(f, f->tsc_writes);

	if (nth || f->tsc_writes == 0)
		return false;
	*score = 0;
	out->severity = rate >= TSC_WRITE_WARN ? VMT_SEVERITY_WARN : VMT_SEVERITY_NOTE;
	snprintf(out->text, sizeof(out->text),
		 "KVM changed TSC offsets (%llu x): guest time jumped or was set.",
		 U(f->tsc_writes));
	snprintf(out->evidence, sizeof(out->evidence), "%llu kvm_write_tsc_offset, %.1f/s",
		 U(f->tsc_writes), rate);
	snprintf(
		out->remedy, sizeof(out->remedy),
		rate >= TSC_WRITE_WARN
			? "Offsets that move all the time mean catch-up: the guest's TSC is faster "
			  "than the host's and the CPU has no scaling. Drop the domain's TSC "
			  "frequency."
			: "Usual at boot, resume and migration; in between look for a guest that "
			  "writes IA32_TSC or IA32_TSC_ADJUST.");
	return true;
}

bool vmt_rule_truncated(const struct vmt_verdict_facts *f, unsigned int nth,
			struct vmt_verdict *out, double *score)
{
	const struct vmt_report *r = f->report;

	if (nth || !r->ledger.truncated)
		return false;
	*score = 0;
	out->severity = VMT_SEVERITY_WARN;
	snprintf(out->text, sizeof(out->text),
		 "The capture is cut off: it ends in the middle, what came after is not in it.");
	snprintf(out->evidence, sizeof(out->evidence),
		 "%llu of %llu bytes were read as records; the last event is at %.3f s",
		 U(r->ledger.bytes_decoded), U(r->ledger.bytes_total), f->seconds);
	snprintf(out->remedy, sizeof(out->remedy),
		 "Was the recorder killed, or the disk full? All figures hold for the part that is "
		 "there.");
	return true;
}

bool vmt_rule_loss(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		   double *score)
{
	const struct vmt_report *r = f->report;
	double records =
		vmt_rule_ratio(r->ledger.records_lost, r->ledger.records_lost + r->records);
	double bytes = vmt_rule_ratio(r->ledger.bytes_skipped, r->ledger.bytes_total);

	if (nth || r->ledger.records_lost + r->ledger.bytes_skipped + r->ledger.overflows == 0)
		return false;
	*score = 0;
	out->severity = vmt_rule_grade(records > bytes ? records : bytes, LOSS_WARN, LOSS_CRIT);
	snprintf(out->text, sizeof(out->text),
		 "Events are missing: %llu records were lost (%.2f %%) and %llu bytes could not be "
		 "read (%.2f %%).",
		 U(r->ledger.records_lost), records * 100, U(r->ledger.bytes_skipped), bytes * 100);
	snprintf(
		out->evidence, sizeof(out->evidence),
		"losses: %llu, overflows: %llu; no duration is counted across a loss, that time is "
		"residual",
		U(f->losses), U(r->ledger.overflows));
	snprintf(out->remedy, sizeof(out->remedy),
		 r->ledger.records_lost
			 ? "Record with a larger --buffer, to a faster disk, or fewer domains at "
			   "once."
			 : "The file is damaged: copy it again from where it was recorded.");
	return true;
}

bool vmt_rule_nested(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		     double *score)
{
	double share = vmt_rule_ratio(f->report->nested_exits, f->report->exits);

	if (nth || share < NESTED_NOTE)
		return false;
	*score = 0;
	out->severity = VMT_SEVERITY_NOTE;
	snprintf(out->text, sizeof(out->text),
		 "The guest runs virtual machines itself: %.1f %% of the exits come from them.",
		 share * 100);
	snprintf(out->evidence, sizeof(out->evidence), "%llu of %llu exits are nested",
		 U(f->report->nested_exits), U(f->report->exits));
	snprintf(out->remedy, sizeof(out->remedy),
		 "Each exit of an inner machine costs several outer ones; rows marked nested are "
		 "theirs. enable_shadow_vmcs and nested EPT must be on.");
	return true;
}

bool vmt_rule_concealed(const struct vmt_verdict_facts *f, unsigned int nth,
			struct vmt_verdict *out, double *score)
{
	if (nth || f->concealed_rips == 0)
		return false;
	*score = 0;
	out->severity = VMT_SEVERITY_NOTE;
	snprintf(out->text, sizeof(out->text),
		 "A protected guest (SEV-ES, SEV-SNP or TDX): its instruction pointers are not "
		 "visible to the host.");
	snprintf(out->evidence, sizeof(out->evidence), "%llu exits without a guest RIP",
		 U(f->concealed_rips));
	snprintf(out->remedy, sizeof(out->remedy),
		 "Reasons, keys and times are complete; use a profiler inside the guest for "
		 "addresses.");
	return true;
}

bool vmt_rule_nothing(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		      double *score)
{
	const struct vmt_report *r = f->report;

	if (nth || r->exits + r->failed_entries > 0)
		return false;
	*score = 0;
	out->severity = VMT_SEVERITY_WARN;
	snprintf(out->text, sizeof(out->text), "No VM exit is in the capture.");
	snprintf(out->evidence, sizeof(out->evidence), "%llu entries, %llu events in %.3f s",
		 U(r->entries), U(r->records), f->seconds);
	snprintf(out->remedy, sizeof(out->remedy),
		 "Was the domain running, was kvm:kvm_exit recorded, and do --domain, --vcpu and "
		 "--time leave something over?");
	return true;
}
