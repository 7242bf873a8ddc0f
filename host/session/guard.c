// SPDX-License-Identifier: LGPL-2.1-or-later
/* Invariant: files are told apart by device and inode, never by their names. */
#include "host/session/guard.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/io/diagf.h"
#include "decode/store/layout.h"
#include "host/session/session.h"

int vmt_guard_output(const char *path, const char *source, struct vmt_diag *diag)
{
	struct vmt_session_info session;
	struct stat out, in;

	if (stat(path, &out) || !S_ISREG(out.st_mode))
		return 0;
	if (source && !stat(source, &in) && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
		return vmt_diag_printf(diag, VMT_E_EXISTS, 0,
				       "it would be emptied before it is read: choose another name",
				       "the output %s is the file to be replayed", path);
	if (vmt_session_of_file(out.st_dev, out.st_ino, &session)) {
		vmt_diag_printf(diag, VMT_E_EXISTS, 0, "", "a running session records into %s",
				path);
		vmt_diag_cure(diag, "choose another name, or end it first: vmtrace stop %s",
			      session.id);
		return VMT_E_EXISTS;
	}
	return 0;
}

bool vmt_guard_is_capture(const char *path)
{
	uint8_t head[VMT_STORE_MAGIC_LEN];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	bool is = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
		  pread(fd, head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
		  !memcmp(head, vmt_store_magic, sizeof(head));

	if (fd >= 0)
		close(fd);
	return is;
}
