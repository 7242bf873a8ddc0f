// SPDX-License-Identifier: LGPL-2.1-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/session/control.h"
#include "host/session/info.h"
#include "host/session/registry.h"
#include "tests/support/remove_all.h"

static char top[] = "/tmp/vmt-registry-XXXXXX";
static char runtime[64];

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(top))
		return -1;
	snprintf(runtime, sizeof(runtime), "%s/run", top);
	setenv("VMTRACE_RUNTIME_DIR", runtime, 1);
	unsetenv("VMTRACE_DATA_DIR");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return vmt_remove_all(top);
}

static struct vmt_session_info sample(const char *id, uint64_t start_ns)
{
	struct vmt_session_info info = { .pid = 77,
					 .start_realtime_ns = start_ns,
					 .elapsed_ns = 5,
					 .file_bytes = UINT64_C(1) << 40,
					 .records = 7,
					 .exits = 6,
					 .lost_records = 1,
					 .bytes_per_minute = 99 };

	snprintf(info.id, sizeof(info.id), "%s", id);
	snprintf(info.file, sizeof(info.file), "%s/a \"b\".vmt", top);
	strcpy(info.domains, "web01,web02");
	strcpy(info.state, "running");
	strcpy(info.backend, "auto");
	strcpy(info.last_error, "nothing");
	return info;
}

static void test_info_text(void **state)
{
	struct vmt_session_info info = sample("s-1", 3), back;
	char *text = vmt_info_to_json(&info);

	(void)state;
	assert_non_null(text);
	assert_true(vmt_info_from_json(text, strlen(text), &back));
	assert_memory_equal(&info, &back, sizeof(info));
	free(text);
	assert_false(vmt_info_from_json("[1]", 3, &back));
	assert_false(vmt_info_from_json("{\"id\":", 6, &back));
	assert_true(vmt_info_from_json("{\"id\":7,\"pid\":\"x\"}", 18, &back));
	assert_string_equal(back.id, "");
	assert_true(vmt_info_has_domain(&info, "web02"));
	assert_false(vmt_info_has_domain(&info, "web0"));
	assert_false(vmt_info_has_domain(&info, ""));
}

static void test_folders_must_be_safe(void **state)
{
	char path[VMT_SESSION_PATH_MAX], link[80];
	struct vmt_diag diag = { 0 };

	(void)state;
	assert_int_equal(vmt_path_runtime(path, sizeof(path), &diag), 0);
	assert_string_equal(path, runtime);
	assert_int_equal(chmod(runtime, 0777), 0);
	assert_int_equal(vmt_path_runtime(path, sizeof(path), &diag), VMT_E_PERMISSION);
	assert_int_equal(chmod(runtime, 0700), 0);
	snprintf(link, sizeof(link), "%s/link", top);
	assert_int_equal(symlink(runtime, link), 0);
	setenv("VMTRACE_RUNTIME_DIR", link, 1);
	vmt_diag_clear(&diag);
	assert_int_equal(vmt_path_runtime(path, sizeof(path), &diag), VMT_E_PERMISSION);
	setenv("VMTRACE_RUNTIME_DIR", runtime, 1);
	if (geteuid() == 0) {
		assert_int_equal(chown(runtime, 65534, 65534), 0);
		vmt_diag_clear(&diag);
		assert_int_equal(vmt_path_runtime(path, sizeof(path), &diag), VMT_E_PERMISSION);
		assert_int_equal(chown(runtime, 0, 0), 0);
	}
	assert_int_equal(vmt_path_runtime(path, 5, NULL), VMT_E_LIMIT);
	vmt_path_safe_name("../a b/\x1b[31mc", path, sizeof(path));
	assert_string_equal(path, "_._a_b___31mc");
}

static void test_lock(void **state)
{
	struct vmt_diag diag = { 0 };
	int first = vmt_domain_lock("u-1", "s-first", &diag), second;

	(void)state;
	assert_true(first >= 0);
	assert_int_equal(vmt_domain_lock("u-1", "s-second", &diag), VMT_E_EXISTS);
	assert_non_null(strstr(diag.what, "s-first"));
	second = vmt_domain_lock("u-2", "s-second", NULL);
	assert_true(second >= 0);
	close(first);
	close(second);
	first = vmt_domain_lock("u-1", "s", NULL);
	assert_true(first >= 0);
	close(first);
}

/* One that lives, one whose recorder is gone, one that never had a state, and what is none. */
static void test_list(void **state)
{
	struct vmt_session_folder living, dead, blank;
	struct vmt_session_info info = sample("s-living", 20), *list;
	char path[80];
	size_t count;

	(void)state;
	assert_int_equal(vmt_folder_make(&living, "s-living", NULL), 0);
	assert_int_equal(vmt_folder_write(&living, &info, NULL), 0);
	assert_int_equal(vmt_folder_make(&dead, "s-dead", NULL), 0);
	info = sample("s-other", 10); /* a state file cannot claim another's id */
	assert_int_equal(vmt_folder_write(&dead, &info, NULL), 0);
	assert_int_equal(vmt_folder_make(&blank, "s-blank", NULL), 0);
	close(dead.alive);
	close(blank.alive);
	snprintf(path, sizeof(path), "%s/something", runtime);
	mkdir(path, 0700);
	assert_int_equal(vmt_registry_list(&list, &count, NULL), 0);
	assert_int_equal(count, 2);
	assert_string_equal(list[0].id, "s-dead");
	assert_string_equal(list[0].state, "stale");
	assert_string_equal(list[1].id, "s-living");
	assert_string_equal(list[1].state, "running");
	free(list);
	assert_int_equal(vmt_registry_list(&list, &count, NULL), 0);
	assert_int_equal(count, 1);
	free(list);
	vmt_folder_remove(&living);
	close(dead.dir);
	close(blank.dir);
	assert_int_equal(vmt_registry_list(&list, &count, NULL), 0);
	assert_int_equal(count, 0);
	free(list);
	assert_int_equal(vmt_registry_folder("s-living", (char[100]){ 0 }, 100, NULL),
			 VMT_E_NOT_FOUND);
	assert_int_equal(vmt_registry_folder("../run", (char[100]){ 0 }, 100, NULL),
			 VMT_E_NOT_FOUND);
}

static void test_history(void **state)
{
	struct vmt_session_info out;
	char id[40];
	FILE *f;

	(void)state;
	assert_int_equal(vmt_history_newest(NULL, &out, NULL), VMT_E_NOT_FOUND);
	f = fopen(sample("s", 0).file, "w");
	assert_non_null(f);
	fclose(f);
	for (unsigned int i = 0; i < 230; i++) {
		struct vmt_session_info info;

		snprintf(id, sizeof(id), "s-20260101-%06u-1", i);
		info = sample(id, i);
		if (i == 100)
			strcpy(info.domains, "old");
		if (i == 229)
			strcpy(info.file, "/nonexistent.vmt");
		assert_int_equal(vmt_history_write(&info, NULL), 0);
	}
	assert_int_equal(vmt_history_newest(NULL, &out, NULL), 0);
	assert_string_equal(out.id, "s-20260101-000228-1");
	assert_int_equal(vmt_history_newest("old", &out, NULL), 0);
	assert_string_equal(out.id, "s-20260101-000100-1");
	assert_int_equal(vmt_history_newest("new", &out, NULL), VMT_E_NOT_FOUND);
}

/* What a recorder accepts as a request. */
static void test_requests(void **state)
{
	static const struct {
		const char *text;
		enum vmt_control_request request;
	} rows[] = {
		{ "{\"do\":\"status\"}", VMT_CONTROL_STATUS },
		{ "{\"do\":\"stop\"}", VMT_CONTROL_STOP },
		{ "{\"do\":\"flush\"}", VMT_CONTROL_FLUSH },
		{ "{\"do\":\"stop\"} ", VMT_CONTROL_NONE },
		{ "{\"do\":", VMT_CONTROL_NONE },
		{ "stop", VMT_CONTROL_NONE },
	};
	char large[5000];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int fds[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
		assert_true(send(fds[0], rows[i].text, strlen(rows[i].text), 0) > 0);
		assert_int_equal(vmt_control_read(fds[1]), rows[i].request);
		assert_int_equal(vmt_control_read(fds[1]), VMT_CONTROL_NONE); /* nothing there */
		memset(large, '{', sizeof(large));
		assert_true(send(fds[0], large, sizeof(large), 0) > 0);
		assert_int_equal(vmt_control_read(fds[1]), VMT_CONTROL_NONE);
		close(fds[0]);
		assert_int_equal(vmt_control_read(fds[1]), VMT_CONTROL_NONE);
		close(fds[1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_info_text), cmocka_unit_test(test_folders_must_be_safe),
		cmocka_unit_test(test_lock),	  cmocka_unit_test(test_list),
		cmocka_unit_test(test_history),	  cmocka_unit_test(test_requests),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
