/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SESSION_FLIGHT_H
#define VMT_SESSION_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/capture/trigger.h"
#include "host/session/session.h"

/*
 * The flight recorder: a running session copies a stretch of its own file when a trigger fires
 * (from before_ns before that moment to after_ns after it) or when it is asked to (SIGUSR2: all
 * that it holds). The copy is made by a child, so that the rings are drained meanwhile; one at a
 * time. All of a session together hold no more than its --limit.
 */
struct vmt_flight {
	struct vmt_trigger triggers[VMT_TRIGGERS_MAX];
	size_t nr_triggers;
	uint64_t before_ns, after_ns;
	uint64_t fired_ns; /* perf clock, of the trigger whose stretch is to be copied; 0: none */
	bool asked;	   /* the same by SIGUSR2 */
	int folder;	   /* of the session's file, -1: not known */
	int result;	   /* readable when the child is done, -1: there is none */
	pid_t child;
	uint64_t bytes; /* of the copies so far */
};

struct vmt_recorder;

/* Reads the triggers. VMT_E_USAGE with the offset of what is wrong. */
int vmt_flight_init(struct vmt_flight *flight, const struct vmt_session_options *options,
		    struct vmt_diag *diag);

/* How much a file must keep for the triggers, at least keep_ns; 0 stays 0. */
uint64_t vmt_flight_keep_ns(const struct vmt_flight *flight, uint64_t keep_ns);

/* Once the session's file is there. */
void vmt_flight_open(struct vmt_recorder *r);

/* After each drain: takes what fired, begins copies that are due, and notes what became of them. */
void vmt_flight_step(struct vmt_recorder *r);

/* SIGUSR2 came. */
void vmt_flight_ask(struct vmt_recorder *r);

/* The file is finished: copies what is still due, and waits for it. Nothing to do when open failed.
 */
void vmt_flight_close(struct vmt_recorder *r);

#endif
