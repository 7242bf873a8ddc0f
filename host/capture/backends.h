/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_BACKENDS_H
#define VMT_CAPTURE_BACKENDS_H

#include <stdbool.h>

#include "decode/base/diag.h"

/* What --backend names. */
struct vmt_backends {
	bool kvm, sched, pt;
	const char *replay; /* path, points into the text; NULL: none */
};

/*
 * "auto" or NULL (kvm and sched), a comma list of kvm, sched, pt, or replay:FILE. VMT_E_USAGE for
 * an unknown one, VMT_E_CAPABILITY for one that this version does not have.
 */
int vmt_backends_parse(const char *text, struct vmt_backends *out, struct vmt_diag *diag);

#endif
