/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_TRACEFS_H
#define VMT_CAPTURE_TRACEFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/diag.h"

#define VMT_TRACEFS_PATH_MAX 256
#define VMT_FORMAT_TEXT_MAX  65536

/*
 * Finds tracefs in a mount table (/proc/self/mounts; tests give their own): a mount of type
 * tracefs, else the folder "tracing" of a debugfs. Octal escapes of the table are undone.
 * VMT_E_NOT_FOUND when there is none or no mount shows events/.
 */
int vmt_tracefs_find(const char *mounts_path, char *path, size_t size, struct vmt_diag *diag);

/*
 * Mounts tracefs in a mount namespace of this process alone and gives its path. Needs CAP_SYS_ADMIN
 * and a single thread. VMT_E_PERMISSION, VMT_E_CAPABILITY (kernel without tracefs).
 */
int vmt_tracefs_mount_private(char *path, size_t size, struct vmt_diag *diag);

/* find, else mount_private. VMT_E_PERMISSION or VMT_E_CAPABILITY say what is missing. */
int vmt_tracefs_open(char *path, size_t size, struct vmt_diag *diag);

/*
 * Id and format text of events/SYSTEM/NAME; the caller frees *format. VMT_E_CAPABILITY when the
 * kernel does not have the event, VMT_E_PERMISSION (the cure names the path), VMT_E_DAMAGED when
 * the text holds no id.
 */
int vmt_tracefs_event(const char *tracefs, const char *system, const char *name, uint64_t *id,
		      char **format, struct vmt_diag *diag);

#endif
