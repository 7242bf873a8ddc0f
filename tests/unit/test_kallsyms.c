// SPDX-License-Identifier: LGPL-2.1-or-later
/* Symbols from kallsyms: good text, hostile text, look-ups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/symbols/kallsyms.h"

static struct vmt_kallsyms *parse(const char *text)
{
	struct vmt_kallsyms *k = NULL;
	struct vmt_diag diag = { 0 };

	assert_int_equal(vmt_kallsyms_from_text(&k, text, strlen(text), &diag), 0);
	assert_non_null(k);
	return k;
}

static void refuse(const char *text, size_t len, int code)
{
	struct vmt_kallsyms *k = NULL;
	struct vmt_diag diag = { 0 };

	assert_int_equal(vmt_kallsyms_from_text(&k, text, len, &diag), code);
	assert_null(k);
	assert_int_equal(diag.code, code);
	assert_true(diag.what[0] && diag.cure[0]);
}

static void assert_at(const struct vmt_kallsyms *k, uint64_t addr, const char *name, uint64_t want)
{
	uint64_t offset = 77;
	const char *got = vmt_kallsyms_find(k, addr, &offset);

	if (!name) {
		assert_null(got);
		assert_true(offset == 77);
		return;
	}
	assert_non_null(got);
	assert_string_equal(got, name);
	assert_true(offset == want);
	assert_ptr_equal(vmt_kallsyms_find(k, addr, NULL), got);
}

static void a_kernel(void **state)
{
	struct vmt_kallsyms *k = parse("0000000000000000 A fixed_percpu_data\n"
				       "ffffffff81000000 T _stext\n"
				       "ffffffff81000000 T startup_64\n"
				       "ffffffff81000000 t startup_local\n"
				       "ffffffff81001000 t do_one\n"
				       "ffffffff81001040 W arch_weak\n"
				       "ffffffff81002000 D some_data\n"
				       "ffffffff81003000 T after_data\r\n"
				       "ffffffffc0000000 t nf_hook\t[nf_tables]\n"
				       "ffffffffc0000100 b nf_state\t[nf_tables]\n");

	(void)state;
	assert_int_equal(vmt_kallsyms_count(k), 7);
	assert_at(k, 0xffffffff81000000, "startup_64", 0);
	assert_at(k, 0xffffffff81000fff, "startup_64", 0xfff);
	assert_at(k, 0xffffffff81001000, "do_one", 0);
	assert_at(k, 0xffffffff81001041, "arch_weak", 1);
	assert_at(k, 0xffffffff81002000, NULL, 0);
	assert_at(k, 0xffffffff81002fff, NULL, 0);
	assert_at(k, 0xffffffff81003004, "after_data", 4);
	assert_at(k, 0xffffffffc0000010, "nf_hook [nf_tables]", 16);
	assert_at(k, 0xffffffffc0000100, NULL, 0);
	assert_at(k, 0xffffffff80ffffff, NULL, 0);
	assert_at(k, 0, NULL, 0);
	assert_at(k, UINT64_MAX, NULL, 0);
	vmt_kallsyms_free(k);
	vmt_kallsyms_free(NULL);
}

static void order_and_reach(void **state)
{
	struct vmt_kallsyms *k = parse("30000000 T last\n"
				       "10000000 t first\n"
				       "20000000 w weak\n"
				       "20000000 t local\n"
				       "20000000 T __global\n"
				       "20000000 T _global\n");

	(void)state;
	assert_at(k, 0x10000000, "first", 0);
	assert_at(k, 0x100fffff, "first", 0xfffff);
	assert_at(k, 0x10100000, NULL, 0); /* 1 MiB is the reach */
	assert_at(k, 0x20000010, "_global", 16);
	assert_at(k, 0x30000001, "last", 1);
	vmt_kallsyms_free(k);
}

static void lines_that_are_none(void **state)
{
	struct vmt_kallsyms *k = parse("\n"
				       "# a comment\n"
				       "ffffffff81000000\n"
				       "ffffffff81000000 T\n"
				       "ffffffff81000000 T \n"
				       "ffffffff81000000 TT name\n"
				       "1ffffffff81000000 T seventeen\n"
				       "xyz T name\n"
				       " \t ffffffff81000000 T good\n"
				       "FFFFFFFF81000010 t upper_case\n"
				       "ffffffff81000020 T no_newline");

	(void)state;
	assert_int_equal(vmt_kallsyms_count(k), 3);
	assert_at(k, 0xffffffff81000001, "good", 1);
	assert_at(k, 0xffffffff81000011, "upper_case", 1);
	assert_at(k, 0xffffffff81000021, "no_newline", 1);
	vmt_kallsyms_free(k);
}

static void refused(void **state)
{
	static const char zeros[] = "0000000000000000 T _text\n0000000000000000 t do_one\n";
	static const char data[] = "ffffffff81000000 D jiffies\n";

	(void)state;
	refuse("", 0, VMT_E_DAMAGED);
	refuse("\0\0\0\0", 4, VMT_E_DAMAGED);
	refuse("root:x:0:0:root:/root:/bin/bash\n", 32, VMT_E_DAMAGED);
	refuse(data, sizeof(data) - 1, VMT_E_DAMAGED);
	refuse(zeros, sizeof(zeros) - 1, VMT_E_PERMISSION);
}

static void unprintable_and_long_names(void **state)
{
	static const char text[] = "1000 T a\x1b[31mred\x07\xff\0x\n";
	struct vmt_kallsyms *k;
	struct vmt_diag diag = { 0 };
	char *line = malloc(100000);
	const char *name;

	(void)state;
	assert_int_equal(vmt_kallsyms_from_text(&k, text, sizeof(text) - 1, &diag), 0);
	assert_at(k, 0x1000, "a?[31mred???x", 0);
	vmt_kallsyms_free(k);

	assert_non_null(line);
	memset(line, 'n', 100000);
	memcpy(line, "1000 T ", 7);
	memcpy(line + 99990, "\n2000 T z\n", 10);
	assert_int_equal(vmt_kallsyms_from_text(&k, line, 100000, &diag), 0);
	assert_int_equal(vmt_kallsyms_count(k), 2);
	name = vmt_kallsyms_find(k, 0x1000, NULL);
	assert_int_equal(strlen(name), 128);
	assert_int_equal(strspn(name, "n"), 128);
	assert_at(k, 0x2000, "z", 0);
	vmt_kallsyms_free(k);
	free(line);
}

static void long_module(void **state)
{
	char text[600];
	struct vmt_kallsyms *k;
	struct vmt_diag diag = { 0 };

	(void)state;
	memset(text, 'm', sizeof(text));
	memcpy(text, "1000 T name\t[", 13);
	text[sizeof(text) - 1] = '\n';
	assert_int_equal(vmt_kallsyms_from_text(&k, text, sizeof(text), &diag), 0);
	assert_int_equal(strlen(vmt_kallsyms_find(k, 0x1000, NULL)), 128);
	vmt_kallsyms_free(k);
}

/* More symbols than the bound. Short lines: 4 Mi of "1 t a\n" are 24 MiB. */
static void too_many_symbols(void **state)
{
	size_t lines = (4u << 20) + 1, len = lines * 6;
	char *text = malloc(len);

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < lines; i++)
		memcpy(text + i * 6, "1 t a\n", 6);
	refuse(text, len, VMT_E_LIMIT);
	free(text);
}

static void too_many_bytes(void **state)
{
	size_t len = (64u << 20) + 1;
	char *text = calloc(1, len);

	(void)state;
	assert_non_null(text);
	refuse(text, len, VMT_E_LIMIT);
	free(text);
}

static void many_aliases(void **state)
{
	size_t lines = 1u << 20, len = lines * 6 + 7;
	char *text = malloc(len);
	struct vmt_kallsyms *k;
	struct vmt_diag diag = { 0 };

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < lines; i++)
		memcpy(text + i * 6, "1 t a\n", 6);
	memcpy(text + lines * 6, "1 T b\n\n", 7);
	assert_int_equal(vmt_kallsyms_from_text(&k, text, len, &diag), 0);
	for (int i = 0; i < 100000; i++)
		assert_string_equal(vmt_kallsyms_find(k, 2, NULL), "b");
	vmt_kallsyms_free(k);
	free(text);
}

static void files(void **state)
{
	char path[] = "/tmp/vmt-kallsyms-XXXXXX";
	int fd = mkstemp(path);
	struct vmt_kallsyms *k = NULL;
	struct vmt_diag diag = { 0 };

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(dprintf(fd, "ffffffff81000000 T _text\n"), 25);
	close(fd);
	assert_int_equal(vmt_kallsyms_read(&k, path, &diag), 0);
	assert_at(k, 0xffffffff81000002, "_text", 2);
	vmt_kallsyms_free(k);
	unlink(path);
	assert_true(vmt_kallsyms_read(&k, path, &diag) < 0);
	assert_null(k);
	assert_true(diag.what[0] != '\0');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kernel),
		cmocka_unit_test(order_and_reach),
		cmocka_unit_test(lines_that_are_none),
		cmocka_unit_test(refused),
		cmocka_unit_test(unprintable_and_long_names),
		cmocka_unit_test(long_module),
		cmocka_unit_test(too_many_symbols),
		cmocka_unit_test(too_many_bytes),
		cmocka_unit_test(many_aliases),
		cmocka_unit_test(files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
