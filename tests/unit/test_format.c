/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tracepoint formats: every fixture of every kernel, and texts that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/stream.h"

static const char *const kernels[] = { "4.18", "5.4", "5.10", "5.15", "6.1", "6.18" };

static void kvm_exit_of_6_18(void **state)
{
	struct vmt_format f = vmt_stream_format("6.18", "kvm_exit");
	const struct vmt_format_field *rip = vmt_format_find(&f, "guest_rip");
	const struct vmt_format_field *pid = vmt_format_find(&f, "common_pid");

	(void)state;
	assert_string_equal(f.name, "kvm_exit");
	assert_int_equal(f.id, 103);
	assert_int_equal(f.nr_fields, 4 + 9);
	assert_non_null(rip);
	assert_int_equal(rip->offset, 16);
	assert_int_equal(rip->size, 8);
	assert_false(rip->is_signed);
	assert_non_null(pid);
	assert_true(pid->is_signed && pid->offset == 4);
	assert_null(vmt_format_find(&f, "guest"));
	assert_null(vmt_format_find(&f, ""));
}

static void arrays_and_strings(void **state)
{
	struct vmt_format f = vmt_stream_format("6.18", "sched_switch");
	const struct vmt_format_field *field = vmt_format_find(&f, "prev_comm");

	(void)state;
	assert_non_null(field);
	assert_int_equal(field->size, 16);
	f = vmt_stream_format("6.18", "kvm_nested_vmenter_failed");
	field = vmt_format_find(&f, "msg");
	assert_non_null(field);
	assert_true(field->is_dynamic);
	field = vmt_format_find(&f, "err");
	assert_non_null(field);
	assert_false(field->is_dynamic);
}

/* No two fields of any fixture overlap, and all have the common header. */
static void every_fixture(void **state)
{
	const char *top = getenv("VMT_TOP");
	unsigned int seen = 0;

	(void)state;
	for (size_t k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++) {
		char path[1024], name[300];
		struct dirent *entry;
		DIR *dir;

		snprintf(path, sizeof(path), "%s/tests/golden/formats/%s", top ? top : ".",
			 kernels[k]);
		dir = opendir(path);
		assert_non_null(dir);
		while ((entry = readdir(dir))) {
			struct vmt_format f;
			unsigned int end = 0;

			snprintf(name, sizeof(name), "%s", entry->d_name);
			if (!strstr(name, ".format"))
				continue;
			*strstr(name, ".format") = '\0';
			f = vmt_stream_format(kernels[k], name);
			assert_string_equal(f.name, name);
			assert_non_null(vmt_format_find(&f, "common_pid"));
			for (unsigned int i = 0; i < f.nr_fields; i++) {
				assert_true(f.fields[i].offset >= end);
				end = f.fields[i].offset + f.fields[i].size;
			}
			seen++;
		}
		closedir(dir);
	}
	assert_true(seen > 300);
}

static void check(const char *text, int expected, uint64_t offset)
{
	struct vmt_format f;
	struct vmt_diag diag = { 0 };

	assert_int_equal(vmt_format_parse(text, strlen(text), &f, &diag), expected);
	if (expected) {
		assert_int_equal(diag.code, expected);
		assert_true(diag.has_offset && diag.what[0] && diag.cure[0]);
		assert_int_equal(diag.offset, offset);
	}
}

#define HEAD "name: a\nID: 7\nformat:\n"

static void small_texts(void **state)
{
	(void)state;
	check(HEAD "\tfield:int x;\toffset:0;\tsize:4;\tsigned:1;\n", 0, 0);
	check(HEAD "\tfield:int x;\toffset:0;\tsize:4;\n", 0, 0);
	check(HEAD "\tfield:int x;\toffset:0;\tsize:4;\tsigned:1;", 0, 0);
	check(HEAD "field:struct s *x;offset:0;size:8;\r\n\nprint fmt: field:\n", 0, 0);
	check("", VMT_E_DAMAGED, 0);
	check("name: a\nID: 7\nformat:\n", VMT_E_DAMAGED, 22);
	check("ID: 7\n\tfield:int x;\toffset:0;\tsize:4;\n", VMT_E_DAMAGED, 38);
	check("name: a\nID: x\n", VMT_E_DAMAGED, 8);
	check("name: a\nID: 4294967296\n", VMT_E_DAMAGED, 8);
	check("name: a b\nID: 1\n", VMT_E_DAMAGED, 0);
	check(HEAD "\tfield:int x\toffset:0\n", VMT_E_DAMAGED, 22);
	check(HEAD "\tfield:int x;\toffset:-1;\tsize:4;\n", VMT_E_DAMAGED, 22);
	check(HEAD "\tfield:int x;\toffset:65536;\tsize:4;\n", VMT_E_DAMAGED, 22);
	check(HEAD "\tfield:int x;\toffset:0;\tsize:;\n", VMT_E_DAMAGED, 22);
	check(HEAD "\tfield:;\toffset:0;\tsize:4;\n", VMT_E_DAMAGED, 22);
	check(HEAD "\tfield:[];\toffset:0;\tsize:4;\n", VMT_E_DAMAGED, 22);
	check(HEAD "\tfield:];\toffset:0;\tsize:4;\n", VMT_E_DAMAGED, 22);
}

static void limits(void **state)
{
	char text[8192];
	size_t len;

	(void)state;
	len = (size_t)snprintf(text, sizeof(text), HEAD);
	for (int i = 0; i < VMT_FORMAT_FIELDS_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"field:int f%d; offset:%d; size:4; signed:1;\n", i, 4 * i);
	check(text, 0, 0);
	snprintf(text + len, sizeof(text) - len, "field:int z; offset:0; size:4; signed:1;\n");
	check(text, VMT_E_LIMIT, len);
	snprintf(text, sizeof(text), "name: %048d\nID: 1\n", 0);
	check(text, VMT_E_LIMIT, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kvm_exit_of_6_18), cmocka_unit_test(arrays_and_strings),
		cmocka_unit_test(every_fixture),    cmocka_unit_test(small_texts),
		cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
