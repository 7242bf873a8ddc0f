// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/io/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/io/diagf.h"
#include "decode/io/sys.h"

#define TEMP_TRIES 16

static int refuse(struct vmt_diag *diag, int sys_errno, const char *path)
{
	return vmt_diag_printf(diag, vmt_err_of_errno(sys_errno), sys_errno, NULL,
			       "cannot create %s", path);
}

static int open_new(const struct vmt_io_ops *ops, const char *path)
{
	int fd;

	do
		fd = ops->openat(AT_FDCWD, path,
				 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY,
				 0600);
	while (fd < 0 && errno == EINTR);
	return fd;
}

/* Opens what is there when it is a character device or FIFO: the descriptor, or -1 and errno. */
static int open_device(const struct vmt_io_ops *ops, const char *path)
{
	struct stat st;
	int fd;

	if (lstat(path, &st) < 0)
		return -1;
	if (!S_ISCHR(st.st_mode) && !S_ISFIFO(st.st_mode)) {
		errno = EEXIST;
		return -1;
	}
	do
		fd = ops->openat(AT_FDCWD, path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0);
	while (fd < 0 && errno == EINTR);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode)))
		return fd;
	ops->close(fd);
	errno = EEXIST;
	return -1;
}

/* What is at the path and is neither a file nor a device: VMT_E_EXISTS. Else 0. */
static int refuse_kind(const char *path, struct vmt_diag *diag)
{
	struct stat st;

	if (lstat(path, &st) < 0 || S_ISREG(st.st_mode) || S_ISCHR(st.st_mode) ||
	    S_ISFIFO(st.st_mode))
		return 0;
	if (S_ISLNK(st.st_mode))
		return vmt_diag_printf(diag, VMT_E_EXISTS, 0,
				       strncmp(path, "/dev/", 5) == 0
					       ? "use - for standard output"
					       : "name the file that it points to",
				       "cannot write %s: it is a symbolic link", path);
	return vmt_diag_printf(diag, VMT_E_EXISTS, 0, "name a file", "cannot write %s: it is %s",
			       path,
			       S_ISDIR(st.st_mode)   ? "a folder"
			       : S_ISBLK(st.st_mode) ? "a block device"
						     : "a socket");
}

/* A name in the same folder that nobody can guess. */
static char *temp_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	size_t size = strlen(path) + 32;
	char *name = malloc(size);

	if (!name)
		return NULL;
	/* The base name is cut so that the result is no longer than a name may be. */
	snprintf(name, size, "%.*s.%.200s.%016llx", (int)(base - path), path, base,
		 (unsigned long long)vmt_io_random());
	return name;
}

static int open_temp(struct vmt_output *out, struct vmt_diag *diag)
{
	for (int i = 0; i < TEMP_TRIES; i++) {
		out->temp = temp_name(out->path);
		if (!out->temp)
			return refuse(diag, ENOMEM, out->path);
		out->fd = open_new(out->ops, out->temp);
		if (out->fd >= 0)
			return 0;
		free(out->temp);
		out->temp = NULL;
		if (errno != EEXIST)
			break;
	}
	return refuse(diag, errno, out->path);
}

int vmt_output_open(struct vmt_output *out, const char *path, bool force,
		    const struct vmt_io_ops *ops, struct vmt_diag *diag)
{
	int err = 0;

	*out = (struct vmt_output){ .ops = ops ? ops : &vmt_io_system, .fd = -1 };
	out->path = strdup(path);
	if (!out->path)
		return refuse(diag, ENOMEM, path);
	out->fd = open_new(out->ops, path);
	if (out->fd < 0 && errno == EEXIST) {
		out->fd = open_device(out->ops, path);
		out->is_device = out->fd >= 0;
	}
	if (out->fd < 0) {
		int error = errno;

		err = error == EEXIST ? refuse_kind(path, diag) : 0;
		if (!err)
			err = force && error == EEXIST ? open_temp(out, diag)
						       : refuse(diag, error, path);
	}
	if (err)
		vmt_output_close(out);
	return err;
}

int vmt_output_not_input(const char *path, const char *input, struct vmt_diag *diag)
{
	struct stat out, in;

	if (!path || !input || !strcmp(path, "-") || stat(path, &out) < 0 || !S_ISREG(out.st_mode))
		return 0;
	if ((strcmp(input, "-") ? stat(input, &in) : fstat(STDIN_FILENO, &in)) < 0)
		return 0;
	if (out.st_dev != in.st_dev || out.st_ino != in.st_ino)
		return 0;
	return vmt_diag_printf(diag, VMT_E_USAGE, 0, "give --output another name",
			       "%s is the input: it is not overwritten", path);
}

int vmt_output_commit(struct vmt_output *out, struct vmt_diag *diag)
{
	if (!out->temp)
		return 0;
	if (out->ops->renameat(AT_FDCWD, out->temp, AT_FDCWD, out->path) < 0)
		return vmt_diag_printf(diag, vmt_err_of_errno(errno), errno, NULL,
				       "cannot replace %s", out->path);
	free(out->temp);
	out->temp = NULL;
	return 0;
}

/* Steps over n bytes of the parts. */
static void advance(struct iovec **iov, int *count, size_t n)
{
	while (*count && n >= (*iov)->iov_len) {
		n -= (*iov)->iov_len;
		(*iov)++;
		(*count)--;
	}
	if (*count) {
		(*iov)->iov_base = (uint8_t *)(*iov)->iov_base + n;
		(*iov)->iov_len -= n;
	}
}

int vmt_output_writev(struct vmt_output *out, struct iovec *iov, int count, size_t *written,
		      struct vmt_diag *diag)
{
	size_t total = 0;
	int err = 0;

	advance(&iov, &count, 0);
	while (count && !err) {
		ssize_t n = out->ops->writev(out->fd, iov, count < IOV_MAX ? count : IOV_MAX);

		if (n > 0) {
			total += (size_t)n;
			advance(&iov, &count, (size_t)n);
		} else if (n == 0) {
			err = vmt_diag_printf(diag, VMT_E_IO, EIO, NULL, "cannot write %s",
					      out->path);
		} else if (!vmt_io_again(out->fd, errno, true)) {
			err = vmt_diag_printf(diag, vmt_err_of_errno(errno), errno, NULL,
					      "cannot write %s", out->path);
		}
	}
	if (written)
		*written = total;
	return err;
}

int vmt_output_finish(struct vmt_output *out, struct vmt_diag *diag)
{
	int err = 0;

	if (!out->is_device && out->ops->fsync(out->fd) < 0)
		err = vmt_diag_printf(diag, vmt_err_of_errno(errno), errno, NULL, "cannot sync %s",
				      out->path);
	if (!err)
		err = vmt_output_commit(out, diag);
	if (out->ops->close(out->fd) < 0 && !err)
		err = vmt_diag_printf(diag, vmt_err_of_errno(errno), errno, NULL, "cannot close %s",
				      out->path);
	out->fd = -1;
	vmt_output_close(out);
	return err;
}

void vmt_output_close(struct vmt_output *out)
{
	if (out->temp)
		out->ops->unlinkat(AT_FDCWD, out->temp, 0);
	if (out->fd >= 0)
		out->ops->close(out->fd);
	free(out->temp);
	free(out->path);
	out->temp = out->path = NULL;
	out->fd = -1;
}

void vmt_output_discard(struct vmt_output *out)
{
	/* When the rights on the folder are gone by now, nothing is better than half. */
	if (out->path && !out->temp && !out->is_device && out->fd >= 0 &&
	    out->ops->unlinkat(AT_FDCWD, out->path, 0) < 0)
		(void)!out->ops->ftruncate(out->fd, 0);
	vmt_output_close(out);
}
