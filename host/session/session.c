// SPDX-License-Identifier: LGPL-2.1-or-later
/* Invariant: start has returned only when the recorder captures, or is gone with its reason told.
 */
#include "host/session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "decode/io/diagf.h"
#include "decode/io/sys.h"
#include "decode/store/store.h"
#include "host/session/control.h"
#include "host/session/guard.h"
#include "host/session/info.h"
#include "host/session/recorder.h"
#include "host/session/registry.h"

#define READY_AFTER_NS	UINT64_C(500000000)
#define ASK_TIMEOUT_MS	5000u
#define LIST_TIMEOUT_MS 1000u		     /* of one recorder */
#define LIST_ALL_NS	UINT64_C(3000000000) /* of all: a user may plant many for root */
#define STOP_TIMEOUT_MS 60000u

/* What the recorder tells its starter over the pipe, once. Below PIPE_BUF. */
struct ready {
	int err;
	struct vmt_diag diag;
	struct vmt_session_info info;
};

_Static_assert(sizeof(struct ready) <= 4096, "the message must be written in one piece");

/* ---- the recorder's process ---- */

static bool tell(int pipe_fd, const struct ready *message)
{
	return write(pipe_fd, message, sizeof(*message)) == (ssize_t)sizeof(*message);
}

static bool tell_ready(void *context, const struct vmt_session_info *info)
{
	struct ready message = { .info = *info };
	int *pipe_fd = context;
	bool ok = tell(*pipe_fd, &message);

	close(*pipe_fd);
	*pipe_fd = -1;
	return ok;
}

/* Nothing of the starter's terminal, pipes or locks may be held by the recorder. */
static void let_go(int *keep)
{
	int null = open("/dev/null", O_RDWR);

	for (int fd = 0; fd <= 2 && null >= 0; fd++)
		dup2(null, fd);
	if (*keep != 3)
		*keep = dup2(*keep, 3);
	fcntl(*keep, F_SETFD, FD_CLOEXEC);
	if (syscall(SYS_close_range, 4, ~0U, 0)) {
		for (int fd = 4; fd < 4096; fd++)
			close(fd);
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	umask(077);
}

static void open_log(const struct vmt_session_info *info)
{
	char folder[VMT_SESSION_PATH_MAX], path[VMT_SESSION_PATH_MAX + 8];
	int fd;

	if (vmt_registry_folder(info->id, folder, sizeof(folder), NULL))
		return;
	snprintf(path, sizeof(path), "%s/log", folder);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	dup2(fd, STDERR_FILENO);
	close(fd);
}

static int recorder_process(const struct vmt_session_options *options, int pipe_fd)
{
	struct vmt_recorder *recorder;
	struct ready message = { 0 };
	struct vmt_recorder_run run = { .stop_fd = -1,
					.handle_signals = true,
					.ready_after_ns = READY_AFTER_NS,
					.ready = tell_ready,
					.context = &pipe_fd };
	struct vmt_diag diag = { 0 };

	let_go(&pipe_fd);
	message.err = vmt_recorder_open(&recorder, options, &message.diag);
	if (message.err) {
		tell(pipe_fd, &message);
		return 1;
	}
	open_log(vmt_recorder_info(recorder));
	if (chdir("/")) /* every path is absolute by now; the starter's folder may be unmounted */
		dprintf(STDERR_FILENO, "vmtrace: warning: cannot leave the current folder\n");
	vmt_recorder_run(recorder, &run, &diag);
	return vmt_recorder_close(recorder, NULL, &diag) ? 1 : 0;
}

/* The output is named in the starter's folder; the recorder keeps that folder as its own. */
static pid_t spawn(const struct vmt_session_options *options, const int pipe_fds[2])
{
	pid_t child = fork();

	if (child)
		return child;
	/* Twice: the recorder is nobody's child, and cannot get a terminal. */
	if (setsid() < 0 || (child = fork()) < 0)
		_exit(1);
	if (child)
		_exit(0);
	close(pipe_fds[0]);
	_exit(recorder_process(options, pipe_fds[1]));
}

int vmt_session_start(const struct vmt_session_options *options, struct vmt_session_info *info,
		      struct vmt_diag *diag)
{
	struct ready message;
	int fds[2];
	pid_t child;
	ssize_t n;

	if (pipe2(fds, O_CLOEXEC))
		return vmt_diag_printf(diag, VMT_E_IO, errno, NULL, "cannot make a pipe");
	child = spawn(options, fds);
	close(fds[1]);
	if (child < 0) {
		close(fds[0]);
		return vmt_diag_printf(diag, VMT_E_IO, errno, NULL, "cannot start a recorder");
	}
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	do
		n = read(fds[0], &message, sizeof(message));
	while (n < 0 && errno == EINTR);
	close(fds[0]);
	if (n != (ssize_t)sizeof(message))
		return vmt_diag_set(diag, VMT_E_IO, "the recorder ended before it was ready",
				    "it was killed, or it failed: the system's log may say why");
	if (message.err) {
		if (diag && !diag->code)
			*diag = message.diag;
		return message.err;
	}
	*info = message.info;
	return 0;
}

int vmt_session_record(const struct vmt_session_options *options, int stop_fd,
		       vmt_session_live_fn *live, void *context, struct vmt_session_info *info,
		       struct vmt_diag *diag)
{
	struct vmt_recorder *recorder;
	struct vmt_recorder_run run = {
		.stop_fd = stop_fd, .end_with_source = true, .live = live, .context = context
	};
	int err = vmt_recorder_open(&recorder, options, diag), closed;

	if (err)
		return err;
	err = vmt_recorder_run(recorder, &run, diag);
	closed = vmt_recorder_close(recorder, info, diag);
	return err ? err : closed;
}

/* ---- the others ---- */

/* What the recorder says itself; else what it last wrote, and that it does not answer. */
static void ask_status(struct vmt_session_info *info, uint64_t end_ns)
{
	char folder[VMT_SESSION_PATH_MAX];
	struct vmt_session_info live;
	struct vmt_diag diag = { 0 };
	uint64_t now_ns = vmt_io_monotonic_ns();
	uint64_t left_ms = now_ns < end_ns ? (end_ns - now_ns) / 1000000 : 0;
	unsigned int timeout_ms =
		left_ms < LIST_TIMEOUT_MS ? (unsigned int)left_ms : LIST_TIMEOUT_MS;

	if (vmt_registry_folder(info->id, folder, sizeof(folder), NULL))
		return;
	if (!vmt_control_ask(folder, VMT_CONTROL_STATUS, timeout_ms, &live, &diag))
		*info = live;
	else if (diag.code == VMT_E_TIMEOUT)
		snprintf(info->last_error, sizeof(info->last_error), "%.120s: %.120s", diag.what,
			 diag.cure);
}

int vmt_session_list(struct vmt_session_info **out, size_t *count, struct vmt_diag *diag)
{
	uint64_t end_ns = vmt_io_monotonic_ns() + LIST_ALL_NS;
	int err = vmt_registry_list(out, count, diag);

	for (size_t i = 0; !err && i < *count; i++) {
		if (strcmp((*out)[i].state, "stale") != 0)
			ask_status(&(*out)[i], end_ns);
	}
	return err;
}

int vmt_session_list_known(struct vmt_session_info **out, size_t *count, struct vmt_diag *diag)
{
	return vmt_registry_list(out, count, diag);
}

static bool is_meant(const struct vmt_session_info *info, const char *what)
{
	return !what || !strcmp(info->id, what) || vmt_info_has_domain(info, what);
}

static int not_found(const char *what, struct vmt_diag *diag)
{
	struct vmt_session_info last;

	vmt_diag_printf(diag, VMT_E_NOT_FOUND, 0, "vmtrace start --domain NAME starts one",
			what ? "no session of %s is running" : "no session is running%s",
			what ? what : "");
	if (!vmt_history_newest(what, &last, NULL))
		vmt_diag_cure(diag, "the last one is over (%s); its capture is %s",
			      last.end_reason[0] ? last.end_reason : "it was killed", last.file);
	return VMT_E_NOT_FOUND;
}

int vmt_session_find(const char *what, struct vmt_session_info *out, struct vmt_diag *diag)
{
	struct vmt_session_info *list;
	size_t count, found = 0;
	int err = vmt_registry_list(&list, &count, diag);

	if (err)
		return err;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(list[i].state, "stale") != 0 && is_meant(&list[i], what) && !found++)
			*out = list[i];
	}
	free(list);
	if (found == 1)
		return 0;
	if (!found)
		return not_found(what, diag);
	return vmt_diag_printf(diag, VMT_E_USAGE, 0,
			       "name one by its id or its domain: vmtrace status lists them",
			       "%zu sessions are running", found);
}

static int ask(const struct vmt_session_info *session, enum vmt_control_request request,
	       unsigned int timeout_ms, struct vmt_session_info *answer, struct vmt_diag *diag)
{
	char folder[VMT_SESSION_PATH_MAX];
	int err = vmt_registry_folder(session->id, folder, sizeof(folder), diag);

	return err ? err : vmt_control_ask(folder, request, timeout_ms, answer, diag);
}

int vmt_session_stop(const struct vmt_session_info *session, struct vmt_session_info *final,
		     struct vmt_diag *diag)
{
	return ask(session, VMT_CONTROL_STOP, STOP_TIMEOUT_MS, final, diag);
}

int vmt_session_snapshot(const struct vmt_session_info *session, const char *output, bool force,
			 struct vmt_session_info *info, struct vmt_diag *diag)
{
	struct vmt_store_snapshot options = { .store = { .force = force } };
	struct vmt_store_totals totals;
	char path[VMT_SESSION_PATH_MAX];
	int err = ask(session, VMT_CONTROL_FLUSH, ASK_TIMEOUT_MS, info, diag);

	if (!err)
		err = vmt_path_absolute(output, path, sizeof(path), diag);
	if (err)
		return err;
	err = vmt_guard_output(path, NULL, diag);
	if (err)
		return err;
	options.store.min_free_bytes = vmt_path_free_guard(path);
	/* By the asker, with the asker's rights: the recorder writes no path that it is given. */
	err = vmt_store_snapshot(info->file, path, &options, &totals, diag);
	if (err)
		return err;
	snprintf(info->file, sizeof(info->file), "%s", path);
	info->file_bytes = totals.file_bytes;
	return 0;
}

void vmt_session_snapshot_path(const char *session_file, char *path, size_t size)
{
	size_t len = strlen(session_file);
	time_t now = time(NULL);
	char when[24] = "0";
	struct tm tm;

	if (len > 4 && !strcmp(session_file + len - 4, ".vmt"))
		len -= 4;
	if (localtime_r(&now, &tm))
		strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &tm);
	snprintf(path, size, "%.*s-snapshot-%s.vmt", (int)len, session_file, when);
	for (int i = 2; !access(path, F_OK) && i < 100; i++) /* of the same second */
		snprintf(path, size, "%.*s-snapshot-%s-%d.vmt", (int)len, session_file, when, i);
}

bool vmt_session_of_file(dev_t device, ino_t inode, struct vmt_session_info *out)
{
	struct vmt_session_info *list;
	size_t count;
	bool found = false;

	if (vmt_registry_look(&list, &count, NULL))
		return false;
	for (size_t i = 0; i < count && !found; i++) {
		struct stat st;

		found = strcmp(list[i].state, "stale") != 0 && !stat(list[i].file, &st) &&
			st.st_dev == device && st.st_ino == inode;
		if (found && out)
			*out = list[i];
	}
	free(list);
	return found;
}

int vmt_session_last(const char *domain, struct vmt_session_info *out, struct vmt_diag *diag)
{
	return vmt_history_newest(domain, out, diag);
}

int vmt_session_newest(const char *domain, char *path, size_t size, struct vmt_diag *diag)
{
	struct vmt_session_info info;
	int err = vmt_history_newest(domain, &info, diag);

	if (err)
		return err;
	if ((size_t)snprintf(path, size, "%s", info.file) >= size)
		return vmt_diag_set(diag, VMT_E_LIMIT, "the path of the capture is too long",
				    "name the file with -i");
	return 0;
}

bool vmt_session_writes(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) &&
	       vmt_session_of_file(st.st_dev, st.st_ino, NULL);
}
