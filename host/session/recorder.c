// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The recorder's loop. Invariant: whatever ends it (a request, a signal, the duration, the limit,
 * the domains), the rings are drained once more and the file is closed in order.
 */
#include "host/session/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "decode/io/diagf.h"
#include "decode/io/sys.h"
#include "host/session/control.h"
#include "host/session/recorder_state.h"

#define FLUSH_NS	 250000000
#define WATCH_NS	 25000000 /* with triggers: how long one may stay unseen */
#define STATE_PERIOD_NS	 UINT64_C(1000000000)
#define EVENTS_A_TICK	 64
#define PREDICT_AFTER_NS UINT64_C(200000000)

enum source {
	SOURCE_TICK,
	SOURCE_CAPTURE,
	SOURCE_CONTROL,
	SOURCE_STOP,
	SOURCE_SNAPSHOT,
	SOURCE_CONNECTION
};

void vmt_recorder_note(struct vmt_recorder *r, const struct vmt_diag *diag)
{
	char text[sizeof(r->info.last_error)];

	snprintf(text, sizeof(text), "%s%s%s", diag->what, diag->cure[0] ? ": " : "", diag->cure);
	if (!strcmp(text, r->info.last_error))
		return;
	memcpy(r->info.last_error, text, sizeof(text));
	if (r->logs)
		dprintf(STDERR_FILENO, "vmtrace: warning: %s\n", text);
}

static void give_reason(struct vmt_recorder *r, const char *format, va_list args)
{
	if (!r->info.end_reason[0])
		vsnprintf(r->info.end_reason, sizeof(r->info.end_reason), format, args);
}

void vmt_recorder_end(struct vmt_recorder *r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	give_reason(r, format, args);
	va_end(args);
	r->stop = true;
}

/* The source has ended; a replay in the background goes on all the same until it is stopped. */
__attribute__((format(printf, 2, 3))) static void end_source(struct vmt_recorder *r,
							     const char *format, ...)
{
	va_list args;

	r->source_ended = true;
	if (r->is_replay && !r->foreground)
		return;
	va_start(args, format);
	give_reason(r, format, args);
	va_end(args);
}

const struct vmt_session_info *vmt_recorder_info(const struct vmt_recorder *r)
{
	return &r->info;
}

void vmt_recorder_update(struct vmt_recorder *r)
{
	struct vmt_capture_stats stats = vmt_capture_stats(r->capture);
	struct vmt_store_totals totals = vmt_store_totals(r->store);
	uint64_t bytes = totals.file_bytes;

	r->info.elapsed_ns = vmt_io_monotonic_ns() - r->start_monotonic_ns;
	r->info.file_bytes = bytes;
	r->info.records = stats.records;
	r->info.exits = stats.exits;
	r->info.lost_records = stats.lost_records;
	r->info.unknown_losses = stats.unknown_losses;
	r->info.pt_bytes = stats.pt_bytes;
	r->info.pt_truncated = stats.pt_truncated;
	r->info.pt_partial = stats.pt_partial;
	r->info.pt_collisions = stats.pt_collisions;
	r->info.pt_unstored = stats.pt_unstored;
	r->info.cpu_ns = stats.cpu_ns;
	r->info.kept_bytes = bytes - totals.dropped_bytes;
	r->info.kept_records = stats.records - totals.dropped_records;
	r->info.kept_exits = stats.exits - totals.dropped_exits;
	if (!r->info.keep_ns && r->info.elapsed_ns > PREDICT_AFTER_NS)
		r->info.bytes_per_minute = (uint64_t)((double)(bytes - r->head_bytes) * 60e9 /
						      (double)r->info.elapsed_ns);
}

/* ---- what happens ---- */

/* What the store refuses for its size limit, it will refuse again; a full disk may be freed. */
static bool reached_limit(const struct vmt_recorder *r)
{
	struct vmt_store_totals t = vmt_store_totals(r->store);

	return !r->options->keep_ns && t.refusal && !strcmp(t.refusal, "size-limit");
}

static void drain(struct vmt_recorder *r, int (*take)(struct vmt_capture *, struct vmt_diag *))
{
	struct vmt_diag diag = { 0 };
	int result = take(r->capture, &diag);

	if (result == 1)
		end_source(r, r->is_replay ? "the recording is over"
					   : "the processes of its domains have ended");
	if (result >= 0)
		return;
	vmt_recorder_note(r, &diag);
	if (result == VMT_E_FULL && reached_limit(r))
		vmt_recorder_end(r, "the size limit of %llu bytes is reached (--limit)",
				 (unsigned long long)r->limit_bytes);
	if (result == VMT_E_DAMAGED && r->is_replay)
		end_source(r, "the recording cannot be read further");
}

static void mark(struct vmt_recorder *r, size_t domain, const struct vmt_watch_event *event)
{
	static const char *const ends[] = { "stopped", "crashed", "migrated-away" };
	struct vmt_diag diag = { 0 };

	if (vmt_capture_mark(r->capture, (uint32_t)domain, event->name, event->detail, &diag) < 0)
		vmt_recorder_note(r, &diag);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		r->ended[domain] |= !strcmp(event->name, ends[i]);
}

static void watch_domains(struct vmt_recorder *r)
{
	struct vmt_watch_event event;
	size_t ended = 0;

	for (int i = 0; i < EVENTS_A_TICK && r->watch; i++) {
		bool of_connection;

		if (vmt_watch_next(r->watch, 0, &event) != 1)
			break;
		of_connection = !event.uuid[0];
		for (size_t d = 0; d < r->domains.count; d++) {
			if (of_connection || !strcmp(r->domains.items[d].uuid, event.uuid))
				mark(r, d, &event);
		}
	}
	for (size_t d = 0; d < r->domains.count; d++)
		ended += r->ended[d];
	if (ended && ended == r->domains.count)
		end_source(r, ended == 1 ? "its domain is not running here any more"
					 : "its domains are not running here any more");
}

static void add_connection(struct vmt_recorder *r, int epoll)
{
	int fd = vmt_control_accept(r->listener);

	if (fd < 0)
		return;
	for (size_t i = 0; i < VMT_CONNECTIONS_MAX; i++) {
		struct epoll_event watch = { .events = EPOLLIN | EPOLLRDHUP,
					     .data.u64 = SOURCE_CONNECTION + i };

		if (r->connections[i] >= 0)
			continue;
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &watch))
			break;
		r->connections[i] = fd;
		r->waits_for_end[i] = false;
		return;
	}
	close(fd); /* all places are taken: the peer sees a closed connection and asks again */
}

static void serve(struct vmt_recorder *r, size_t index)
{
	int fd = r->connections[index];

	if (r->waits_for_end[index]) { /* it hung up, or says more than it may */
		close(fd);
		r->connections[index] = -1;
		return;
	}
	switch (vmt_control_read(fd)) {
	case VMT_CONTROL_STOP:
		r->waits_for_end[index] = true;
		vmt_recorder_end(r, "%s", VMT_SESSION_STOPPED);
		return;
	case VMT_CONTROL_FLUSH:
		drain(r, vmt_capture_flush);
		vmt_recorder_update(r);
		vmt_control_answer(fd, &r->info);
		break;
	case VMT_CONTROL_STATUS:
		vmt_recorder_update(r);
		vmt_control_answer(fd, &r->info);
		break;
	case VMT_CONTROL_NONE:
		close(fd);
		break;
	}
	r->connections[index] = -1;
}

static void tick(struct vmt_recorder *r, const struct vmt_recorder_run *run)
{
	uint64_t now = vmt_io_monotonic_ns();

	drain(r, vmt_capture_drain);
	vmt_flight_step(r);
	if (now < r->tick_due_ns)
		return;
	r->tick_due_ns = now + FLUSH_NS - WATCH_NS / 2;
	watch_domains(r);
	vmt_recorder_update(r);
	if (run->live)
		run->live(run->context, &r->info);
	if (now >= r->state_due_ns) {
		vmt_folder_write(&r->folder, &r->info, NULL);
		r->state_due_ns = now + STATE_PERIOD_NS;
	}
	if (r->options->duration_ns && r->info.elapsed_ns >= r->options->duration_ns)
		vmt_recorder_end(r, "its duration is over (--duration)");
}

/* ---- the loop ---- */

static int add(int epoll, int fd, enum source source)
{
	struct epoll_event watch = { .events = EPOLLIN, .data.u64 = source };

	return fd < 0 ? 0 : epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &watch);
}

static int signals(int first, int second)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, first);
	sigaddset(&set, second);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int flush_timer(const struct vmt_recorder *r)
{
	long ns = r->flight.nr_triggers ? WATCH_NS : FLUSH_NS;
	struct itimerspec period = { { 0, ns }, { 0, ns } };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (r->options->duration_ns && r->options->duration_ns < (uint64_t)ns)
		period.it_value.tv_nsec = (long)r->options->duration_ns;
	if (fd >= 0)
		timerfd_settime(fd, 0, &period, NULL);
	return fd;
}

/* What the loop waits for. */
struct waits {
	int epoll, timer, stop, snapshot;
};

static void handle(struct vmt_recorder *r, const struct vmt_recorder_run *run,
		   const struct waits *waits, const struct epoll_event *event)
{
	struct signalfd_siginfo signal;
	uint64_t ticks;

	switch (event->data.u64) {
	case SOURCE_TICK:
		if (read(waits->timer, &ticks, sizeof(ticks)) == sizeof(ticks))
			tick(r, run);
		break;
	case SOURCE_CAPTURE:
		drain(r, vmt_capture_drain);
		break;
	case SOURCE_SNAPSHOT:
		if (read(waits->snapshot, &signal, sizeof(signal)) == sizeof(signal))
			vmt_flight_ask(r);
		break;
	case SOURCE_CONTROL:
		add_connection(r, waits->epoll);
		break;
	case SOURCE_STOP:
		vmt_recorder_end(r, "%s",
				 run->handle_signals ? "a signal ended it" : VMT_SESSION_STOPPED);
		break;
	default:
		serve(r, event->data.u64 - SOURCE_CONNECTION);
		break;
	}
}

static bool is_over(const struct vmt_recorder *r, const struct vmt_recorder_run *run)
{
	return r->stop || (r->source_ended && (!r->is_replay || run->end_with_source));
}

static int loop(struct vmt_recorder *r, const struct vmt_recorder_run *run,
		const struct waits *waits, struct vmt_diag *diag)
{
	bool told = !run->ready;

	vmt_recorder_update(r);
	if (run->live)
		run->live(run->context, &r->info);
	while (!is_over(r, run)) {
		struct epoll_event events[16];
		int n = epoll_wait(waits->epoll, events, 16, -1);

		if (n < 0 && errno != EINTR)
			return vmt_diag_printf(diag, VMT_E_IO, errno, NULL, "cannot wait");
		for (int i = 0; i < n; i++)
			handle(r, run, waits, &events[i]);
		if (!told && r->info.elapsed_ns >= run->ready_after_ns) {
			told = true;
			if (!run->ready(run->context, &r->info))
				break;
		}
	}
	if (!told) {
		vmt_recorder_update(r);
		run->ready(run->context, &r->info);
	}
	return 0;
}

int vmt_recorder_run(struct vmt_recorder *r, const struct vmt_recorder_run *run,
		     struct vmt_diag *diag)
{
	const struct waits waits = { .epoll = epoll_create1(EPOLL_CLOEXEC),
				     .timer = flush_timer(r),
				     .stop = run->handle_signals ? signals(SIGTERM, SIGINT) : -1,
				     .snapshot = signals(SIGUSR2, SIGUSR2) };
	int err;

	r->foreground = !run->handle_signals;
	r->logs = run->handle_signals;
	if (waits.epoll < 0 || waits.timer < 0 || add(waits.epoll, waits.timer, SOURCE_TICK) ||
	    add(waits.epoll, vmt_capture_fd(r->capture), SOURCE_CAPTURE) ||
	    add(waits.epoll, r->listener, SOURCE_CONTROL) ||
	    add(waits.epoll, waits.stop, SOURCE_STOP) ||
	    add(waits.epoll, waits.snapshot, SOURCE_SNAPSHOT) ||
	    add(waits.epoll, run->stop_fd, SOURCE_STOP))
		err = vmt_diag_printf(diag, VMT_E_IO, errno, NULL, "cannot wait for events");
	else
		err = loop(r, run, &waits, diag);
	for (size_t i = 0; i < 4; i++) {
		const int fds[] = { waits.epoll, waits.timer, waits.stop, waits.snapshot };

		if (fds[i] >= 0)
			close(fds[i]);
	}
	return err;
}

/* ---- the end ---- */

static void answer_waiting(struct vmt_recorder *r)
{
	for (size_t i = 0; i < VMT_CONNECTIONS_MAX; i++) {
		if (r->connections[i] < 0)
			continue;
		if (r->waits_for_end[i])
			vmt_control_answer(r->connections[i], &r->info);
		else
			close(r->connections[i]);
	}
}

static int end_capture(struct vmt_recorder *r, struct vmt_diag *diag)
{
	int err = vmt_capture_stop(r->capture, diag);

	vmt_recorder_update(r);
	snprintf(r->info.state, sizeof(r->info.state), "stopped");
	return err;
}

/*
 * The kernel closes a tracepoint in some 30 ms, and a capture has dozens. A child that holds the
 * descriptors a moment longer takes that wait over, so that a command at a terminal does not.
 * Returns the descriptor whose closing lets the child go, -1 when there is no child.
 */
static int leave_closing_to_child(void)
{
	int fds[2], null;
	char byte;
	pid_t child;

	if (pipe2(fds, O_CLOEXEC))
		return -1;
	child = fork();
	if (child) {
		close(fds[0]);
		if (child > 0)
			return fds[1];
		close(fds[1]);
		return -1;
	}
	close(fds[1]);
	setsid();
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd <= 2; fd++)
		dup2(null, fd);
	_exit(read(fds[0], &byte, 1) < 0);
}

/* The rest of the file went to an inode without a name. */
static void note_missing(struct vmt_recorder *r)
{
	struct vmt_diag diag = { 0 };

	vmt_diag_set(&diag, VMT_E_NOT_FOUND, "the capture's file was removed while it was written",
		     "its records are lost");
	vmt_recorder_note(r, &diag);
}

int vmt_recorder_close(struct vmt_recorder *r, struct vmt_session_info *info, struct vmt_diag *diag)
{
	int err = 0, held;

	if (r->capture)
		err = end_capture(r, diag);
	if (r->store) {
		int finished = vmt_store_finish(r->store, diag);
		struct stat st;

		err = err ? err : finished;
		if (!stat(r->info.file, &st)) {
			uint64_t dropped = r->info.file_bytes - r->info.kept_bytes;

			r->info.file_bytes = (uint64_t)st.st_size;
			r->info.kept_bytes = r->info.file_bytes - dropped;
		} else if (!finished) {
			note_missing(r);
		}
	}
	if (r->capture) {
		vmt_flight_close(r);
		vmt_history_write(&r->info, NULL);
	}
	if (r->folder.dir >= 0)
		vmt_folder_remove(&r->folder);
	for (size_t i = 0; i < r->nr_locks; i++)
		close(r->locks[i]);
	/* Whoever waits for the end may start anew from here on. */
	answer_waiting(r);
	if (r->listener >= 0)
		close(r->listener);
	if (r->watch)
		vmt_watch_close(r->watch);
	held = r->foreground && r->capture ? leave_closing_to_child() : -1;
	if (r->capture)
		vmt_capture_close(r->capture, NULL);
	if (held >= 0)
		close(held);
	vmt_domains_free(&r->domains);
	if (info)
		*info = r->info;
	free(r->ended);
	free(r);
	return err;
}
