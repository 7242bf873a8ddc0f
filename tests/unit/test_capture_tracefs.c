// SPDX-License-Identifier: LGPL-2.1-or-later
/* tracefs wherever a mount table says it is, and what is said when it is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/capture/tracefs.h"
#include "tests/support/remove_all.h"

static char top[] = "/tmp/vmt-tracefs-XXXXXX";
static char mounts[64], found[VMT_TRACEFS_PATH_MAX];

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(top))
		return -1;
	snprintf(mounts, sizeof(mounts), "%s/mounts", top);
	return chmod(top, 0755);
}

static int tear_down(void **state)
{
	(void)state;
	return vmt_remove_all(top);
}

/* TOP/NAME/events, and TOP/NAME in the text of a mount table. */
static void make_folder(const char *name)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%s/events", top, name);
	mkdir(path, 0755);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void test_table(void **state)
{
	char table[600], want[200];
	struct vmt_diag diag = { 0 };

	(void)state;
	make_folder("tracing");
	make_folder("with space");
	snprintf(want, sizeof(want), "%s/debug", top);
	mkdir(want, 0755);
	make_folder("debug/tracing");

	/* a debugfs that stands earlier does not win */
	snprintf(table, sizeof(table),
		 "proc /proc proc rw 0 0\nd %s/debug debugfs rw 0 0\nt %s/tracing tracefs rw 0 0\n",
		 top, top);
	write_file(mounts, table);
	assert_int_equal(vmt_tracefs_find(mounts, found, sizeof(found), &diag), 0);
	snprintf(want, sizeof(want), "%s/tracing", top);
	assert_string_equal(found, want);

	snprintf(table, sizeof(table), "d %s/debug debugfs rw 0 0\n", top);
	write_file(mounts, table);
	assert_int_equal(vmt_tracefs_find(mounts, found, sizeof(found), &diag), 0);
	snprintf(want, sizeof(want), "%s/debug/tracing", top);
	assert_string_equal(found, want);

	snprintf(table, sizeof(table), "n %s/with\\040space tracefs rw 0 0\n", top);
	write_file(mounts, table);
	assert_int_equal(vmt_tracefs_find(mounts, found, sizeof(found), &diag), 0);
	snprintf(want, sizeof(want), "%s/with space", top);
	assert_string_equal(found, want);
}

static void test_absent(void **state)
{
	struct vmt_diag diag = { 0 };
	char table[200];

	(void)state;
	write_file(mounts, "proc /proc proc rw 0 0\nhalf a line");
	assert_int_equal(vmt_tracefs_find(mounts, found, sizeof(found), &diag), VMT_E_NOT_FOUND);
	assert_non_null(strstr(diag.cure, "mount -t tracefs"));
	/* mounted, but hidden under another mount: it shows no events */
	snprintf(table, sizeof(table), "t %s tracefs rw 0 0\n", top);
	write_file(mounts, table);
	vmt_diag_clear(&diag);
	assert_int_equal(vmt_tracefs_find(mounts, found, sizeof(found), &diag), VMT_E_NOT_FOUND);
	vmt_diag_clear(&diag);
	assert_int_equal(vmt_tracefs_find("/nonexistent/mounts", found, sizeof(found), &diag),
			 VMT_E_NOT_FOUND);
}

/* As a user who may not look into it. */
static void test_denied(void **state)
{
	char table[300], path[200];
	int status;
	pid_t child;

	(void)state;
	snprintf(path, sizeof(path), "%s/closed", top);
	mkdir(path, 0700);
	snprintf(table, sizeof(table), "t %s tracefs rw 0 0\n", path);
	write_file(mounts, table);
	child = fork();
	if (!child) {
		struct vmt_diag diag = { 0 };
		int err;

		if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
			_exit(2);
		if (geteuid() != 65534) /* a user's own folder cannot deny him */
			_exit(0);
		err = vmt_tracefs_find(mounts, found, sizeof(found), &diag);
		_exit(err == VMT_E_PERMISSION && strstr(diag.cure, path) ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_event(void **state)
{
	struct vmt_diag diag = { 0 };
	char path[300], *text;
	uint64_t id;

	(void)state;
	make_folder("ev");
	snprintf(path, sizeof(path), "%s/ev/events/kvm", top);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/ev/events/kvm/kvm_exit", top);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/ev/events/kvm/kvm_exit/format", top);
	write_file(path, "name: kvm_exit\nID: 77\nformat:\n");
	snprintf(path, sizeof(path), "%s/ev", top);
	assert_int_equal(vmt_tracefs_event(path, "kvm", "kvm_exit", &id, &text, &diag), 0);
	assert_int_equal(id, 77);
	assert_string_equal(text, "name: kvm_exit\nID: 77\nformat:\n");
	free(text);
	assert_int_equal(vmt_tracefs_event(path, "kvm", "kvm_entry", &id, &text, &diag),
			 VMT_E_CAPABILITY);
	assert_non_null(strstr(diag.what, "kvm:kvm_entry"));
	assert_null(text);
	snprintf(path, sizeof(path), "%s/ev/events/kvm/kvm_exit/format", top);
	write_file(path, "something else\n");
	snprintf(path, sizeof(path), "%s/ev", top);
	vmt_diag_clear(&diag);
	assert_int_equal(vmt_tracefs_event(path, "kvm", "kvm_exit", &id, &text, &diag),
			 VMT_E_DAMAGED);
}

/* In a mount namespace of its own, in a child: the test's own mounts stay as they are. */
static void test_private_mount(void **state)
{
	int status;
	pid_t child;

	(void)state;
	if (geteuid())
		skip();
	child = fork();
	if (!child) {
		char path[VMT_TRACEFS_PATH_MAX], *text;
		struct vmt_diag diag = { 0 };
		uint64_t id;
		int err = vmt_tracefs_mount_private(path, sizeof(path), &diag);

		if (err == VMT_E_PERMISSION || err == VMT_E_CAPABILITY)
			_exit(77); /* no CAP_SYS_ADMIN here, or no tracefs in this kernel */
		_exit(err || vmt_tracefs_event(path, "sched", "sched_switch", &id, &text, &diag));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),	      cmocka_unit_test(test_absent),
		cmocka_unit_test(test_denied),	      cmocka_unit_test(test_event),
		cmocka_unit_test(test_private_mount),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
