// SPDX-License-Identifier: LGPL-2.1-or-later
/* Rules about the bill: where the time went besides exits. */
#include "decode/analyze/rules.h"

#include <stdio.h>
#include <string.h>

#define U(x) ((unsigned long long)(x))

bool vmt_rule_poll(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		   double *score)
{
	const struct vmt_bill *a = &f->all;
	uint64_t cpu = a->guest_ns + a->exits_ns + a->userspace_ns + a->halt_poll_ns;
	double of_cpu = vmt_rule_ratio(a->halt_poll_ns, cpu);
	double of_wall = vmt_verdict_share(f, a->halt_poll_ns);

	if (nth || of_cpu < POLL_CPU_WARN || of_wall < POLL_WALL_WARN)
		return false;
	*score = of_wall;
	out->severity = of_cpu >= POLL_CPU_CRIT && of_wall >= POLL_WALL_CRIT ? VMT_SEVERITY_CRITICAL
									     : VMT_SEVERITY_WARN;
	snprintf(out->text, sizeof(out->text),
		 "Halt polling takes %.1f %% of the CPU time that the vCPUs use: KVM spins for a "
		 "wake-up while the guest is idle.",
		 of_cpu * 100);
	snprintf(out->evidence, sizeof(out->evidence),
		 "%.1f ms of %.1f ms CPU time, %.1f %% of the wall time; the guest itself ran "
		 "%.1f ms",
		 (double)a->halt_poll_ns / 1e6, (double)cpu / 1e6, of_wall * 100,
		 (double)a->guest_ns / 1e6);
	snprintf(
		out->remedy, sizeof(out->remedy),
		"Lower /sys/module/kvm/parameters/halt_poll_ns (200000 is usual, 0 is off) or grow "
		"it more slowly (halt_poll_ns_grow); wake-up latency rises by about what is saved. "
		"Fewer short sleeps in the guest help as well.");
	return true;
}

bool vmt_rule_not_exits(const struct vmt_verdict_facts *f, unsigned int nth,
			struct vmt_verdict *out, double *score)
{
	static const char *const where[] = { "runs in the guest", "is halt polling",
					     "is idle (halted)",
					     "is runnable but waits for a host CPU" };
	static const char *const remedy[] = {
		"Profile inside the guest (perf in the guest, or the PMU of the host with "
		"exclude_host): "
		"its own code takes the time.",
		"See the finding on halt polling: the guest sleeps for short times.",
		"The guest waits for something else: its I/O, its network peers, its own locks. "
		"Look at "
		"latencies there, not at exits.",
		"See the finding on preemption: the host's CPUs are too few for its vCPUs."
	};
	const struct vmt_bill *a = &f->all;
	const uint64_t parts[] = { a->guest_ns, a->halt_poll_ns, a->halted_ns, a->preempted_ns };
	uint64_t known = a->wall_ns - a->residual_ns - a->stopped_ns;
	double cost = vmt_rule_ratio(a->exits_ns + a->userspace_ns, known);
	unsigned int most = 0;

	if (nth || f->report->exits == 0 || known == 0 || cost > NOT_EXITS_MAX ||
	    vmt_rule_ratio(known, a->wall_ns) < NOT_EXITS_KNOWN)
		return false;
	for (unsigned int i = 1; i < 4; i++)
		most = parts[i] > parts[most] ? i : most;
	*score = vmt_rule_ratio(parts[most], known);
	out->severity = VMT_SEVERITY_NOTE;
	snprintf(out->text, sizeof(out->text),
		 "Exits are not the problem: handling them takes %.1f %% of the time, %.1f %% %s.",
		 cost * 100, *score * 100, where[most]);
	snprintf(out->evidence, sizeof(out->evidence),
		 "guest %.1f %%, exits %.1f %%, %s %.1f %%, halt polling %.1f %%, halted %.1f %%, "
		 "preempted %.1f %%",
		 vmt_rule_ratio(a->guest_ns, known) * 100, vmt_rule_ratio(a->exits_ns, known) * 100,
		 f->vmm_name, vmt_rule_ratio(a->userspace_ns, known) * 100,
		 vmt_rule_ratio(a->halt_poll_ns, known) * 100,
		 vmt_rule_ratio(a->halted_ns, known) * 100,
		 vmt_rule_ratio(a->preempted_ns, known) * 100);
	snprintf(out->remedy, sizeof(out->remedy), "%s", remedy[most]);
	return true;
}

bool vmt_rule_preempted(const struct vmt_verdict_facts *f, unsigned int nth,
			struct vmt_verdict *out, double *score)
{
	const struct vmt_bill *worst = NULL;
	double most = 0;

	for (size_t i = 0; i < f->report->nr_bills; i++) {
		const struct vmt_bill *b = &f->report->bills[i];

		if (vmt_rule_ratio(b->preempted_ns, b->wall_ns) > most) {
			most = vmt_rule_ratio(b->preempted_ns, b->wall_ns);
			worst = b;
		}
	}
	if (nth || !worst || most < PREEMPTED_WARN)
		return false;
	*score = most;
	out->severity = vmt_rule_grade(most, PREEMPTED_WARN, PREEMPTED_CRIT);
	snprintf(out->text, sizeof(out->text),
		 "vCPU %u was ready to run but had no host CPU for %.1f %% of the time (steal).",
		 worst->vcpu, most * 100);
	snprintf(out->evidence, sizeof(out->evidence),
		 "%.1f ms of %.1f ms; all vCPUs: %.1f %% of the wall time",
		 (double)worst->preempted_ns / 1e6, (double)worst->wall_ns / 1e6,
		 vmt_verdict_share(f, f->all.preempted_ns) * 100);
	snprintf(
		out->remedy, sizeof(out->remedy),
		"Find who else runs on those CPUs (perf sched, pinning, cgroup quotas): pin vCPUs "
		"and emulator threads apart, raise cpu.shares or the quota, or give the host fewer "
		"vCPUs than CPUs.");
	return true;
}

static const struct vmt_row *most_userspace(const struct vmt_verdict_facts *f)
{
	const struct vmt_row *most = NULL;

	for (size_t i = 0; i < f->nr_rows; i++) {
		if (f->rows[i].userspace_ns > (most ? most->userspace_ns : 0))
			most = &f->rows[i];
	}
	return most;
}

bool vmt_rule_userspace(const struct vmt_verdict_facts *f, unsigned int nth,
			struct vmt_verdict *out, double *score)
{
	const struct vmt_row *most = most_userspace(f);
	double share = vmt_verdict_share(f, f->all.userspace_ns);
	double in_cores = vmt_rule_cores(f, f->all.userspace_ns);
	char what[VMT_VERDICT_WHAT_MAX];

	if (nth || in_cores < USERSPACE_WARN || share < USERSPACE_WARN / 10)
		return false;
	*score = share;
	out->severity = vmt_rule_grade(in_cores, USERSPACE_WARN, USERSPACE_CRIT);
	if (most)
		snprintf(out->text, sizeof(out->text),
			 "%.1f %% of the time is spent in %s, most of it (%.1f %%) for %s.",
			 share * 100, f->vmm_name,
			 vmt_rule_ratio(most->userspace_ns, f->all.userspace_ns) * 100,
			 vmt_verdict_what(what, sizeof(what), most));
	else
		snprintf(out->text, sizeof(out->text), "%.1f %% of the time is spent in %s.",
			 share * 100, f->vmm_name);
	snprintf(out->evidence, sizeof(out->evidence),
		 "%.1f ms on the vCPU threads outside of KVM; the guest ran %.1f ms",
		 (double)f->all.userspace_ns / 1e6, (double)f->all.guest_ns / 1e6);
	snprintf(out->remedy, sizeof(out->remedy), "%s",
		 most ? vmt_verdict_remedy(most)
		      : "Profile the vCPU threads of the VMM (perf record -t TID).");
	return true;
}

bool vmt_rule_residual(const struct vmt_verdict_facts *f, unsigned int nth, struct vmt_verdict *out,
		       double *score)
{
	double share = vmt_verdict_share(f, f->all.residual_ns);

	if (nth || share < RESIDUAL_NOTE)
		return false;
	*score = 0;
	out->severity = VMT_SEVERITY_NOTE;
	snprintf(out->text, sizeof(out->text),
		 "%.1f %% of the time is not explained by the events (residual).", share * 100);
	snprintf(out->evidence, sizeof(out->evidence), "%.1f ms of %.1f ms over %zu vCPUs",
		 (double)f->all.residual_ns / 1e6, (double)f->all.wall_ns / 1e6, f->nr_vcpus);
	snprintf(out->remedy, sizeof(out->remedy),
		 "Time before a vCPU's first event, across losses and after exits without an entry "
		 "counts so: record longer, from before the problem, and with kvm_entry and "
		 "kvm_exit both.");
	return true;
}
