// SPDX-License-Identifier: LGPL-2.1-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/capture/filter.h"

static char text[VMT_FILTER_MAX];

static void test_texts(void **state)
{
	pid_t ids[] = { 12, 10, 11, 40 };

	(void)state;
	vmt_filter_ids(text, sizeof(text), "common_pid", ids, 4);
	assert_string_equal(text, "(common_pid >= 10 && common_pid <= 12) || common_pid == 40");
	vmt_filter_ids(text, sizeof(text), "pid", ids, 0);
	assert_string_equal(text, "pid == -1");
	vmt_filter_anywhere(text, sizeof(text), ids, 1, false);
	assert_non_null(strstr(text, "common_pid == 10 || !(comm ~ \"CPU *\""));
	vmt_filter_anywhere(text, sizeof(text), ids, 1, true);
	assert_non_null(strstr(text, "(common_pid == 10) && (comm ~ \"CPU *\""));
}

static bool passes(const struct vmt_range *ranges, size_t nr, uint64_t id)
{
	for (size_t i = 0; i < nr; i++) {
		if (id >= ranges[i].first && id <= ranges[i].last)
			return true;
	}
	return false;
}

/* However many ids: each one passes, the ranges are ordered, and the text fits a page. */
static void test_ranges_hide_nothing(void **state)
{
	(void)state;
	srandom(3);
	for (int round = 0; round < 300; round++) {
		static pid_t ids[3000], copy[3000];
		struct vmt_range ranges[60];
		size_t nr_ids = (size_t)random() % 3000, nr, max = 1 + (size_t)random() % 60;

		for (size_t i = 0; i < nr_ids; i++)
			ids[i] = copy[i] = 1 + (pid_t)(random() % (round % 2 ? 4194303 : 5000));
		nr = vmt_filter_ranges(ids, nr_ids, ranges, max);
		assert_true(nr <= max);
		for (size_t i = 0; i < nr_ids; i++)
			assert_true(passes(ranges, nr, (uint64_t)copy[i]));
		for (size_t i = 0; i + 1 < nr; i++)
			assert_true(ranges[i].last + 1 < ranges[i + 1].first);
		vmt_filter_ids(text, sizeof(text), "common_pid", copy, nr_ids);
		assert_true(strlen(text) < VMT_FILTER_MAX - 1);
		vmt_filter_anywhere(text, sizeof(text), copy, nr_ids, false);
		assert_true(strlen(text) < VMT_FILTER_MAX - 1 && strstr(text, "kvm-pit*\")"));
	}
}

static void test_guest_memory(void **state)
{
	char path[] = "/tmp/vmt-maps-XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");
	struct vmt_range ranges[4];
	size_t nr;

	(void)state;
	assert_non_null(f);
	fputs("555500000000-555500100000 r-xp 00000000 08:01 1 /usr/bin/qemu\n"
	      "7f0000000000-7f0040000000 rw-p 00000000 00:00 0\n"
	      "7f0040000000-7f0040021000 rw-p 00000000 00:00 0\n"
	      "7f0050000000-7f0050001000 rw-p 00000000 00:00 0\n"
	      "not a line\n"
	      "7f0100000000-7f0180000000 rw-s 00000000 00:01 5 /memfd:ram (deleted)\n",
	      f);
	fclose(f);
	nr = vmt_filter_guest_memory(path, ranges, 4);
	assert_int_equal(nr, 2);
	assert_int_equal(ranges[0].first, 0x7f0000000000);
	assert_int_equal(ranges[0].last, 0x7f0040020fff);
	assert_int_equal(ranges[1].last, 0x7f017fffffff);
	vmt_filter_memory(text, sizeof(text), ranges, nr);
	assert_string_equal(text, "(start <= 139639050604543 && end >= 139637976727552) || "
				  "(start <= 139644419178495 && end >= 139642271694848)");
	assert_int_equal(vmt_filter_guest_memory(path, ranges, 1), 1);
	assert_int_equal(ranges[0].last, 0x7f017fffffff);
	unlink(path);
	assert_int_equal(vmt_filter_guest_memory(path, ranges, 4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_ranges_hide_nothing),
		cmocka_unit_test(test_guest_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
