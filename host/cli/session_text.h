/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CLI_SESSION_TEXT_H
#define VMT_CLI_SESSION_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "host/cli/cli.h"
#include "host/cli/text.h"
#include "host/session/session.h"

/* What start, stop, status, snapshot and record share. */

/* "1.5 MiB"; buf of at least 24 bytes. */
char *vmt_text_bytes(char *buf, size_t size, uint64_t bytes);

/* One session as JSON, with a schema and a newline. */
void vmt_print_session_json(FILE *out, const struct vmt_session_info *info);
/* Many, on standard output: {"schema":…,"sessions":[…]}. */
void vmt_print_sessions_json(const struct vmt_session_info *list, size_t count);

/* "web01: 12.0 s, 3.4 MiB in FILE, 12345 exits, 0 records lost" */
void vmt_print_session_summary(FILE *out, const struct vmt_session_info *info);

/* Intel PT of a session: how much, and what was lost. */
void vmt_print_trace(FILE *out, const char *label, const struct vmt_session_info *info);

/* CPU time of the recorder, also of each exit. What tracing costs the kernel is not in it. */
void vmt_print_cost(FILE *out, const char *label, const struct vmt_session_info *info);

/* Two lines of a session with triggers, or that took snapshots of itself. */
void vmt_print_flight(FILE *out, const struct vmt_session_info *info);

/* The session options of the command line; domain names stay in cli. */
void vmt_session_options_of(const struct vmt_cli *cli, struct vmt_session_options *out);

/* Which session: the argument, else --domain, else NULL (the only one). */
const char *vmt_session_wanted(const struct vmt_cli *cli);

/* Says for each killed recorder which file survives (and cleans up behind it). */
void vmt_session_sweep(const struct vmt_cli *cli);

/* The exit status of a capture that is over: VMT_STATUS_LOSS beyond --max-loss. */
int vmt_session_judge(const struct vmt_cli *cli, const struct vmt_session_info *info);

/* A usage error where --mode and --privacy contradict each other. */
int vmt_session_sides(const struct vmt_cli *cli);

/* 0, or a usage error for --format csv: there is no table. */
int vmt_session_no_csv(const struct vmt_cli *cli);

#endif
