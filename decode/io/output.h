/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_IO_OUTPUT_H
#define VMT_IO_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "decode/base/diag.h"
#include "decode/io/ops.h"

/*
 * A file that is being created: mode 0600, exclusively, never through a symbolic link. With force,
 * a new file is made beside the existing one under a temporary name and vmt_output_commit renames
 * it over the old, which until then stays as it is. A terminal, /dev/null or FIFO is written to as
 * it is: nothing is lost. A symbolic link, a folder, a block device or a socket is refused, with
 * force as well.
 */
struct vmt_output {
	const struct vmt_io_ops *ops;
	int fd;		/* -1 when closed */
	bool is_device; /* was there before and stays: character device or FIFO */
	char *path;	/* where it shall be */
	char *temp;	/* where it is until the commit; NULL: already at path */
};

/*
 * ops NULL = vmt_io_system. On success the caller owns *out until vmt_output_close or
 * vmt_output_discard. VMT_E_EXISTS without force, VMT_E_PERMISSION, VMT_E_NOT_FOUND, VMT_E_FULL,
 * VMT_E_NOMEM, VMT_E_IO, with diag.
 */
int vmt_output_open(struct vmt_output *out, const char *path, bool force,
		    const struct vmt_io_ops *ops, struct vmt_diag *diag);

/*
 * Whether both names are one regular file (also by a hard or symbolic link); "-" is standard input
 * for `input` and nothing for `path`. Such an output would destroy its own input: VMT_E_USAGE with
 * diag, else 0. Call before vmt_output_open.
 */
int vmt_output_not_input(const char *path, const char *input, struct vmt_diag *diag);

/* Puts the file at its path; it stays open. A file that is there already: nothing to do. */
int vmt_output_commit(struct vmt_output *out, struct vmt_diag *diag);

/*
 * Writes all parts, whatever the system takes at a time; EINTR and EAGAIN are retried. iov is used
 * up. Returns 0, or VMT_E_FULL, VMT_E_IO, … with diag; *written (may be NULL) says how many bytes
 * are in the file in either case.
 */
int vmt_output_writev(struct vmt_output *out, struct iovec *iov, int count, size_t *written,
		      struct vmt_diag *diag);

/* fsync (not for a device), commit and close. The output is closed in any case. */
int vmt_output_finish(struct vmt_output *out, struct vmt_diag *diag);

/* Closes; an uncommitted file is removed, a committed one stays as it is. */
void vmt_output_close(struct vmt_output *out);

/* Closes and removes the file, also at its path (never a device). */
void vmt_output_discard(struct vmt_output *out);

#endif
