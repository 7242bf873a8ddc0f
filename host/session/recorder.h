/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SESSION_RECORDER_H
#define VMT_SESSION_RECORDER_H

#include "host/session/session.h"

/*
 * One recorder: domains, capture, file, control socket, from the first right to the last byte. Used
 * by the background process and by `record` alike.
 */
struct vmt_recorder;

/* Opens everything and captures from then on. On failure nothing is left but what was there. */
int vmt_recorder_open(struct vmt_recorder **out, const struct vmt_session_options *options,
		      struct vmt_diag *diag);

/* State as of the last update. */
const struct vmt_session_info *vmt_recorder_info(const struct vmt_recorder *recorder);

struct vmt_recorder_run {
	int stop_fd;		   /* ends the session when readable; -1: none */
	bool handle_signals;	   /* SIGTERM and SIGINT end it */
	bool end_with_source;	   /* a replay that is over ends it */
	vmt_session_live_fn *live; /* NULL: none */
	void *context;
	uint64_t ready_after_ns; /* when `ready` is called, once; false from it ends the session */
	bool (*ready)(void *context, const struct vmt_session_info *info);
};

/* Runs until something ends the session. VMT_E_IO when waiting itself fails. */
int vmt_recorder_run(struct vmt_recorder *recorder, const struct vmt_recorder_run *run,
		     struct vmt_diag *diag);

/*
 * Stops, finishes the file, removes the session's folder, answers who waits, frees. *info (may be
 * NULL) gets the final state.
 */
int vmt_recorder_close(struct vmt_recorder *recorder, struct vmt_session_info *info,
		       struct vmt_diag *diag);

#endif
