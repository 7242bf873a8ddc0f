// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: buf[start..end) are the input's bytes from offset base + start on; the descriptor
 * stands at base + end - origin unless `displaced`. start <= end <= cap <= VMT_READER_MAX;
 * origin <= base.
 */
#include "decode/io/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/io/diagf.h"
#include "decode/io/sys.h"

#define READER_BUFFER  (1u << 20)
#define SPOOL_PATH_MAX 4096u
#define SPOOL_MIN_FREE (UINT64_C(64) << 20)

struct vmt_reader {
	const struct vmt_io_ops *ops;
	int fd;
	bool can_seek;
	bool displaced; /* the descriptor has to be put back to base + end before the next read */
	uint64_t size;
	uint64_t origin; /* offset in the input of the descriptor's first byte: of a spool */
	uint8_t *buf;
	size_t cap, start, end;
	uint64_t base;
};

/* Where a regular file ends at this moment, 0 for anything else. */
static uint64_t size_now(const struct vmt_reader *r)
{
	struct stat st;

	if (fstat(r->fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < 0)
		return 0;
	return r->origin + (uint64_t)st.st_size;
}

static int reader_new(struct vmt_reader **out, int fd, const char *path,
		      const struct vmt_io_ops *ops, struct vmt_diag *diag)
{
	struct vmt_reader *r;
	struct stat st;
	off_t at;

	if (fstat(fd, &st) < 0)
		return vmt_diag_printf(diag, VMT_E_IO, errno, NULL, "cannot read %s", path);
	if (S_ISDIR(st.st_mode))
		return vmt_diag_printf(diag, VMT_E_IO, EISDIR, NULL, "cannot read %s", path);
	r = calloc(1, sizeof(*r));
	if (r)
		r->buf = malloc(READER_BUFFER);
	if (!r || !r->buf) {
		free(r);
		return vmt_diag_printf(diag, VMT_E_NOMEM, ENOMEM, NULL, "cannot read %s", path);
	}
	r->ops = ops;
	r->fd = fd;
	r->cap = READER_BUFFER;
	r->size = size_now(r);
	at = S_ISREG(st.st_mode) ? ops->lseek(fd, 0, SEEK_CUR) : -1;
	r->can_seek = at >= 0;
	r->base = at >= 0 ? (uint64_t)at : 0;
	*out = r;
	return 0;
}

int vmt_reader_from_fd(struct vmt_reader **out, int fd, const struct vmt_io_ops *ops,
		       struct vmt_diag *diag)
{
	if (!ops)
		ops = &vmt_io_system;
	return reader_new(out, fd, "the input", ops, diag);
}

int vmt_reader_open(struct vmt_reader **out, const char *path, const struct vmt_io_ops *ops,
		    struct vmt_diag *diag)
{
	int fd, err;

	if (!ops)
		ops = &vmt_io_system;
	if (!strcmp(path, "-")) {
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	} else {
		do
			fd = ops->openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0);
		while (fd < 0 && errno == EINTR);
	}
	if (fd < 0)
		return vmt_diag_printf(diag, vmt_err_of_errno(errno), errno, NULL, "cannot open %s",
				       path);
	err = reader_new(out, fd, path, ops, diag);
	if (err)
		ops->close(fd);
	return err;
}

void vmt_reader_close(struct vmt_reader *r)
{
	if (!r)
		return;
	r->ops->close(r->fd);
	free(r->buf);
	free(r);
}

/* Moves the unread bytes to the front and enlarges a buffer that they fill. */
static int make_room(struct vmt_reader *r, struct vmt_diag *diag)
{
	uint8_t *larger;

	if (r->start) {
		memmove(r->buf, r->buf + r->start, r->end - r->start);
		r->base += r->start;
		r->end -= r->start;
		r->start = 0;
	}
	if (r->end < r->cap)
		return 0;
	larger = realloc(r->buf, r->cap * 2);
	if (!larger)
		return vmt_diag_printf(diag, VMT_E_NOMEM, ENOMEM, NULL, "cannot read the input");
	r->buf = larger;
	r->cap *= 2;
	return 0;
}

/* Reads once into the room behind the unread bytes: 1, or 0 at the end of the input. */
static int fill(struct vmt_reader *r, struct vmt_diag *diag)
{
	ssize_t n;

	if (r->displaced &&
	    r->ops->lseek(r->fd, (off_t)(r->base + r->end - r->origin), SEEK_SET) < 0)
		return vmt_diag_printf(diag, VMT_E_IO, errno, NULL, "cannot seek in the input");
	r->displaced = false;
	do
		n = r->ops->read(r->fd, r->buf + r->end, r->cap - r->end);
	while (n < 0 && vmt_io_again(r->fd, errno, false));
	if (n < 0) {
		int sys_errno = errno;

		if (diag && !diag->code) {
			diag->has_offset = true;
			diag->offset = r->base + r->end;
		}
		return vmt_diag_printf(diag, VMT_E_IO, sys_errno, NULL, "cannot read the input");
	}
	r->end += (size_t)n;
	return n > 0;
}

int64_t vmt_reader_peek(struct vmt_reader *r, size_t n, const uint8_t **bytes,
			struct vmt_diag *diag)
{
	int err;

	if (n > VMT_READER_MAX)
		return vmt_diag_printf(diag, VMT_E_LIMIT, 0,
				       "the input is damaged, or not of the format it seems to be",
				       "an item of %zu bytes is larger than a reader may buffer",
				       n);
	while (r->end - r->start < n) {
		if (r->start + n > r->cap || r->end == r->cap) {
			err = make_room(r, diag);
			if (err)
				return err;
		}
		err = fill(r, diag);
		if (err < 0)
			return err;
		if (!err)
			break;
	}
	*bytes = r->buf + r->start;
	return (int64_t)(r->end - r->start);
}

/* Forgets the buffer and stands at an absolute offset. */
static int jump(struct vmt_reader *r, uint64_t offset, struct vmt_diag *diag)
{
	if (r->ops->lseek(r->fd, (off_t)(offset - r->origin), SEEK_SET) < 0)
		return vmt_diag_printf(diag, VMT_E_IO, errno, NULL, "cannot seek in the input");
	r->base = offset;
	r->start = r->end = 0;
	r->displaced = false;
	return 0;
}

int vmt_reader_skip(struct vmt_reader *r, uint64_t n, struct vmt_diag *diag)
{
	while (n > r->end - r->start) {
		uint64_t at = vmt_reader_offset(r);
		int err;

		if (r->can_seek && n >= r->cap) {
			uint64_t size = size_now(r);

			if (at <= size && n <= size - at)
				return jump(r, at + n, diag);
		}
		n -= r->end - r->start;
		r->base += r->end;
		r->start = r->end = 0;
		err = fill(r, diag);
		if (err < 0)
			return err;
		if (!err)
			return vmt_diag_at(diag, VMT_E_TRUNCATED, r->base,
					   "the input ends too early", "it was cut off");
	}
	r->start += (size_t)n;
	return 0;
}

int vmt_reader_seek(struct vmt_reader *r, uint64_t offset, struct vmt_diag *diag)
{
	if (!r->can_seek)
		return vmt_diag_set(diag, VMT_E_UNSUPPORTED, "cannot seek in the input",
				    "it is a pipe: write it to a file first");
	if (offset > INT64_MAX || offset < r->origin)
		return vmt_diag_at(diag, VMT_E_DAMAGED, offset, "no file has such an offset",
				   "the input is damaged");
	if (offset >= r->base && offset - r->base <= r->end) {
		r->start = (size_t)(offset - r->base);
		return 0;
	}
	return jump(r, offset, diag);
}

uint64_t vmt_reader_skip_hole(struct vmt_reader *r)
{
	uint64_t at = vmt_reader_offset(r);
	uint64_t to;
	off_t data;

	if (!r->can_seek)
		return 0;
	data = r->ops->lseek(r->fd, (off_t)(at - r->origin), SEEK_DATA);
	if (data >= 0)
		to = r->origin + (uint64_t)data;
	else
		to = errno == ENXIO ? size_now(r) : at;
	if (to < at)
		to = at;
	if (to > at && jump(r, to, NULL) == 0)
		return to - at;
	r->displaced = true;
	return 0;
}

int vmt_reader_read_at(struct vmt_reader *r, uint64_t offset, uint8_t *out, size_t len,
		       size_t *done, struct vmt_diag *diag)
{
	*done = 0;
	if (!r->can_seek)
		return vmt_diag_set(diag, VMT_E_UNSUPPORTED, "cannot seek in the input",
				    "it is a pipe: write it to a file first");
	if (offset < r->origin || offset > INT64_MAX - len)
		return vmt_diag_at(diag, VMT_E_TRUNCATED, offset, "no file has such an offset",
				   "the input is damaged");
	while (*done < len) {
		ssize_t n = r->ops->pread(r->fd, out + *done, len - *done,
					  (off_t)(offset - r->origin + *done));

		if (n < 0 && vmt_io_again(r->fd, errno, false))
			continue;
		if (n < 0)
			return vmt_diag_printf(diag, VMT_E_IO, errno, NULL,
					       "cannot read the input");
		if (!n)
			return vmt_diag_at(diag, VMT_E_TRUNCATED, offset + *done,
					   "the input ends too early", "it was cut off");
		*done += (size_t)n;
	}
	return 0;
}

uint64_t vmt_reader_offset(const struct vmt_reader *r)
{
	return r->base + r->start;
}

uint64_t vmt_reader_size(const struct vmt_reader *r)
{
	return r->size;
}

/* ---- spool ---- */

/* An open file without a name in a folder, -1 with errno. */
static int open_nameless(const struct vmt_io_ops *ops, const char *folder)
{
	char path[SPOOL_PATH_MAX];
	int fd;

	if (!folder || *folder != '/')
		return -1;
	fd = ops->openat(AT_FDCWD, folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	/* A file system without O_TMPFILE, as overlayfs was before Linux 6.1. */
	if ((size_t)snprintf(path, sizeof(path), "%s/vmtrace-%016llx", folder,
			     (unsigned long long)vmt_io_random()) >= sizeof(path))
		return -1;
	fd = ops->openat(AT_FDCWD, path, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		ops->unlinkat(AT_FDCWD, path, 0);
	return fd;
}

static int open_spool(const struct vmt_io_ops *ops, struct vmt_diag *diag)
{
	const char *const folders[] = { getenv("TMPDIR"), "/var/tmp", "/tmp" };
	int fd = -1;

	for (size_t i = 0; fd < 0 && i < sizeof(folders) / sizeof(folders[0]); i++)
		fd = open_nameless(ops, folders[i]);
	if (fd < 0)
		vmt_diag_printf(diag, VMT_E_IO, errno,
				"Intel PT from a pipe is kept in a file of TMPDIR, /var/tmp or "
				"/tmp: make room there, or store the input in a file first",
				"cannot make a temporary file");
	return fd;
}

/* Writes the buffer; false when there is no room for all of it, *written says for how much. */
static bool spool_buffer(struct vmt_reader *r, int fd, uint64_t *written)
{
	uint64_t bytes;

	if (r->ops->free_bytes(fd, &bytes) == 0 && bytes < SPOOL_MIN_FREE)
		return false;
	while (r->start < r->end) {
		struct iovec part = { r->buf + r->start, r->end - r->start };
		ssize_t n = r->ops->writev(fd, &part, 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		r->start += (size_t)n;
		*written += (uint64_t)n;
	}
	return true;
}

/* All that is left of a pipe into fd, as far as there is room; *lost: what was thrown away. */
static int spool_all(struct vmt_reader *r, int fd, uint64_t *written, uint64_t *lost,
		     struct vmt_diag *diag)
{
	bool room = true;
	int got;

	do {
		room = room && spool_buffer(r, fd, written);
		*lost += r->end - r->start;
		r->base += r->end;
		r->start = r->end = 0;
		got = fill(r, diag);
	} while (got > 0);
	return got;
}

int vmt_reader_spool(struct vmt_reader *r, uint64_t *lost, struct vmt_diag *diag)
{
	uint64_t origin = vmt_reader_offset(r), written = 0;
	int fd, status;

	*lost = 0;
	if (r->can_seek)
		return 0;
	fd = open_spool(r->ops, diag);
	if (fd < 0)
		return VMT_E_IO;
	status = spool_all(r, fd, &written, lost, diag);
	if (status < 0) {
		r->ops->close(fd);
		return status;
	}
	r->ops->close(r->fd);
	r->fd = fd;
	r->can_seek = true;
	r->origin = origin;
	r->size = origin + written;
	return jump(r, origin, diag);
}

bool vmt_reader_can_seek(const struct vmt_reader *r)
{
	return r->can_seek;
}
