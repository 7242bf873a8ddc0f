/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tests/golden/pt-rows.tsv names a fixture for each row of the manual's tables on what makes which
 * packets: each is there, each fixture named after a table is named by the list, no row number is
 * missing, and there are as many fixtures on virtualization as the project promises.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/pt_vtt_file.h"

#define MAX_FIXTURES  1024
#define MAX_ROWS      512
#define LEAST	      250
#define LEAST_VIRTUAL 80

struct row {
	char table[8], number[4], what[80], fixture[80];
};

static struct row rows[MAX_ROWS];
static size_t nr_rows;
static struct vmt_vtt_path paths[MAX_FIXTURES];
static size_t nr_paths;

static int load(void **state)
{
	const char *top = getenv("VMT_TOP");
	char path[512], line[256];
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/tests/golden/pt-rows.tsv", top ? top : ".");
	f = fopen(path, "r");
	if (!f)
		return -1;
	while (nr_rows < MAX_ROWS && fgets(line, sizeof(line), f)) {
		struct row *r = &rows[nr_rows];

		if (line[0] == '#')
			continue;
		if (sscanf(line, "%7[^\t]\t%3[^\t]\t%79[^\t]\t%79[^\n]", r->table, r->number,
			   r->what, r->fixture) == 4)
			nr_rows++;
	}
	fclose(f);
	nr_paths = vmt_vtt_file_list("tests/golden/pt", paths, MAX_FIXTURES);
	return 0;
}

/* The name of a fixture without its ending is this one. */
static bool is_named(const struct vmt_vtt_path *path, const char *name)
{
	const size_t len = strlen(name);

	return !strncmp(path->name, name, len) && !strcmp(path->name + len, ".vtt");
}

static bool has_fixture(const char *name)
{
	for (size_t i = 0; i < nr_paths; i++)
		if (is_named(&paths[i], name))
			return true;
	return false;
}

static bool has_row(const struct vmt_vtt_path *path)
{
	for (size_t i = 0; i < nr_rows; i++)
		if (is_named(path, rows[i].fixture))
			return true;
	return false;
}

static void each_row_has_its_fixture(void **state)
{
	(void)state;
	assert_true(nr_rows > 100 && nr_rows < MAX_ROWS);
	for (size_t i = 0; i < nr_rows; i++)
		if (!has_fixture(rows[i].fixture))
			fail_msg("table %s row %s, %s: no fixture %s.vtt", rows[i].table,
				 rows[i].number, rows[i].what, rows[i].fixture);
	for (size_t i = 0; i < nr_paths; i++)
		if (!strncmp(paths[i].name, "table-33-", 9) && !has_row(&paths[i]))
			fail_msg("%s is not in tests/golden/pt-rows.tsv", paths[i].name);
}

static bool has_number(const char *table, unsigned int number)
{
	for (size_t i = 0; i < nr_rows; i++)
		if (!strcmp(rows[i].table, table) && strtoul(rows[i].number, NULL, 10) == number)
			return true;
	return false;
}

/* Rows that the manual numbers; table 33-59 has none with the numbers 8 and 9. */
static void no_number_is_missing(void **state)
{
	static const struct {
		const char *table;
		unsigned int last;
	} numbered[] = {
		{ "33-55", 27 }, { "33-56", 12 }, { "33-57", 7 }, { "33-58", 3 }, { "33-59", 22 }
	};

	(void)state;
	for (size_t i = 0; i < sizeof(numbered) / sizeof(numbered[0]); i++)
		for (unsigned int n = 1; n <= numbered[i].last; n++) {
			const bool gap = !strcmp(numbered[i].table, "33-59") && (n == 8 || n == 9);

			if (has_number(numbered[i].table, n) == gap)
				fail_msg("table %s row %u", numbered[i].table, n);
		}
}

/* Of each combination of the three controls that conceal, with Event Trace and without. */
static void each_mix_of_concealment(void **state)
{
	static const char *const parts[] = { "-execution", "-exit", "-entry" };
	char name[96];

	(void)state;
	for (unsigned int i = 0; i < 16; i++) {
		int n = snprintf(name, sizeof(name), "table-33-52-conceal");

		for (unsigned int k = 0; k < 3; k++)
			if (i >> k & 1)
				n += snprintf(name + n, sizeof(name) - (size_t)n, "%s", parts[k]);
		snprintf(name + n, sizeof(name) - (size_t)n, "%s%s", i & 7 ? "" : "-nothing",
			 i & 8 ? "-plain" : "");
		if (!has_fixture(name))
			fail_msg("no fixture %s.vtt", name);
	}
}

/* A fixture is about virtualization when it expects an entry, an exit or a gap. */
static bool is_virtual(const struct vmt_vtt *vtt)
{
	static const char *const words[] = { "entry", "exit", "gap" };
	const char *text = vtt->expect_events;
	const char *end = text ? text + vtt->expect_events_len : NULL;

	for (const char *line = text; line < end;) {
		const char *next = memchr(line, '\n', (size_t)(end - line));

		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			if ((size_t)(end - line) > strlen(words[i]) &&
			    !strncmp(line, words[i], strlen(words[i])))
				return true;
		line = next ? next + 1 : end;
	}
	return false;
}

static void as_many_as_promised(void **state)
{
	size_t virtual = 0;

	(void)state;
	for (size_t i = 0; i < nr_paths; i++) {
		struct vmt_vtt_file file;

		assert_true(vmt_vtt_file_load(&file, paths[i].path));
		virtual += is_virtual(&file.vtt);
		vmt_vtt_file_free(&file);
	}
	assert_true(nr_paths >= LEAST);
	assert_true(virtual >= LEAST_VIRTUAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_row_has_its_fixture),
		cmocka_unit_test(no_number_is_missing),
		cmocka_unit_test(each_mix_of_concealment),
		cmocka_unit_test(as_many_as_promised),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
