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
	bool often = rate >= TSC_WRITE_WARN && f->tsc_writes >= TSC_WRITE_MIN;

	if (nth || f->tsc_writes == 0)
		return false;
	*score = 0;
	out->severity = often ? VMT_SEVERITY_WARN : VMT_SEVERITY_NOTE;
	snprintf(out->text, sizeof(out->text),
		 "KVM changed TSC offsets (%llu x): guest time jumped or was set.",
		 U(f->tsc_writes));
	snprintf(out->evidence, sizeof(out->evidence), "%llu kvm_write_tsc_offset, %.1f/s",
		 U(f->tsc_writes), rate);
	snprintf(out->remedy, sizeof(out->remedy),
		 often ? "Offsets that move all the time mean catch-up: the guest's TSC is faster "
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
	char decoded[28], total[28];

	if (nth || !r->ledger.truncated)
		return false;
	*score = 0;
	if (r->recording) {
		out->severity = VMT_SEVERITY_NOTE;
		snprintf(out->text, sizeof(out->text),
			 "The capture is still being recorded: this is what is in it so far.");
		snprintf(out->evidence, sizeof(out->evidence),
			 "a running session writes the file; the last event is at %.3f s",
			 (double)(r->stop_ns - r->base_ns) / 1e9);
		snprintf(
			out->remedy, sizeof(out->remedy),
			"Look again later, or vmtrace stop for the whole; vmtrace snapshot makes a "
			"copy that does not change.");
		return true;
	}
	out->severity = VMT_SEVERITY_WARN;
	snprintf(out->text, sizeof(out->text),
		 "The capture is cut off: it ends in the middle, what came after is not in it.");
	snprintf(out->evidence, sizeof(out->evidence),
		 "%s of %s bytes were read as records; the last event is at %.3f s",
		 vmt_verdict_number(decoded, sizeof(decoded), r->ledger.bytes_decoded),
		 vmt_verdict_number(total, sizeof(total), r->ledger.bytes_total),
		 (double)(r->stop_ns - r->base_ns) / 1e9);
	snprintf(out->remedy, sizeof(out->remedy),
		 "Was the recorder killed, or the disk full? All figures hold for the part that is "
		 "there.");
	return true;
}

/* What a kind of loss means and what to do. */
static const struct loss_row {
	const char *kind; /* of struct vmt_input_loss */
	bool graded;	  /* by its share; else a warning */
	const char *text; /* behind "Events are missing: " */
	const char *remedy;
} loss_rows[] = {
	{ "ring", true, "the kernel's buffers overflowed.",
	  "Record with a larger --buffer, to a faster disk, or fewer domains at once." },
	{ "ring-full", true, "the kernel's buffers overflowed.",
	  "Record with a larger --buffer, to a faster disk, or fewer domains at once." },
	{ "overflow", true, "the kernel's buffers overflowed.",
	  "Record with a larger --buffer, to a faster disk, or fewer domains at once." },
	{ "pt-overflow", true, "the processor's trace buffer overflowed.",
	  "Trace less: without CYC packets, with BranchEn=0, or with an address filter." },
	{ "pt-gap", true, "a stretch of the processor trace is missing.",
	  "Record with a larger AUX buffer, to a faster disk, or less of the machine." },
	{ "pt-undecodable", true, "a stretch of the processor trace is no PT packet.",
	  "Say the processor with --cpu-id, whose errata may be the cause, and look at the place "
	  "with decode pt." },
	{ "aux-truncated", true, "a buffer of the processor trace was full, and tracing stopped.",
	  "Record with a larger AUX buffer (perf record -m ,64M), or less of the machine." },
	{ "aux-partial", true, "the processor trace has gaps where a guest ran untraced.",
	  "kvm_intel pt_mode=0 traces guests together with the host." },
	{ "aux-collision", true, "another user of the trace hardware disturbed the recording.",
	  "Record the processor trace with one tool at a time." },
	{ "throttled", true, "the kernel throttled the recording.",
	  "Raise kernel.perf_event_max_sample_rate." },
	{ "size-limit", false, "the capture reached its size limit and ended there.",
	  "Give a larger --limit, or --keep TIME to keep the newest records instead. What is "
	  "before "
	  "the limit is complete." },
	{ "free-space", false,
	  "recording ended to leave the file system the free space that it needs.",
	  "Free some space, or write to another file system with -o; --keep TIME bounds the "
	  "file." },
	{ "no-space", false, "the file system was full.",
	  "Free some space, or write to another file system with -o; --keep TIME bounds the "
	  "file." },
	{ "io-error", false, "the disk refused to write.",
	  "Look for errors of the disk or the network file system in the host's kernel log." },
	{ "unsupported", false, "parts of the file are of a kind that this version does not read.",
	  "Read it with the version of vmtrace that recorded it." },
	{ "spool-full", true, "the rest of the pipe found no room in a temporary file.",
	  "Set TMPDIR to a larger file system, or store the input in a file first." },
	{ "aux-limit", true, "the file has more buffers of processor trace than are read.",
	  "Record with a larger AUX buffer, or for a shorter time." },
	{ "auxtrace", false, "AUX data of the perf.data that is not Intel PT is not read.",
	  "The figures come from the tracepoints and do not need it." },
};

static const struct loss_row damaged_row = {
	.graded = true,
	.text = "a part of the file is damaged.",
	.remedy = "Copy the file again from where it was recorded; what is before and behind the "
		  "damage is used."
};

/* Losses that a rule tells: the end that is cut off has a rule of its own. */
static bool is_told(const struct vmt_input_loss *loss)
{
	return strcmp(loss->kind, "truncated") != 0 && strcmp(loss->kind, "after-end") != 0 &&
	       (loss->records || loss->bytes || loss->times);
}

/*
 * The nth loss: the kinds that the input told, then what the ledger has beyond them (records that
 * could not be decoded, and everything of an input that tells no kinds).
 */
static bool nth_loss(const struct vmt_report *r, unsigned int nth, struct vmt_input_loss *out)
{
	struct vmt_input_loss rest = { .kind = r->ledger.records_lost ? "ring" : "damaged",
				       .records = r->ledger.records_lost,
				       .bytes = r->ledger.bytes_skipped,
				       .times = r->ledger.overflows };

	for (size_t i = 0; i < r->facts->nr_losses; i++) {
		const struct vmt_input_loss *l = &r->facts->losses[i];

		rest.records -= l->records < rest.records ? l->records : rest.records;
		rest.bytes -= l->bytes < rest.bytes ? l->bytes : rest.bytes;
		rest.times = 0;
		if (is_told(l) && nth-- == 0) {
			*out = *l;
			return true;
		}
	}
	if (r->facts->nr_losses && !rest.records)
		rest.kind = "damaged";
	*out = rest;
	return nth == 0 && (rest.records || rest.bytes || rest.times);
}

static const struct loss_row *loss_row_of(const char *kind)
{
	for (size_t i = 0; i < sizeof(loss_rows) / sizeof(loss_rows[0]); i++) {
		if (!strcmp(loss_rows[i].kind, kind))
			return &loss_rows[i];
	}
	return &damaged_row;
}

bool vmt_rule_loss(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		   double *score)
{
	const struct vmt_report *r = f->report;
	const struct loss_row *row;
	struct vmt_input_loss loss;
	char lost[28], skipped[28], times[28];
	double records, bytes;

	if (!nth_loss(r, nth, &loss))
		return false;
	row = loss_row_of(loss.kind);
	records = vmt_rule_ratio(loss.records, loss.records + r->records);
	bytes = vmt_rule_ratio(loss.bytes, r->ledger.bytes_total);
	*score = 0;
	out->severity = VMT_SEVERITY_WARN;
	if (row->graded)
		out->severity =
			vmt_rule_grade(records > bytes ? records : bytes, LOSS_WARN, LOSS_CRIT);
	else if (!strcmp(loss.kind, "auxtrace"))
		out->severity = VMT_SEVERITY_NOTE;
	snprintf(out->text, sizeof(out->text), "Events are missing: %s", row->text);
	snprintf(out->evidence, sizeof(out->evidence),
		 "%s (%s x): %s records (%.2f %% of all), %s bytes; no duration is counted "
		 "across a loss, that time is residual",
		 loss.kind, vmt_verdict_number(times, sizeof(times), loss.times),
		 vmt_verdict_number(lost, sizeof(lost), loss.records), records * 100,
		 vmt_verdict_number(skipped, sizeof(skipped), loss.bytes));
	snprintf(out->remedy, sizeof(out->remedy), "%s", row->remedy);
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

/* Intel PT without any sign of a virtual machine. */
static bool tell_pt(const struct vmt_report *r, struct vmt_verdict *out)
{
	char bytes[28];

	if (!r->facts->has_pt || r->entries)
		return false;
	out->severity = VMT_SEVERITY_NOTE;
	snprintf(out->text, sizeof(out->text),
		 "Intel PT is in the capture, and no virtual machine in it.");
	snprintf(out->evidence, sizeof(out->evidence),
		 "no VM entry or exit in %s bytes of the file",
		 vmt_verdict_number(bytes, sizeof(bytes), r->ledger.bytes_decoded));
	snprintf(out->remedy, sizeof(out->remedy), "%s",
		 r->concealed ? "A machine ran and conceals it (kvm_intel pt_mode=1): record with "
				"-e 'kvm:*' too, or with pt_mode=0."
			      : "If one ran while it was recorded: trace all CPUs (perf record -a "
				"-e intel_pt//), and look whether kvm_intel has pt_mode=0.");
	return true;
}

bool vmt_rule_nothing(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		      double *score)
{
	const struct vmt_report *r = f->report;
	char events[28];

	if (nth || r->exits + r->failed_entries > 0)
		return false;
	*score = 0;
	out->severity = VMT_SEVERITY_WARN;
	if (r->nr_returns && !r->entries) {
		snprintf(out->text, sizeof(out->text),
			 "kvm_entry and kvm_exit never fired, though the guest ran: this KVM does "
			 "not raise them.");
		snprintf(out->evidence, sizeof(out->evidence), "%s events in %.3f s, no entry",
			 vmt_verdict_number(events, sizeof(events), r->records), f->seconds);
		snprintf(out->remedy, sizeof(out->remedy),
			 "The table below counts what it does tell: returns to %s by reason, and "
			 "accesses by key. Times of exits need a KVM that raises both (kvm_intel, "
			 "kvm_amd).",
			 f->vmm_name);
		return true;
	}
	if (tell_pt(r, out))
		return true;
	snprintf(out->text, sizeof(out->text), "No VM exit is in the capture.");
	snprintf(out->evidence, sizeof(out->evidence), "%llu entries, %llu events in %.3f s",
		 U(r->entries), U(r->records), f->seconds);
	snprintf(out->remedy, sizeof(out->remedy),
		 !r->records && !strcmp(r->facts->format ? r->facts->format : "", "perf.data")
			 ? "The perf.data has no event of KVM: record with -e 'kvm:*' (perf record "
			   "-a -e 'kvm:*'), while the domain runs."
			 : "Was the domain running, was kvm:kvm_exit recorded, and do --domain, "
			   "--vcpu and "
			   "--time leave something over?");
	return true;
}
