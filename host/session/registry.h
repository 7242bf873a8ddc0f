/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SESSION_REGISTRY_H
#define VMT_SESSION_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "host/session/paths.h"
#include "host/session/session.h"

/*
 * The folder of a session: RUNTIME/ID with `alive` (locked by the recorder as long as it lives),
 * `state.json`, `control` (socket) and `log`. And RUNTIME/domain-KEY.lock, locked by the recorder
 * of that domain. A killed recorder leaves files, but no lock.
 */
struct vmt_session_folder {
	char path[VMT_SESSION_PATH_MAX];
	int dir;   /* descriptor of the folder */
	int alive; /* descriptor with the lock */
};

/* Makes the folder for an id and takes its lock. */
int vmt_folder_make(struct vmt_session_folder *out, const char *id, struct vmt_diag *diag);

/* Writes state.json anew (by rename, so that a reader sees the old or the new one whole). */
int vmt_folder_write(const struct vmt_session_folder *folder, const struct vmt_session_info *info,
		     struct vmt_diag *diag);

/* Removes the folder, and gives up the lock. */
void vmt_folder_remove(struct vmt_session_folder *folder);

/*
 * Locks a domain for a session. Returns a descriptor to keep, VMT_E_EXISTS when another session has
 * it (diag names that one), VMT_E_IO.
 */
int vmt_domain_lock(const char *key, const char *session_id, struct vmt_diag *diag);

/*
 * All sessions with a folder here (root: of all users). One whose recorder is gone is given once as
 * "stale", and its folder is removed. The caller frees *out.
 */
int vmt_registry_list(struct vmt_session_info **out, size_t *count, struct vmt_diag *diag);

/* The same, but nothing is removed: what is stale stays for vmt_registry_list to tell. */
int vmt_registry_look(struct vmt_session_info **out, size_t *count, struct vmt_diag *diag);

/* Path of a session's folder of any user; VMT_E_NOT_FOUND. */
int vmt_registry_folder(const char *id, char *path, size_t size, struct vmt_diag *diag);

/* ---- sessions that were: DATA/.sessions/ID.json ---- */

/* Notes a session; called at its start and its end. Keeps the newest 200. */
int vmt_history_write(const struct vmt_session_info *info, struct vmt_diag *diag);

/* The newest one of a domain (NULL: of any) whose file is there. VMT_E_NOT_FOUND. */
int vmt_history_newest(const char *domain, struct vmt_session_info *out, struct vmt_diag *diag);

#endif
