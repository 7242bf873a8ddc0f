/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SESSION_SESSION_H
#define VMT_SESSION_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/base/diag.h"
#include "decode/rewrite/privacy.h"
#include "host/domain/domain.h"
#include "vmx/pt_plan.h"

/*
 * Sessions: a recorder process each, known by a directory under /run/vmtrace (root) or
 * $XDG_RUNTIME_DIR/vmtrace with a state file and a control socket (SO_PEERCRED checked).
 */
struct vmt_session_options {
	struct vmt_domain_query query;
	const char *backend;  /* auto, a list of kvm,sched,pt, replay:FILE */
	const char *pt_terms; /* these of struct vmt_capture_options */
	const char *pt_filter;
	bool vm_events_only, system_wide, pt_conceal;
	enum vmx_pt_mode pt_mode;
	enum vmt_privacy privacy; /* pt: the side that reaches the file */
	uint64_t pt_buffer_bytes;
	const char *output; /* NULL: vmtrace-<domain>-<time>.vmt in the sessions' data folder */
	bool force, compress;
	uint64_t buffer_bytes, keep_ns, limit_bytes, duration_ns;
	const char *const *triggers; /* texts of vmt_trigger_parse */
	size_t nr_triggers;
	uint64_t before_ns, after_ns; /* of a trigger's snapshot, 0: 10 s and 2 s */
};

#define VMT_SESSION_STOPPED "it was stopped" /* end_reason: by the user's wish */

struct vmt_session_info {
	char id[40]; /* s-<time>-<pid> */
	pid_t pid;
	char file[512];
	char domains[256]; /* names, comma separated */
	char state[16];	   /* running, stale, stopped */
	uint64_t start_realtime_ns, elapsed_ns, file_bytes, records, exits, lost_records;
	uint64_t bytes_per_minute; /* predicted size; 0: not known, or bounded by keep_ns */
	uint64_t keep_ns;	   /* 0: all is kept */
	/* What is left of file_bytes, records and exits: less than these with keep_ns only. */
	uint64_t kept_bytes, kept_records, kept_exits;
	uint64_t pt_bytes;	 /* of Intel PT, all ever recorded */
	uint64_t pt_truncated;	 /* how often a buffer of Intel PT was full */
	uint64_t unknown_losses; /* losses whose size nobody knows: not in lost_records */
	uint64_t pt_partial;	 /* how often VMX stopped it for a while */
	uint64_t pt_collisions;	 /* how often a sample took its buffer */
	uint64_t pt_unstored;	 /* bytes that found no room in the file */
	uint64_t cpu_ns;	 /* CPU time of the recorder itself */
	uint64_t triggered;	 /* how often a trigger fired */
	uint64_t snapshots;	 /* that the session took of itself */
	char last_snapshot[640]; /* file, "" while there is none */
	char triggers[256];	 /* texts, "; " between them */
	char backend[64];
	char end_reason[128]; /* why it ended, "" while it runs */
	char last_error[640];
};

/*
 * Starts a recorder in the background and returns once capture runs. VMT_E_EXISTS when a domain
 * already has a session (diag names it).
 */
int vmt_session_start(const struct vmt_session_options *options, struct vmt_session_info *info,
		      struct vmt_diag *diag);

/*
 * The same in the foreground until stop_fd becomes readable, the duration is over or the source
 * ends; `live` is called about 4 times a second.
 */
typedef void vmt_session_live_fn(void *context, const struct vmt_session_info *info);
int vmt_session_record(const struct vmt_session_options *options, int stop_fd,
		       vmt_session_live_fn *live, void *context, struct vmt_session_info *info,
		       struct vmt_diag *diag);

/*
 * All sessions of this user (root: all); stale ones of killed recorders are recognised and cleaned.
 * Takes at most 3 s: one that does not answer says so in last_error.
 */
int vmt_session_list(struct vmt_session_info **out, size_t *count, struct vmt_diag *diag);

/* The same without asking the recorders: what they wrote about once a second. Does not wait. */
int vmt_session_list_known(struct vmt_session_info **out, size_t *count, struct vmt_diag *diag);

/* Finds one by id or domain name (NULL: the only one). VMT_E_NOT_FOUND. */
int vmt_session_find(const char *what, struct vmt_session_info *out, struct vmt_diag *diag);
int vmt_session_stop(const struct vmt_session_info *session, struct vmt_session_info *final,
		     struct vmt_diag *diag);
int vmt_session_snapshot(const struct vmt_session_info *session, const char *output, bool force,
			 struct vmt_session_info *info, struct vmt_diag *diag);

/* Where a snapshot goes that is given no name: beside the session's file, and of the time. */
void vmt_session_snapshot_path(const char *session_file, char *path, size_t size);

/*
 * Whether a running session that this user may see records into the file (by device and inode);
 * *out (may be NULL) is that session as of its last state file. No recorder is asked, nothing is
 * removed.
 */
bool vmt_session_of_file(dev_t device, ino_t inode, struct vmt_session_info *out);

/* The newest finished or running session (of a domain unless NULL) whose file is still there. */
int vmt_session_last(const char *domain, struct vmt_session_info *out, struct vmt_diag *diag);

/* Whether a running session is recording into the file at path (by whatever name). */
bool vmt_session_writes(const char *path);

/* Newest finished or running session's file (of a domain unless NULL). VMT_E_NOT_FOUND. */
int vmt_session_newest(const char *domain, char *path, size_t size, struct vmt_diag *diag);

#endif
