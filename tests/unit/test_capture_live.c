// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The kernel's own records of a real virtual machine: every write to a port is in the file, with
 * its thread; a vCPU that is plugged in later as well; the end of the machine ends the capture.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/capture/anchors.h"
#include "host/capture/capture.h"
#include "tests/support/vm_process.h"
#include "tests/support/vmt_counts.h"

#define WRITES 5000u

static char path[64];

static bool is_skipped(void)
{
	const char *reason = vm_process_reason();

	if (reason)
		print_message("# skipped: %s\n", reason);
	return reason != NULL;
}

static struct vmt_domains find(pid_t pid)
{
	struct vmt_domain_query query = { .pids = &pid, .nr_pids = 1 };
	struct vmt_domains domains = { 0 };
	struct vmt_diag diag = { 0 };

	if (vmt_domains_find(&domains, &query, &diag))
		fail_msg("%s (%s)", diag.what, diag.cure);
	assert_int_equal(domains.count, 1);
	return domains;
}

static struct vmt_store_writer *make_store(void)
{
	struct vmt_store_writer *store;
	struct vmt_store_options options = { .force = true };

	snprintf(path, sizeof(path), "/tmp/vmt-live-%d.vmt", getpid());
	assert_int_equal(vmt_store_create(&store, path, &options, NULL), 0);
	return store;
}

static void drain(struct vmt_capture *capture)
{
	struct vmt_diag diag = { 0 };

	if (vmt_capture_drain(capture, &diag) != 0)
		fail_msg("%s (%s)", diag.what, diag.cure);
}

static void test_every_write(void **state)
{
	struct vmt_capture_options options = { .session_json =
						       "{\"schema\":\"vmtrace-session/1\"}" };
	struct vmt_capture *capture = NULL;
	struct vmt_capture_stats stats;
	struct vmt_store_writer *store;
	struct vmt_domains domains;
	struct vmt_diag diag = { 0 };
	struct vmt_counts counts;
	struct vm_process vm;
	uint32_t tids[3];
	int end = 0;

	(void)state;
	if (is_skipped())
		skip();
	vm_process_start(&vm, 2);
	domains = find(vm.pid);
	assert_int_equal(domains.items[0].nr_vcpus, 2);
	store = make_store();
	if (vmt_capture_prepare(NULL, &diag) ||
	    vmt_capture_open(&capture, &options, &domains, store, &diag))
		fail_msg("%s (%s)", diag.what, diag.cure);
	vm_process_run(&vm, 0, WRITES);
	drain(capture);
	vm_process_run(&vm, 1, WRITES);
	vm_process_add_vcpu(&vm);
	drain(capture); /* sees the new thread */
	vm_process_run(&vm, 2, WRITES);
	drain(capture);
	assert_int_equal(domains.items[0].nr_vcpus, 3);
	for (int i = 0; i < 3; i++)
		tids[i] = (uint32_t)domains.items[0].vcpus[i].tid;
	assert_int_equal(vmt_capture_mark(capture, 0, "paused", "by the test", &diag), 0);
	vm_process_stop(&vm);
	for (int i = 0; i < 1000 && !end; i++) {
		end = vmt_capture_drain(capture, &diag);
		usleep(end ? 0 : 1000);
	}
	assert_int_equal(end, 1);
	stats = vmt_capture_stats(capture);
	assert_int_equal(stats.lost_records, 0);
	assert_int_equal(vmt_capture_close(capture, &diag), 0);
	assert_int_equal(vmt_store_finish(store, &diag), 0);

	counts = vmt_counts_of(path);
	assert_true(counts.readable && counts.closed);
	assert_int_equal(counts.bad_records, 0);
	assert_int_equal(counts.unknown_ids, 0);
	assert_int_equal(counts.losses, 0);
	assert_int_equal(counts.disordered, 0);
	assert_int_equal(counts.records, stats.records);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(vmt_count_samples(path, "kvm_pio", tids[i]), WRITES);
		assert_int_equal(vmt_count_samples(path, "kvm_userspace_exit", tids[i]), WRITES);
	}
	assert_int_equal(vmt_count_samples(path, "kvm_pio", 0), 3 * WRITES);
	/* each run slept at least twice: for its order, and once in between */
	assert_true(counts.switches_in >= 5 && counts.switches_out >= 5);
	assert_true(vmt_count_samples(path, "sched_waking", 0) >= 5);
	assert_true(counts.anchors >= 2 && counts.sessions >= 2);
	assert_string_equal(counts.mark_names, "capture-start paused stopped capture-stop ");
	vmt_domains_free(&domains);
	unlink(path);
}

/* Only what was asked for. */
static void test_kvm_alone(void **state)
{
	struct vmt_capture_options options = { .backend = "kvm", .session_json = "{}" };
	struct vmt_capture *capture = NULL;
	struct vmt_store_writer *store;
	struct vmt_domains domains;
	struct vmt_diag diag = { 0 };
	struct vmt_counts counts;
	struct vm_process vm;

	(void)state;
	if (is_skipped())
		skip();
	vm_process_start(&vm, 1);
	domains = find(vm.pid);
	store = make_store();
	assert_int_equal(vmt_capture_open(&capture, &options, &domains, store, &diag), 0);
	vm_process_run(&vm, 0, 100);
	assert_int_equal(vmt_capture_close(capture, &diag), 0);
	vm_process_stop(&vm);
	assert_int_equal(vmt_store_finish(store, &diag), 0);
	counts = vmt_counts_of(path);
	assert_int_equal(vmt_count_samples(path, "kvm_pio", 0), 100);
	assert_int_equal(counts.switches_in + counts.switches_out, 0);
	assert_int_equal(vmt_count_samples(path, "sched_waking", 0), 0);
	assert_non_null(strstr(counts.last_session, "\"has_switches\":false"));
	vmt_domains_free(&domains);
	unlink(path);
}

/* A self-sample gives the clock of the records, between two readings of another clock. */
static void test_clock(void **state)
{
	struct vmt_clock clock;
	struct vmt_anchor a, b;

	(void)state;
	vmt_clock_open(&clock, &vmt_perf_system);
	vmt_anchor_read(&clock, &a);
	usleep(20000);
	vmt_anchor_read(&clock, &b);
	vmt_clock_close(&clock);
	assert_true(a.host_tsc_before <= a.host_tsc_after && a.host_tsc_after < b.host_tsc_before);
	assert_true(b.monotonic_raw_ns - a.monotonic_raw_ns >= 19000000u);
	if (a.flags & VMT_ANCHOR_NO_PERF_CLOCK) {
		print_message("# skipped: this kernel lets nobody open perf events\n");
		skip();
	}
	assert_true(b.host_ns - a.host_ns >= 19000000u);
	assert_true(!(a.flags & VMT_ANCHOR_NO_TIME_ZERO) == (a.time_mult != 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_write),
		cmocka_unit_test(test_kvm_alone),
		cmocka_unit_test(test_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
