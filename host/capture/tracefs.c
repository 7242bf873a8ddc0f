// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: a path given back is a folder that showed events/ to this process. A private mount
 * lives in a mount namespace of the recorder and ends with it; the system's mounts stay as they
 * are.
 */
#include "host/capture/tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/io/diagf.h"

#define MOUNT_LINE_MAX 4096

/* \040 and friends, in place. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' &&
		    from[2] <= '7' && from[3] >= '0' && from[3] <= '7') {
			*to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/* 1: shows events; 0: it is not tracefs; VMT_E_PERMISSION: it may be. */
static int shows_events(const char *path)
{
	char events[VMT_TRACEFS_PATH_MAX + 16];
	struct stat st;

	snprintf(events, sizeof(events), "%s/events", path);
	if (!stat(events, &st))
		return S_ISDIR(st.st_mode) ? 1 : 0;
	return errno == EACCES || errno == EPERM ? VMT_E_PERMISSION : 0;
}

int vmt_tracefs_find(const char *mounts_path, char *path, size_t size, struct vmt_diag *diag)
{
	FILE *f = fopen(mounts_path, "re");
	char line[MOUNT_LINE_MAX], denied[VMT_TRACEFS_PATH_MAX] = "";
	int found = 0;

	if (!f)
		return vmt_diag_printf(diag, vmt_err_of_errno(errno), errno, NULL, "cannot read %s",
				       mounts_path);
	/* tracefs wins over a debugfs that stands earlier in the table. */
	for (int pass = 0; pass < 2 && found <= 0; pass++) {
		rewind(f);
		while (found <= 0 && fgets(line, sizeof(line), f)) {
			char target[VMT_TRACEFS_PATH_MAX - 16], type[32];

			if (sscanf(line, "%*s %239s %31s", target, type) != 2 ||
			    strcmp(type, pass ? "debugfs" : "tracefs") != 0)
				continue;
			unescape(target);
			snprintf(path, size, "%s%s", target, pass ? "/tracing" : "");
			found = shows_events(path);
			if (found < 0 && !denied[0])
				snprintf(denied, sizeof(denied), "%s", path);
		}
	}
	fclose(f);
	if (found > 0)
		return 0;
	if (denied[0]) {
		vmt_diag_printf(diag, VMT_E_PERMISSION, EACCES, "", "cannot look into %s", denied);
		vmt_diag_cure(diag,
			      "run as root, or let a group read it: mount -o "
			      "remount,gid=GROUP,mode=750 %s",
			      denied);
		return VMT_E_PERMISSION;
	}
	return vmt_diag_set(diag, VMT_E_NOT_FOUND, "tracefs is not mounted",
			    "mount -t tracefs nodev /sys/kernel/tracing");
}

int vmt_tracefs_mount_private(char *path, size_t size, struct vmt_diag *diag)
{
	static const char *const points[] = { "/sys/kernel/tracing", "/sys/kernel/debug", "/mnt" };
	int error = 0;

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return vmt_diag_printf(diag, VMT_E_PERMISSION, errno,
				       "needs CAP_SYS_ADMIN; or mount it for all: mount -t tracefs "
				       "nodev /sys/kernel/tracing",
				       "tracefs is not mounted, and cannot be mounted privately");
	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		if (!mount("nodev", points[i], "tracefs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL)) {
			snprintf(path, size, "%s", points[i]);
			return 0;
		}
		error = errno;
		if (error == ENODEV)
			break;
	}
	if (error == ENODEV)
		return vmt_diag_printf(diag, VMT_E_CAPABILITY, error,
				       "the kernel is built without tracepoints (CONFIG_FTRACE)",
				       "tracefs cannot be mounted");
	return vmt_diag_printf(diag, vmt_err_of_errno(error), error, NULL,
			       "tracefs cannot be mounted privately");
}

int vmt_tracefs_open(char *path, size_t size, struct vmt_diag *diag)
{
	struct vmt_diag first = { 0 };
	int err = vmt_tracefs_find("/proc/self/mounts", path, size, &first);

	if (err == VMT_E_NOT_FOUND)
		return vmt_tracefs_mount_private(path, size, diag);
	if (err && diag && !diag->code)
		*diag = first;
	return err;
}

/* Whole text of a small file without a size (tracefs says 0). NULL with errno. */
static char *read_text(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), error = 0;
	char *text = fd < 0 ? NULL : malloc(VMT_FORMAT_TEXT_MAX + 1);
	size_t len = 0;

	while (text && len < VMT_FORMAT_TEXT_MAX) {
		ssize_t n = read(fd, text + len, VMT_FORMAT_TEXT_MAX - len);

		if (n < 0 && errno == EINTR)
			continue;
		error = n < 0 ? errno : 0;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	if (text)
		text[len] = '\0';
	if (fd >= 0)
		close(fd);
	if (error) {
		free(text);
		errno = error;
		return NULL;
	}
	return text;
}

int vmt_tracefs_event(const char *tracefs, const char *system, const char *name, uint64_t *id,
		      char **format, struct vmt_diag *diag)
{
	char path[VMT_TRACEFS_PATH_MAX + 128];
	char *text;
	const char *at;

	*format = NULL;
	snprintf(path, sizeof(path), "%s/events/%s/%s/format", tracefs, system, name);
	text = read_text(path);
	if (!text && errno == ENOENT) {
		vmt_diag_printf(diag, VMT_E_CAPABILITY, ENOENT, "", "no tracepoint %s:%s", system,
				name);
		vmt_diag_cure(diag, strcmp(system, "kvm") ? "this kernel does not have it"
							  : "the module kvm is not loaded, or this "
							    "kernel does not have the event");
		return VMT_E_CAPABILITY;
	}
	if (!text)
		return vmt_diag_printf(diag, vmt_err_of_errno(errno), errno, NULL, "cannot read %s",
				       path);
	at = strstr(text, "\nID: ");
	*id = at ? strtoull(at + 5, NULL, 10) : 0;
	if (!*id) {
		free(text);
		return vmt_diag_printf(diag, VMT_E_DAMAGED, 0,
				       "it is not tracefs' text of an event", "%s holds no ID",
				       path);
	}
	*format = text;
	return 0;
}
