/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SESSION_INFO_H
#define VMT_SESSION_INFO_H

#include <stdbool.h>
#include <stddef.h>

#include "host/session/session.h"

/* A session's state as one line of JSON: state file, answers of the control socket, history. */
#define VMT_INFO_TEXT_MAX 16384

/* malloc'd, the caller frees; NULL when memory is short. */
char *vmt_info_to_json(const struct vmt_session_info *info);

/* False when the text is not one. Members that are absent are 0 or "". */
bool vmt_info_from_json(const char *text, size_t len, struct vmt_session_info *info);

/* Whether the comma separated domains of the session contain the name. */
bool vmt_info_has_domain(const struct vmt_session_info *info, const char *name);

#endif
