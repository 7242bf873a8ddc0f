// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sub-keys: their text, both ways, and their names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decode/base/key.h"

static const struct {
	struct vmt_key key;
	const char *text;
	const char *name;
} cases[] = {
	{ { VMT_KEY_MSR, VMT_ACCESS_WRITE, 0x6e0, 0 }, "msr:0x6e0:w", "IA32_TSC_DEADLINE" },
	{ { VMT_KEY_MSR, VMT_ACCESS_READ, 0x40000020, 0 },
	  "msr:0x40000020:r",
	  "HV_X64_MSR_TIME_REF_COUNT" },
	{ { VMT_KEY_MSR, VMT_ACCESS_NONE, 0xffffffff, 0 }, "msr:0xffffffff", NULL },
	{ { VMT_KEY_PORT, VMT_ACCESS_WRITE, 0x3f8, 0 }, "port:0x3f8:out", "COM1" },
	{ { VMT_KEY_PORT, VMT_ACCESS_READ, 0x608, 0 }, "port:0x608:in", "ACPI PM timer" },
	{ { VMT_KEY_PORT, VMT_ACCESS_NONE, 0, 0 }, "port:0x0", "DMA controller 1" },
	{ { VMT_KEY_GPA, VMT_ACCESS_READ, 0xfed000f0, 0 }, "gpa:0xfed000f0:r", "HPET" },
	{ { VMT_KEY_GPA, VMT_ACCESS_EXEC, UINT64_MAX, 0 }, "gpa:0xffffffffffffffff:x", NULL },
	{ { VMT_KEY_CPUID, VMT_ACCESS_NONE, 4, 0 },
	  "cpuid:0x4/0x0",
	  "deterministic cache parameters" },
	{ { VMT_KEY_CPUID, VMT_ACCESS_NONE, 0x80000001, 0xffffffff },
	  "cpuid:0x80000001/0xffffffff",
	  "extended features" },
	{ { VMT_KEY_VECTOR, VMT_ACCESS_NONE, 236, 0 }, "vec:236", NULL },
	{ { VMT_KEY_VECTOR, VMT_ACCESS_NONE, 14, 0 }, "vec:14", "#PF" },
	{ { VMT_KEY_CR, VMT_ACCESS_WRITE, 3, 0 }, "cr:3:w", NULL },
	{ { VMT_KEY_DR, VMT_ACCESS_READ, 7, 0 }, "dr:7:r", NULL },
	{ { VMT_KEY_HYPERCALL, VMT_ACCESS_NONE, 5, 0 }, "hypercall:0x5", "KVM_HC_KICK_CPU" },
	{ { VMT_KEY_HYPERCALL, VMT_ACCESS_NONE, 0x5c, 1 }, "hv:0x5c", "HVCALL_POST_MESSAGE" },
	{ { VMT_KEY_APIC, VMT_ACCESS_WRITE, 0x380, 0 }, "apic:0x380:w", "timer initial count" },
	{ { VMT_KEY_USERSPACE, VMT_ACCESS_NONE, 2, 0 }, "user:2", "KVM_EXIT_IO" },
};

#define NR_CASES (sizeof(cases) / sizeof(cases[0]))

static void texts(void **state)
{
	char buf[VMT_KEY_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < NR_CASES; i++) {
		assert_string_equal(vmt_key_format(buf, sizeof(buf), &cases[i].key), cases[i].text);
		if (cases[i].name)
			assert_string_equal(vmt_key_name(&cases[i].key), cases[i].name);
		else
			assert_null(vmt_key_name(&cases[i].key));
	}
}

static void both_ways(void **state)
{
	(void)state;
	for (size_t i = 0; i < NR_CASES; i++) {
		struct vmt_key key;

		assert_true(vmt_key_parse(cases[i].text, &key));
		for (size_t k = 0; k < NR_CASES; k++)
			assert_int_equal(vmt_key_equal(&key, &cases[k].key), i == k);
	}
}

static void other_spellings(void **state)
{
	struct vmt_key key;

	(void)state;
	assert_true(vmt_key_parse("msr:1760", &key) && key.number == 0x6e0);
	assert_true(vmt_key_parse("msr:0X6E0:r", &key) && key.number == 0x6e0);
	assert_true(vmt_key_parse("port:010", &key) && key.number == 8);
	assert_true(vmt_key_parse("cpuid:7", &key) && key.number == 7 && key.sub == 0);
	assert_true(vmt_key_parse("vec:0xec", &key) && key.number == 236);
}

static void refused(void **state)
{
	static const char *const texts_refused[] = {
		"",
		"msr",
		"msr:",
		"msr:x",
		"msr:0x",
		"msr:0x6e0:",
		"msr:0x6e0:in",
		"msr:0x6e0:w ",
		"msr:0x6e0:ww",
		" msr:0x6e0",
		"MSR:0x6e0",
		"msrs:0x6e0",
		"ms:0x6e0",
		"msr:0x100000000",
		"msr:-1",
		"port:0x10000",
		"port:0x3f8:w",
		"vec:256",
		"vec:14:r",
		"cr:16",
		"cpuid:0x4/",
		"cpuid:0x4/x",
		"cpuid:0x4/0:r",
		"cpuid:0x4/0x100000000",
		"gpa:0x10000000000000000",
		"gpa:18446744073709551616",
		"gpa:09",
		"user:4294967296",
		"nothing:1",
		":1",
		"hv:0x5c:r",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts_refused) / sizeof(texts_refused[0]); i++) {
		struct vmt_key key = { .number = 77 };

		assert_false(vmt_key_parse(texts_refused[i], &key));
		assert_true(key.number == 77);
	}
}

static void none_and_nonsense(void **state)
{
	struct vmt_key none = { .kind = VMT_KEY_NONE };
	struct vmt_key wild = { .kind = (enum vmt_key_kind)77, .number = 1 };
	struct vmt_key access = { VMT_KEY_MSR, (enum vmt_access)9, 1, 0 };
	struct vmt_key exec = { VMT_KEY_PORT, VMT_ACCESS_EXEC, 1, 0 };
	struct vmt_key large = { VMT_KEY_PORT, VMT_ACCESS_NONE, 0x103f8, 0 };
	char buf[VMT_KEY_TEXT_MAX];

	(void)state;
	assert_string_equal(vmt_key_format(buf, sizeof(buf), &none), "");
	assert_string_equal(vmt_key_format(buf, sizeof(buf), &wild), "");
	assert_string_equal(vmt_key_format(buf, sizeof(buf), &access), "msr:0x1");
	assert_string_equal(vmt_key_format(buf, sizeof(buf), &exec), "port:0x1");
	assert_null(vmt_key_name(&none));
	assert_null(vmt_key_name(&wild));
	assert_null(vmt_key_name(&large));
	assert_true(vmt_key_equal(&none, &none));
}

static void cut_to_size(void **state)
{
	char buf[9];

	(void)state;
	memset(buf, 'x', sizeof(buf));
	vmt_key_format(buf, 8, &cases[0].key);
	assert_string_equal(buf, "msr:0x6");
	assert_int_equal(buf[8], 'x');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts),
		cmocka_unit_test(both_ways),
		cmocka_unit_test(other_spellings),
		cmocka_unit_test(refused),
		cmocka_unit_test(none_and_nonsense),
		cmocka_unit_test(cut_to_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
