// SPDX-License-Identifier: LGPL-2.1-or-later
/* report, script and decode from a .vmt to the exit status, each in a process of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "decode/store/store.h"
#include "host/cli/cli.h"
#include "host/cli/drop.h"
#include "host/cli/feed.h"
#include "tests/support/stream.h"

#define LOOPS	 2000u
#define NR_VCPUS 2u

static char folder[] = "/tmp/vmt-verbs-XXXXXX";
static char capture[64], kallsyms[64];

static const char session[] =
	"{\"schema\":\"vmtrace-session/1\",\"tool\":\"vmtrace 0.1.0\",\"session\":\"s-1\","
	"\"backend\":\"kvm\",\"host\":{\"hostname\":\"host1\",\"kernel\":\"6.1.0\",\"cpu\":\"x\","
	"\"vendor\":\"GenuineIntel\",\"cpus\":2,\"isa\":\"vmx\"},\"clock\":{\"tsc_convertible\":"
	"false},\"start_ns\":1000000000,\"start_realtime_ns\":1,\"has_switches\":true,"
	"\"domains\":[{\"name\":\"web01\",\"uuid\":null,\"pid\":100,\"uri\":null,\"type\":\"kvm\","
	"\"xml\":null,\"tsc_khz\":null,\"vcpus\":[{\"id\":0,\"tid\":101,\"source\":\"x\"},"
	"{\"id\":1,\"tid\":102,\"source\":\"x\"}],\"threads\":[]}]}";

/* The formats that the stream uses, with ids as the machine's attrs have them. */
static void write_formats(struct vmt_store_writer *w, struct vmt_machine *m)
{
	const struct vmt_format *formats;
	size_t n = vmt_machine_formats(m, &formats);

	for (size_t i = 0; i < n; i++) {
		struct vmt_ring_attr attr = vmt_stream_attr(formats[i].id);
		uint64_t id = i + 1;
		size_t len;
		char *text = vmt_stream_format_text("6.18", formats[i].name, &len);

		assert_int_equal(vmt_store_attr(w, &attr, &id, 1, NULL), 0);
		assert_int_equal(vmt_store_format(w, text, NULL), 0);
		free(text);
	}
}

/* vCPU 0 reads port 0x608 in a loop, vCPU 1 idles. */
static void write_capture(const char *path)
{
	struct vmt_stream bytes = { 0 };
	struct vmt_store_options options = { 0 };
	struct vmt_store_writer *w;
	struct vmt_machine *m = vmt_machine_new("6.18", &bytes);
	struct vmt_store_chunk chunk = { .type = VMT_CHUNK_RECORDS, .cpu = -1, .nr_parts = 1 };

	assert_int_equal(vmt_store_create(&w, path, &options, NULL), 0);
	assert_int_equal(vmt_store_session(w, session, NULL), 0);
	write_formats(w, m);
	for (unsigned int i = 0; i < LOOPS; i++) {
		struct vmt_machine_exit busy = { .pid = 100,
						 .tid = 101,
						 .vcpu = 0,
						 .isa = 1,
						 .reason = 30,
						 .rip = 0xffffffff81012345,
						 .info1 = 0x0608000b,
						 .gap_ns = 8000,
						 .guest_ns = 2000 };
		struct vmt_machine_exit idle = { .pid = 100,
						 .tid = 102,
						 .cpu = 1,
						 .vcpu = 1,
						 .isa = 1,
						 .reason = 12,
						 .rip = 0xffffffff81ff0000,
						 .gap_ns = 900000,
						 .guest_ns = 100000 };

		vmt_machine_run(m, &busy);
		if (i % 100 == 0)
			vmt_machine_run(m, &idle);
	}
	chunk.parts[0] = (struct vmt_store_part){ bytes.bytes, bytes.len };
	assert_int_equal(vmt_store_append(w, &chunk, NULL), 0);
	assert_int_equal(vmt_store_round(w, 0, NULL), 0);
	assert_int_equal(vmt_store_finish(w, NULL), 0);
	vmt_machine_free(m);
	vmt_stream_free(&bytes);
}

static int set_up(void **state)
{
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(capture, sizeof(capture), "%s/web01.vmt", folder);
	snprintf(kallsyms, sizeof(kallsyms), "%s/kallsyms", folder);
	write_capture(capture);
	f = fopen(kallsyms, "w");
	assert_non_null(f);
	fprintf(f, "ffffffff81012340 T acpi_pm_read\nffffffff81012400 T next\n");
	fclose(f);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(capture);
	unlink(kallsyms);
	return rmdir(folder);
}

static struct vmt_cli cli_of(enum vmt_out_format format)
{
	return (struct vmt_cli){ .verb = "x", .input = capture, .format = format, .quiet = true };
}

/* Runs a verb with standard output in *text (freed by the caller) and gives its exit status. */
static int run(vmt_verb_fn *verb, const struct vmt_cli *cli, char **text)
{
	int out = memfd_create("out", 0), status = -1;
	struct vmt_cli copy = *cli;
	pid_t child;
	off_t size;

	assert_true(out >= 0);
	fflush(NULL);
	child = fork();
	if (child == 0) {
		dup2(out, STDOUT_FILENO);
		if (!freopen("/dev/null", "w", stderr))
			_exit(98);
		_exit(verb(&copy));
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	size = lseek(out, 0, SEEK_END);
	*text = calloc(1, (size_t)size + 1);
	assert_non_null(*text);
	assert_int_equal(pread(out, *text, (size_t)size, 0), size);
	close(out);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int status_of(vmt_verb_fn *verb, const struct vmt_cli *cli)
{
	char *text;
	int status = run(verb, cli, &text);

	free(text);
	return status;
}

static json_int_t int_of(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

static void report_counts_everything(void **state)
{
	struct vmt_cli cli = cli_of(VMT_FORMAT_JSON);
	json_t *doc, *row, *bill;
	size_t i;
	char *text;

	(void)state;
	cli.guest_kallsyms = kallsyms;
	assert_int_equal(run(vmt_verb_report, &cli, &text), 0);
	doc = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(doc);
	free(text);
	assert_string_equal(json_string_value(json_object_get(doc, "schema")), "vmtrace-report/1");
	assert_int_equal(int_of(doc, "exits"), LOOPS + LOOPS / 100);
	assert_int_equal(int_of(doc, "entries"), LOOPS + LOOPS / 100);
	row = json_array_get(json_object_get(doc, "rows"), 1);
	assert_string_equal(json_string_value(json_object_get(row, "key")), "port:0x608:in");
	assert_string_equal(json_string_value(json_object_get(row, "guest_symbol")),
			    "acpi_pm_read+0x5");
	assert_int_equal(int_of(row, "count"), LOOPS);
	assert_int_equal(int_of(row, "total_ns"), (LOOPS - 1) * 8000); /* the last one is open */
	assert_int_equal(json_array_size(json_object_get(doc, "bill")), NR_VCPUS);
	json_array_foreach(json_object_get(doc, "bill"), i, bill)
	{
		assert_int_equal(int_of(bill, "guest_ns") + int_of(bill, "exits_ns") +
					 int_of(bill, "userspace_ns") +
					 int_of(bill, "halt_poll_ns") + int_of(bill, "halted_ns") +
					 int_of(bill, "preempted_ns") + int_of(bill, "stopped_ns") +
					 int_of(bill, "residual_ns"),
				 int_of(bill, "wall_ns"));
	}
	json_decref(doc);
}

static void script_is_in_order_of_time(void **state)
{
	struct vmt_cli cli = cli_of(VMT_FORMAT_JSON);
	json_int_t before = 0;
	size_t lines = 0;
	char *text, *line, *rest = NULL;

	(void)state;
	cli.types = "exit";
	assert_int_equal(run(vmt_verb_script, &cli, &text), 0);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		json_t *event = json_loads(line, JSON_REJECT_DUPLICATES, NULL);

		assert_non_null(event);
		if (lines++ > 0) {
			assert_string_equal(json_string_value(json_object_get(event, "type")),
					    "exit");
			assert_string_equal(json_string_value(json_object_get(event, "domain")),
					    "web01");
			assert_true(int_of(event, "time_ns") >= before);
			before = int_of(event, "time_ns");
		} else {
			assert_string_equal(json_string_value(json_object_get(event, "schema")),
					    "vmtrace-events/1");
			assert_int_equal(json_array_size(json_object_get(event, "vms")), 1);
		}
		json_decref(event);
	}
	assert_int_equal(lines, 1 + LOOPS + LOOPS / 100);
	free(text);
	cli.types = "exit,nothing";
	assert_int_equal(status_of(vmt_verb_script, &cli), VMT_STATUS_USAGE);
}

static void decode_balances(void **state)
{
	struct vmt_cli cli = cli_of(VMT_FORMAT_JSON);
	size_t records = 0;
	json_t *event = NULL, *ledger;
	char *text, *line, *rest = NULL;

	(void)state;
	cli.args[cli.nr_args++] = "kvm";
	assert_int_equal(run(vmt_verb_decode, &cli, &text), 0);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		json_decref(event);
		event = json_loads(line, 0, NULL);
		assert_non_null(event);
		records += json_is_string(json_object_get(event, "event"));
	}
	assert_int_equal(records, 2 * (LOOPS + LOOPS / 100));
	ledger = json_object_get(event, "ledger");
	assert_int_equal(int_of(ledger, "bytes_total"),
			 int_of(ledger, "bytes_decoded") + int_of(ledger, "bytes_skipped"));
	assert_int_equal(int_of(ledger, "records"), records);
	json_decref(event);
	free(text);
	cli.format = VMT_FORMAT_CSV;
	assert_int_equal(status_of(vmt_verb_decode, &cli), 0);
	cli.format = VMT_FORMAT_TEXT;
	assert_int_equal(run(vmt_verb_decode, &cli, &text), 0);
	assert_non_null(strstr(text, "kvm_exit exit_reason=30 guest_rip=0xffffffff81012345"));
	free(text);
	cli.args[0] = "pt";
	assert_int_equal(status_of(vmt_verb_decode, &cli), VMT_STATUS_FAILURE);
}

static void statuses(void **state)
{
	struct vmt_cli cli = cli_of(VMT_FORMAT_TEXT);
	char path[80];

	(void)state;
	cli.has_fail_on = true;
	cli.fail_on = VMT_SEVERITY_CRITICAL;
	assert_int_equal(status_of(vmt_verb_report, &cli), VMT_STATUS_FINDING);
	cli.has_fail_on = false;
	cli.by = "nothing";
	assert_int_equal(status_of(vmt_verb_report, &cli), VMT_STATUS_USAGE);
	cli.by = NULL;
	cli.domains[cli.nr_domains++] = "web01";
	assert_int_equal(status_of(vmt_verb_report, &cli), VMT_STATUS_OK);
	cli.domains[0] = "db01";
	assert_int_equal(status_of(vmt_verb_report, &cli), VMT_STATUS_NO_DOMAIN);
	cli.nr_domains = 0;
	cli.input = "/nonexistent/file.vmt";
	assert_int_equal(status_of(vmt_verb_report, &cli), VMT_STATUS_FAILURE);
	cli.input = kallsyms;
	assert_int_equal(status_of(vmt_verb_report, &cli), VMT_STATUS_LOSS);
	cli = cli_of(VMT_FORMAT_TEXT);
	cli.output = "/dev/full";
	assert_int_equal(status_of(vmt_verb_report, &cli), VMT_STATUS_FAILURE);
	snprintf(path, sizeof(path), "%s/out", folder);
	cli.output = path;
	assert_int_equal(status_of(vmt_verb_script, &cli), VMT_STATUS_OK);
	assert_int_equal(status_of(vmt_verb_script, &cli), VMT_STATUS_FAILURE); /* is there */
	cli.force = true;
	assert_int_equal(status_of(vmt_verb_script, &cli), VMT_STATUS_OK);
	assert_int_equal(unlink(path), 0);
}

static void cut_off_is_loss(void **state)
{
	struct vmt_cli cli = cli_of(VMT_FORMAT_JSON);
	char path[80], *text;
	int keep = 0;
	FILE *in = fopen(capture, "rb"), *out;
	char bytes[4096];
	size_t n;
	json_t *doc;

	(void)state;
	snprintf(path, sizeof(path), "%s/cut.vmt", folder);
	out = fopen(path, "wb");
	assert_true(in && out);
	while ((n = fread(bytes, 1, sizeof(bytes), in)) == sizeof(bytes) && ++keep)
		assert_int_equal(fwrite(bytes, 1, n, out), n);
	fclose(in);
	fclose(out);
	cli.input = path;
	assert_int_equal(run(vmt_verb_report, &cli, &text), VMT_STATUS_OK);
	doc = json_loads(text, 0, NULL);
	assert_non_null(doc);
	assert_true(json_is_true(json_object_get(json_object_get(doc, "loss"), "truncated")));
	json_decref(doc);
	free(text);
	cli.has_max_loss = true;
	assert_int_equal(status_of(vmt_verb_report, &cli), VMT_STATUS_LOSS);
	unlink(path);
}

/* Root is gone when the input is parsed: a helper verb looks. */
static int look(struct vmt_cli *cli)
{
	struct vmt_feed feed;
	int status = vmt_feed_open(&feed, cli);

	if (!status && (geteuid() == 0 || getuid() == 0 || setuid(0) == 0))
		status = 99;
	vmt_feed_close(&feed);
	return status;
}

static void root_is_given_up(void **state)
{
	struct vmt_cli cli = cli_of(VMT_FORMAT_TEXT);
	uid_t uid;
	gid_t gid;

	(void)state;
	assert_int_equal(status_of(look, &cli), 0);
	assert_true(vmt_cli_drop_target("1000", "1001", &uid, &gid));
	assert_true(uid == 1000 && gid == 1001);
	assert_false(vmt_cli_drop_target("0", "0", &uid, &gid));
	assert_true(uid == 65534 && gid == 65534);
	assert_false(vmt_cli_drop_target("1000", NULL, &uid, &gid));
	assert_false(vmt_cli_drop_target("-1", "5", &uid, &gid));
	assert_false(vmt_cli_drop_target("4294967295", "5", &uid, &gid));
	assert_false(vmt_cli_drop_target("10x", "5", &uid, &gid));
}

static void loss_limit(void **state)
{
	struct vmt_ledger l = { .bytes_total = 1000, .bytes_decoded = 990, .bytes_skipped = 10 };
	char what[100];

	(void)state;
	assert_true(vmt_feed_lost_more(&l, 100, 0.5, what, sizeof(what)));
	assert_false(vmt_feed_lost_more(&l, 100, 1, what, sizeof(what)));
	l.records_lost = 5;
	assert_true(vmt_feed_lost_more(&l, 95, 4, what, sizeof(what)));
	assert_false(vmt_feed_lost_more(&l, 95, 5, what, sizeof(what)));
	l = (struct vmt_ledger){ .truncated = true };
	assert_true(vmt_feed_lost_more(&l, 0, 0, what, sizeof(what)));
	assert_false(vmt_feed_lost_more(&l, 0, 1, what, sizeof(what)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(report_counts_everything),
		cmocka_unit_test(script_is_in_order_of_time),
		cmocka_unit_test(decode_balances),
		cmocka_unit_test(statuses),
		cmocka_unit_test(cut_off_is_loss),
		cmocka_unit_test(root_is_given_up),
		cmocka_unit_test(loss_limit),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
