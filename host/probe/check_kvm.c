// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks of KVM and of the places where it shows itself. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/probe/check.h"

/* Names of the modules that begin with kvm_, sorted as the folder gives them. */
static void vendor_modules(const char *sys, char *list, size_t size)
{
	char folder[VMT_PATH_MAX];
	const struct dirent *entry;
	DIR *dir;

	list[0] = '\0';
	snprintf(folder, sizeof(folder), "%s/module", sys);
	dir = opendir(folder);
	while (dir && (entry = readdir(dir))) {
		size_t used = strlen(list);

		if (!strncmp(entry->d_name, "kvm_", 4) && used + strlen(entry->d_name) + 3 < size)
			snprintf(list + used, size - used, "%s%.60s", used ? ", " : "",
				 entry->d_name);
	}
	if (dir)
		closedir(dir);
}

void vmt_check_kvm(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	const char *sys = vmt_hostfs_sys(facts->fs);
	char path[VMT_PATH_MAX], list[128];

	snprintf(path, sizeof(path), "%s/module/kvm", sys);
	vendor_modules(sys, list, sizeof(list));
	if (access(path, F_OK) != 0)
		vmt_check_set(check, VMT_CHECK_BLOCKED,
			      "modprobe kvm_intel or kvm_amd; if that fails, switch virtualization "
			      "on in the firmware",
			      "the kvm module is not loaded");
	else if (!list[0])
		vmt_check_set(check, VMT_CHECK_BLOCKED, "modprobe kvm_intel or kvm_amd",
			      "kvm is loaded, but no module for this CPU");
	else if (strstr(list, "kvm_intel") || strstr(list, "kvm_amd"))
		vmt_check_set(check, VMT_CHECK_OK, NULL, "%s", list);
	else
		vmt_check_set(check, VMT_CHECK_WARN,
			      "expect the other kvm tracepoints only: returns to the VMM, MMIO, "
			      "ports, CPUID",
			      "%s runs guests in software: kvm_entry and kvm_exit may never fire",
			      list);
}

void vmt_check_dev_kvm(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	char path[VMT_PATH_MAX];

	snprintf(path, sizeof(path), "%s/kvm", vmt_hostfs_dev(facts->fs));
	if (access(path, R_OK | W_OK) == 0)
		vmt_check_set(check, VMT_CHECK_OK, NULL, "there");
	else if (errno == ENOENT)
		vmt_check_set(check, VMT_CHECK_WARN, "load the kvm module of this CPU",
			      "not there: no virtual machine can be started");
	else
		vmt_check_set(check, VMT_CHECK_OK, NULL,
			      "there, not for this user (tracing does not need it)");
}

static bool can_mount_tracefs(const struct vmt_probe_facts *facts)
{
	char text[4096];

	return vmt_has_cap(facts, VMT_CAP_SYS_ADMIN) &&
	       vmt_hostfs_read(text, sizeof(text), "%s/filesystems", vmt_hostfs_proc(facts->fs)) >
		       0 &&
	       strstr(text, "\ttracefs\n");
}

void vmt_check_tracefs(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	char path[VMT_PATH_MAX];

	if (!facts->tracefs[0] && can_mount_tracefs(facts)) {
		vmt_check_set(check, VMT_CHECK_OK,
			      "to see it yourself: mount -t tracefs nodev /sys/kernel/tracing",
			      "not mounted: vmtrace mounts it for itself");
	} else if (!facts->tracefs[0]) {
		vmt_check_set(check, VMT_CHECK_BLOCKED,
			      "as root: mount -t tracefs nodev /sys/kernel/tracing (the kernel "
			      "needs CONFIG_TRACING)",
			      "not mounted, and this process may not mount it");
	} else {
		snprintf(path, sizeof(path), "%s/events", facts->tracefs);
		if (access(path, R_OK | X_OK) == 0)
			vmt_check_set(check, VMT_CHECK_OK, NULL, "%s", facts->tracefs);
		else
			vmt_check_set(
				check, VMT_CHECK_BLOCKED,
				"run as root, or as root: mount -o remount,gid=GROUP,mode=750 "
				"on it",
				"%s/events: %s", facts->tracefs, strerror(errno));
	}
}

void vmt_check_tracepoints(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	static const char *const needed[] = { "kvm_entry", "kvm_exit" };
	char folder[VMT_PATH_MAX], path[VMT_PATH_MAX + 64];
	const struct dirent *entry;
	unsigned int n = 0;
	DIR *dir;

	if (!facts->tracefs[0]) {
		vmt_check_set(check, VMT_CHECK_UNKNOWN, NULL, "tracefs is not mounted");
		return;
	}
	snprintf(folder, sizeof(folder), "%s/events/kvm", facts->tracefs);
	dir = opendir(folder);
	if (!dir) {
		vmt_check_set(check, VMT_CHECK_BLOCKED,
			      errno == ENOENT ? "load the kvm module of this CPU" : "run as root",
			      "%s: %s", folder, strerror(errno));
		return;
	}
	while ((entry = readdir(dir)))
		n += !strncmp(entry->d_name, "kvm_", 4);
	closedir(dir);
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s/format", folder, needed[i]);
		if (access(path, R_OK) != 0) {
			vmt_check_set(check, VMT_CHECK_BLOCKED,
				      "this kernel's KVM does not offer it", "%s/%s: %s", folder,
				      needed[i], strerror(errno));
			return;
		}
	}
	vmt_check_set(check, VMT_CHECK_OK, NULL, "%u of them", n);
}

void vmt_check_debugfs(struct vmt_check *check, const struct vmt_probe_facts *facts)
{
	char path[VMT_PATH_MAX];

	snprintf(path, sizeof(path), "%s/kvm", facts->debugfs);
	if (!facts->debugfs[0])
		vmt_check_set(check, VMT_CHECK_WARN,
			      "as root: mount -t debugfs nodev /sys/kernel/debug",
			      "not mounted: TSC offsets of guests are not known");
	else if (access(path, R_OK | X_OK) != 0)
		vmt_check_set(check, VMT_CHECK_WARN,
			      errno == ENOENT ? "load the kvm module of this CPU" : "run as root",
			      "%s: %s: TSC offsets of guests are not known", path, strerror(errno));
	else if (facts->counters_err == -EPERM)
		vmt_check_set(check, VMT_CHECK_OK, NULL,
			      "%s; counters answer EPERM (lockdown), libvirt has them",
			      facts->debugfs);
	else
		vmt_check_set(check, VMT_CHECK_OK, NULL, "%s", facts->debugfs);
}
