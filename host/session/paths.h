/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SESSION_PATHS_H
#define VMT_SESSION_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/diag.h"

#define VMT_SESSION_PATH_MAX 512

/*
 * The folder of running sessions: VMTRACE_RUNTIME_DIR, else /run/vmtrace (root), else
 * $XDG_RUNTIME_DIR/vmtrace, else /tmp/vmtrace-UID. It must belong to this user and be closed to
 * others; made with mode 0700 when it is not there. VMT_E_PERMISSION otherwise.
 */
int vmt_path_runtime(char *path, size_t size, struct vmt_diag *diag);

/*
 * The folder of captures that are given no name: VMTRACE_DATA_DIR, else VMTRACE_RUNTIME_DIR/data,
 * else /var/lib/vmtrace (root), else $XDG_STATE_HOME/vmtrace or ~/.local/state/vmtrace. Made as
 * above, with the folders on the way to it.
 */
int vmt_path_data(char *path, size_t size, struct vmt_diag *diag);

/*
 * How much the file system of a file to be written must keep free: 512 MiB, or 5 % of a smaller
 * one.
 */
uint64_t vmt_path_free_guard(const char *file);

/* A file name made of a domain's: anything but letters, digits, '.', '_' and '-' becomes '_'. */
void vmt_path_safe_name(const char *name, char *out, size_t size);

/* Makes a relative path absolute by the current folder. */
int vmt_path_absolute(const char *path, char *out, size_t size, struct vmt_diag *diag);

#endif
