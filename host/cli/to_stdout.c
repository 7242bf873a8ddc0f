// SPDX-License-Identifier: LGPL-2.1-or-later
/* Invariant: the file's name is gone before its first byte is written: no signal leaves it behind.
 */
#include "host/cli/to_stdout.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "decode/io/diagf.h"
#include "decode/io/sys.h"
#include "host/session/paths.h"

bool vmt_is_stdout(const char *output)
{
	return output && !strcmp(output, "-");
}

int vmt_to_stdout_check(struct vmt_diag *diag)
{
	return isatty(STDOUT_FILENO)
		       ? vmt_diag_set(diag, VMT_E_USAGE, "a capture is not written to a terminal",
				      "name a file with -o, or redirect the output: "
				      "| vmtrace report -i -")
		       : 0;
}

int vmt_to_stdout_path(char *path, size_t size, struct vmt_diag *diag)
{
	char folder[VMT_SESSION_PATH_MAX];
	int err = vmt_path_data(folder, sizeof(folder), diag);

	if (err)
		return err;
	if ((size_t)snprintf(path, size, "%s/.stdout-%016llx.vmt", folder,
			     (unsigned long long)vmt_io_random()) >= size)
		return vmt_diag_set(diag, VMT_E_LIMIT, "the path of the data folder is too long",
				    "VMTRACE_DATA_DIR, XDG_STATE_HOME or HOME");
	return 0;
}

static int write_all(const char *bytes, size_t len, struct vmt_diag *diag)
{
	while (len) {
		ssize_t n = write(STDOUT_FILENO, bytes, len);

		if (n < 0 && vmt_io_again(STDOUT_FILENO, errno, true))
			continue;
		if (n <= 0)
			return vmt_diag_printf(diag, vmt_err_of_errno(errno), errno, NULL,
					       "cannot write to standard output");
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

int vmt_to_stdout(const char *path, struct vmt_diag *diag)
{
	static char bytes[1u << 16];
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), err = 0;
	void (*old)(int);
	ssize_t n = 1;

	if (fd < 0)
		return vmt_diag_printf(diag, vmt_err_of_errno(errno), errno, NULL, "cannot read %s",
				       path);
	unlink(path);
	fflush(stdout);
	old = signal(SIGPIPE, SIG_IGN);
	while (!err && n) {
		n = read(fd, bytes, sizeof(bytes));
		if (n < 0 && errno == EINTR)
			continue;
		err = n < 0 ? vmt_diag_printf(diag, VMT_E_IO, errno, NULL, "cannot read %s", path)
			    : write_all(bytes, (size_t)n, diag);
	}
	signal(SIGPIPE, old);
	close(fd);
	return err;
}
