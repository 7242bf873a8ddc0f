// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/cli/session_text.h"
#include "host/cli/to_stdout.h"

/* The live line, and the command that waits until the capture runs. */
struct foreground {
	const struct vmt_cli *cli;
	bool show, to_stdout;
	uint64_t last_exits, last_ns;
	pid_t command; /* 0: none */
	int go_fd;     /* written to when the command may start, -1: done */
	char warned[sizeof(((struct vmt_session_info *)0)->last_error)]; /* told already */
	int command_status;
};

static void wait_and_run(const struct foreground *f, char **command, const sigset_t *old_mask,
			 int go)
{
	char byte;
	ssize_t n;

	do
		n = read(go, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(0); /* the capture did not come up: its error is told by the parent */
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	sigprocmask(SIG_SETMASK, old_mask, NULL);
	if (f->to_stdout) /* which is for the capture alone */
		dup2(STDERR_FILENO, STDOUT_FILENO);
	execvp(command[0], command);
	fprintf(stderr,
		"vmtrace: error: cannot run %s: %s\n"
		"  what stands after -- must be a program in PATH, or the path of one\n",
		command[0], strerror(errno));
	_exit(127);
}

/* The child exists before rights are dropped: it keeps the user's own. */
static int start_command(struct foreground *f, char **command, const sigset_t *old_mask)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return -1;
	fflush(NULL);
	f->command = fork();
	if (f->command == 0) {
		close(fds[1]);
		wait_and_run(f, command, old_mask, fds[0]);
	}
	close(fds[0]);
	f->go_fd = fds[1];
	return f->command < 0 ? -1 : 0;
}

/* Each warning once, when it comes up. */
static void tell_warning(struct foreground *f, const struct vmt_session_info *info)
{
	if (!strcmp(info->last_error, f->warned))
		return;
	memcpy(f->warned, info->last_error, sizeof(f->warned));
	if (f->show)
		fputc('\n', stderr);
	vmt_cli_warn(f->cli, f->warned);
}

static void on_live(void *context, const struct vmt_session_info *info)
{
	struct foreground *f = context;
	char size[24];
	uint64_t span = info->elapsed_ns - f->last_ns;

	if (f->go_fd >= 0) {
		/* A command that is gone already ends the session by its descriptor. */
		if (write(f->go_fd, "g", 1) != 1)
			f->command_status = 127;
		close(f->go_fd);
		f->go_fd = -1;
	}
	tell_warning(f, info);
	if (f->show && span)
		fprintf(stderr, "\r%7.1f s  %9.0f exits/s  %10s  %llu records lost ",
			(double)info->elapsed_ns / 1e9,
			(double)(info->exits - f->last_exits) * 1e9 / (double)span,
			vmt_text_bytes(size, sizeof(size), info->file_bytes),
			(unsigned long long)info->lost_records);
	f->last_exits = info->exits;
	f->last_ns = info->elapsed_ns;
}

/* What the user cannot see himself: that the command did not end in order, or was not let. */
static void tell_command(const struct foreground *f, bool was_ended, int status,
			 const char *end_reason)
{
	char text[240];

	if (was_ended)
		snprintf(text, sizeof(text),
			 "the capture ended before the command (%s): the command got SIGTERM",
			 *end_reason ? end_reason : "it failed");
	else if (WIFSIGNALED(status))
		snprintf(text, sizeof(text), "signal %d ended the command", WTERMSIG(status));
	else if (WEXITSTATUS(status))
		snprintf(text, sizeof(text), "the command ended with status %d",
			 WEXITSTATUS(status));
	else
		return;
	vmt_cli_warn(f->cli, text);
}

static void end_command(struct foreground *f, const char *end_reason)
{
	bool running = false;
	int status = 0;

	bool started = f->go_fd < 0;

	if (f->go_fd >= 0)
		close(f->go_fd);
	f->go_fd = -1;
	if (f->command <= 0)
		return;
	if (!started) { /* it ends by itself, unstarted */
		while (waitpid(f->command, &status, 0) < 0 && errno == EINTR)
			;
		return;
	}
	/* Still running: the duration is over, or the domain has gone. */
	if (waitpid(f->command, &status, WNOHANG) == 0) {
		running = true;
		kill(f->command, SIGTERM);
		while (waitpid(f->command, &status, 0) < 0 && errno == EINTR)
			;
	}
	tell_command(f, running, status, end_reason);
	f->command_status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

/* One descriptor that is readable at a signal of the set and at the end of the command. */
static int stop_source(sigset_t *set, pid_t command)
{
	struct epoll_event watch = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC), ended = -1, signals;

	if (command > 0) {
		ended = (int)syscall(SYS_pidfd_open, command, 0);
		if (ended < 0) { /* before Linux 5.3 */
			sigaddset(set, SIGCHLD);
			sigprocmask(SIG_BLOCK, set, NULL);
		}
	}
	signals = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (epoll < 0 || signals < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, signals, &watch) ||
	    (ended >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, ended, &watch)))
		return -1;
	return epoll;
}

/* The signal that ended the capture is still pending: it is not to end the copy as well. */
static int copy_to_stdout(const char *path, const sigset_t *old_mask, struct vmt_diag *diag)
{
	const struct timespec at_once = { 0, 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	while (sigtimedwait(&set, NULL, &at_once) > 0)
		;
	sigprocmask(SIG_SETMASK, old_mask, NULL);
	return vmt_to_stdout(path, diag);
}

static int run(struct vmt_cli *cli, struct foreground *f, int stop_fd, const sigset_t *old_mask)
{
	bool to_stdout = vmt_is_stdout(cli->output);
	FILE *out = to_stdout ? stderr : stdout;
	struct vmt_session_options options;
	struct vmt_session_info info;
	struct vmt_diag diag = { 0 };
	char path[sizeof(info.file)];
	int err;

	vmt_session_options_of(cli, &options);
	if (!options.output)
		options.output = to_stdout ? path : "vmtrace.vmt";
	if (to_stdout && vmt_to_stdout_path(path, sizeof(path), &diag))
		return vmt_cli_fail(&diag);
	err = vmt_session_record(&options, stop_fd, on_live, f, &info, &diag);
	if (f->show)
		fputc('\n', stderr);
	end_command(f, err ? "" : info.end_reason);
	if (!err && to_stdout) {
		err = copy_to_stdout(path, old_mask, &diag);
		snprintf(info.file, sizeof(info.file), "-");
	}
	if (err)
		return vmt_cli_fail(&diag);
	if (strcmp(info.last_error, f->warned) != 0)
		vmt_cli_warn(cli, info.last_error);
	if (cli->format == VMT_FORMAT_JSON)
		vmt_print_session_json(out, &info);
	else
		vmt_print_session_summary(out, &info);
	return f->command_status == 127 ? VMT_STATUS_FAILURE : vmt_session_judge(cli, &info);
}

int vmt_verb_record(struct vmt_cli *cli)
{
	struct foreground f = { .cli = cli,
				.show = !cli->quiet && isatty(STDERR_FILENO),
				.to_stdout = vmt_is_stdout(cli->output),
				.go_fd = -1 };
	bool replay = cli->backend && !strncmp(cli->backend, "replay:", 7);
	struct vmt_diag diag = { 0 };
	sigset_t set, old;
	int stop_fd, status;

	if (vmt_session_no_csv(cli) || vmt_session_sides(cli))
		return VMT_STATUS_USAGE;
	if (!cli->nr_domains && !cli->nr_pids && !cli->all && !replay)
		return vmt_cli_usage(cli, "no domain is named",
				     "use --domain NAME, --all, or --pid PID; vmtrace list shows "
				     "the domains");
	if (vmt_is_stdout(cli->output) && vmt_to_stdout_check(&diag))
		return vmt_cli_fail(&diag);
	vmt_session_sweep(cli);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &old);
	/* Neither a terminal nor a reader of the messages that goes away may cut the file off. */
	signal(SIGPIPE, SIG_IGN);
	if (cli->command && start_command(&f, cli->command, &old))
		stop_fd = -1;
	else
		stop_fd = stop_source(&set, f.command);
	if (stop_fd < 0) {
		vmt_diag_set(&diag, VMT_E_IO, "cannot start the command",
			     "descriptors or processes are exhausted");
		return vmt_cli_fail(&diag);
	}
	status = run(cli, &f, stop_fd, &old);
	close(stop_fd);
	return status;
}
