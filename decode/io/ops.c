// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/io/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

static int system_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	return openat(dirfd, path, flags, mode);
}

static int system_free_bytes(int fd, uint64_t *bytes)
{
	struct statvfs fs;

	if (fstatvfs(fd, &fs) < 0)
		return -1;
	*bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	return 0;
}

const struct vmt_io_ops vmt_io_system = {
	.openat = system_openat,
	.close = close,
	.read = read,
	.pread = pread,
	.writev = writev,
	.fsync = fsync,
	.fallocate = fallocate,
	.lseek = lseek,
	.free_bytes = system_free_bytes,
	.ftruncate = ftruncate,
	.renameat = renameat,
	.unlinkat = unlinkat,
};
