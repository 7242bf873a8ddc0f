/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_BASE_DIAG_H
#define VMT_BASE_DIAG_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/base/err.h"

/*
 * What went wrong, for a person: owned by the caller, filled by the function that fails first,
 * never printed by a library. `what` is one line without a full stop; `cure` is the cause or what
 * to do.
 */
struct vmt_diag {
	enum vmt_err code;
	int sys_errno;	 /* errno of the failing call, 0 if none */
	bool has_offset; /* offset is meaningful */
	uint64_t offset; /* byte offset into the input */
	char what[200];
	char cure[400];
};

/* Copies a fixed text into an empty diag (diag may be NULL; a filled one is kept). Returns code. */
int vmt_diag_set(struct vmt_diag *diag, enum vmt_err code, const char *what, const char *cure);

/* The same for a fault at a byte offset of the input. Returns code. */
int vmt_diag_at(struct vmt_diag *diag, enum vmt_err code, uint64_t offset, const char *what,
		const char *cure);

/* Empties a diag (NULL is allowed). */
void vmt_diag_clear(struct vmt_diag *diag);

#endif
