// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: as far as the file system can allocate blocks ahead of a file's end, those for the
 * next chunk and for VMT_STORE_RESERVE bytes behind it are this file's before it is written. So a
 * full disk is met here, before a chunk is torn, and there is always room to tell what was lost and
 * to close the file.
 */
#include <errno.h>
#include <fcntl.h>

#include "decode/io/diagf.h"
#include "decode/store/writer.h"

#define STEP_MIN 65536u
#define STEP_MAX (4u << 20)

static int allocate(struct vmt_store_writer *w, uint64_t to)
{
	int err;

	do
		err = w->out.ops->fallocate(w->out.fd, FALLOC_FL_KEEP_SIZE, (off_t)w->at,
					    (off_t)(to - w->at));
	while (err < 0 && errno == EINTR);
	if (!err)
		w->allocated_to = to;
	return err;
}

/* How far to allocate for a file of this length: in steps that grow with it. */
static uint64_t step_end(const struct vmt_store_writer *w, uint64_t least)
{
	uint64_t step = w->at < STEP_MIN ? STEP_MIN : w->at > STEP_MAX ? STEP_MAX : w->at;
	uint64_t end = least + step;
	uint64_t limit = w->options.limit_bytes;

	if (limit && end > limit + w->totals.dropped_bytes)
		end = limit + w->totals.dropped_bytes;
	return end > least ? end : least;
}

int vmt_store_reserve(struct vmt_store_writer *w, uint64_t need, struct vmt_diag *diag)
{
	uint64_t least = w->at + need + VMT_STORE_RESERVE;

	if (w->cannot_allocate || w->out.is_device || least <= w->allocated_to)
		return 0;
	if (allocate(w, step_end(w, least)) == 0 || allocate(w, least) == 0)
		return 0;
	if (vmt_err_of_errno(errno) != VMT_E_FULL) {
		w->cannot_allocate = true;
		return 0;
	}
	w->refusal = "no-space";
	return vmt_diag_printf(diag, VMT_E_FULL, errno, NULL, "cannot write %s", w->out.path);
}

void vmt_store_release(struct vmt_store_writer *w)
{
	/* Blocks that cannot be given back are merely unused: no error. */
	if (w->allocated_to > w->at && w->out.ops->ftruncate(w->out.fd, (off_t)w->at) == 0)
		w->allocated_to = w->at;
}
