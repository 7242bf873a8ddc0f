/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CLI_DROP_H
#define VMT_CLI_DROP_H

#include <stdbool.h>
#include <sys/types.h>

#include "decode/base/diag.h"

/*
 * Gives root away before anything from a file is parsed. Files to read and to write are opened
 * first. Root becomes the user who called sudo (SUDO_UID, SUDO_GID), else nobody; groups and all
 * capabilities go, and no_new_privs is set (for other users as well). It is checked that root
 * cannot come back. Fails closed: any step that does not work is VMT_E_PERMISSION, and the caller
 * must not go on.
 */
int vmt_cli_drop_rights(struct vmt_diag *diag);

/*
 * Who root becomes, by the values of SUDO_UID and SUDO_GID (either may be NULL): both are decimal
 * numbers from 1 to 2^32 - 2, else nobody (65534). True when it is the caller of sudo.
 */
bool vmt_cli_drop_target(const char *sudo_uid, const char *sudo_gid, uid_t *uid, gid_t *gid);

#endif
