// SPDX-License-Identifier: LGPL-2.1-or-later
/* Invariant: a folder given back is a real one (no link), owned by this user, closed to others. */
#include "host/session/paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "decode/io/diagf.h"

#define GUARD_MAX_BYTES (UINT64_C(512) << 20)

static const char *setting(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/* mkdir -p of everything above the last part. */
static void make_parents(const char *path)
{
	char copy[VMT_SESSION_PATH_MAX];

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *at = strchr(copy + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		mkdir(copy, 0755);
		*at = '/';
	}
}

static int private_folder(const char *path, struct vmt_diag *diag)
{
	struct stat st;

	if (mkdir(path, 0700) && errno != EEXIST)
		return vmt_diag_printf(diag, vmt_err_of_errno(errno), errno, NULL,
				       "cannot make the folder %s", path);
	if (lstat(path, &st))
		return vmt_diag_printf(diag, vmt_err_of_errno(errno), errno, NULL,
				       "cannot look at %s", path);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
		return vmt_diag_printf(diag, VMT_E_PERMISSION, 0,
				       "it must be a folder of this user that nobody else can "
				       "write to: remove it, or chmod 700",
				       "%s is not safe to use", path);
	return 0;
}

int vmt_path_runtime(char *path, size_t size, struct vmt_diag *diag)
{
	const char *own = setting("VMTRACE_RUNTIME_DIR"), *xdg = setting("XDG_RUNTIME_DIR");
	int n;

	if (own)
		n = snprintf(path, size, "%s", own);
	else if (geteuid() == 0)
		n = snprintf(path, size, "/run/vmtrace");
	else if (xdg)
		n = snprintf(path, size, "%s/vmtrace", xdg);
	else
		n = snprintf(path, size, "/tmp/vmtrace-%u", geteuid());
	if (n < 0 || (size_t)n >= size)
		return vmt_diag_set(diag, VMT_E_LIMIT, "the path of the runtime folder is too long",
				    "VMTRACE_RUNTIME_DIR or XDG_RUNTIME_DIR");
	return private_folder(path, diag);
}

int vmt_path_data(char *path, size_t size, struct vmt_diag *diag)
{
	const char *own = setting("VMTRACE_DATA_DIR"), *runtime = setting("VMTRACE_RUNTIME_DIR");
	const char *xdg = setting("XDG_STATE_HOME"), *home = setting("HOME");
	int n;

	if (own)
		n = snprintf(path, size, "%s", own);
	else if (runtime)
		n = snprintf(path, size, "%s/data", runtime);
	else if (geteuid() == 0)
		n = snprintf(path, size, "/var/lib/vmtrace");
	else if (xdg)
		n = snprintf(path, size, "%s/vmtrace", xdg);
	else
		n = snprintf(path, size, "%s/.local/state/vmtrace", home ? home : "/tmp");
	if (n < 0 || (size_t)n >= size)
		return vmt_diag_set(diag, VMT_E_LIMIT, "the path of the data folder is too long",
				    "VMTRACE_DATA_DIR, XDG_STATE_HOME or HOME");
	make_parents(path);
	return private_folder(path, diag);
}

uint64_t vmt_path_free_guard(const char *file)
{
	char folder[VMT_SESSION_PATH_MAX];
	struct statvfs st;
	char *slash;
	uint64_t part;

	snprintf(folder, sizeof(folder), "%s", file);
	slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder] = '\0';
	if (statvfs(slash ? folder : ".", &st))
		return 0;
	part = (uint64_t)st.f_blocks * st.f_frsize / 20;
	return part < GUARD_MAX_BYTES ? part : GUARD_MAX_BYTES;
}

void vmt_path_safe_name(const char *name, char *out, size_t size)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				   "._-";
	size_t len = 0;

	for (; *name && len + 1 < size && len < 100; name++, len++) {
		out[len] = *name;
		if (!strchr(good, *name) || (!len && *name == '.'))
			out[len] = '_';
	}
	out[len] = '\0';
}

int vmt_path_absolute(const char *path, char *out, size_t size, struct vmt_diag *diag)
{
	char folder[VMT_SESSION_PATH_MAX];
	int n;

	if (*path == '/')
		n = snprintf(out, size, "%s", path);
	else if (getcwd(folder, sizeof(folder)))
		n = snprintf(out, size, "%s/%s", folder, path);
	else
		return vmt_diag_printf(diag, vmt_err_of_errno(errno), errno, NULL,
				       "cannot tell the current folder");
	if (n < 0 || (size_t)n >= size)
		return vmt_diag_set(diag, VMT_E_LIMIT, "the path of the output is too long",
				    "give a shorter one with -o");
	return 0;
}
