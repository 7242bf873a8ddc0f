// SPDX-License-Identifier: LGPL-2.1-or-later
/* How Intel PT is set up: attr.config out of sysfs, terms and errata, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/capture/pt_config.h"
#include "tests/support/pt_machine.h"
#include "tests/support/remove_all.h"

static char top[] = "/tmp/vmt-pt-config-XXXXXX";
static struct vmt_hostfs fs;

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(top))
		return -1;
	fs = vmt_ptm_files(top, false);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return vmt_remove_all(top);
}

#define DEFAULTS (UINT64_C(1) | 1u << 10 | 1u << 13 | 1u << 9 | 3u << 14 | 3u << 24 | 1u << 31)

static struct vmt_pt_config make(const char *terms, bool vm_events_only, int want)
{
	struct vmt_diag diag = { 0 };
	struct vmt_pt_config config;
	struct vmt_pt_pmu pmu;
	int err;

	assert_int_equal(vmt_pt_pmu_read(&pmu, &fs, &diag), 0);
	assert_int_equal(pmu.type, VMT_PTM_TYPE);
	err = vmt_pt_config_make(&config, &pmu, terms, vm_events_only, &diag);
	if (err != want)
		fail_msg("%s: %d: %s (%s)", terms ? terms : "", err, diag.what, diag.cure);
	assert_int_equal(diag.code, err);
	assert_true(!err || diag.cure[0]);
	return config;
}

static void test_config(void **state)
{
	static const struct {
		const char *terms;
		int want;
		uint64_t set, clear;
	} rows[] = {
		{ "", 0, 0, 0 },
		{ "mtc=0,event=0", 0, 0, 1u << 9 | 1u << 31 },
		{ "cyc", 0, 1u << 1, 0 },
		{ "cyc,cyc_thresh=4", 0, 1u << 1 | 4u << 19, 0 },
		{ "cyc_thresh=15", VMT_E_CAPABILITY, 0, 0 },
		{ "mtc_period=6", 0, 6u << 14, 1u << 14 },
		{ "mtc_period=1", VMT_E_CAPABILITY, 0, 0 },
		{ "mtc=0,mtc_period=1", 0, 1u << 14, 1u << 9 },
		{ "psb_period=5", 0, 5u << 24, 0 },
		{ "psb_period=6", VMT_E_CAPABILITY, 0, 0 },
		{ "psb_period=16", VMT_E_USAGE, 0, 0 },
		{ "notnt,noretcomp", 0, UINT64_C(1) << 55 | 1u << 11, 0 },
		{ "ptw", VMT_E_CAPABILITY, 0, 0 },
		{ "pwr_evt", VMT_E_CAPABILITY, 0, 0 },
		{ "pt=0", VMT_E_CAPABILITY, 0, 0 },
		{ "pt=0,branch=0", 0, 0, 1u << 0 | 1u << 13 },
		{ "branch=0", 0, 0, 1u << 13 },
		{ "branches=0", VMT_E_USAGE, 0, 0 },
		{ "mtc=", VMT_E_USAGE, 0, 0 },
		{ "mtc=0x1;", VMT_E_USAGE, 0, 0 },
		{ ",", VMT_E_USAGE, 0, 0 },
	};
	struct vmt_pt_config config;

	(void)state;
	config = make(NULL, false, 0);
	assert_int_equal(config.config, DEFAULTS);
	assert_true(config.mtc && config.event && !config.note);
	assert_int_equal(config.mtc_freq, 3);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		config = make(rows[i].terms, false, rows[i].want);
		if (!rows[i].want)
			assert_true((config.config & rows[i].set) == rows[i].set &&
				    !(config.config & rows[i].clear));
	}
	assert_true(!(make(NULL, true, 0).config & 1u << 13));
	make("branch", true, VMT_E_USAGE);
}

static void test_other_cpus(void **state)
{
	struct vmt_pt_config config;
	struct vmt_pt_pmu pmu;
	struct vmt_diag diag = { 0 };

	(void)state;
	fs = vmt_ptm_files(top, true);
	config = make(NULL, false, 0);
	assert_true(!config.mtc && config.note && strstr(config.note, "SKZ84"));
	assert_true(make("mtc", false, 0).note == NULL);
	fs = vmt_ptm_files(top, false);
	vmt_ptm_file(top, "caps/event_trace", NULL); /* an older kernel */
	vmt_ptm_file(top, "caps/mtc_periods", "40\n");
	config = make(NULL, false, 0);
	assert_true(!config.event && config.mtc_freq == 6);
	make("event", false, VMT_E_CAPABILITY);
	vmt_ptm_file(top, "caps/mtc", "0\n");
	vmt_ptm_file(top, "caps/psb_cyc", "0\n");
	config = make(NULL, false, 0);
	assert_true(config.config == (1u | 1u << 10 | 1u << 13));
	make(NULL, true, VMT_E_CAPABILITY);
	vmt_ptm_file(top, "type", NULL);
	assert_int_equal(vmt_pt_pmu_read(&pmu, &fs, &diag), VMT_E_CAPABILITY);
	assert_non_null(strstr(diag.what, "no Intel PT"));
	fs = vmt_ptm_files(top, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_config),
		cmocka_unit_test(test_other_cpus),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
