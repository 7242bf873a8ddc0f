/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Errata by processor, their names, and the two ways of writing a processor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decode/pt/errata.h"

static uint32_t of(uint16_t family, uint8_t model)
{
	const struct vmt_pt_cpu cpu = { .known = true, .family = family, .model = model };

	return vmt_pt_errata_of(&cpu);
}

static void by_processor(void **state)
{
	const uint32_t client = VMT_PT_BDM70 | VMT_PT_SKD022;
	const struct vmt_pt_cpu unknown = { 0 };

	(void)state;
	assert_int_equal(of(6, 0x4f), VMT_PT_BDM70 | VMT_PT_BDM64);
	assert_int_equal(of(6, 0x9e),
			 client | VMT_PT_SKD007 | VMT_PT_SKD010 | VMT_PT_SKL014 | VMT_PT_SKL168);
	assert_int_equal(of(6, 0x55), client | VMT_PT_SKL014 | VMT_PT_SKZ84);
	assert_int_equal(of(6, 0x8f), client | VMT_PT_SKZ84);
	assert_int_equal(of(6, 0x97), client | VMT_PT_APL11);
	assert_int_equal(of(6, 0x8c), client | VMT_PT_SKL014);
	assert_int_equal(of(6, 0x5c), VMT_PT_APL11 | VMT_PT_APL12);
	assert_int_equal(of(6, 0x86), VMT_PT_APL11);
	assert_int_equal(of(0x12, 3), client | VMT_PT_APL11);
	assert_int_equal(of(0x13, 1), client | VMT_PT_SKZ84);
	assert_int_equal(of(6, 0x3c), 0);
	assert_int_equal(of(0x13, 0x55), 0);
	assert_int_equal(vmt_pt_errata_of(&unknown), VMT_PT_BDM70 | VMT_PT_SKZ84);
}

static void names(void **state)
{
	(void)state;
	assert_string_equal(vmt_pt_erratum_name(VMT_PT_BDM70), "BDM70");
	assert_string_equal(vmt_pt_erratum_name(VMT_PT_SKZ84), "SKZ84");
	assert_string_equal(vmt_pt_erratum_name(VMT_PT_APL12), "APL12");
	for (unsigned int bit = 0; bit < 10; bit++)
		assert_non_null(vmt_pt_erratum_name((enum vmt_pt_erratum)(1u << bit)));
	assert_null(vmt_pt_erratum_name((enum vmt_pt_erratum)(1u << 10)));
}

static void spelling(void **state)
{
	static const char *const refused[] = {
		"",
		"6",
		"6/85",
		"6/85/4/1",
		"6/0x155/4",
		"6,85,4",
		"6/85,4",
		"6/85/4 ",
		"70000/1/1",
		"GenuineIntel,6,85",
		"GenuineIntel/6/85/4",
		"AuthenticAMD,25,1,1",
		"GenuineIntel,6,85,4,",
		"-6/1/1",
	};
	struct vmt_pt_cpu cpu = { 0 };

	(void)state;
	assert_true(vmt_pt_cpu_parse("6/0x55/4", &cpu));
	assert_true(cpu.known && cpu.family == 6 && cpu.model == 0x55 && cpu.stepping == 4);
	assert_true(vmt_pt_cpu_parse("GenuineIntel,6,158,10", &cpu));
	assert_true(cpu.known && cpu.family == 6 && cpu.model == 0x9e && cpu.stepping == 10);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_false(vmt_pt_cpu_parse(refused[i], &cpu));
	assert_int_equal(cpu.model, 0x9e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_processor),
		cmocka_unit_test(names),
		cmocka_unit_test(spelling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
