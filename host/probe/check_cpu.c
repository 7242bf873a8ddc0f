// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks of the machine: kernel, CPU, clocks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/probe/check.h"

void vmt_check_kernel(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	char release[128], *end;
	unsigned long major, minor;

	if (vmt_hostfs_read(release, sizeof(release), "%s/sys/kernel/osrelease",
			    vmt_hostfs_proc(facts->fs)) <= 0)
		return;
	release[strcspn(release, "\n")] = '\0';
	major = strtoul(release, &end, 10);
	if (end == release || *end != '.')
		return;
	minor = strtoul(end + 1, NULL, 10);
	if (major < 4 || (major == 4 && minor < 18))
		vmt_check_set(check, VMT_CHECK_WARN, "a kernel from 4.18 on is what is tested",
			      "Linux %s", release);
	else
		vmt_check_set(check, VMT_CHECK_OK, NULL, "Linux %s", release);
}

/* Value of a line "name : value" of PROC/cpuinfo's first CPU. */
static bool cpuinfo_value(const char *text, const char *name, char *buf, size_t size)
{
	for (const char *line = text; line; line = strchr(line, '\n')) {
		const char *colon;

		line += *line == '\n';
		if (strncmp(line, name, strlen(name)) != 0 || !strchr("\t :", line[strlen(name)]))
			continue;
		colon = line + strcspn(line, ":\n");
		if (*colon != ':')
			continue;
		colon += 1 + strspn(colon + 1, " ");
		snprintf(buf, size, "%.*s", (int)strcspn(colon, "\n"), colon);
		return true;
	}
	return false;
}

static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = list; (p = strstr(p, word)); p += len) {
		if ((p == list || p[-1] == ' ') && (!p[len] || p[len] == ' '))
			return true;
	}
	return false;
}

static bool read_cpuinfo(const struct vmt_probe_facts *facts, char *buf, size_t size)
{
	return vmt_hostfs_read(buf, size, "%s/cpuinfo", vmt_hostfs_proc(facts->fs)) > 0;
}

void vmt_check_cpu(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	char text[8192], model[80], flags[4096] = "";
	const char *hardware = NULL;

	if (!read_cpuinfo(facts, text, sizeof(text)) ||
	    !cpuinfo_value(text, "model name", model, sizeof(model)))
		return;
	cpuinfo_value(text, "flags", flags, sizeof(flags));
	if (has_word(flags, "vmx"))
		hardware = "VMX";
	else if (has_word(flags, "svm"))
		hardware = "SVM";
	if (hardware)
		vmt_check_set(check, VMT_CHECK_OK, NULL, "%s, %s", model, hardware);
	else
		vmt_check_set(check, VMT_CHECK_WARN,
			      "switch virtualization on in the firmware, or nested virtualization "
			      "in the hypervisor below",
			      "%s, neither VMX nor SVM is visible", model);
}

void vmt_check_tsc(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	char text[8192], flags[4096] = "", source[32] = "?";
	bool invariant;

	if (!read_cpuinfo(facts, text, sizeof(text)) ||
	    !cpuinfo_value(text, "flags", flags, sizeof(flags)))
		return;
	invariant = has_word(flags, "constant_tsc") && has_word(flags, "nonstop_tsc");
	vmt_hostfs_read(source, sizeof(source),
			"%s/devices/system/clocksource/clocksource0/current_clocksource",
			vmt_hostfs_sys(facts->fs));
	source[strcspn(source, "\n")] = '\0';
	if (!invariant)
		vmt_check_set(check, VMT_CHECK_WARN,
			      "guest and host times are related only piecewise on such a CPU",
			      "not invariant (constant_tsc and nonstop_tsc), clocksource %s",
			      source);
	else if (strcmp(source, "tsc") != 0)
		vmt_check_set(check, VMT_CHECK_WARN,
			      "the kernel does not trust the TSC: `dmesg | grep -i tsc` says why; "
			      "KVM's master clock is off",
			      "invariant, but the clocksource is %s", source);
	else
		vmt_check_set(check, VMT_CHECK_OK, NULL, "invariant, clocksource tsc");
}

void vmt_check_perf_clock(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	struct vmt_perf_page page;
	int (*read_page)(struct vmt_perf_page *) =
		facts->env && facts->env->perf_page ? facts->env->perf_page : vmt_perf_page_read;
	int err = read_page(&page);

	if (err)
		vmt_check_set(check, VMT_CHECK_UNKNOWN,
			      "perf_event_open is refused: see the right to trace",
			      "no perf event could be opened: %s", strerror(-err));
	else if (page.cap_user_time_zero)
		vmt_check_set(check, VMT_CHECK_OK, NULL, "converts to host TSC (%.3f MHz)",
			      (double)vmt_perf_page_tsc_khz(&page) / 1000);
	else
		vmt_check_set(check, VMT_CHECK_WARN,
			      "the scheduler's clock is not the TSC here (a virtual machine with "
			      "kvmclock, or an unstable TSC): times are in ns only",
			      "not convertible to host TSC (cap_user_time_zero is 0)");
}
