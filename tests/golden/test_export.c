// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The texts of every export against files in tests/golden/export; VMT_TEST_REGENERATE=1 writes them
 * anew. One stream: web01 with two vCPUs, a loop on the ACPI PM timer, a serial console, idling,
 * a pause, a failed entry, hostile names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/export/report_export.h"
#include "decode/export/script.h"
#include "tests/support/events.h"

#define MS   UINT64_C(1000000)
#define RIP  UINT64_C(0xffffffff81a4d2c0)
#define BASE UINT64_C(5000000000)

typedef void emit_fn(void *context, const struct vmt_event *event);

static uint64_t exit_and_entry(emit_fn *emit, void *context, struct vmt_event exit)
{
	struct vmt_event entry = vmt_make_entry(exit.vcpu, exit.time.host_ns + exit.duration_ns);

	emit(context, &exit);
	emit(context, &entry);
	return entry.time.host_ns;
}

/* vCPU 0 reads the PM timer all the time, sometimes it prints a character. */
static void busy_vcpu(emit_fn *emit, void *context, unsigned int n)
{
	struct vmt_event first = vmt_make_entry(0, BASE);
	uint64_t t = BASE, seed = 1;

	emit(context, &first);
	for (unsigned int i = 0; i < n; i++) {
		struct vmt_event e = vmt_make_exit(0, t + 10000, 9000 + i % 300, 30, RIP);

		e.key = vmt_make_key(VMT_KEY_PORT, 0x608, VMT_ACCESS_READ);
		e.qualification = 0x608000b;
		e.userspace_part_ns = 1000;
		if (i % 50 == 49) {
			e.guest_rip = RIP + 0x1000 + vmt_test_random(&seed) % 64;
			e.key = vmt_make_key(VMT_KEY_PORT, 0x3f8, VMT_ACCESS_WRITE);
			e.qualification = 0x3f80000;
			e.duration_ns = 60000;
			e.userspace_part_ns = 52000;
		}
		t = exit_and_entry(emit, context, e);
	}
}

/* vCPU 1 sleeps, is polled for, and is paused once. */
static void idle_vcpu(emit_fn *emit, void *context, unsigned int n)
{
	struct vmt_event first = vmt_make_entry(1, BASE + 2 * MS);
	uint64_t t = BASE + 2 * MS;

	emit(context, &first);
	for (unsigned int i = 0; i < n; i++) {
		struct vmt_event e = vmt_make_exit(1, t + 200000, MS, 12, RIP + 0x9999);
		struct vmt_event tick;

		e.halt_poll_part_ns = 200000;
		e.blocked_part_ns = 700000;
		e.preempted_part_ns = 50000;
		t = exit_and_entry(emit, context, e);
		tick = vmt_make_exit(1, t + 1000, 2500, 1, RIP + i * UINT64_C(16));
		tick.has |= VMT_HAS_VECTOR;
		tick.vector = 236;
		tick.key = vmt_make_key(VMT_KEY_VECTOR, 236, VMT_ACCESS_NONE);
		t = exit_and_entry(emit, context, tick);
	}
}

static void rest(emit_fn *emit, void *context)
{
	struct vmt_event e = vmt_make_mark(BASE + 190 * MS, "paused");

	emit(context, &e);
	e = vmt_make_mark(BASE + 195 * MS, "resumed\033[31m,\"x\"");
	e.name = "resumed";
	emit(context, &e);
	e = vmt_make_loss(BASE + 196 * MS, 3);
	emit(context, &e);
	e = vmt_make_exit(1, BASE + 197 * MS, 1000, 33, RIP);
	e.failed_entry = true;
	e.reason_flags = 0x80000000u;
	emit(context, &e);
	e = vmt_make_entry(0, BASE + 198 * MS);
	e.type = VMT_EVENT_NOTE;
	e.name = "evil\033]0;name\a \xe2\x80\xae\xff,\"quoted\"";
	emit(context, &e);
	e.type = VMT_EVENT_SWITCH;
	e.name = NULL;
	e.preempted = true;
	emit(context, &e);
	e.type = VMT_EVENT_INJECT;
	e.has |= VMT_HAS_VECTOR;
	e.vector = 41;
	emit(context, &e);
	e.type = VMT_EVENT_TSC_WRITE;
	e.has |= VMT_HAS_VALUE;
	e.value = -123456789;
	emit(context, &e);
	e.type = VMT_EVENT_USERSPACE;
	e.has |= VMT_HAS_REASON;
	e.reason = 2;
	emit(context, &e);
	e.type = VMT_EVENT_WAKEUP;
	e.has |= VMT_HAS_DURATION;
	e.duration_ns = 1234567;
	emit(context, &e);
	e = vmt_make_exit(0, BASE + 199 * MS, 0, 0x1234, 0);
	e.has &= ~(uint32_t)(VMT_HAS_DURATION | VMT_HAS_PARTS | VMT_HAS_RIP | VMT_HAS_NESTED |
			     VMT_HAS_QUALIFICATION);
	emit(context, &e);
	e = vmt_make_exit(0, BASE + 199 * MS + 1, 5000, 0x7b, RIP);
	e.isa = VMT_ISA_SVM;
	e.has |= VMT_HAS_HOST_TSC | VMT_HAS_CR3 | VMT_HAS_INFO2 | VMT_HAS_DURATION_TSC |
		 VMT_HAS_VMCS;
	e.host_tsc.host_tsc = UINT64_MAX;
	e.host_tsc_error = 12;
	e.guest_cr3 = 0x1000;
	e.duration_tsc = 15000;
	e.vmcs = 0x7f000;
	e.nested = true;
	emit(context, &e);
	e = vmt_make_entry(0, BASE + 199 * MS + 5001);
	e.type = VMT_EVENT_GAP;
	emit(context, &e);
}

static struct vmt_domain_info domains[] = {
	{ .name = "web01", .uuid = "0f5a", .pid = 1000, .nr_vcpus = 2 },
};

static struct vmt_input_facts facts_of(void)
{
	struct vmt_input_facts f = vmt_make_facts(BASE, BASE + 200 * MS, 2);

	f.domains = domains;
	return f;
}

static const char *symbol(void *context, uint64_t rip, uint64_t *offset)
{
	(void)context;
	*offset = rip & 0xff;
	return rip >> 12 == RIP >> 12 ? "acpi_pm_read" : NULL;
}

/* Everything that is in the descriptor, as text of its own. */
static char *text_of(int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char *text = calloc(1, (size_t)size + 1);

	assert_non_null(text);
	assert_int_equal(pread(fd, text, (size_t)size, 0), size);
	return text;
}

static void compare(int fd, const char *name)
{
	const char *top = getenv("VMT_TOP");
	char path[512], *got = text_of(fd), *want;
	FILE *f;

	snprintf(path, sizeof(path), "%s/tests/golden/export/%s", top ? top : ".", name);
	if (getenv("VMT_TEST_REGENERATE")) {
		f = fopen(path, "wb");
		assert_non_null(f);
		assert_int_equal(fputs(got, f) < 0, 0);
		assert_int_equal(fclose(f), 0);
	}
	f = fopen(path, "rb");
	assert_non_null(f);
	want = text_of(fileno(f));
	fclose(f);
	assert_string_equal(got, want);
	free(got);
	free(want);
	close(fd);
}

struct report_case {
	const char *name;
	unsigned int width;
	bool color, json, csv, bill, storms;
	const char *by;
};

static void feed_report(void *context, const struct vmt_event *event)
{
	vmt_report_event(context, event);
}

static void write_case(const struct report_case *c, int fd)
{
	struct vmt_report_options o = { .by = c->by, .storms = true };
	struct vmt_report_builder *b = vmt_report_new(&o);
	struct vmt_input_facts facts = facts_of();
	struct vmt_ledger ledger = { .bytes_total = 100000,
				     .bytes_decoded = 99000,
				     .bytes_skipped = 1000,
				     .records_lost = 3,
				     .overflows = 1 };
	struct vmt_report_view view = {
		.width = c->width, .color = c->color, .bill = c->bill, .storms = c->storms
	};
	struct vmt_out *out = malloc(sizeof(*out));
	const struct vmt_report *r;

	assert_non_null(b);
	assert_non_null(out);
	busy_vcpu(feed_report, b, 9000);
	idle_vcpu(feed_report, b, 140);
	rest(feed_report, b);
	r = vmt_report_finish(b, &facts, ledger, symbol, NULL);
	assert_non_null(r);
	vmt_out_init(out, fd, NULL);
	if (c->json)
		vmt_report_json(out, r);
	else if (c->csv)
		vmt_report_csv(out, r, &view);
	else
		vmt_report_text(out, r, &view);
	assert_int_equal(vmt_out_finish(out, NULL), 0);
	free(out);
	vmt_report_free(b);
}

static void reports(void **state)
{
	static const struct report_case cases[] = {
		{ .name = "report-80.txt", .width = 80 },
		{ .name = "report-200.txt", .width = 200, .bill = true, .storms = true },
		{ .name = "report-120-by-vcpu.txt", .width = 120, .by = "reason,vcpu" },
		{ .name = "report-80-color.txt", .width = 20, .color = true, .by = "reason" },
		{ .name = "report.json", .json = true },
		{ .name = "report.csv", .csv = true },
		{ .name = "report-bill-storms.csv", .csv = true, .bill = true, .storms = true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd = memfd_create("report", 0);

		assert_true(fd >= 0);
		write_case(&cases[i], fd);
		compare(fd, cases[i].name);
	}
}

/* The answer is on the first screen, and no line is wider than the page. */
static void first_screen(void **state)
{
	static const struct report_case c = { .width = 80 };
	int fd = memfd_create("report", 0);
	char *text, *line, *rest_of = NULL;
	bool seen_time = false, seen_rip = false, seen_finding = false, seen_trust = false;
	unsigned int n = 0;

	(void)state;
	assert_true(fd >= 0);
	write_case(&c, fd);
	text = text_of(fd);
	for (line = strtok_r(text, "\n", &rest_of); line; line = strtok_r(NULL, "\n", &rest_of)) {
		assert_true(strlen(line) <= 80);
		if (++n > 23) /* strtok leaves out one empty line */
			continue;
		seen_time |= strstr(line, "WHERE THE TIME WENT") != NULL;
		seen_rip |= strstr(line, "0xffffffff81a4d2c0 acpi_pm_read+0xc0") != NULL;
		seen_finding |= strstr(line, "TOP FINDING [critical] ") != NULL;
		seen_trust |= strncmp(line, "TRUST ", 6) == 0;
	}
	assert_true(seen_time && seen_rip && seen_finding && seen_trust);
	free(text);
	close(fd);
}

static void feed_script(void *context, const struct vmt_event *event)
{
	vmt_script_event(context, event);
}

static void write_script(enum vmt_script_format format, bool tsc, uint32_t types, int fd)
{
	struct vmt_input_facts facts = facts_of();
	struct vmt_out *out = malloc(sizeof(*out));
	struct vmt_script s = {
		.format = format, .types = types, .tsc = tsc, .facts = &facts, .symbol = symbol
	};

	assert_non_null(out);
	vmt_out_init(out, fd, NULL);
	s.out = out;
	vmt_script_begin(&s);
	busy_vcpu(feed_script, &s, 3);
	idle_vcpu(feed_script, &s, 2);
	rest(feed_script, &s);
	assert_int_equal(vmt_out_finish(out, NULL), 0);
	free(out);
}

static void scripts(void **state)
{
	static const char *const names[] = { "script.txt", "script.jsonl", "script.csv" };
	int fd;

	(void)state;
	for (int i = 0; i < 3; i++) {
		fd = memfd_create("script", 0);
		assert_true(fd >= 0);
		write_script((enum vmt_script_format)i, false, 0, fd);
		compare(fd, names[i]);
	}
	fd = memfd_create("script", 0);
	assert_true(fd >= 0);
	write_script(VMT_SCRIPT_TEXT, true, 1u << VMT_EVENT_EXIT, fd);
	compare(fd, "script-tsc-exits.txt");
}

/* Whatever a name holds, no control byte but the line feed leaves the program. */
static void no_escapes(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		int fd = memfd_create("script", 0);
		char *text;

		domains[0].name = "web\033[2J01\x9b\xc2\x9b\r\n,\"=";
		write_script((enum vmt_script_format)i, false, 0, fd);
		domains[0].name = "web01";
		text = text_of(fd);
		for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
			assert_true(*p >= 0x20 || *p == '\n');
			assert_true(*p != 0x7f && *p != 0x9b);
		}
		free(text);
		close(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports),
		cmocka_unit_test(first_screen),
		cmocka_unit_test(scripts),
		cmocka_unit_test(no_escapes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
