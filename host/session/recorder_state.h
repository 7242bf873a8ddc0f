/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SESSION_RECORDER_STATE_H
#define VMT_SESSION_RECORDER_STATE_H

#include "decode/store/store.h"
#include "host/capture/capture.h"
#include "host/domain/domain.h"
#include "host/session/flight.h"
#include "host/session/recorder.h"
#include "host/session/registry.h"

#define VMT_CONNECTIONS_MAX 8
#define VMT_LOCKS_MAX	    64

struct vmt_recorder {
	const struct vmt_session_options *options;
	struct vmt_session_info info;
	struct vmt_flight flight;
	struct vmt_session_folder folder;
	struct vmt_domains domains;
	struct vmt_store_writer *store;
	struct vmt_capture *capture;
	struct vmt_watch *watch;
	int listener;
	int locks[VMT_LOCKS_MAX];
	size_t nr_locks;
	int connections[VMT_CONNECTIONS_MAX]; /* -1: free */
	bool waits_for_end[VMT_CONNECTIONS_MAX];
	bool *ended;		     /* one a domain: a mark said that it stopped */
	uint64_t start_monotonic_ns; /* of the capture */
	uint64_t head_bytes;	     /* file's length when the capture began */
	uint64_t limit_bytes;	     /* of the file */
	uint64_t state_due_ns, tick_due_ns;
	bool source_ended, stop, foreground;
	bool is_replay;
	bool logs; /* warnings go to stderr: the log of a session in the background */
};

/* Brings info up to date. */
void vmt_recorder_update(struct vmt_recorder *r);

/* Ends the session; the first reason given counts. */
__attribute__((format(printf, 2, 3))) void vmt_recorder_end(struct vmt_recorder *r,
							    const char *format, ...);

/* Keeps a diag as the session's last error, and writes a line into its log. */
void vmt_recorder_note(struct vmt_recorder *r, const struct vmt_diag *diag);

#endif
