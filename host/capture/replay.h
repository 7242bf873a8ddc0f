/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_REPLAY_H
#define VMT_CAPTURE_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/store/store.h"
#include "host/capture/ring.h"

/*
 * A recorded .vmt as a source: its items are written again at the pace of their records' times. The
 * file is hostile input: records are read by the checked parser, and waiting is bounded.
 */
struct vmt_replay;

struct vmt_replay_setup {
	const char *path;
	const char *base_json; /* session document without the recorded facts */
	const struct vmt_domains *domains;
	struct vmt_store_writer *store;
	struct vmt_trigger_watch *watch; /* NULL: none; must outlive the replay */
};

/* Opens the file; reads nothing of it yet. Errors of vmt_reader_open. */
int vmt_replay_open(struct vmt_replay **out, const struct vmt_replay_setup *setup,
		    struct vmt_diag *diag);
void vmt_replay_close(struct vmt_replay *replay);

/* A timer that becomes readable when the next records are due. */
int vmt_replay_fd(const struct vmt_replay *replay);

/*
 * Writes what is due. 1 when the recording has ended. VMT_E_DAMAGED when the file is no .vmt (first
 * call); errors of the store, after which the replay goes on.
 */
int vmt_replay_drain(struct vmt_replay *replay, struct vmt_capture_counts *counts,
		     struct vmt_diag *diag);

/* The recording's clock now; after its end the time of the end. 0 before the first record. */
uint64_t vmt_replay_now_ns(const struct vmt_replay *replay);

/* Up to when all records were written; UINT64_MAX after the end. */
uint64_t vmt_replay_seen_ns(const struct vmt_replay *replay);

#endif
