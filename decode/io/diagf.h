/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_IO_DIAGF_H
#define VMT_IO_DIAGF_H

#include "decode/base/diag.h"

/*
 * Formatted texts for a diag, for code that is not pure. Control characters in the result become
 * '?', so that a file's or a domain's name cannot steer a terminal. As with vmt_diag_set, diag may
 * be NULL and a filled one is kept.
 */

/*
 * Fills `what` from the format, followed by ": " and the system's text for sys_errno unless that is
 * 0. `cure` is copied; NULL gives a general one for sys_errno (empty when there is none).
 * Returns code.
 */
__attribute__((format(printf, 5, 6))) int vmt_diag_printf(struct vmt_diag *diag, enum vmt_err code,
							  int sys_errno, const char *cure,
							  const char *format, ...);

/* Replaces the cure of a filled diag by a formatted text; nothing happens to an empty one. */
__attribute__((format(printf, 2, 3))) void vmt_diag_cure(struct vmt_diag *diag, const char *format,
							 ...);

/*
 * Which error an errno value is: EACCES, EPERM, EROFS -> VMT_E_PERMISSION; ENOENT, ENOTDIR ->
 * VMT_E_NOT_FOUND; ENOSPC, EDQUOT, EFBIG -> VMT_E_FULL; EEXIST -> VMT_E_EXISTS; ENOMEM ->
 * VMT_E_NOMEM; anything else VMT_E_IO.
 */
enum vmt_err vmt_err_of_errno(int sys_errno);

#endif
