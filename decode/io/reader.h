/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_IO_READER_H
#define VMT_IO_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/diag.h"
#include "decode/io/ops.h"

/*
 * Sequential reader of a file or pipe with one sliding buffer: read() only, never mmap, so that a
 * file that shrinks cannot raise SIGBUS and a pipe is read like a file. Memory: the buffer, which
 * grows to the largest peek, at most VMT_READER_MAX.
 */
#define VMT_READER_MAX (64u << 20)

struct vmt_reader;

/*
 * Opens path ("-" is standard input). VMT_E_IO, VMT_E_PERMISSION or VMT_E_NOT_FOUND with diag
 * filled; directories are refused. ops NULL = vmt_io_system. Blocking; EINTR and EAGAIN are
 * retried.
 */
int vmt_reader_open(struct vmt_reader **out, const char *path, const struct vmt_io_ops *ops,
		    struct vmt_diag *diag);

/* Takes over an open descriptor. */
int vmt_reader_from_fd(struct vmt_reader **out, int fd, const struct vmt_io_ops *ops,
		       struct vmt_diag *diag);
void vmt_reader_close(struct vmt_reader *reader);

/*
 * Makes at least n bytes from the current position available and returns how many are (at most what
 * the buffer holds, possibly more than n; fewer than n only at the end of the input). *bytes stays
 * valid until the next call. Negative: VMT_E_IO (diag says), VMT_E_LIMIT when n > VMT_READER_MAX.
 */
int64_t vmt_reader_peek(struct vmt_reader *reader, size_t n, const uint8_t **bytes,
			struct vmt_diag *diag);

/* Steps over n bytes, buffered or not (seeks when the input can). */
int vmt_reader_skip(struct vmt_reader *reader, uint64_t n, struct vmt_diag *diag);

/* Goes to an absolute offset: only for inputs that can seek (VMT_E_UNSUPPORTED otherwise). */
int vmt_reader_seek(struct vmt_reader *reader, uint64_t offset, struct vmt_diag *diag);

/* At a hole of a sparse file: steps to the next data, returns the bytes skipped (0: none, or a
 * pipe). */
uint64_t vmt_reader_skip_hole(struct vmt_reader *reader);

/*
 * Reads len bytes at an absolute offset, wherever the reader stands; its position and what was
 * peeked stay. Only for inputs that can seek (VMT_E_UNSUPPORTED otherwise). *done: how many came,
 * fewer than len only with VMT_E_TRUNCATED (the input ends) or VMT_E_IO.
 */
int vmt_reader_read_at(struct vmt_reader *reader, uint64_t offset, uint8_t *out, size_t len,
		       size_t *done, struct vmt_diag *diag);

/*
 * Makes a pipe an input that can seek from its current position on: all that is left of it is
 * copied to a file without a name in $TMPDIR, /var/tmp or /tmp. Offsets stay what they were. What
 * finds no room there (64 MiB of the file system stay free) is read, thrown away and counted in
 * *lost. Nothing to do for an input that can seek. VMT_E_IO when no such file can be made, or the
 * pipe cannot be read.
 */
int vmt_reader_spool(struct vmt_reader *reader, uint64_t *lost, struct vmt_diag *diag);

/* Offset of the current position; the size of the input (0 when it has none, as a pipe). */
uint64_t vmt_reader_offset(const struct vmt_reader *reader);
uint64_t vmt_reader_size(const struct vmt_reader *reader);
bool vmt_reader_can_seek(const struct vmt_reader *reader);

#endif
