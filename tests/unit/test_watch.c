// SPDX-License-Identifier: LGPL-2.1-or-later
/* Libvirt's events become those of a session, each told once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <libvirt/libvirt.h>

#include "host/domain/domain.h"
#include "host/domain/link.h"
#include "host/domain/watch_dedup.h"

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

/* All events that are due at a time, as "name(detail) name(detail)". */
static const char *told(struct vmt_dedup *dedup, uint64_t now)
{
	static char text[1000];
	struct vmt_watch_event event;
	uint64_t wait;

	text[0] = '\0';
	while (vmt_dedup_next(dedup, now, &event, &wait)) {
		size_t used = strlen(text);

		snprintf(text + used, sizeof(text) - used, "%s%s%s(%s)", used ? " " : "",
			 event.uuid, event.name, event.detail);
	}
	return text;
}

static void a_start_is_told_once(void **state)
{
	struct vmt_dedup *d = vmt_dedup_new();

	(void)state;
	vmt_dedup_lifecycle(d, "A", VIR_DOMAIN_EVENT_RESUMED, 0, 1 * S);
	assert_string_equal(told(d, 1 * S), ""); /* held: STARTED may follow */
	vmt_dedup_lifecycle(d, "A", VIR_DOMAIN_EVENT_STARTED, 0, 1 * S + 5 * MS);
	assert_string_equal(told(d, 1 * S + 5 * MS), "Astarted(booted)");
	vmt_dedup_lifecycle(d, "A", VIR_DOMAIN_EVENT_SUSPENDED, 0, 2 * S);
	vmt_dedup_lifecycle(d, "A", VIR_DOMAIN_EVENT_RESUMED, 0, 3 * S);
	assert_string_equal(told(d, 3 * S), "Apaused(paused) Aresumed(unpaused)");
	vmt_dedup_free(d);
}

static void a_lone_resume_is_told_after_a_while(void **state)
{
	struct vmt_dedup *d = vmt_dedup_new();
	struct vmt_watch_event event;
	uint64_t wait;

	(void)state;
	vmt_dedup_lifecycle(d, "A", VIR_DOMAIN_EVENT_RESUMED, 0, 1 * S);
	assert_false(vmt_dedup_next(d, 1 * S, &event, &wait));
	assert_true(wait > 0 && wait <= S);
	assert_true(vmt_dedup_next(d, 1 * S + wait, &event, &wait));
	assert_string_equal(event.name, "resumed");
	assert_true(event.monotonic_ns == 1 * S);
	assert_false(vmt_dedup_next(d, 9 * S, &event, &wait));
	assert_true(wait == UINT64_MAX);
	vmt_dedup_free(d);
}

static void a_start_in_the_paused_state_keeps_its_order(void **state)
{
	struct vmt_dedup *d = vmt_dedup_new();

	(void)state;
	vmt_dedup_lifecycle(d, "A", VIR_DOMAIN_EVENT_SUSPENDED, 0, 1 * S);
	vmt_dedup_lifecycle(d, "A", VIR_DOMAIN_EVENT_STARTED, 0, 1 * S + MS);
	assert_string_equal(told(d, 2 * S), "Astarted(booted) Apaused(paused)");
	vmt_dedup_lifecycle(d, "A", VIR_DOMAIN_EVENT_RESUMED, 0, 3 * S);
	assert_string_equal(told(d, 3 * S), "Aresumed(unpaused)");
	vmt_dedup_free(d);
}

static void a_reset_is_told_once(void **state)
{
	struct vmt_dedup *d = vmt_dedup_new();

	(void)state;
	for (uint64_t i = 0; i < 3; i++)
		vmt_dedup_reboot(d, "A", 10 * S + i * 300 * MS);
	vmt_dedup_reboot(d, "B", 10 * S);
	assert_string_equal(told(d, 11 * S), "Areset() Breset()");
	vmt_dedup_reboot(d, "A", 20 * S);
	assert_string_equal(told(d, 20 * S), "Areset()");
	vmt_dedup_free(d);
}

static void an_end_is_told_once(void **state)
{
	struct vmt_dedup *d = vmt_dedup_new();

	(void)state;
	vmt_dedup_begin(d);
	vmt_dedup_known(d, "A", VIR_DOMAIN_RUNNING, 1, 1 * S);
	vmt_dedup_known(d, "B", VIR_DOMAIN_RUNNING, 2, 1 * S);
	vmt_dedup_known(d, "C", VIR_DOMAIN_PAUSED, 3, 1 * S);
	vmt_dedup_end(d, 1 * S);
	assert_string_equal(told(d, 1 * S), "");
	vmt_dedup_lifecycle(d, "A", VIR_DOMAIN_EVENT_SHUTDOWN, 2, 2 * S);
	vmt_dedup_lifecycle(d, "A", VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_DESTROYED,
			    2 * S);
	vmt_dedup_lifecycle(d, "B", VIR_DOMAIN_EVENT_CRASHED, 0, 2 * S);
	vmt_dedup_lifecycle(d, "B", VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_CRASHED,
			    2 * S + MS);
	vmt_dedup_lifecycle(d, "C", VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_MIGRATED,
			    2 * S);
	assert_string_equal(told(d, 3 * S), "Astopped(destroyed) Bcrashed(guest panicked) "
					    "Cmigrated-away(migrated)");
	vmt_dedup_free(d);
}

/* What happened while libvirtd was away is found by comparing. */
static void missed_events_are_found(void **state)
{
	struct vmt_dedup *d = vmt_dedup_new();

	(void)state;
	vmt_dedup_begin(d);
	vmt_dedup_known(d, "A", VIR_DOMAIN_RUNNING, 1, 1 * S);
	vmt_dedup_known(d, "B", VIR_DOMAIN_RUNNING, 2, 1 * S);
	vmt_dedup_known(d, "C", VIR_DOMAIN_RUNNING, 3, 1 * S);
	vmt_dedup_known(d, "D", VIR_DOMAIN_PAUSED, 4, 1 * S);
	vmt_dedup_end(d, 1 * S);
	vmt_dedup_begin(d);
	vmt_dedup_known(d, "A", VIR_DOMAIN_RUNNING, 1, 2 * S); /* nothing */
	vmt_dedup_known(d, "B", VIR_DOMAIN_PAUSED, 2, 2 * S);
	vmt_dedup_known(d, "D", VIR_DOMAIN_RUNNING, 9, 2 * S); /* another run */
	vmt_dedup_known(d, "E", VIR_DOMAIN_RUNNING, 5, 2 * S);
	vmt_dedup_end(d, 2 * S);
	assert_string_equal(told(d, 2 * S), "Bpaused(while disconnected) "
					    "Dstopped(while disconnected) "
					    "Dstarted(while disconnected) "
					    "Estarted(while disconnected) "
					    "Cstopped(while disconnected)");
	vmt_dedup_free(d);
}

static void a_full_queue_drops_and_counts(void **state)
{
	struct vmt_dedup *d = vmt_dedup_new();
	struct vmt_watch_event event;
	uint64_t wait, n = 0;

	(void)state;
	for (int i = 0; i < 1100; i++)
		vmt_dedup_other(d, "A", "hotplug", "", 1 * S);
	while (vmt_dedup_next(d, 1 * S, &event, &wait))
		n++;
	assert_int_equal(n + vmt_dedup_dropped(d), 1100);
	assert_int_equal(n, 1024);
	vmt_dedup_free(d);
}

/* test:///default is one node for all connections of a process. */
static void a_watch_tells_of_a_real_driver(void **state)
{
	struct vmt_watch_event event;
	struct vmt_watch *watch;
	virConnectPtr connection;
	virDomainPtr domain;

	(void)state;
	vmt_libvirt_init();
	connection = virConnectOpen("test:///default");
	assert_non_null(connection);
	domain = virDomainLookupByName(connection, "test");
	assert_non_null(domain);
	assert_int_equal(vmt_watch_open(&watch, "test:///default", NULL), VMT_OK);
	assert_int_equal(vmt_watch_next(watch, 0, &event), 0);
	assert_int_equal(virDomainSuspend(domain), 0);
	assert_int_equal(vmt_watch_next(watch, 10000, &event), 1);
	assert_string_equal(event.name, "paused");
	assert_int_equal(strlen(event.uuid), 36);
	assert_int_equal(virDomainResume(domain), 0);
	assert_int_equal(vmt_watch_next(watch, 10000, &event), 1);
	assert_string_equal(event.name, "resumed");
	assert_true(event.monotonic_ns > 0);
	vmt_watch_close(watch);
	virDomainFree(domain);
	assert_int_equal(virConnectClose(connection), 0);
}

static void a_watch_that_cannot_open_says_why(void **state)
{
	struct vmt_diag diag = { .code = VMT_OK };
	struct vmt_watch *watch;

	(void)state;
	assert_int_equal(vmt_watch_open(&watch, "qemu+unix:///system?socket=/nonexistent/s", &diag),
			 VMT_E_IO);
	assert_null(watch);
	assert_non_null(strstr(diag.what, "/nonexistent/s"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_start_is_told_once),
		cmocka_unit_test(a_lone_resume_is_told_after_a_while),
		cmocka_unit_test(a_start_in_the_paused_state_keeps_its_order),
		cmocka_unit_test(a_reset_is_told_once),
		cmocka_unit_test(an_end_is_told_once),
		cmocka_unit_test(missed_events_are_found),
		cmocka_unit_test(a_full_queue_drops_and_counts),
		cmocka_unit_test(a_watch_tells_of_a_real_driver),
		cmocka_unit_test(a_watch_that_cannot_open_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
