// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks of what this process may do. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/probe/check.h"

/*
 * A raw tracepoint of all threads needs perf_event_paranoid < 0, or CAP_PERFMON, or CAP_SYS_ADMIN
 * (kernel/trace/trace_event_perf.c, perf_allow_tracepoint).
 */
void vmt_check_perf_rights(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	int64_t paranoid;
	int err = vmt_hostfs_i64(&paranoid, "%s/sys/kernel/perf_event_paranoid",
				 vmt_hostfs_proc(facts->fs));

	if (err == -ENOENT) {
		vmt_check_set(check, VMT_CHECK_BLOCKED, "a kernel with CONFIG_PERF_EVENTS",
			      "the kernel has no perf events");
		return;
	}
	if (err)
		return;
	if (vmt_has_cap(facts, VMT_CAP_PERFMON) || vmt_has_cap(facts, VMT_CAP_SYS_ADMIN))
		vmt_check_set(check, VMT_CHECK_OK, NULL, "%s (perf_event_paranoid %d)",
			      vmt_has_cap(facts, VMT_CAP_PERFMON) ? "CAP_PERFMON" : "CAP_SYS_ADMIN",
			      (int)paranoid);
	else if (paranoid < 0)
		vmt_check_set(check, VMT_CHECK_OK, NULL, "perf_event_paranoid %d", (int)paranoid);
	else
		vmt_check_set(check, VMT_CHECK_BLOCKED,
			      "run as root, or: setcap cap_perfmon,cap_dac_read_search+ep on the "
			      "program, or: sysctl kernel.perf_event_paranoid=-1",
			      "perf_event_paranoid is %d and CAP_PERFMON is missing",
			      (int)paranoid);
}

void vmt_check_capabilities(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	static const struct {
		int cap;
		const char *name;
	} rows[] = {
		{ VMT_CAP_PERFMON, "PERFMON" },
		{ VMT_CAP_SYS_ADMIN, "SYS_ADMIN" },
		{ VMT_CAP_BPF, "BPF" },
		{ VMT_CAP_SYS_PTRACE, "SYS_PTRACE" },
		{ VMT_CAP_DAC_READ_SEARCH, "DAC_READ_SEARCH" },
		{ VMT_CAP_IPC_LOCK, "IPC_LOCK" },
	};
	char has[100] = "", lacks[100] = "";

	if (!facts->has_caps)
		return;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *list = vmt_has_cap(facts, rows[i].cap) ? has : lacks;
		size_t used = strlen(list);

		snprintf(list + used, sizeof(has) - used, "%s%s", used ? " " : "", rows[i].name);
	}
	if (lacks[0])
		vmt_check_set(check, VMT_CHECK_WARN,
			      "root has them all; each is needed only where another check says so",
			      "missing: %s%s%s", lacks, has[0] ? "; there: " : "", has);
	else
		vmt_check_set(check, VMT_CHECK_OK, NULL, "%s", has);
}

/* "none [integrity] confidentiality": the word in brackets is in force. */
void vmt_check_lockdown(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	char text[128];

	if (vmt_hostfs_read(text, sizeof(text), "%s/kernel/security/lockdown",
			    vmt_hostfs_sys(facts->fs)) <= 0) {
		if (facts->counters_err == -EPERM && vmt_has_cap(facts, VMT_CAP_SYS_ADMIN))
			vmt_check_set(check, VMT_CHECK_OK,
				      "to see the mode: mount -t securityfs nodev "
				      "/sys/kernel/security",
				      "integrity, by its effect: debugfs counters answer EPERM");
		else
			vmt_check_set(check, VMT_CHECK_UNKNOWN, NULL,
				      "securityfs is not mounted, or the kernel has no lockdown");
		return;
	}
	if (strstr(text, "[confidentiality]"))
		vmt_check_set(check, VMT_CHECK_BLOCKED,
			      "confidentiality mode forbids tracing even to root: boot with "
			      "lockdown=integrity or without it",
			      "confidentiality");
	else if (strstr(text, "[integrity]"))
		vmt_check_set(check, VMT_CHECK_OK, NULL,
			      "integrity: debugfs counters are refused, tracing is not");
	else
		vmt_check_set(check, VMT_CHECK_OK, NULL, "none");
}

/* Soft limit of a row of PROC/self/limits; false when there is no such row. */
static bool soft_limit(const struct vmt_probe_facts *facts, const char *name, uint64_t *value)
{
	char text[4096];
	const char *p;

	if (vmt_hostfs_read(text, sizeof(text), "%s/self/limits", vmt_hostfs_proc(facts->fs)) <= 0)
		return false;
	p = strstr(text, name);
	if (!p)
		return false;
	p += strlen(name);
	p += strspn(p, " ");
	*value = strncmp(p, "unlimited", 9) ? strtoull(p, NULL, 10) : UINT64_MAX;
	return true;
}

#define DEFAULT_BUFFER (UINT64_C(64) << 20)

void vmt_check_memlock(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	uint64_t limit, free_kb = 0;

	if (vmt_has_cap(facts, VMT_CAP_IPC_LOCK)) {
		vmt_check_set(check, VMT_CHECK_OK, NULL, "no limit (CAP_IPC_LOCK)");
		return;
	}
	if (!soft_limit(facts, "Max locked memory", &limit))
		return;
	vmt_hostfs_u64(&free_kb, "%s/sys/kernel/perf_event_mlock_kb", vmt_hostfs_proc(facts->fs));
	if (limit >= DEFAULT_BUFFER)
		vmt_check_set(check, VMT_CHECK_OK, NULL, "the rings fit");
	else
		vmt_check_set(check, VMT_CHECK_WARN,
			      "raise `ulimit -l` and sysctl kernel.perf_event_mlock_kb, or give a "
			      "smaller --buffer",
			      "%llu KiB, and %llu KiB a CPU for perf: rings of 64 MiB do not fit",
			      (unsigned long long)(limit >> 10), (unsigned long long)free_kb);
}

void vmt_check_open_files(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	uint64_t limit;

	if (!soft_limit(facts, "Max open files", &limit))
		return;
	if (limit < 4096)
		vmt_check_set(check, VMT_CHECK_WARN,
			      "raise `ulimit -n`: every tracepoint of every CPU takes one",
			      "%llu descriptors are allowed", (unsigned long long)limit);
	else if (limit == UINT64_MAX)
		vmt_check_set(check, VMT_CHECK_OK, NULL, "no limit");
	else
		vmt_check_set(check, VMT_CHECK_OK, NULL, "%llu", (unsigned long long)limit);
}
