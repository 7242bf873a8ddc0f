// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/cli/drop.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "decode/io/diagf.h"

#define NOBODY 65534u
#define CURE                                                                                       \
	"run it as an ordinary user that may read the file; in a container allow CAP_SETUID and "  \
	"CAP_SETGID"

static bool read_id(const char *text, unsigned long *id)
{
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	*id = strtoul(text, &end, 10);
	return !errno && !*end && *id >= 1 && *id <= 0xfffffffeul;
}

bool vmt_cli_drop_target(const char *sudo_uid, const char *sudo_gid, uid_t *uid, gid_t *gid)
{
	unsigned long u, g;

	*uid = NOBODY;
	*gid = NOBODY;
	if (!read_id(sudo_uid, &u) || !read_id(sudo_gid, &g))
		return false;
	*uid = (uid_t)u;
	*gid = (gid_t)g;
	return true;
}

static int refuse(struct vmt_diag *diag, const char *step)
{
	return vmt_diag_printf(diag, VMT_E_PERMISSION, errno, CURE,
			       "root could not be given up before reading the file: %s", step);
}

/* All capability sets of the thread, which a change of user alone may leave in place. */
static int drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	/* Kernels before 4.3 have no ambient set: EINVAL. */
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) && errno != EINVAL)
		return -1;
	return (int)syscall(SYS_capset, &head, none);
}

static bool is_gone(uid_t uid, gid_t gid)
{
	uid_t u[3];
	gid_t g[3];

	if (getresuid(&u[0], &u[1], &u[2]) || getresgid(&g[0], &g[1], &g[2]))
		return false;
	for (int i = 0; i < 3; i++) {
		if (u[i] != uid || g[i] != gid)
			return false;
	}
	return getgroups(0, NULL) == 0 && setuid(0) != 0 && setgid(0) != 0;
}

int vmt_cli_drop_rights(struct vmt_diag *diag)
{
	uid_t uid;
	gid_t gid;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return refuse(diag, "no_new_privs");
	if (geteuid() != 0 && getuid() != 0)
		return drop_capabilities() ? refuse(diag, "capabilities") : 0;
	vmt_cli_drop_target(getenv("SUDO_UID"), getenv("SUDO_GID"), &uid, &gid);
	if (setgroups(0, NULL))
		return refuse(diag, "groups");
	if (setresgid(gid, gid, gid))
		return refuse(diag, "group id");
	if (setresuid(uid, uid, uid))
		return refuse(diag, "user id");
	if (drop_capabilities())
		return refuse(diag, "capabilities");
	errno = 0;
	return is_gone(uid, gid) ? 0 : refuse(diag, "it came back");
}
