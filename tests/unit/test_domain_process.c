// SPDX-License-Identifier: LGPL-2.1-or-later
/* A QEMU process as a tree of files: what is found of it, and what a forged or stale file does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host/domain/domain.h"
#include "host/domain/locate.h"
#include "host/domain/process.h"
#include "host/domain/threads.h"
#include "tests/support/tree.h"

#define UUID "4dea22b3-1d52-4d8f-a2a5-6f2c1b0c9a01"

static struct vmt_tree tree;

static int setup(void **state)
{
	(void)state;
	vmt_tree_unpack(&tree, "web01");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	vmt_tree_remove(&tree);
	return 0;
}

static struct vmt_domains by_pid(pid_t pid)
{
	struct vmt_domain_query query = { .pids = &pid, .nr_pids = 1, .fs = &tree.fs };
	struct vmt_domains found;

	assert_int_equal(vmt_domains_find(&found, &query, NULL), VMT_OK);
	assert_int_equal(found.count, 1);
	return found;
}

/* The domain as libvirt would have told of it, before this host's files are read. */
static struct vmt_domain web01(void)
{
	struct vmt_domain domain = {
		.name = strdup("web01"), .uuid = UUID, .id = 1, .vm_fd = -1, .fs = &tree.fs
	};

	snprintf(domain.uri, sizeof(domain.uri), "qemu:///system");
	return domain;
}

static void forget(struct vmt_domain *domain)
{
	struct vmt_domains one = { .count = 1, .items = malloc(sizeof(*domain)) };

	assert_non_null(one.items);
	one.items[0] = *domain;
	vmt_domains_free(&one);
}

static const char *role_of(const struct vmt_domain *domain, pid_t tid)
{
	for (size_t i = 0; i < domain->nr_helpers; i++) {
		if (domain->helpers[i].tid == tid)
			return domain->helpers[i].role;
	}
	return "";
}

static void a_process_is_found_by_its_pid(void **state)
{
	struct vmt_domains found = by_pid(4711);
	const struct vmt_domain *d = &found.items[0];
	char debugfs[300];

	(void)state;
	assert_null(d->name);
	assert_string_equal(d->uuid, UUID);
	assert_string_equal(d->type, "kvm");
	assert_string_equal(d->pid_source, "--pid");
	assert_int_equal(d->pid, 4711);
	assert_int_equal(d->pid_start, 8800);
	assert_int_equal(d->vm_fd, 11);
	snprintf(debugfs, sizeof(debugfs), "%s/kvm/4711-11", tree.debugfs);
	assert_string_equal(d->debugfs, debugfs);
	assert_int_equal(d->nr_vcpus, 2);
	assert_int_equal(d->vcpus[0].tid, 4720);
	assert_string_equal(d->vcpus[0].tid_source, "thread name");
	assert_int_equal(d->vcpus[0].host_cpu, 1);
	assert_string_equal(d->vcpus[0].affinity, "0-1");
	assert_int_equal(d->vcpus[1].tid, 4721);
	assert_string_equal(d->vcpus[1].affinity, "1");
	for (size_t i = 0; i < 2; i++) {
		assert_true(d->vcpus[i].has_offset);
		assert_true(d->vcpus[i].tsc_offset == INT64_C(-2995683791));
		assert_true(d->vcpus[i].has_ratio);
		assert_true(d->vcpus[i].tsc_ratio == UINT64_C(140737488355328));
		assert_int_equal(d->vcpus[i].tsc_frac, 48);
	}
	vmt_domains_free(&found);
}

static void helpers_have_roles(void **state)
{
	struct vmt_domains found = by_pid(4711);
	const struct vmt_domain *d = &found.items[0];

	(void)state;
	assert_string_equal(role_of(d, 4711), "emulator");
	assert_string_equal(role_of(d, 4714), "iothread");
	assert_string_equal(role_of(d, 4713), "worker");
	assert_string_equal(role_of(d, 4722), "vhost");
	assert_string_equal(role_of(d, 4730), "kvm-pit");
	assert_string_equal(role_of(d, 4731), "kvm-nx");
	assert_string_equal(role_of(d, 4720), ""); /* a vCPU */
	assert_string_equal(role_of(d, 4740), ""); /* of another VM */
	assert_string_equal(role_of(d, 4741), ""); /* a process that calls itself vhost-4711 */
	vmt_domains_free(&found);
}

static void each_way_finds_the_threads(void **state)
{
	static const char *const tasks[] = { "4720", "4721" };
	struct vmt_domains found;
	char path[64];

	(void)state;
	for (size_t i = 0; i < 2; i++) { /* no names: debugfs */
		snprintf(path, sizeof(path), "proc/4711/task/%s/comm", tasks[i]);
		vmt_tree_write(&tree, path, "qemu-system-x86\n");
	}
	found = by_pid(4711);
	assert_string_equal(found.items[0].vcpus[1].tid_source, "debugfs");
	assert_int_equal(found.items[0].vcpus[1].tid, 4721);
	vmt_domains_free(&found);
	vmt_tree_write(&tree, "debug/kvm/4711-11", NULL); /* no debugfs: cgroup */
	found = by_pid(4711);
	assert_string_equal(found.items[0].vcpus[1].tid_source, "cgroup");
	assert_int_equal(found.items[0].vcpus[1].tid, 4721);
	assert_false(found.items[0].vcpus[1].has_offset);
	vmt_domains_free(&found);
}

static void the_status_file_fills_what_is_open(void **state)
{
	static struct vmt_status_xml status;
	struct vmt_domain d = web01();

	(void)state;
	vmt_tree_write(&tree, "proc/4711/task/4721/comm", "x\n");
	vmt_tree_write(&tree, "debug/kvm/4711-11", NULL);
	vmt_locate_process(&d, &status);
	assert_int_equal(d.pid, 4711);
	assert_string_equal(d.pid_source, "pid file");
	assert_int_equal(vmt_domain_read_process(&d, &status), 0);
	assert_string_equal(d.vcpus[0].tid_source, "thread name");
	assert_string_equal(d.vcpus[1].tid_source, "status file");
	assert_int_equal(d.vcpus[1].tid, 4721);
	forget(&d);
}

static void a_contradiction_is_noted(void **state)
{
	struct vmt_domains found;

	(void)state;
	vmt_tree_write(&tree, "proc/4711/task/4723/comm", "CPU 1/KVM\n");
	found = by_pid(4711);
	assert_non_null(strstr(found.items[0].note, "vCPU 1 is thread"));
	vmt_domains_free(&found);
}

static void a_thread_of_another_process_is_refused(void **state)
{
	static struct vmt_status_xml status;
	struct vmt_domain d = web01();

	(void)state;
	vmt_locate_process(&d, &status);
	status.vcpus[status.nr_vcpus].id = 2;
	status.vcpus[status.nr_vcpus++].tid = 4730;
	assert_int_equal(vmt_domain_read_process(&d, &status), 0);
	assert_int_equal(d.nr_vcpus, 3);
	assert_int_equal(d.vcpus[2].tid, 0);
	assert_non_null(strstr(d.note, "is not one of process 4711"));
	forget(&d);
}

static void a_stale_pid_file_is_not_believed(void **state)
{
	struct vmt_domain d = web01();

	(void)state;
	vmt_tree_write(&tree, "run/libvirt/qemu/web01.pid", "4741");
	vmt_locate_process(&d, NULL);
	assert_int_equal(d.pid, 4711);
	assert_string_equal(d.pid_source, "command line");
	forget(&d);
	d = web01();
	vmt_tree_write(&tree, "proc/4711/cmdline", "qemu");
	vmt_locate_process(&d, NULL);
	assert_int_equal(d.pid, 0);
	assert_non_null(strstr(d.note, "no process"));
	forget(&d);
}

static void kvm_ids_that_are_not_indexes_map_through_threads(void **state)
{
	struct vmt_domains found;

	(void)state;
	vmt_tree_write(&tree, "debug/kvm/4711-11/vcpu4/pid", "4721\n");
	vmt_tree_write(&tree, "debug/kvm/4711-11/vcpu4/tsc-offset", "77\n");
	vmt_tree_write(&tree, "debug/kvm/4711-11/vcpu1", NULL);
	found = by_pid(4711);
	assert_int_equal(found.items[0].nr_vcpus, 2);
	assert_true(found.items[0].vcpus[1].tsc_offset == 77);
	assert_true(found.items[0].vcpus[1].has_ratio); /* no ratio file: unscaled */
	assert_int_equal(found.items[0].vcpus[1].tsc_ratio, 1);
	assert_int_equal(found.items[0].vcpus[1].tsc_frac, 0);
	assert_null(strstr(found.items[0].note, "vCPU"));
	vmt_domains_free(&found);
}

static void an_offset_outlives_its_thread(void **state)
{
	struct vmt_domains found;

	(void)state;
	vmt_tree_write(&tree, "proc/4711/task/4721", NULL);
	found = by_pid(4711);
	assert_int_equal(found.items[0].nr_vcpus, 2);
	assert_int_equal(found.items[0].vcpus[1].tid, 0);
	assert_true(found.items[0].vcpus[1].has_offset);
	vmt_domains_free(&found);
}

static void a_folder_named_by_another_thread_is_found(void **state)
{
	char from[128], to[128], *debugfs;
	struct vmt_domains found;

	(void)state;
	vmt_tree_write(&tree, "proc/4715/status", "Name:\tx\nTgid:\t4711\n");
	snprintf(from, sizeof(from), "%s/kvm/4711-11", tree.debugfs);
	snprintf(to, sizeof(to), "%s/kvm/4715-11", tree.debugfs);
	assert_int_equal(rename(from, to), 0);
	vmt_tree_write(&tree, "debug/kvm/1-11/vcpu0/pid", "1\n"); /* of another process */
	found = by_pid(4711);
	debugfs = strrchr(found.items[0].debugfs, '/');
	assert_string_equal(debugfs, "/4715-11");
	vmt_domains_free(&found);
}

static void errors_name_the_process(void **state)
{
	static const pid_t pids[] = { 99, 4741 };
	struct vmt_domain_query query = { .pids = pids, .nr_pids = 1, .fs = &tree.fs };
	struct vmt_diag diag = { .code = VMT_OK };
	struct vmt_domains found;

	(void)state;
	assert_int_equal(vmt_domains_find(&found, &query, &diag), VMT_E_NOT_FOUND);
	assert_string_equal(diag.what, "no process 99");
	assert_int_equal(found.count, 0);
	query.pids = &pids[1];
	vmt_tree_write(&tree, "proc/4741/fd/0", "");
	vmt_diag_clear(&diag);
	assert_int_equal(vmt_domains_find(&found, &query, &diag), VMT_E_NOT_FOUND);
	assert_non_null(strstr(diag.what, "runs no KVM"));
}

static void refresh_sees_hotplug_and_the_end(void **state)
{
	struct vmt_domains found = by_pid(4711);
	struct vmt_domain *d = &found.items[0];
	struct vmt_diag diag = { .code = VMT_OK };

	(void)state;
	vmt_tree_write(&tree, "proc/4711/task/4724/comm", "CPU 2/KVM\n");
	vmt_tree_write(&tree, "proc/4711/task/4724/stat", "4724 (CPU 2/KVM) S 0");
	assert_int_equal(vmt_domain_refresh(d, &diag), VMT_OK);
	assert_int_equal(d->nr_vcpus, 3);
	assert_int_equal(d->vcpus[2].tid, 4724);
	vmt_tree_write(&tree, "proc/4711/task/4724", NULL);
	assert_int_equal(vmt_domain_refresh(d, &diag), VMT_OK);
	assert_int_equal(d->vcpus[2].tid, 0);
	vmt_tree_write(&tree, "proc/4711/task/4711/stat",
		       "4711 (another) S 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 9999 0 0 0 0 0 0 0 0 "
		       "0 0 0 0 0 0 0 0 1 0");
	assert_int_equal(vmt_domain_refresh(d, &diag), VMT_E_NOT_FOUND); /* the pid is recycled */
	vmt_tree_write(&tree, "proc/4711", NULL);
	vmt_diag_clear(&diag);
	assert_int_equal(vmt_domain_refresh(d, &diag), VMT_E_NOT_FOUND);
	assert_string_equal(diag.what, "process 4711 has gone");
	vmt_domains_free(&found);
}

static void kvm_processes_are_listed(void **state)
{
	pid_t pids[4];

	(void)state;
	assert_int_equal(vmt_kvm_processes(&tree.fs, pids, 4), 1);
	assert_int_equal(pids[0], 4711);
}

static void counters_come_from_debugfs(void **state)
{
	struct vmt_domains found = by_pid(4711);
	struct vmt_counters counters;
	uint64_t exits = 0;

	(void)state;
	assert_int_equal(vmt_domain_counters(&found.items[0], &counters, NULL), VMT_OK);
	assert_string_equal(counters.source, "debugfs");
	assert_int_equal(counters.count, 3);
	for (size_t i = 0; i < counters.count; i++) {
		assert_int_equal(counters.items[i].vcpu, -1);
		if (!strcmp(counters.items[i].name, "exits"))
			exits = counters.items[i].value;
	}
	assert_int_equal(exits, 40000);
	vmt_counters_free(&counters);
	vmt_domains_free(&found);
}

static void names_of_threads_and_groups(void **state)
{
	static const struct {
		const char *name;
		int vcpu; /* -1: none */
	} rows[] = {
		{ "CPU 0/KVM", 0 },   { "CPU 12/TCG", 12 }, { "CPU /KVM", -1 },
		{ "CPU 1/KVMX", -1 }, { "CPU 1", -1 },	    { "vcpu3", 3 },
		{ "fc_vcpu 1", 1 },   { "kvm-vcpu-2", 2 },  { "CPU 99999/KVM", -1 },
		{ "", -1 },
	};
	unsigned int vcpu;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(vmt_thread_name_vcpu(rows[i].name, &vcpu), rows[i].vcpu >= 0);
		if (rows[i].vcpu >= 0)
			assert_int_equal(vcpu, rows[i].vcpu);
	}
	assert_true(vmt_cgroup_vcpu("5:cpu:/machine/qemu-1-web01.libvirt-qemu/vcpu7\n", &vcpu));
	assert_int_equal(vcpu, 7);
	assert_true(vmt_cgroup_vcpu("1:x:/a\n0::/m.slice/s.scope/libvirt/vcpu2\n", &vcpu));
	assert_int_equal(vcpu, 2);
	assert_false(vmt_cgroup_vcpu("0::/m.slice/vcpu2/x\n", &vcpu));
	assert_false(vmt_cgroup_vcpu("0::/libvirt/vcpu\n1::/emulator", &vcpu));
}

static void command_lines_name_domains(void **state)
{
	static const char old[] = "qemu\0-name\0a,,b,process=x";
	static const char with_uuid[] = "qemu\0-name\0guest=web01\0-uuid\0" UUID;

	(void)state;
	assert_true(vmt_cmdline_is_domain(old, sizeof(old), UUID, "a,b"));
	assert_false(vmt_cmdline_is_domain(old, sizeof(old), UUID, "a"));
	assert_true(vmt_cmdline_is_domain(with_uuid, sizeof(with_uuid), UUID, "other"));
	assert_false(vmt_cmdline_is_domain(with_uuid, sizeof(with_uuid),
					   "00000000-0000-0000-0000-000000000000", "web01"));
	assert_false(vmt_cmdline_is_domain("-uuid", 5, UUID, "web01"));
	assert_false(vmt_cmdline_is_domain("", 0, UUID, "web01"));
}

static void uris_are_local_or_not(void **state)
{
	(void)state;
	assert_true(vmt_uri_is_local("qemu:///system"));
	assert_true(vmt_uri_is_local("qemu+unix:///system?socket=/run/x"));
	assert_true(vmt_uri_is_local("qemu+tcp://localhost:16509/system"));
	assert_true(vmt_uri_is_local("qemu+tcp://root@127.0.0.1/system"));
	assert_true(vmt_uri_is_local("qemu+tcp://[::1]/system"));
	assert_false(vmt_uri_is_local("qemu+ssh://root@web-host.example/system"));
	assert_false(vmt_uri_is_local("qemu+tls://[fe80::1]/system"));
}

#define TREE_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(a_process_is_found_by_its_pid),
		TREE_TEST(helpers_have_roles),
		TREE_TEST(each_way_finds_the_threads),
		TREE_TEST(the_status_file_fills_what_is_open),
		TREE_TEST(a_contradiction_is_noted),
		TREE_TEST(a_thread_of_another_process_is_refused),
		TREE_TEST(a_stale_pid_file_is_not_believed),
		TREE_TEST(kvm_ids_that_are_not_indexes_map_through_threads),
		TREE_TEST(an_offset_outlives_its_thread),
		TREE_TEST(a_folder_named_by_another_thread_is_found),
		TREE_TEST(errors_name_the_process),
		TREE_TEST(refresh_sees_hotplug_and_the_end),
		TREE_TEST(kvm_processes_are_listed),
		TREE_TEST(counters_come_from_debugfs),
		cmocka_unit_test(names_of_threads_and_groups),
		cmocka_unit_test(command_lines_name_domains),
		cmocka_unit_test(uris_are_local_or_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
