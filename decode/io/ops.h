/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_IO_OPS_H
#define VMT_IO_OPS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/*
 * The operating system, as a table: every read and write of a capture goes through one, so that
 * tests can inject EINTR, EAGAIN, EMFILE, EACCES, ENOSPC and short transfers. Members behave as the
 * system calls of the same name (errno set, -1 on failure).
 */
struct vmt_io_ops {
	int (*openat)(int dirfd, const char *path, int flags, mode_t mode);
	int (*close)(int fd);
	ssize_t (*read)(int fd, void *buf, size_t len);
	ssize_t (*pread)(int fd, void *buf, size_t len, off_t offset);
	ssize_t (*writev)(int fd, const struct iovec *iov, int n);
	int (*fsync)(int fd);
	int (*fallocate)(int fd, int mode, off_t offset, off_t len);
	off_t (*lseek)(int fd, off_t offset, int whence);
	int (*free_bytes)(int fd, uint64_t *bytes); /* fstatvfs: free for this user */
	int (*ftruncate)(int fd, off_t len);
	int (*renameat)(int olddirfd, const char *from, int newdirfd, const char *to);
	int (*unlinkat)(int dirfd, const char *path, int flags);
};

/* The real system. */
extern const struct vmt_io_ops vmt_io_system;

#endif
