// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * kill -9 of the recorder at 200 random moments, from before its file exists to the middle of the
 * capture. Each time: the file can be read, it says that it was not closed, and what is in it is
 * whole; the next command finds the session stale, or nothing at all when it was never begun.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host/session/session.h"
#include "tests/support/remove_all.h"
#include "tests/support/replay_sample.h"
#include "tests/support/vmt_counts.h"

#define WORKERS	      8
#define KILLS_EACH    25
#define MOMENT_MAX_US 700000

static char top[] = "/tmp/vmt-kill9-XXXXXX";
static char recorded[64], backend[80];

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(top))
		return -1;
	snprintf(recorded, sizeof(recorded), "%s/recorded.vmt", top);
	snprintf(backend, sizeof(backend), "replay:%s", recorded);
	replay_sample_write(recorded, 500, 2000000); /* a second */
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return vmt_remove_all(top);
}

/* What a worker saw, as bits of its exit status. */
enum {
	SAW_WITH_RECORDS = 1,
	SAW_UNBORN = 2,
	SAW_FAULT = 4,
};

static int fault(const char *what, const char *path)
{
	fprintf(stderr, "# kill9: %s: %s\n", what, path);
	return SAW_FAULT;
}

static int check_file(const char *path)
{
	struct vmt_counts counts;
	struct stat st;

	if (stat(path, &st) || st.st_size == 0)
		return SAW_UNBORN;
	counts = vmt_counts_of(path);
	if (!counts.readable)
		return fault("not readable", path);
	if (counts.closed || !counts.truncated)
		return fault("does not say that it was not closed", path);
	if (counts.bad_records || counts.unknown_ids || counts.losses)
		return fault("holds what is not whole", path);
	if (counts.records % REPLAY_SAMPLE_ROUND_EXITS)
		return fault("a chunk is not whole", path);
	return counts.records ? SAW_WITH_RECORDS : 0;
}

/* After the kill: at most one stale session, with this file; then none. */
static int check_registry(const char *path)
{
	struct vmt_session_info *list;
	size_t count;
	int result = 0;

	if (vmt_session_list(&list, &count, NULL))
		return fault("sessions cannot be listed", path);
	if (count > 1 ||
	    (count && (strcmp(list[0].state, "stale") != 0 || strcmp(list[0].file, path) != 0)))
		result = fault("the session is not told as stale", path);
	free(list);
	if (vmt_session_list(&list, &count, NULL) || count)
		return fault("the session is not cleaned up", path);
	free(list);
	return result;
}

static int kill_once(int worker, int round)
{
	struct vmt_session_options options = { .backend = backend };
	struct timespec moment = { 0, random() % MOMENT_MAX_US * 1000L };
	char path[100];
	int result;
	pid_t child;

	snprintf(path, sizeof(path), "%s/w%d/%d.vmt", top, worker, round);
	options.output = path;
	child = fork();
	if (!child) {
		struct vmt_session_info info;

		_exit(vmt_session_record(&options, -1, NULL, NULL, &info, NULL) ? 1 : 0);
	}
	nanosleep(&moment, NULL);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	result = check_file(path) | check_registry(path);
	unlink(path);
	return result;
}

static int work(int worker)
{
	char runtime[80];
	int seen = 0;

	snprintf(runtime, sizeof(runtime), "%s/w%d", top, worker);
	mkdir(runtime, 0700);
	setenv("VMTRACE_RUNTIME_DIR", runtime, 1);
	unsetenv("VMTRACE_DATA_DIR");
	srandom((unsigned int)(time(NULL) + worker * 1000L));
	for (int i = 0; i < KILLS_EACH; i++)
		seen |= kill_once(worker, i);
	return seen;
}

static void test_200_moments(void **state)
{
	pid_t workers[WORKERS];
	int seen = 0;

	(void)state;
	for (int i = 0; i < WORKERS; i++) {
		workers[i] = fork();
		if (!workers[i])
			_exit(work(i));
	}
	for (int i = 0; i < WORKERS; i++) {
		int status;

		assert_int_equal(waitpid(workers[i], &status, 0), workers[i]);
		assert_true(WIFEXITED(status));
		seen |= WEXITSTATUS(status);
	}
	assert_int_equal(seen & SAW_FAULT, 0);
	assert_true(seen & SAW_WITH_RECORDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_200_moments) };

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
