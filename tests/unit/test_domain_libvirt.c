// SPDX-License-Identifier: LGPL-2.1-or-later
/* Domains through libvirt's test driver, and a libvirtd that does not answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/domain/ask.h"
#include "host/domain/domain.h"
#include "host/domain/near.h"

static char uri[600];

static int setup(void **state)
{
	const char *top = getenv("VMT_TOP");
	char here[400];

	(void)state;
	if (!getcwd(here, sizeof(here)))
		return -1;
	snprintf(uri, sizeof(uri), "test://%s/virt-fixtures/libvirt/node-web01.xml",
		 top ? top : here);
	return 0;
}

static int find(struct vmt_domains *found, const char *const *names, size_t nr_names, bool all,
		struct vmt_diag *diag)
{
	struct vmt_domain_query query = {
		.uri = uri, .names = names, .nr_names = nr_names, .all = all
	};

	vmt_diag_clear(diag);
	return vmt_domains_find(found, &query, diag);
}

static void running_domains_are_found(void **state)
{
	struct vmt_diag diag;
	struct vmt_domains found;
	const struct vmt_domain *d;

	(void)state;
	assert_int_equal(find(&found, NULL, 0, false, &diag), VMT_OK);
	assert_int_equal(found.count, 1);
	d = &found.items[0];
	assert_string_equal(d->name, "web01");
	assert_string_equal(d->uuid, "4dea22b3-1d52-4d8f-a2a5-6f2c1b0c9a01");
	assert_int_equal(d->id, 1);
	assert_string_equal(d->state, "running");
	assert_string_equal(d->type, "test");
	assert_string_equal(d->uri, uri);
	assert_int_equal(d->pid, 0);
	assert_true(d->has_agent);
	assert_false(d->agent_connected);
	assert_non_null(strstr(d->xml, "org.vmtrace.agent.0"));
	assert_int_equal(d->nr_vcpus, 2);
	assert_int_equal(d->vcpus[1].id, 1);
	assert_int_equal(d->vcpus[1].tid, 0);
	assert_int_equal(d->vcpus[1].host_cpu, 1);
	assert_string_equal(d->vcpus[1].affinity, "1");
	assert_int_equal(vmt_domain_refresh(&found.items[0], &diag), VMT_OK);
	vmt_domains_free(&found);
}

static void all_are_found_sorted_by_name(void **state)
{
	struct vmt_diag diag;
	struct vmt_domains found;

	(void)state;
	assert_int_equal(find(&found, NULL, 0, true, &diag), VMT_OK);
	assert_int_equal(found.count, 2);
	assert_string_equal(found.items[0].name, "db01");
	assert_string_equal(found.items[0].state, "shut off");
	assert_int_equal(found.items[0].id, -1);
	assert_int_equal(found.items[0].nr_vcpus, 1);
	vmt_domains_free(&found);
}

static void name_id_and_uuid_mean_the_same(void **state)
{
	static const char *const ways[] = { "web01", "1", "4dea22b3-1d52-4d8f-a2a5-6f2c1b0c9a01",
					    "4DEA22B31D524D8FA2A56F2C1B0C9A01" };
	struct vmt_diag diag;
	struct vmt_domains found;

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		assert_int_equal(find(&found, &ways[i], 1, false, &diag), VMT_OK);
		assert_int_equal(found.count, 1);
		assert_string_equal(found.items[0].name, "web01");
		vmt_domains_free(&found);
	}
	assert_int_equal(find(&found, ways, 4, false, &diag), VMT_OK);
	assert_int_equal(found.count, 1); /* once, not four times */
	vmt_domains_free(&found);
}

static void a_missing_domain_has_near_names(void **state)
{
	static const char *const near[] = { "wbe01" }, *const far[] = { "zzzzzzzzzzzz" },
				 *const both[] = { "web01", "nope" };
	struct vmt_diag diag;
	struct vmt_domains found;

	(void)state;
	assert_int_equal(find(&found, near, 1, false, &diag), VMT_E_NOT_FOUND);
	assert_non_null(strstr(diag.what, "wbe01"));
	assert_non_null(strstr(diag.cure, "web01"));
	assert_int_equal(find(&found, far, 1, false, &diag), VMT_E_NOT_FOUND);
	assert_non_null(strstr(diag.cure, "list --all"));
	assert_int_equal(find(&found, both, 2, false, &diag), VMT_E_NOT_FOUND);
	assert_non_null(strstr(diag.what, "nope"));
	assert_int_equal(found.count, 0);
}

static void a_connection_that_fails_says_why(void **state)
{
	struct vmt_domain_query query = { .uri = "qemu+unix:///system?socket=/nonexistent/sock" };
	struct vmt_diag diag = { .code = VMT_OK };
	struct vmt_domains found;

	(void)state;
	assert_int_equal(vmt_domains_find(&found, &query, &diag), VMT_E_IO);
	assert_non_null(strstr(diag.what, "/nonexistent/sock"));
	assert_true(diag.cure[0] != '\0');
	query.uri = "test:///nonexistent/node.xml";
	vmt_diag_clear(&diag);
	assert_true(vmt_domains_find(&found, &query, &diag) < 0);
	assert_true(diag.what[0] != '\0');
}

/* A socket that accepts (the kernel does) and never answers. */
static void a_libvirtd_that_hangs_times_out(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct vmt_domain_query query = { .deadline_ms = 200 };
	struct vmt_diag diag = { .code = VMT_OK };
	struct vmt_watch *watch;
	struct vmt_domains found;
	char hung[200], folder[] = "/tmp/vmt-hung.XXXXXX";
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/sock", folder);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 8), 0);
	snprintf(hung, sizeof(hung), "qemu+unix:///system?socket=%s/sock", folder);
	query.uri = hung;
	assert_int_equal(vmt_domains_find(&found, &query, &diag), VMT_E_TIMEOUT);
	assert_non_null(strstr(diag.what, "no answer within 200 ms"));
	assert_int_equal(found.count, 0);
	vmt_diag_clear(&diag);
	assert_int_equal(vmt_watch_open(&watch, hung, &diag), VMT_E_TIMEOUT);
	assert_null(watch);
	close(fd);
	unlink(address.sun_path);
	rmdir(folder);
}

static void counters_of_the_test_driver_are_missing(void **state)
{
	struct vmt_diag diag;
	struct vmt_domains found;
	struct vmt_counters counters;

	(void)state;
	assert_int_equal(find(&found, NULL, 0, false, &diag), VMT_OK);
	vmt_diag_clear(&diag);
	assert_int_equal(vmt_domain_counters(&found.items[0], &counters, &diag), VMT_E_CAPABILITY);
	assert_int_equal(counters.count, 0);
	vmt_domains_free(&found);
}

static void distances_count_edits(void **state)
{
	static const struct {
		const char *a, *b;
		unsigned int distance;
	} rows[] = {
		{ "", "", 0 },
		{ "abc", "", 3 },
		{ "web01", "WEB01", 0 },
		{ "web01", "wbe01", 1 },
		{ "web01", "web10", 1 },
		{ "web01", "db01", 2 },
		{ "kitten", "sitting", 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(vmt_name_distance(rows[i].a, rows[i].b), rows[i].distance);
		assert_int_equal(vmt_name_distance(rows[i].b, rows[i].a), rows[i].distance);
	}
}

static void cpu_maps_are_ranges(void **state)
{
	static const unsigned char map[] = { 0x0d, 0x80, 0xff, 0x00 };
	char text[24];

	(void)state;
	vmt_cpu_map_format(text, sizeof(text), map, sizeof(map));
	assert_string_equal(text, "0,2-3,15-23");
	vmt_cpu_map_format(text, 10, map, sizeof(map));
	assert_string_equal(text, "0,2-3…");
	vmt_cpu_map_format(text, sizeof(text), map, 0);
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(running_domains_are_found),
		cmocka_unit_test(all_are_found_sorted_by_name),
		cmocka_unit_test(name_id_and_uuid_mean_the_same),
		cmocka_unit_test(a_missing_domain_has_near_names),
		cmocka_unit_test(a_connection_that_fails_says_why),
		cmocka_unit_test(a_libvirtd_that_hangs_times_out),
		cmocka_unit_test(counters_of_the_test_driver_are_missing),
		cmocka_unit_test(distances_count_edits),
		cmocka_unit_test(cpu_maps_are_ranges),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
