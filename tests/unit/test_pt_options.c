/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Options of bare PT streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/cli.h"

static struct vmt_cli *fresh(void)
{
	struct vmt_cli *cli = calloc(1, sizeof(*cli));

	assert_non_null(cli);
	return cli;
}

static void virtual_machines(void **state)
{
	struct vmt_cli *cli = fresh();
	const struct vmt_pt_vm *vms = cli->pt.vms;
	const char *why;

	(void)state;
	assert_true(vmt_pt_read_vm(cli,
				   "0x1bff6a000,offset=-2995683791,mult=140737488355328,name=a",
				   &why));
	assert_true(vmt_pt_read_vm(cli, "any,offset=5,frac=32,vcpu=3", &why));
	assert_true(vmt_pt_read_vm(cli, "4096,name=b", &why));
	assert_true(vmt_pt_read_vm(cli, "8192,offset=0x10,name=a", &why));
	assert_int_equal(cli->pt.nr_vms, 4);
	assert_true(vms[0].vmcs == 0x1bff6a000 && vms[0].has_map &&
		    vms[0].map.offset == (uint64_t)-INT64_C(2995683791) &&
		    vms[0].map.multiplier == UINT64_C(1) << 47 && vms[0].map.frac_bits == 48);
	assert_true(vms[1].vmcs == VMT_PT_ANY_VMCS && vms[1].map.multiplier == UINT64_C(1) << 32 &&
		    vms[1].has_vcpu && vms[1].vcpu == 3 && !vms[1].has_domain);
	assert_true(!vms[2].has_map && vms[2].has_domain && vms[2].domain == 1);
	assert_true(vms[3].has_map && vms[3].domain == 0);
	assert_int_equal(cli->pt.nr_names, 2);
	assert_string_equal(cli->pt.names[1], "b");
	free(cli);
}

static void virtual_machines_refused(void **state)
{
	static const char *const refused[] = {
		"",
		"web01",
		"-1",
		"0x1000,",
		"0x1000,,name=a",
		"0x1000,name=",
		"0x1000,offset",
		"0x1000,offset=",
		"0x1000,offset=--1",
		"0x1000,offset=1x",
		"0x1000,mult=0",
		"0x1000,frac=0",
		"0x1000,frac=64",
		"0x1000,vcpu=-1",
		"0x1000,color=1",
		"0x10000000000000000",
		"0x1000,name="
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	};
	struct vmt_cli *cli = fresh();
	const char *why = NULL;
	char text[32];

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		if (vmt_pt_read_vm(cli, refused[i], &why))
			fail_msg("%s is taken", refused[i]);
		assert_non_null(strstr(why, "VMCS,offset=N"));
	}
	assert_int_equal(cli->pt.nr_vms, 0);
	for (unsigned int i = 0; i < VMT_CLI_VMS_MAX; i++) {
		snprintf(text, sizeof(text), "%u,name=vm%u", i * 4096, i);
		assert_true(vmt_pt_read_vm(cli, text, &why));
	}
	assert_false(vmt_pt_read_vm(cli, "1", &why));
	assert_string_equal(why, "at most 64 VMs");
	free(cli);
}

static void numbers(void **state)
{
	struct vmt_cli *cli = fresh();
	const char *why;

	(void)state;
	assert_true(vmt_pt_tsc_hz(&cli->pt) == 0);
	assert_true(vmt_pt_read_nom_ratio(cli, "0x23", &why));
	assert_true(vmt_pt_tsc_hz(&cli->pt) == 3500000000u);
	assert_true(vmt_pt_read_cpuid_15h(cli, "2,176", &why));
	assert_true(cli->pt.clock.art_den == 2 && cli->pt.clock.tsc_num == 176);
	assert_true(vmt_pt_tsc_hz(&cli->pt) == 3500000000u);
	assert_true(vmt_pt_read_cpuid_15h(cli, "2,176,24000000", &why));
	assert_true(vmt_pt_tsc_hz(&cli->pt) == 2112000000);
	assert_true(vmt_pt_read_tsc_hz(cli, "2111998000", &why));
	assert_true(vmt_pt_tsc_hz(&cli->pt) == 2111998000);
	assert_true(vmt_pt_read_mtc_freq(cli, "15", &why) && cli->pt.clock.mtc_freq == 15);
	assert_false(vmt_pt_read_mtc_freq(cli, "16", &why));
	assert_false(vmt_pt_read_nom_ratio(cli, "0", &why));
	assert_false(vmt_pt_read_nom_ratio(cli, "256", &why));
	assert_false(vmt_pt_read_tsc_hz(cli, "0", &why));
	assert_false(vmt_pt_read_tsc_hz(cli, "10000000001", &why));
	assert_false(vmt_pt_read_cpuid_15h(cli, "2", &why));
	assert_false(vmt_pt_read_cpuid_15h(cli, "0,176", &why));
	assert_false(vmt_pt_read_cpuid_15h(cli, "2,176,1,1", &why));
	assert_false(vmt_pt_read_cpuid_15h(cli, "2,176,", &why));
	assert_false(vmt_pt_read_cpuid_15h(cli, "2;176", &why));
	assert_true(vmt_pt_read_block(cli, "blk8", &why) && cli->pt.block == VMT_PT_BLOCK_8);
	assert_false(vmt_pt_read_block(cli, "8", &why));
	assert_true(vmt_pt_read_cpu_id(cli, "6/0x55/4", &why) && cli->pt.cpu.model == 0x55);
	assert_false(vmt_pt_read_cpu_id(cli, "6/0x55", &why));
	free(cli);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(virtual_machines),
		cmocka_unit_test(virtual_machines_refused),
		cmocka_unit_test(numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
