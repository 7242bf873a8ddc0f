/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SESSION_GUARD_H
#define VMT_SESSION_GUARD_H

#include <stdbool.h>

#include "decode/base/diag.h"

/*
 * Refuses an output that is the file a running session records into, or `source` (a file that is
 * being replayed, NULL: none), by device and inode, so that no --force can take a capture away from
 * who needs it. 0 when it is another file or not there; VMT_E_EXISTS.
 */
int vmt_guard_output(const char *path, const char *source, struct vmt_diag *diag);

/* Whether a file begins as a .vmt does: its first 8 bytes are looked at, nothing is parsed. */
bool vmt_guard_is_capture(const char *path);

#endif
