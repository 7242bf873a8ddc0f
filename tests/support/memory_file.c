/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/support/memory_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PIPE_MAX (1 << 20)

int vmt_memory_file(const uint8_t *bytes, size_t len)
{
	int fd = memfd_create("input", MFD_CLOEXEC);

	if (fd < 0 || (len && write(fd, bytes, len) != (ssize_t)len) || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	return fd;
}

int vmt_memory_pipe(const uint8_t *bytes, size_t len)
{
	int fds[2];

	if (len > PIPE_MAX || pipe2(fds, O_CLOEXEC) || fcntl(fds[1], F_SETPIPE_SZ, PIPE_MAX) < 0 ||
	    (len && write(fds[1], bytes, len) != (ssize_t)len))
		abort();
	close(fds[1]);
	return fds[0];
}
