// SPDX-License-Identifier: LGPL-2.1-or-later
/* Rules about exits: which instruction, which key, which interrupt. */
#include "decode/analyze/rules.h"

#include <stdio.h>
#include <string.h>

#define U(x) ((unsigned long long)(x))

static bool is_loop(const struct vmt_verdict_facts *f, const struct vmt_row *row)
{
	if (!row->has_rip || row->failed_entry || row->class == VMX_CLASS_HALT ||
	    row->class == VMX_CLASS_INTERRUPT || row->class == VMX_CLASS_FAILURE)
		return false;
	if (row->count < LOOP_COUNT_MIN || vmt_verdict_rate(f, row->count) < LOOP_RATE_MIN ||
	    vmt_rule_ratio(row->rip_count, row->count) < LOOP_RIP_SHARE)
		return false;
	if (row->timed && vmt_rule_cores(f, row->total_ns) < LOOP_CORES_NOTE &&
	    vmt_verdict_rate(f, row->count) < LOOP_RATE_WARN)
		return false;
	return vmt_rule_ratio(row->count, f->report->exits) >= LOOP_EXITS_SHARE ||
	       vmt_rule_cores(f, row->total_ns) >= LOOP_CORES_MIN;
}

bool vmt_rule_loop(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		   double *score)
{
	char rip[100], what[VMT_VERDICT_WHAT_MAX];

	for (size_t i = 0; i < f->nr_rows; i++) {
		const struct vmt_row *row = &f->rows[i];

		if (!is_loop(f, row) || nth-- > 0)
			continue;
		*score = vmt_rule_cores(f, row->total_ns);
		out->severity = vmt_rule_grade(*score, LOOP_CORES_WARN, LOOP_CORES_CRIT);
		if (out->severity == VMT_SEVERITY_NOTE &&
		    vmt_verdict_rate(f, row->count) >= LOOP_RATE_WARN)
			out->severity = VMT_SEVERITY_WARN;
		snprintf(out->text, sizeof(out->text),
			 "One instruction, at %s, causes %s%.1f %% of the %s.",
			 vmt_verdict_rip(rip, sizeof(rip), row),
			 row->rip_is_bound ? "at least " : "",
			 vmt_rule_ratio(row->rip_count, row->count) * 100,
			 vmt_verdict_what(what, sizeof(what), row));
		vmt_rule_evidence(f, row, out->evidence, sizeof(out->evidence));
		snprintf(out->remedy, sizeof(out->remedy), "%s", vmt_verdict_remedy(row));
		return true;
	}
	return false;
}

bool vmt_rule_clock(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		    double *score)
{
	char what[VMT_VERDICT_WHAT_MAX];

	for (size_t i = 0; i < f->nr_rows; i++) {
		const struct vmt_row *row = &f->rows[i];
		const char *clock = vmt_verdict_clock(row);

		if (!clock || is_loop(f, row) || row->count < LOOP_COUNT_MIN ||
		    vmt_verdict_rate(f, row->count) < CLOCK_RATE_MIN || nth-- > 0)
			continue;
		*score = vmt_rule_cores(f, row->total_ns);
		out->severity = vmt_rule_grade(*score, CLOCK_CORES_WARN, LOOP_CORES_CRIT);
		snprintf(out->text, sizeof(out->text), "The guest reads %s as its clock: %s.",
			 clock, vmt_verdict_what(what, sizeof(what), row));
		vmt_rule_evidence(f, row, out->evidence, sizeof(out->evidence));
		snprintf(out->remedy, sizeof(out->remedy), "%s", vmt_verdict_remedy(row));
		return true;
	}
	return false;
}

static bool find_host_irq(const struct vmt_verdict_facts *f, unsigned int nth,
			  struct vmt_verdict *out, double *score)
{
	for (size_t i = 0; i < f->nr_rows; i++) {
		const struct vmt_row *row = &f->rows[i];
		double rate = vmt_verdict_rate(f, row->count) / (double)f->nr_vcpus;

		if (row->class != VMX_CLASS_INTERRUPT || row->key.kind != VMT_KEY_VECTOR ||
		    row->count < IRQ_COUNT_MIN || rate < IRQ_RATE_WARN || nth-- > 0)
			continue;
		*score = vmt_rule_cores(f, row->total_ns);
		out->severity = vmt_rule_grade(rate, IRQ_RATE_WARN, IRQ_RATE_CRIT);
		snprintf(out->text, sizeof(out->text),
			 "Interrupts of the host with vector %llu (0x%llx) drive the guest out "
			 "%.0f times a second and vCPU.",
			 U(row->key.number), U(row->key.number), rate);
		vmt_rule_evidence(f, row, out->evidence, sizeof(out->evidence));
		snprintf(out->remedy, sizeof(out->remedy),
			 "Find the vector in /proc/interrupts and /sys/kernel/debug/irq, and move "
			 "that device's interrupt or the timer away from the vCPUs' CPUs "
			 "(smp_affinity, isolcpus, nohz_full), or moderate it (ethtool -C).");
		return true;
	}
	return false;
}

static bool find_guest_irq(const struct vmt_verdict_facts *f, unsigned int nth,
			   struct vmt_verdict *out, double *score)
{
	for (unsigned int v = 32; v < 256; v++) { /* below: exceptions */
		double rate = vmt_verdict_rate(f, f->injected[v]) / (double)f->nr_vcpus;

		if (f->injected[v] < IRQ_COUNT_MIN || rate < IRQ_RATE_WARN || nth-- > 0)
			continue;
		*score = vmt_rule_ratio(f->injected[v], f->injections) / 100;
		out->severity = vmt_rule_grade(rate, IRQ_RATE_WARN, IRQ_RATE_CRIT);
		snprintf(out->text, sizeof(out->text),
			 "Vector %u (0x%x) is injected into the guest %.0f times a second and "
			 "vCPU.",
			 v, v, rate);
		snprintf(out->evidence, sizeof(out->evidence),
			 "%llu of %llu injected interrupts, %.0f/s", U(f->injected[v]),
			 U(f->injections), vmt_verdict_rate(f, f->injected[v]));
		snprintf(
			out->remedy, sizeof(out->remedy),
			"Find the vector in the guest (/proc/interrupts, /sys/kernel/debug/irq): a "
			"device wants interrupt moderation or event-idx, a timer fewer wake-ups; "
			"posted interrupts (enable_apicv, AVIC) make each cheaper.");
		return true;
	}
	return false;
}

bool vmt_rule_irq(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		  double *score)
{
	unsigned int host = 0;
	struct vmt_verdict unused;
	double none;

	if (find_host_irq(f, nth, out, score))
		return true;
	while (host < nth && find_host_irq(f, host, &unused, &none))
		host++;
	return find_guest_irq(f, nth - host, out, score);
}

bool vmt_rule_faults(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		     double *score)
{
	uint64_t ns = 0, count = 0;

	for (size_t i = 0; i < f->nr_rows; i++) {
		const struct vmt_row *row = &f->rows[i];

		if (row->isa == VMT_ISA_SVM ? row->reason != 0x400 : row->reason != 48)
			continue;
		ns += row->total_ns;
		count += row->count;
	}
	if (nth || vmt_rule_cores(f, ns) < FAULTS_WARN)
		return false;
	*score = vmt_rule_cores(f, ns);
	out->severity = vmt_rule_grade(*score, FAULTS_WARN, LOOP_CORES_CRIT * 2);
	snprintf(out->text, sizeof(out->text),
		 "Second-level page faults take %.1f %% of one vCPU's time: the guest touches "
		 "memory "
		 "that the host has not mapped.",
		 *score * 100);
	snprintf(out->evidence, sizeof(out->evidence), "%llu exits, %.0f/s, %.1f ms", U(count),
		 vmt_verdict_rate(f, count), (double)ns / 1e6);
	snprintf(out->remedy, sizeof(out->remedy),
		 "First touch after the start passes by itself; <memoryBacking><hugepages/> or "
		 "prealloc avoid it. If it goes on: ballooning, swap, KSM, NUMA balancing or a "
		 "migration take pages away again; emulated devices in MMIO show by their "
		 "addresses.");
	return true;
}

bool vmt_rule_spin(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		   double *score)
{
	for (size_t i = 0; i < f->nr_rows; i++) {
		const struct vmt_row *row = &f->rows[i];

		if (row->class != VMX_CLASS_PAUSE || is_loop(f, row) ||
		    vmt_verdict_rate(f, row->count) < PAUSE_RATE_WARN || nth-- > 0)
			continue;
		*score = vmt_rule_cores(f, row->total_ns);
		out->severity = VMT_SEVERITY_WARN;
		snprintf(out->text, sizeof(out->text),
			 "vCPUs spin on locks: %.0f PAUSE exits a second.",
			 vmt_verdict_rate(f, row->count));
		vmt_rule_evidence(f, row, out->evidence, sizeof(out->evidence));
		snprintf(
			out->remedy, sizeof(out->remedy),
			"The holder of a lock is preempted or the lock is hot: give the vCPUs CPUs "
			"of their own, keep paravirtual spinlocks on, fewer vCPUs; ple_window "
			"tunes "
			"when KVM yields.");
		return true;
	}
	return false;
}

bool vmt_rule_tsc_exits(const struct vmt_verdict_facts *f, unsigned int nth,
			struct vmt_verdict *out, double *score)
{
	for (size_t i = 0; i < f->nr_rows; i++) {
		const struct vmt_row *row = &f->rows[i];
		bool rdtsc = row->isa == VMT_ISA_SVM ? row->reason == 0x6e || row->reason == 0x87
						     : row->reason == 16 || row->reason == 51;

		if (!row->has_reason || !rdtsc || vmt_verdict_rate(f, row->count) < TSC_RATE_WARN ||
		    nth-- > 0)
			continue;
		*score = vmt_rule_cores(f, row->total_ns);
		out->severity = VMT_SEVERITY_WARN;
		snprintf(out->text, sizeof(out->text),
			 "Reading the TSC exits: %.0f times a second. The guest's TSC is emulated.",
			 vmt_verdict_rate(f, row->count));
		vmt_rule_evidence(f, row, out->evidence, sizeof(out->evidence));
		snprintf(out->remedy, sizeof(out->remedy),
			 "The domain asks for a TSC frequency that this CPU cannot scale to: drop "
			 "<timer name='tsc' frequency=.../> or use a host with TSC scaling.");
		return true;
	}
	return false;
}

bool vmt_rule_failed(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		     double *score)
{
	char what[VMT_VERDICT_WHAT_MAX], flags[96];

	for (size_t i = 0; i < f->nr_rows; i++) {
		const struct vmt_row *row = &f->rows[i];

		if (!row->failed_entry || nth-- > 0)
			continue;
		*score = 1;
		out->severity = VMT_SEVERITY_CRITICAL;
		snprintf(out->text, sizeof(out->text), "VM entries failed: %llu x %s%s%s.",
			 U(row->count), vmt_verdict_what(what, sizeof(what), row),
			 row->reason_flags ? ", " : "",
			 vmx_reason_flags_text(flags, sizeof(flags), row->reason_flags));
		snprintf(out->evidence, sizeof(out->evidence),
			 "%llu failed of %llu entries; guest RIP 0x%llx", U(row->count),
			 U(f->report->entries), U(row->guest_rip));
		snprintf(out->remedy, sizeof(out->remedy),
			 "The state of the vCPU is not valid for the CPU: see the kernel log "
			 "(kvm_intel.dump_invalid_vmcs=1 prints the VMCS); after a migration "
			 "compare the "
			 "CPU models, in nested use the inner hypervisor's control fields.");
		return true;
	}
	return false;
}
