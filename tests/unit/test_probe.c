// SPDX-License-Identifier: LGPL-2.1-or-later
/* The checks of doctor on hosts made of files. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host/probe/probe.h"
#include "host/probe/traceable.h"
#include "tests/support/tree.h"

static int page_with_tsc(struct vmt_perf_page *out)
{
	*out = (struct vmt_perf_page){ .cap_user_time = true,
				       .cap_user_time_zero = true,
				       .time_shift = 31,
				       .time_mult = 1073741824 };
	return 0;
}

static int page_without_tsc(struct vmt_perf_page *out)
{
	memset(out, 0, sizeof(*out));
	return 0;
}

static int page_refused(struct vmt_perf_page *out)
{
	memset(out, 0, sizeof(*out));
	return -EACCES;
}

static const struct vmt_check *check_of(const struct vmt_probe *probe, const char *id)
{
	for (size_t i = 0; i < probe->count; i++) {
		if (!strcmp(probe->checks[i].id, id))
			return &probe->checks[i];
	}
	fail_msg("no check %s", id);
	return NULL;
}

static void expect(const struct vmt_probe *probe, const char *id, enum vmt_check_status status,
		   const char *cause)
{
	const struct vmt_check *check = check_of(probe, id);

	if (check->status != status || !strstr(check->cause, cause))
		fail_msg("%s: %s (%s)", id, vmt_check_status_name(check->status), check->cause);
	if (status == VMT_CHECK_BLOCKED || status == VMT_CHECK_WARN)
		assert_true(check->cure[0] != '\0');
}

static struct vmt_probe probe_tree(const struct vmt_tree *tree, int (*page)(struct vmt_perf_page *))
{
	struct vmt_probe_env env = { .fs = &tree->fs, .perf_page = page };
	struct vmt_probe probe;

	vmt_probe_host(&probe, &env);
	return probe;
}

static void a_good_host(void **state)
{
	struct vmt_tree tree;
	struct vmt_probe probe;

	(void)state;
	vmt_tree_unpack(&tree, "host-intel");
	probe = probe_tree(&tree, page_with_tsc);
	expect(&probe, "kernel", VMT_CHECK_OK, "6.1.0-57-amd64");
	expect(&probe, "cpu", VMT_CHECK_OK, "Gold 6330 CPU @ 2.00GHz, VMX");
	expect(&probe, "kvm", VMT_CHECK_OK, "kvm_intel");
	expect(&probe, "dev-kvm", VMT_CHECK_OK, "");
	expect(&probe, "tracefs", VMT_CHECK_OK, "/tracing");
	expect(&probe, "tracepoints", VMT_CHECK_OK, "2 of them");
	expect(&probe, "perf-rights", VMT_CHECK_OK, "CAP_PERFMON (perf_event_paranoid 3)");
	expect(&probe, "capabilities", VMT_CHECK_OK, "PERFMON");
	expect(&probe, "lockdown", VMT_CHECK_OK, "none");
	expect(&probe, "memlock", VMT_CHECK_OK, "");
	expect(&probe, "open-files", VMT_CHECK_OK, "524288");
	expect(&probe, "debugfs", VMT_CHECK_OK, "/debug");
	expect(&probe, "tsc", VMT_CHECK_OK, "clocksource tsc");
	expect(&probe, "perf-clock", VMT_CHECK_OK, "2000.000 MHz");
	expect(&probe, "intel-pt", VMT_CHECK_OK, "ToPA buffers");
	expect(&probe, "pt-mode", VMT_CHECK_OK, "system");
	assert_null(vmt_probe_blocked(&probe, VMT_NEED_KVM | VMT_NEED_SCHED));
	vmt_tree_remove(&tree);
}

static void a_host_without_rights(void **state)
{
	struct vmt_tree tree;
	struct vmt_probe probe;

	(void)state;
	vmt_tree_unpack(&tree, "host-user");
	tree.fs.tracefs = NULL; /* by proc/mounts: nowhere */
	tree.fs.debugfs = NULL;
	probe = probe_tree(&tree, page_refused);
	expect(&probe, "kernel", VMT_CHECK_WARN, "4.14");
	expect(&probe, "cpu", VMT_CHECK_OK, "SVM");
	expect(&probe, "kvm", VMT_CHECK_OK, "kvm_amd");
	expect(&probe, "dev-kvm", VMT_CHECK_WARN, "not there");
	expect(&probe, "tracefs", VMT_CHECK_BLOCKED, "may not mount");
	expect(&probe, "tracepoints", VMT_CHECK_UNKNOWN, "");
	expect(&probe, "perf-rights", VMT_CHECK_BLOCKED, "perf_event_paranoid is 2");
	expect(&probe, "capabilities", VMT_CHECK_WARN, "missing: PERFMON");
	expect(&probe, "lockdown", VMT_CHECK_BLOCKED, "confidentiality");
	expect(&probe, "memlock", VMT_CHECK_WARN, "8192 KiB");
	expect(&probe, "open-files", VMT_CHECK_WARN, "1024");
	expect(&probe, "debugfs", VMT_CHECK_WARN, "not mounted");
	expect(&probe, "tsc", VMT_CHECK_WARN, "hpet");
	expect(&probe, "perf-clock", VMT_CHECK_UNKNOWN, "Permission denied");
	expect(&probe, "intel-pt", VMT_CHECK_ABSENT, "none");
	assert_string_equal(vmt_probe_blocked(&probe, VMT_NEED_KVM)->id, "tracefs");
	vmt_tree_remove(&tree);
}

static void single_causes(void **state)
{
	struct vmt_tree tree;
	struct vmt_probe probe;

	(void)state;
	vmt_tree_unpack(&tree, "host-intel");
	vmt_tree_write(&tree, "sys/module/kvm_intel", NULL);
	vmt_tree_write(&tree, "sys/module/kvm_pvm/parameters/x", "");
	vmt_tree_write(&tree, "sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	vmt_tree_write(&tree, "tracing/events/kvm/kvm_exit", NULL);
	vmt_tree_write(&tree, "proc/sys/kernel/perf_event_paranoid", "-1\n");
	vmt_tree_write(&tree, "proc/self/status", "Name:\tx\nCapEff:\t0000000000000000\n");
	probe = probe_tree(&tree, page_without_tsc);
	expect(&probe, "kvm", VMT_CHECK_WARN, "kvm_pvm");
	expect(&probe, "lockdown", VMT_CHECK_OK, "integrity");
	expect(&probe, "tracepoints", VMT_CHECK_BLOCKED, "kvm_exit");
	expect(&probe, "perf-rights", VMT_CHECK_OK, "perf_event_paranoid -1");
	expect(&probe, "perf-clock", VMT_CHECK_WARN, "cap_user_time_zero");
	vmt_tree_write(&tree, "sys/module/kvm_pvm", NULL);
	probe = probe_tree(&tree, page_without_tsc);
	expect(&probe, "kvm", VMT_CHECK_BLOCKED, "no module");
	vmt_tree_write(&tree, "sys/module/kvm", NULL);
	vmt_tree_write(&tree, "proc/sys/kernel/perf_event_paranoid", NULL);
	probe = probe_tree(&tree, page_without_tsc);
	expect(&probe, "kvm", VMT_CHECK_BLOCKED, "not loaded");
	expect(&probe, "perf-rights", VMT_CHECK_BLOCKED, "no perf events");
	vmt_tree_remove(&tree);
}

static void tracefs_can_be_mounted_by_root(void **state)
{
	struct vmt_tree tree;
	struct vmt_probe probe;

	(void)state;
	vmt_tree_unpack(&tree, "host-intel");
	tree.fs.tracefs = NULL;
	probe = probe_tree(&tree, page_with_tsc);
	expect(&probe, "tracefs", VMT_CHECK_OK, "mounts it for itself");
	vmt_tree_write(&tree, "proc/mounts", "x /nonexistent/tracing tracefs rw 0 0\n");
	probe = probe_tree(&tree, page_with_tsc);
	expect(&probe, "tracefs", VMT_CHECK_BLOCKED, "/nonexistent/tracing/events");
	vmt_tree_remove(&tree);
}

/* Nothing at all is there: every check ends, none crashes. */
static void an_empty_host(void **state)
{
	struct vmt_hostfs fs = { .proc = "/nonexistent",
				 .sys = "/nonexistent",
				 .run = "/nonexistent",
				 .dev = "/nonexistent",
				 .debugfs = "/nonexistent",
				 .tracefs = "/nonexistent" };
	struct vmt_probe_env env = { .fs = &fs, .perf_page = page_refused };
	struct vmt_probe probe;

	(void)state;
	vmt_probe_host(&probe, &env);
	for (size_t i = 0; i < probe.count; i++)
		assert_int_not_equal(probe.checks[i].status, VMT_CHECK_OK);
	assert_non_null(vmt_probe_blocked(&probe, VMT_NEED_KVM));
}

static void domains_are_checked(void **state)
{
	static const pid_t pid = 4711;
	struct vmt_domain_query query = { .pids = &pid, .nr_pids = 1 };
	struct vmt_domain test = { .name = NULL, .id = 1, .vm_fd = -1, .type = "test" };
	struct vmt_domain tcg = { .id = 1, .vm_fd = -1, .type = "qemu", .pid = 1 };
	struct vmt_traceable trace;
	struct vmt_domains found;
	struct vmt_probe host, probe;
	struct vmt_tree good, web01;

	(void)state;
	vmt_tree_unpack(&good, "host-intel");
	host = probe_tree(&good, page_with_tsc);
	vmt_tree_unpack(&web01, "web01");
	query.fs = &web01.fs;
	assert_int_equal(vmt_domains_find(&found, &query, NULL), VMT_OK);
	vmt_probe_domain(&probe, &found.items[0]);
	expect(&probe, "type", VMT_CHECK_OK, "kvm");
	expect(&probe, "process", VMT_CHECK_OK, "4711");
	expect(&probe, "vcpus", VMT_CHECK_OK, "2 of 2, by thread name");
	expect(&probe, "guest-tsc", VMT_CHECK_OK, "all vCPUs");
	vmt_traceable_of(&trace, &host, &found.items[0]);
	assert_true(trace.kvm && trace.sched && !trace.replay);
	assert_int_equal(trace.pt, !vmt_probe_blocked(&host, VMT_NEED_PT));
	vmt_domains_free(&found);

	vmt_probe_domain(&probe, &test);
	expect(&probe, "type", VMT_CHECK_BLOCKED, "test driver");
	vmt_traceable_of(&trace, &host, &test);
	assert_true(!trace.kvm && !trace.sched && !trace.pt && trace.replay);
	assert_non_null(strstr(trace.why_not, "test driver"));

	vmt_probe_domain(&probe, &tcg);
	expect(&probe, "type", VMT_CHECK_BLOCKED, "emulates");
	vmt_tree_remove(&good);
	vmt_tree_remove(&web01);
}

static void tsc_frequency_of_the_page(void **state)
{
	struct vmt_perf_page page = { .cap_user_time = true, .time_shift = 32 };

	(void)state;
	assert_int_equal(vmt_perf_page_tsc_khz(&page), 0);
	page.time_mult = 1867377085; /* 2300 MHz */
	assert_int_equal(vmt_perf_page_tsc_khz(&page), 2300000);
	page.cap_user_time = false;
	assert_int_equal(vmt_perf_page_tsc_khz(&page), 0);
	page.cap_user_time = true;
	page.time_shift = 64;
	assert_int_equal(vmt_perf_page_tsc_khz(&page), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_host),
		cmocka_unit_test(a_host_without_rights),
		cmocka_unit_test(single_causes),
		cmocka_unit_test(tracefs_can_be_mounted_by_root),
		cmocka_unit_test(an_empty_host),
		cmocka_unit_test(domains_are_checked),
		cmocka_unit_test(tsc_frequency_of_the_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
