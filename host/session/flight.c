// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: the recorder never waits for a copy while it captures; a copy is in its place whole or
 * not at all, and what became of it is told.
 */
#include "host/session/flight.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "decode/io/diagf.h"
#include "host/session/recorder_state.h"

#define DEFAULT_BEFORE UINT64_C(10000000000)
#define DEFAULT_AFTER  UINT64_C(2000000000)
#define CHILD_RESULT   3 /* descriptors of the child */
#define CHILD_FOLDER   4

/* What the child tells, once. Below PIPE_BUF. */
struct result {
	int err;
	uint64_t bytes;
	struct vmt_diag diag;
	char path[640];
};

_Static_assert(sizeof(struct result) <= 4096, "the message must be written in one piece");

int vmt_flight_init(struct vmt_flight *flight, const struct vmt_session_options *options,
		    struct vmt_diag *diag)
{
	*flight = (struct vmt_flight){
		.before_ns = options->before_ns ? options->before_ns : DEFAULT_BEFORE,
		.after_ns = options->after_ns ? options->after_ns : DEFAULT_AFTER,
		.folder = -1,
		.result = -1
	};
	if (!options->nr_triggers && (options->before_ns || options->after_ns))
		return vmt_diag_set(diag, VMT_E_USAGE,
				    "--before and --after are of a trigger, and none is given",
				    "add --trigger EXPR");
	for (size_t i = 0; i < options->nr_triggers; i++) {
		int err = vmt_trigger_parse(options->triggers[i],
					    &flight->triggers[flight->nr_triggers++], diag);

		if (err)
			return err;
	}
	return 0;
}

uint64_t vmt_flight_keep_ns(const struct vmt_flight *flight, uint64_t keep_ns)
{
	uint64_t least = flight->nr_triggers ? flight->before_ns + flight->after_ns : 0;

	return keep_ns && keep_ns < least ? least : keep_ns;
}

void vmt_flight_open(struct vmt_recorder *r)
{
	char folder[sizeof(r->info.file)];
	char *slash;

	snprintf(folder, sizeof(folder), "%s", r->info.file);
	slash = strrchr(folder, '/'); /* the path is absolute */
	slash[slash == folder] = '\0';
	r->flight.folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* ---- the child ---- */

/*
 * By the folder's descriptor: whatever happened to the path meanwhile, nothing is written
 * elsewhere. Where the recorder has no right to write any more, the copy goes to the data folder.
 */
static void copy(const struct vmt_recorder *r, const struct vmt_store_snapshot *options,
		 struct result *result)
{
	const char *own_name = strrchr(r->info.file, '/') + 1;
	char name[256];
	char from[VMT_SESSION_PATH_MAX + 32], to[VMT_SESSION_PATH_MAX];
	char folder[VMT_SESSION_PATH_MAX - 160];
	struct vmt_store_totals totals = { 0 };
	struct stat st;

	snprintf(from, sizeof(from), "/proc/self/fd/%d/%s", CHILD_FOLDER, own_name);
	if (stat(from, &st) || !S_ISREG(st.st_mode)) {
		result->err = vmt_diag_set(&result->diag, VMT_E_NOT_FOUND,
					   "there is no file to copy from",
					   "the capture's file was removed, or is a pipe");
		return;
	}
	vmt_session_snapshot_path(r->info.file, result->path, sizeof(result->path));
	snprintf(name, sizeof(name), "%.255s", strrchr(result->path, '/') + 1);
	snprintf(to, sizeof(to), "/proc/self/fd/%d/%s", CHILD_FOLDER, name);
	result->err = vmt_store_snapshot(from, to, options, &totals, &result->diag);
	if (result->err == VMT_E_PERMISSION &&
	    !vmt_path_data(folder, sizeof(folder), &result->diag)) {
		snprintf(result->path, sizeof(result->path), "%s/%s", folder, name);
		vmt_diag_clear(&result->diag);
		result->err =
			vmt_store_snapshot(from, result->path, options, &totals, &result->diag);
	}
	result->bytes = totals.file_bytes;
}

/* Keeps nothing of the recorder's but the two descriptors: not its locks, nor its events. */
_Noreturn static void child(const struct vmt_recorder *r, int result_fd, int folder,
			    const struct vmt_store_snapshot *options)
{
	struct result result = { 0 };
	int high = fcntl(folder, F_DUPFD, CHILD_FOLDER + 1);

	dup2(result_fd, CHILD_RESULT);
	dup2(high, CHILD_FOLDER);
	if (syscall(SYS_close_range, CHILD_FOLDER + 1, ~0U, 0)) {
		for (int fd = CHILD_FOLDER + 1; fd < 4096; fd++)
			close(fd);
	}
	copy(r, options, &result);
	_exit(write(CHILD_RESULT, &result, sizeof(result)) != (ssize_t)sizeof(result));
}

/* ---- the recorder ---- */

static void fail(struct vmt_recorder *r, const char *why, const char *cure)
{
	struct vmt_diag diag = { 0 };

	vmt_diag_printf(&diag, VMT_E_IO, 0, cure, "no snapshot was taken: %s", why);
	vmt_recorder_note(r, &diag);
}

static void begin_copy(struct vmt_recorder *r, uint64_t from_ns)
{
	struct vmt_flight *f = &r->flight;
	uint64_t limit = r->limit_bytes > f->bytes ? r->limit_bytes - f->bytes : 0;
	struct vmt_store_snapshot options = { .store = { .compress = r->options->compress,
							 .limit_bytes = limit },
					      .from_ns = from_ns };
	int fds[2];

	if (limit < VMT_STORE_LIMIT_MIN) {
		fail(r, "those of this session hold --limit", "stop it and start anew");
		return;
	}
	options.store.min_free_bytes = vmt_path_free_guard(r->info.file);
	if (f->folder < 0 || pipe2(fds, O_CLOEXEC)) {
		fail(r, "descriptors are short", "");
		return;
	}
	f->child = fork();
	if (f->child == 0)
		child(r, fds[1], f->folder, &options);
	close(fds[1]);
	f->result = f->child > 0 ? fds[0] : -1;
	if (f->child > 0)
		return;
	close(fds[0]);
	fail(r, "no process can be made", "");
}

/* Waits for the child, and says what it did. */
static void collect(struct vmt_recorder *r)
{
	struct vmt_flight *f = &r->flight;
	struct result result;
	ssize_t n;

	do
		n = read(f->result, &result, sizeof(result));
	while (n < 0 && errno == EINTR);
	close(f->result);
	f->result = -1;
	while (waitpid(f->child, NULL, 0) < 0 && errno == EINTR)
		;
	if (n != (ssize_t)sizeof(result)) {
		fail(r, "the process that copied it was killed", "");
	} else if (result.err) {
		fail(r, result.diag.what, result.diag.cure);
	} else {
		f->bytes += result.bytes;
		r->info.snapshots++;
		snprintf(r->info.last_snapshot, sizeof(r->info.last_snapshot), "%s", result.path);
	}
}

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* The trace that Intel PT's buffers hold now would be overwritten until the stretch is over. */
static void take_hit(struct vmt_recorder *r)
{
	struct vmt_diag diag = { 0 };
	struct vmt_trigger_hit hit;

	if (!vmt_capture_triggered(r->capture, &hit))
		return;
	r->info.triggered++;
	if (vmt_capture_mark(r->capture, 0, "trigger", hit.detail, &diag) < 0)
		vmt_recorder_note(r, &diag);
	vmt_diag_clear(&diag);
	if (r->flight.fired_ns)
		return;
	r->flight.fired_ns = hit.time_ns;
	if (vmt_capture_flush(r->capture, &diag) < 0)
		vmt_recorder_note(r, &diag);
}

/* Begins the copy that is due: of a trigger when its stretch is over, or at the session's end. */
static void begin_due(struct vmt_recorder *r, bool at_end)
{
	struct vmt_flight *f = &r->flight;
	struct vmt_diag diag = { 0 };
	uint64_t from_ns = 0;

	if (f->fired_ns &&
	    (at_end || vmt_capture_seen_ns(r->capture) >= f->fired_ns + f->after_ns)) {
		from_ns = f->fired_ns > f->before_ns ? f->fired_ns - f->before_ns : 0;
		f->fired_ns = 0;
	} else if (f->asked) {
		f->asked = false;
	} else {
		return;
	}
	if (!at_end && vmt_capture_flush(r->capture, &diag) < 0)
		vmt_recorder_note(r, &diag);
	begin_copy(r, from_ns);
}

void vmt_flight_step(struct vmt_recorder *r)
{
	take_hit(r);
	if (r->flight.result >= 0 && is_readable(r->flight.result))
		collect(r);
	if (r->flight.result < 0)
		begin_due(r, false);
}

void vmt_flight_ask(struct vmt_recorder *r)
{
	r->flight.asked = true;
	vmt_flight_step(r);
}

void vmt_flight_close(struct vmt_recorder *r)
{
	struct vmt_flight *f = &r->flight;

	/* One under way, one of a trigger, one that was asked for. */
	for (int i = 0; i < 3; i++) {
		if (f->result >= 0)
			collect(r);
		begin_due(r, true);
	}
	if (f->result >= 0)
		collect(r);
	if (f->folder >= 0)
		close(f->folder);
	f->folder = -1;
}
