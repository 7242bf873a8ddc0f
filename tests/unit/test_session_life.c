// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The life of sessions, with a replayed capture for a domain of libvirt's test driver: start,
 * status, snapshot, stop; a second one on the same domain; a killed recorder; strangers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/session/control.h"
#include "host/session/registry.h"
#include "host/session/session.h"
#include "tests/support/remove_all.h"
#include "tests/support/replay_sample.h"
#include "tests/support/vmt_counts.h"

#define ROUNDS	30u
#define RECORDS (UINT64_C(2) * ROUNDS * REPLAY_SAMPLE_ROUND_EXITS)

static char top[] = "/tmp/vmt-session-XXXXXX";
static char runtime[64], recorded[64], backend[80], node[1024];

static int set_up(void **state)
{
	const char *project = getenv("VMT_TOP");

	(void)state;
	if (!mkdtemp(top))
		return -1;
	snprintf(runtime, sizeof(runtime), "%s/run", top);
	snprintf(recorded, sizeof(recorded), "%s/recorded.vmt", top);
	snprintf(backend, sizeof(backend), "replay:%s", recorded);
	snprintf(node, sizeof(node), "test://%s%s/virt-fixtures/libvirt/node-web01.xml",
		 project ? "" : getcwd((char[512]){ 0 }, 512), project ? project : "");
	setenv("VMTRACE_RUNTIME_DIR", runtime, 1);
	unsetenv("VMTRACE_DATA_DIR");
	replay_sample_write(recorded, ROUNDS, 10000000);
	return 0;
}

static int tear_down(void **state)
{
	struct vmt_session_info *list;
	size_t count;

	(void)state;
	/* of a test that failed half way */
	if (!vmt_session_list(&list, &count, NULL)) {
		for (size_t i = 0; i < count; i++)
			kill(list[i].pid, SIGKILL);
		free(list);
	}
	return vmt_remove_all(top);
}

static const char *const web01[] = { "web01" };

static struct vmt_session_options options_for(const char *output)
{
	return (struct vmt_session_options){
		.query = { .uri = node, .names = web01, .nr_names = 1 },
		.backend = backend,
		.output = output
	};
}

static struct vmt_session_info start(const char *output)
{
	struct vmt_session_options options = options_for(output);
	struct vmt_session_info info = { 0 };
	struct vmt_diag diag = { 0 };

	if (vmt_session_start(&options, &info, &diag))
		fail_msg("%s (%s)", diag.what, diag.cure);
	return info;
}

static struct vmt_session_info stop(const char *what)
{
	struct vmt_session_info info = { 0 }, final = { 0 };
	struct vmt_diag diag = { 0 };

	if (vmt_session_find(what, &info, &diag) || vmt_session_stop(&info, &final, &diag))
		fail_msg("%s (%s)", diag.what, diag.cure);
	return final;
}

static size_t count_sessions(const char *wanted)
{
	struct vmt_session_info *list;
	size_t count, found = 0;

	assert_int_equal(vmt_session_list(&list, &count, NULL), 0);
	for (size_t i = 0; i < count; i++)
		found += !strcmp(list[i].state, wanted);
	free(list);
	return found;
}

/* Waits until the session has all records of the recording. */
static void wait_for_records(const char *what, uint64_t records)
{
	struct vmt_session_info info;

	for (int i = 0; i < 1000; i++) {
		assert_int_equal(vmt_session_find(what, &info, NULL), 0);
		if (info.records >= records)
			return;
		usleep(10000);
	}
	fail_msg("only %llu of %llu records came", (unsigned long long)info.records,
		 (unsigned long long)records);
}

static void check_rights(pid_t pid)
{
	char path[64], line[256];
	unsigned long long effective = ~0ULL;
	unsigned long no_new_privs = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "CapEff:", 7))
			effective = strtoull(line + 7, NULL, 16);
		if (!strncmp(line, "NoNewPrivs:", 11))
			no_new_privs = strtoul(line + 11, NULL, 10);
	}
	fclose(f);
	assert_int_equal(no_new_privs, 1);
	/* PERFMON (38), SYS_PTRACE (19), DAC_READ_SEARCH (2) and nothing else */
	assert_int_equal(effective & ~(1ULL << 38 | 1ULL << 19 | 1ULL << 2), 0);
}

static void test_life(void **state)
{
	const uint64_t records = RECORDS;
	struct vmt_session_info info, final, snap;
	struct vmt_counts counts;
	char path[sizeof(final.file)], copy[100];

	(void)state;
	info = start(NULL);
	assert_string_equal(info.domains, "web01");
	assert_string_equal(info.state, "running");
	assert_true(info.bytes_per_minute > 0);
	check_rights(info.pid);
	assert_int_equal(count_sessions("running"), 1);
	wait_for_records("web01", records);
	snprintf(copy, sizeof(copy), "%s/copy.vmt", top);
	assert_int_equal(vmt_session_snapshot(&info, copy, false, &snap, NULL), 0);
	counts = vmt_counts_of(copy);
	assert_true(counts.readable && counts.closed && counts.records == records);
	assert_int_equal(vmt_session_snapshot(&info, copy, false, &snap, NULL), VMT_E_EXISTS);
	final = stop("web01");
	assert_string_equal(final.state, "stopped");
	assert_int_equal(final.records, records);
	assert_int_equal(final.exits, records / 2);
	assert_int_equal(final.lost_records, 0);
	assert_int_equal(count_sessions("running"), 0);
	counts = vmt_counts_of(final.file);
	assert_true(counts.readable && counts.closed && !counts.truncated);
	assert_int_equal(counts.records, records);
	assert_int_equal(counts.bad_records + counts.unknown_ids + counts.losses, 0);
	/* the recording's own start and stop are not this session's */
	assert_string_equal(counts.mark_names, "capture-start paused capture-stop ");
	/* who was recorded carries the name of who is asked for */
	assert_non_null(strstr(counts.last_session, "\"name\":\"web01\""));
	assert_non_null(strstr(counts.last_session, "\"tid\":4711"));
	assert_null(strstr(counts.last_session, "\"name\":\"recorded\""));
	assert_int_equal(vmt_session_newest("web01", path, sizeof(path), NULL), 0);
	assert_string_equal(path, final.file);
	assert_int_equal(vmt_session_newest(NULL, path, sizeof(path), NULL), 0);
	assert_int_equal(vmt_session_newest("web02", path, sizeof(path), NULL), VMT_E_NOT_FOUND);
}

static void test_second_is_refused(void **state)
{
	struct vmt_session_info first = start(NULL), second;
	struct vmt_session_options options = options_for(NULL);
	struct vmt_diag diag = { 0 };

	(void)state;
	assert_int_equal(vmt_session_start(&options, &second, &diag), VMT_E_EXISTS);
	assert_non_null(strstr(diag.what, first.id));
	assert_int_equal(count_sessions("running"), 1);
	stop(first.id);
	start(NULL); /* at once */
	stop(NULL);
}

static void test_killed(void **state)
{
	struct vmt_session_info info = start(NULL), *list;
	struct vmt_counts counts;
	struct vmt_diag diag = { 0 };
	size_t count;

	(void)state;
	kill(info.pid, SIGKILL);
	while (!kill(info.pid, 0))
		usleep(1000);
	assert_int_equal(vmt_session_list(&list, &count, NULL), 0);
	assert_int_equal(count, 1);
	assert_string_equal(list[0].state, "stale");
	assert_string_equal(list[0].file, info.file);
	assert_true(list[0].file_bytes > 0);
	free(list);
	assert_int_equal(count_sessions("stale"), 0); /* cleaned up */
	counts = vmt_counts_of(info.file);
	assert_true(counts.readable && !counts.closed && counts.truncated && counts.records > 0);
	assert_int_equal(vmt_session_find("web01", &info, &diag), VMT_E_NOT_FOUND);
	assert_non_null(strstr(diag.cure, "its capture is"));
	start(NULL); /* the domain is free */
	stop("web01");
}

static void test_stopped_by_signal(void **state)
{
	struct vmt_session_info info = start(NULL);
	struct vmt_counts counts;

	(void)state;
	kill(info.pid, SIGTERM);
	while (!kill(info.pid, 0))
		usleep(1000);
	counts = vmt_counts_of(info.file);
	assert_true(counts.readable && counts.closed);
	assert_int_equal(count_sessions("stale") + count_sessions("running"), 0);
}

static void test_duration(void **state)
{
	struct vmt_session_options options = options_for(NULL);
	struct vmt_session_info info;
	struct vmt_counts counts;

	(void)state;
	options.duration_ns = 100000000; /* shorter than start takes to be sure */
	assert_int_equal(vmt_session_start(&options, &info, NULL), 0);
	while (!kill(info.pid, 0))
		usleep(1000);
	counts = vmt_counts_of(info.file);
	assert_true(counts.readable && counts.closed);
}

static size_t count_entries(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	size_t count = 0;

	while (dir && (entry = readdir(dir)))
		count += entry->d_name[0] == 's' || strstr(entry->d_name, ".vmt") != NULL;
	if (dir)
		closedir(dir);
	return count;
}

/* A start that fails tells why and leaves nothing. */
static void test_failures(void **state)
{
	static const char *const nobody[] = { "web99" };
	struct vmt_session_options options = options_for(NULL);
	struct vmt_session_info info;
	struct vmt_diag diag = { 0 };
	char data[80], garbage[80], bad[100];
	size_t before;
	FILE *f;

	(void)state;
	snprintf(data, sizeof(data), "%s/data", runtime);
	before = count_entries(data);
	options.query.names = nobody;
	assert_int_equal(vmt_session_start(&options, &info, &diag), VMT_E_NOT_FOUND);
	assert_non_null(strstr(diag.what, "web99"));

	options = options_for(NULL);
	options.backend = "replay:/nonexistent.vmt";
	vmt_diag_clear(&diag);
	assert_int_equal(vmt_session_start(&options, &info, &diag), VMT_E_NOT_FOUND);

	snprintf(garbage, sizeof(garbage), "%s/garbage.vmt", top);
	f = fopen(garbage, "w");
	assert_non_null(f);
	fputs("this is no capture\n", f);
	fclose(f);
	snprintf(bad, sizeof(bad), "replay:%s", garbage);
	options.backend = bad;
	vmt_diag_clear(&diag);
	assert_int_equal(vmt_session_start(&options, &info, &diag), VMT_E_DAMAGED);

	options = options_for(recorded); /* an output that is there is kept */
	vmt_diag_clear(&diag);
	assert_int_equal(vmt_session_start(&options, &info, &diag), VMT_E_EXISTS);
	assert_true(vmt_counts_of(recorded).closed);

	assert_int_equal(count_entries(runtime), 0);
	assert_int_equal(count_entries(data), before);
}

static void test_foreground(void **state)
{
	struct vmt_session_options options;
	struct vmt_session_info info = { 0 };
	struct vmt_diag diag = { 0 };
	char output[80];
	int status;
	pid_t child;

	(void)state;
	snprintf(output, sizeof(output), "%s/foreground.vmt", top);
	options = options_for(output);
	/* In a child: rights that are given up are gone. */
	child = fork();
	if (!child)
		_exit(vmt_session_record(&options, -1, NULL, NULL, &info, &diag) ||
		      info.records != RECORDS);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_true(vmt_counts_of(output).closed);
}

/* A user who is neither the session's nor root. The folder is opened up, as nobody should. */
static void test_stranger(void **state)
{
	struct vmt_session_info info;
	char folder[VMT_SESSION_PATH_MAX], control[VMT_SESSION_PATH_MAX + 10];
	int status;
	pid_t child;

	(void)state;
	if (geteuid()) {
		print_message("# skipped: only root can become somebody else\n");
		skip();
	}
	info = start(NULL);
	assert_int_equal(vmt_registry_folder(info.id, folder, sizeof(folder), NULL), 0);
	snprintf(control, sizeof(control), "%s/control", folder);
	child = fork();
	if (!child) {
		struct vmt_diag diag = { 0 };

		if (setgid(65534) || setuid(65534))
			_exit(2);
		_exit(vmt_control_ask(folder, VMT_CONTROL_STOP, 5000, &info, &diag) !=
		      VMT_E_PERMISSION);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0); /* the folder itself keeps him out */
	assert_int_equal(chmod(top, 0755) | chmod(runtime, 0755) | chmod(folder, 0755) |
				 chmod(control, 0666),
			 0);
	child = fork();
	if (!child) {
		struct vmt_diag diag = { 0 };

		if (setgid(65534) || setuid(65534))
			_exit(2);
		_exit(vmt_control_ask(folder, VMT_CONTROL_STOP, 5000, &info, &diag) !=
			      VMT_E_PERMISSION ||
		      !strstr(diag.what, "closed the connection"));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0); /* and the recorder does */
	chmod(runtime, 0700);
	assert_int_equal(count_sessions("running"), 1);
	stop(NULL);
}

/* A file system that is full all the time: the session lives, and says what it lost. */
static void test_no_space(void **state)
{
	char small[64], output[80], large[64], from[80];
	struct vmt_session_options options;
	struct vmt_session_info info, final;
	struct vmt_counts counts;

	(void)state;
	snprintf(small, sizeof(small), "%s/small", top);
	mkdir(small, 0700);
	if (geteuid() || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", small, "tmpfs", 0, "size=400k")) {
		print_message("# skipped: a small file system cannot be mounted here\n");
		skip();
	}
	snprintf(large, sizeof(large), "%s/large.vmt", top);
	replay_sample_write(large, 300, 1000000);
	snprintf(from, sizeof(from), "replay:%s", large);
	snprintf(output, sizeof(output), "%s/full.vmt", small);
	options = options_for(output);
	options.backend = from;
	assert_int_equal(vmt_session_start(&options, &info, NULL), 0);
	wait_for_records("web01", UINT64_C(300) * REPLAY_SAMPLE_ROUND_EXITS * 2);
	final = stop("web01");
	assert_true(final.last_error[0]);
	counts = vmt_counts_of(output);
	assert_true(counts.readable && counts.records > 0 && counts.records < final.records);
	assert_true(counts.losses > 0 || counts.truncated);
	umount(small);
}

/* A size limit ends the session in order, with a word about it. */
static void test_limit(void **state)
{
	struct vmt_session_options options = options_for(NULL);
	struct vmt_session_info info;
	struct vmt_counts counts;
	struct vmt_diag diag = { 0 };
	char large[64], from[80];
	struct stat st;

	(void)state;
	snprintf(large, sizeof(large), "%s/limit.vmt", top);
	replay_sample_write(large, 300, 1000000);
	snprintf(from, sizeof(from), "replay:%s", large);
	options.backend = from;
	options.limit_bytes = 400000;
	assert_int_equal(vmt_session_start(&options, &info, NULL), 0);
	while (!kill(info.pid, 0))
		usleep(1000);
	assert_int_equal(vmt_session_find("web01", &info, &diag), VMT_E_NOT_FOUND);
	assert_int_equal(vmt_history_newest("web01", &info, NULL), 0);
	assert_non_null(strstr(info.last_error, "size limit"));
	assert_int_equal(stat(info.file, &st), 0);
	assert_true((uint64_t)st.st_size <= options.limit_bytes);
	counts = vmt_counts_of(info.file);
	assert_true(counts.readable && counts.closed && counts.losses > 0);
}

/* The newest part only: the front is dropped, on purpose and told as such. */
static void test_keep(void **state)
{
	struct vmt_session_options options = options_for(NULL);
	struct vmt_session_info info, final;
	struct vmt_counts counts;
	struct vmt_diag diag = { 0 };
	char large[64], from[80];

	(void)state;
	snprintf(large, sizeof(large), "%s/keep.vmt", top);
	replay_sample_write(large, 1000, 2000000);
	snprintf(from, sizeof(from), "replay:%s", large);
	options.backend = from;
	options.keep_ns = 400000000;
	assert_int_equal(vmt_session_start(&options, &info, &diag), 0);
	wait_for_records("web01", UINT64_C(2000) * REPLAY_SAMPLE_ROUND_EXITS);
	final = stop("web01");
	if (final.last_error[0]) {
		print_message("# skipped: %s\n", final.last_error);
		skip();
	}
	counts = vmt_counts_of(final.file);
	assert_true(counts.readable && counts.closed && counts.records > 0);
	assert_true(counts.records < final.records / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life),	   cmocka_unit_test(test_second_is_refused),
		cmocka_unit_test(test_killed),	   cmocka_unit_test(test_stopped_by_signal),
		cmocka_unit_test(test_duration),   cmocka_unit_test(test_failures),
		cmocka_unit_test(test_foreground), cmocka_unit_test(test_stranger),
		cmocka_unit_test(test_no_space),   cmocka_unit_test(test_limit),
		cmocka_unit_test(test_keep),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
