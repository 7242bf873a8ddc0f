// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Qualifications in words: each line of qualifications.txt is isa, reason, two numbers and the text
 * that they must give. VMX: qualification and interruption info. SVM: EXITINFO1 and EXITINFO2.
 * VMT_TEST_REGENERATE=1 rewrites the texts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "vmx/exit.h"
#include "vmx/qualification.h"

#define LINES_MAX 400

static char lines[LINES_MAX][256];
static size_t nr_lines;

static void fixture_path(char *path, size_t size)
{
	const char *top = getenv("VMT_TOP");

	snprintf(path, size, "%s/tests/golden/qualifications.txt", top ? top : ".");
}

static int load(void **state)
{
	char path[4096];
	FILE *f;

	(void)state;
	nr_lines = 0;
	fixture_path(path, sizeof(path));
	f = fopen(path, "r");
	if (!f)
		return -1;
	while (nr_lines < LINES_MAX && fgets(lines[nr_lines], sizeof(lines[0]), f))
		nr_lines++;
	fclose(f);
	return 0;
}

struct parsed {
	bool svm;
	uint32_t reason;
	uint64_t first, second;
	const char *want; /* behind the fourth number, without the blank */
	size_t head;	  /* length of what stands before it */
};

static bool parse(const char *line, struct parsed *p)
{
	const char *s = line + 4;
	char *end;

	if (strncmp(line, "vmx ", 4) != 0 && strncmp(line, "svm ", 4) != 0)
		return false;
	p->svm = line[0] == 's';
	p->reason = (uint32_t)strtoul(s, &end, 0);
	p->first = strtoull(end, &end, 0);
	p->second = strtoull(end, &end, 0);
	p->head = (size_t)(end - line);
	p->want = *end == ' ' ? end + 1 : end;
	return true;
}

static const char *text_of(char *buf, size_t size, const struct parsed *p)
{
	if (p->svm)
		return svm_exit_info_text(buf, size, p->reason, p->first, p->second);
	return vmx_qualification_text(buf, size, p->reason, p->first, (uint32_t)p->second);
}

static void regenerate(void)
{
	char path[4096], buf[VMX_QUALIFICATION_TEXT_MAX];
	struct parsed p;
	FILE *f;

	fixture_path(path, sizeof(path));
	f = fopen(path, "w");
	assert_non_null(f);
	for (size_t i = 0; i < nr_lines; i++) {
		if (!parse(lines[i], &p)) {
			fputs(lines[i], f);
			continue;
		}
		text_of(buf, sizeof(buf), &p);
		fprintf(f, "%.*s%s%s\n", (int)p.head, lines[i], buf[0] ? " " : "", buf);
	}
	fclose(f);
}

static void goldens(void **state)
{
	char buf[VMX_QUALIFICATION_TEXT_MAX];
	size_t cases = 0;

	if (getenv("VMT_TEST_REGENERATE")) {
		regenerate();
		assert_int_equal(load(state), 0);
	}
	for (size_t i = 0; i < nr_lines; i++) {
		struct parsed p;
		char want[256];

		if (!parse(lines[i], &p))
			continue;
		cases++;
		snprintf(want, sizeof(want), "%s", p.want);
		want[strcspn(want, "\n")] = '\0';
		assert_string_equal(text_of(buf, sizeof(buf), &p), want);
	}
	assert_true(cases > 100);
}

/* Every reason stands in the fixture, also the ones without a qualification. */
static void every_reason_has_a_case(void **state)
{
	static bool seen_vmx[128], seen_svm[0x404];
	const struct vmx_reason_row *rows;
	size_t count;

	(void)state;
	for (size_t i = 0; i < nr_lines; i++) {
		struct parsed p;

		if (!parse(lines[i], &p))
			continue;
		if (!p.svm && p.reason < 128)
			seen_vmx[p.reason] = true;
		if (p.svm && p.reason < 0x404)
			seen_svm[p.reason] = true;
	}
	rows = vmx_reason_rows(&count);
	for (size_t i = 0; i < count; i++)
		assert_true(seen_vmx[rows[i].code]);
	for (uint32_t code = 0x400; code <= 0x402; code++)
		assert_true(seen_svm[code]);
	assert_true(seen_svm[0x7b] && seen_svm[0x7c] && seen_svm[0x7d] && seen_svm[0x4e]);
}

static void error_codes(void **state)
{
	static const struct {
		uint8_t vector;
		uint32_t error;
		const char *want;
	} cases[] = {
		{ 14, 0x0, "read, supervisor, page not present" },
		{ 14, 0x7, "write, user, protection" },
		{ 14, 0x15, "fetch, user, protection" },
		{ 14, 0x800080ed,
		  "read, user, protection, reserved bits, protection key, shadow stack, HLAT, SGX, "
		  "RMP" },
		{ 13, 0, "no selector" },
		{ 13, 0x28, "selector 0x28 in the GDT" },
		{ 11, 0x2d, "selector 0x28 in the LDT, external event" },
		{ 13, 0x72, "IDT entry 14" },
		{ 21, 3, "missing ENDBRANCH" },
		{ 21, 0x8001, "near RET, enclave" },
		{ 21, 9, "cause 0x9" },
		{ 17, 0, "error code 0x0" },
		{ 29, 0x72, "error code 0x72" },
		{ 6, 5, "" },
		{ 236, 5, "" },
	};
	char buf[VMX_QUALIFICATION_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(vmx_error_code_text(buf, sizeof(buf), cases[i].vector,
							cases[i].error),
				    cases[i].want);
}

/* No bit pattern makes a text that does not end inside its buffer. */
static void any_bits(void **state)
{
	uint64_t bits = 0x452821e638d01377u;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		char buf[VMX_QUALIFICATION_TEXT_MAX];

		bits ^= bits << 13;
		bits ^= bits >> 7;
		bits ^= bits << 17;
		vmx_qualification_text(buf, sizeof(buf), (uint32_t)i % 90, bits,
				       (uint32_t)(bits >> 9));
		assert_true(strlen(buf) < sizeof(buf) - 1);
		svm_exit_info_text(buf, sizeof(buf), (uint32_t)i % 0x410, bits, bits << 3);
		assert_true(strlen(buf) < sizeof(buf) - 1);
		vmx_qualification_text(buf, 5, (uint32_t)i % 90, bits, 0x80000b0e);
		assert_true(strlen(buf) < 5);
	}
}

static void all_ones(void **state)
{
	char buf[VMX_QUALIFICATION_TEXT_MAX];

	(void)state;
	for (uint32_t reason = 0; reason < 90; reason++) {
		vmx_qualification_text(buf, sizeof(buf), reason, UINT64_MAX, UINT32_MAX);
		assert_true(strlen(buf) < sizeof(buf) - 1);
		vmx_qualification_text(buf, sizeof(buf), reason, UINT64_MAX, 0x8000fe01);
		assert_true(strlen(buf) < sizeof(buf) - 1);
	}
	svm_exit_info_text(buf, sizeof(buf), 0x400, UINT64_MAX, UINT64_MAX);
	assert_true(strlen(buf) < sizeof(buf) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goldens),     cmocka_unit_test(every_reason_has_a_case),
		cmocka_unit_test(error_codes), cmocka_unit_test(any_bits),
		cmocka_unit_test(all_ones),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
