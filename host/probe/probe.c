// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/probe/probe.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/capture/tracefs.h"
#include "host/probe/check.h"

static const struct vmt_check_row rows[] = {
	{ "kernel", "kernel", VMT_NEED_NONE, vmt_check_kernel },
	{ "cpu", "CPU", VMT_NEED_NONE, vmt_check_cpu },
	{ "kvm", "KVM", VMT_NEED_KVM, vmt_check_kvm },
	{ "dev-kvm", "/dev/kvm", VMT_NEED_NONE, vmt_check_dev_kvm },
	{ "tracefs", "tracefs", VMT_NEED_KVM | VMT_NEED_SCHED, vmt_check_tracefs },
	{ "tracepoints", "kvm tracepoints", VMT_NEED_KVM, vmt_check_tracepoints },
	{ "perf-rights", "right to trace", VMT_NEED_KVM | VMT_NEED_SCHED | VMT_NEED_PT,
	  vmt_check_perf_rights },
	{ "capabilities", "capabilities", VMT_NEED_NONE, vmt_check_capabilities },
	{ "lockdown", "kernel lockdown", VMT_NEED_KVM | VMT_NEED_SCHED | VMT_NEED_PT,
	  vmt_check_lockdown },
	{ "memlock", "locked memory", VMT_NEED_NONE, vmt_check_memlock },
	{ "open-files", "open files", VMT_NEED_NONE, vmt_check_open_files },
	{ "debugfs", "debugfs", VMT_NEED_NONE, vmt_check_debugfs },
	{ "tsc", "host TSC", VMT_NEED_NONE, vmt_check_tsc },
	{ "perf-clock", "perf clock", VMT_NEED_NONE, vmt_check_perf_clock },
	{ "intel-pt", "Intel PT", VMT_NEED_PT, vmt_check_pt },
};

/* Where the PMU intel_pt is there. */
static const struct vmt_check_row pt_rows[] = {
	{ "pt-vmx", "PT under VMX", VMT_NEED_PT, vmt_check_pt_vmx },
	{ "pt-mode", "PT mode of KVM", VMT_NEED_PT, vmt_check_pt_mode },
	{ "pt-module", "PT module", VMT_NEED_NONE, vmt_check_pt_module },
	{ "pt-free", "PT in use", VMT_NEED_PT, vmt_check_pt_free },
	{ "pt-pause", "PT pause, resume", VMT_NEED_NONE, vmt_check_pt_pause },
	{ "pt-filter", "PT filters", VMT_NEED_NONE, vmt_check_pt_filter },
	{ "pt-lbr", "BTS and LBR", VMT_NEED_NONE, vmt_check_pt_lbr },
	{ "pt-hybrid", "CPUs for PT", VMT_NEED_NONE, vmt_check_pt_hybrid },
	{ "pt-memory", "memory for PT", VMT_NEED_NONE, vmt_check_pt_memory },
};

static const char *const status_names[] = { "ok", "warn", "blocked", "unknown", "absent" };

const char *vmt_check_status_name(enum vmt_check_status status)
{
	return status_names[status];
}

void vmt_check_set(struct vmt_check *check, enum vmt_check_status status, const char *cure,
		   const char *format, ...)
{
	va_list args;

	check->status = status;
	va_start(args, format);
	vsnprintf(check->cause, sizeof(check->cause), format, args);
	va_end(args);
	snprintf(check->cure, sizeof(check->cure), "%s", cure ? cure : "");
}

static void read_caps(struct vmt_probe_facts *facts)
{
	char text[4096];
	const char *p;

	if (vmt_hostfs_read(text, sizeof(text), "%s/self/status", vmt_hostfs_proc(facts->fs)) <= 0)
		return;
	p = strstr(text, "\nCapEff:");
	if (!p)
		return;
	facts->caps = strtoull(p + 8, NULL, 16);
	facts->has_caps = true;
}

static void find_tracefs(struct vmt_probe_facts *facts)
{
	char mounts[VMT_PATH_MAX];

	if (facts->fs && facts->fs->tracefs) {
		snprintf(facts->tracefs, sizeof(facts->tracefs), "%s", facts->fs->tracefs);
		return;
	}
	snprintf(mounts, sizeof(mounts), "%s/mounts", vmt_hostfs_proc(facts->fs));
	/* One that this user may not enter is no tracefs to the finder, but it is mounted. */
	if (vmt_tracefs_find(mounts, facts->tracefs, sizeof(facts->tracefs), NULL) &&
	    !vmt_hostfs_mount(facts->fs, "tracefs", facts->tracefs, sizeof(facts->tracefs)))
		facts->tracefs[0] = '\0';
}

static void run_rows(struct vmt_probe *out, const struct vmt_check_row *row, size_t nr,
		     const struct vmt_probe_facts *facts)
{
	for (size_t i = 0; i < nr && out->count < VMT_PROBE_MAX; i++) {
		struct vmt_check *check = &out->checks[out->count++];

		check->id = row[i].id;
		check->title = row[i].title;
		check->needs = row[i].needs;
		check->status = VMT_CHECK_UNKNOWN;
		row[i].run(check, facts);
	}
}

void vmt_probe_host(struct vmt_probe *out, const struct vmt_probe_env *env)
{
	struct vmt_probe_facts facts = { .env = env, .fs = env ? env->fs : NULL };
	uint64_t exits;

	memset(out, 0, sizeof(*out));
	read_caps(&facts);
	find_tracefs(&facts);
	facts.pt_error = vmt_pt_pmu_read(&facts.pmu, facts.fs, NULL);
	facts.has_pt = !facts.pt_error;
	if (!vmt_hostfs_debugfs(facts.fs, facts.debugfs, sizeof(facts.debugfs)))
		facts.debugfs[0] = '\0';
	if (facts.debugfs[0])
		facts.counters_err = vmt_hostfs_u64(&exits, "%s/kvm/exits", facts.debugfs);
	run_rows(out, rows, sizeof(rows) / sizeof(rows[0]), &facts);
	if (facts.has_pt)
		run_rows(out, pt_rows, sizeof(pt_rows) / sizeof(pt_rows[0]), &facts);
}

const struct vmt_check *vmt_probe_blocked(const struct vmt_probe *probe, uint32_t need)
{
	for (size_t i = 0; i < probe->count; i++) {
		const struct vmt_check *check = &probe->checks[i];

		if (check->needs & need &&
		    (check->status == VMT_CHECK_BLOCKED ||
		     (check->status == VMT_CHECK_ABSENT && check->needs == VMT_NEED_PT)))
			return check;
	}
	return NULL;
}
