/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/support/pt_vtt_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER	     "tests/golden/pt"
#define MAX_FIXTURES 1024

static void full_path(char *buf, size_t size, const char *path)
{
	const char *top = getenv("VMT_TOP");

	snprintf(buf, size, "%s/%s", top ? top : ".", path);
}

void vmt_vtt_file_load(struct vmt_vtt_file *file, const char *path)
{
	struct vmt_vtt_error error;
	FILE *f;
	long size;

	*file = (struct vmt_vtt_file){ 0 };
	full_path(file->path, sizeof(file->path), path);
	f = fopen(file->path, "rb");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	size = ftell(f);
	assert_true(size >= 0);
	rewind(f);
	file->text = malloc((size_t)size + 1);
	assert_non_null(file->text);
	file->len = fread(file->text, 1, (size_t)size, f);
	fclose(f);
	assert_int_equal(file->len, size);
	if (!vmt_vtt_assemble(file->text, file->len, &file->vtt, &error))
		fail_msg("%s:%u: %s", path, error.line, error.what);
}

void vmt_vtt_file_free(struct vmt_vtt_file *file)
{
	vmt_vtt_free(&file->vtt);
	free(file->text);
}

static void write_section(FILE *f, const char *title, const char *text, size_t len)
{
	if (text)
		fprintf(f, "--- %s\n%.*s", title, (int)len, text);
}

static void regenerate(const struct vmt_vtt_file *file, enum vmt_vtt_section section,
		       const char *text, size_t len)
{
	const struct vmt_vtt *vtt = &file->vtt;
	const bool packets = section == VMT_VTT_PACKETS;
	FILE *f = fopen(file->path, "wb");

	assert_non_null(f);
	fwrite(file->text, 1, vtt->source_len, f);
	write_section(f, "packets", packets ? text : vtt->expect_packets,
		      packets ? len : vtt->expect_packets_len);
	write_section(f, "events", packets ? vtt->expect_events : text,
		      packets ? vtt->expect_events_len : len);
	assert_int_equal(fclose(f), 0);
}

void vmt_vtt_file_expect(const struct vmt_vtt_file *file, enum vmt_vtt_section section,
			 const char *text, size_t len)
{
	const char *expected =
		section == VMT_VTT_PACKETS ? file->vtt.expect_packets : file->vtt.expect_events;
	const size_t expected_len = section == VMT_VTT_PACKETS ? file->vtt.expect_packets_len
							       : file->vtt.expect_events_len;

	if (len == expected_len && !memcmp(text, expected, len))
		return;
	if (getenv("VMT_TEST_REGENERATE"))
		regenerate(file, section, text, len);
	else
		fail_msg("%s\nexpected:\n%.*sgot:\n%.*s", file->path, (int)expected_len, expected,
			 (int)len, text);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct CMUnitTest *)a)->name, ((const struct CMUnitTest *)b)->name);
}

int vmt_vtt_file_run_all(const char *group, void (*test)(void **state))
{
	static struct CMUnitTest tests[MAX_FIXTURES];
	static char paths[MAX_FIXTURES][160];
	size_t nr = 0;
	char folder[512];
	struct dirent *entry;
	DIR *dir;

	full_path(folder, sizeof(folder), FOLDER);
	dir = opendir(folder);
	while (dir && (entry = readdir(dir)) && nr < MAX_FIXTURES) {
		const char *dot = strrchr(entry->d_name, '.');

		if (!dot || strcmp(dot, ".vtt") != 0)
			continue;
		snprintf(paths[nr], sizeof(paths[nr]), FOLDER "/%.130s", entry->d_name);
		tests[nr].name = paths[nr] + sizeof(FOLDER);
		tests[nr].test_func = test;
		tests[nr].initial_state = paths[nr];
		nr++;
	}
	if (dir)
		closedir(dir);
	if (!nr) {
		fprintf(stderr, "no fixture in %s\n", folder);
		return 1;
	}
	qsort(tests, nr, sizeof(tests[0]), by_name);
	return _cmocka_run_group_tests(group, tests, nr, NULL, NULL);
}
