// SPDX-License-Identifier: LGPL-2.1-or-later
/* vmtrace tsc with a capture: which map is taken, what is shown, what is said when there is none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/store/store.h"
#include "host/cli/cli.h"
#include "host/cli/tsc_maps.h"

static char folder[] = "/tmp/vmt-tsc-XXXXXX";
static char path[80], out_path[80], err_path[80];
static char out[16384], err[4096];

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/a.vmt", folder);
	snprintf(out_path, sizeof(out_path), "%s/out", folder);
	snprintf(err_path, sizeof(err_path), "%s/err", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	unlink(out_path);
	unlink(err_path);
	return rmdir(folder);
}

static const char session[] =
	"{\"schema\":\"vmtrace-session/1\",\"tool\":\"vmtrace 0.1.0\",\"session\":\"s1\","
	"\"backend\":\"kvm\",\"start_ns\":1000000000,\"domains\":["
	"{\"name\":\"web01\",\"uuid\":\"11111111-2222-3333-4444-555555555555\",\"pid\":4711},"
	"{\"name\":null,\"uuid\":null,\"pid\":99}]}";

static void append(struct vmt_store_writer *w, const struct vmt_vcpu_tsc *snapshots, size_t count)
{
	struct vmt_store_chunk chunk = { .type = VMT_CHUNK_VCPU_TSC, .cpu = -1, .nr_parts = 1 };
	struct vmt_diag diag = { 0 };

	chunk.parts[0].bytes = snapshots;
	chunk.parts[0].len = count * sizeof(*snapshots);
	chunk.time_first_ns = snapshots[0].host_ns;
	chunk.time_last_ns = snapshots[count - 1].host_ns;
	assert_int_equal(vmt_store_append(w, &chunk, &diag), 0);
}

/* A capture with these snapshots, none when count is 0. */
static void write_capture(const struct vmt_vcpu_tsc *snapshots, size_t count)
{
	struct vmt_store_options options = { .force = true };
	struct vmt_store_writer *w = NULL;
	struct vmt_diag diag = { 0 };

	assert_int_equal(vmt_store_create(&w, path, &options, &diag), 0);
	assert_int_equal(vmt_store_session(w, session, &diag), 0);
	for (size_t i = 0; i < count; i++)
		append(w, &snapshots[i], 1);
	assert_int_equal(vmt_store_finish(w, &diag), 0);
}

static void read_back(const char *name, char *text, size_t size)
{
	FILE *f = fopen(name, "r");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, size - 1, f);
	text[n] = '\0';
	fclose(f);
}

/* Runs the verb with its output in `out` and its errors in `err`. */
static int run(struct vmt_cli *cli)
{
	int saved_out, saved_err, status;

	fflush(NULL);
	saved_out = dup(STDOUT_FILENO);
	saved_err = dup(STDERR_FILENO);
	assert_true(saved_out >= 0 && saved_err >= 0);
	assert_non_null(freopen(out_path, "w", stdout));
	assert_non_null(freopen(err_path, "w", stderr));
	status = vmt_verb_tsc(cli);
	fflush(NULL);
	dup2(saved_out, STDOUT_FILENO);
	dup2(saved_err, STDERR_FILENO);
	close(saved_out);
	close(saved_err);
	read_back(out_path, out, sizeof(out));
	read_back(err_path, err, sizeof(err));
	return status;
}

static struct vmt_cli convert_to(const char *side, const char *value)
{
	struct vmt_cli cli = { .verb = "tsc", .input = path, .to = side, .nr_args = 2 };

	cli.args[0] = "convert";
	cli.args[1] = value;
	return cli;
}

#define HALF (UINT64_C(1) << 47)

static const struct vmt_vcpu_tsc two_vcpus[] = {
	{ .host_ns = 1000000000, .ratio = HALF, .offset = -7, .vcpu = 0, .frac = 48, .source = 1 },
	{ .host_ns = 1000000000, .offset = 5, .vcpu = 1, .frac = 0, .source = 1 },
	{ .host_ns = 2000000000, .ratio = HALF, .offset = -7, .vcpu = 0, .frac = 48, .source = 1 },
	{ .host_ns = 2500000000,
	  .ratio = HALF,
	  .offset = -2995683791,
	  .vcpu = 0,
	  .frac = 48,
	  .source = 1 },
};

static void last_map_of_the_vcpu(void **state)
{
	struct vmt_cli cli = convert_to("guest", "2995838767");

	(void)state;
	write_capture(two_vcpus, 4);
	cli.vcpus.words[0] = 1;
	cli.vcpu_list = "0";
	assert_int_equal(run(&cli), 0);
	assert_string_equal(out, "18446744072211787208\n");
	assert_non_null(strstr(err, "changed 1 times"));
	cli.verbose = 1;
	cli.quiet = true;
	assert_int_equal(run(&cli), 0);
	assert_non_null(strstr(err, "vCPU 0 of web01: offset -2995683791, multiplier "
				    "140737488355328, frac 48, from debugfs at 2500000000 ns"));

	cli = convert_to("host", "0x10");
	cli.vcpus.words[0] = 2;
	cli.vcpu_list = "1";
	assert_int_equal(run(&cli), 0);
	assert_string_equal(out, "11 11\n");
	assert_string_equal(err, "");
}

static void which_vcpu(void **state)
{
	struct vmt_cli cli = convert_to("guest", "1");

	(void)state;
	write_capture(two_vcpus, 4);
	assert_int_equal(run(&cli), VMT_STATUS_USAGE);
	assert_non_null(strstr(err, "--vcpu"));
	assert_string_equal(out, "");
	cli.vcpus.words[0] = 4;
	cli.vcpu_list = "2";
	assert_int_equal(run(&cli), VMT_STATUS_NO_CAPABILITY);
	write_capture(&two_vcpus[1], 1);
	cli.vcpu_list = NULL;
	assert_int_equal(run(&cli), 0);
	assert_string_equal(out, "6\n");
}

static void which_domain(void **state)
{
	static const struct vmt_vcpu_tsc snapshots[] = {
		{ .host_ns = 1, .offset = 10, .domain = 0 },
		{ .host_ns = 1, .offset = 20, .domain = 1 },
	};
	struct vmt_cli cli = convert_to("guest", "1");

	(void)state;
	write_capture(snapshots, 2);
	assert_int_equal(run(&cli), VMT_STATUS_USAGE);
	assert_non_null(strstr(err, "--domain"));
	cli.nr_domains = 1;
	cli.domains[0] = "web01";
	assert_int_equal(run(&cli), 0);
	assert_string_equal(out, "11\n");
	cli.domains[0] = "11111111-2222-3333-4444-555555555555";
	assert_int_equal(run(&cli), 0);
	cli.nr_domains = 0;
	cli.nr_pids = 1;
	cli.pids[0] = 99;
	assert_int_equal(run(&cli), 0);
	assert_string_equal(out, "21\n");
	cli.pids[0] = 98;
	assert_int_equal(run(&cli), VMT_STATUS_NO_CAPABILITY);
}

static void no_snapshot(void **state)
{
	struct vmt_cli cli = convert_to("guest", "1");
	FILE *f;

	(void)state;
	write_capture(NULL, 0);
	assert_int_equal(run(&cli), VMT_STATUS_NO_CAPABILITY);
	assert_non_null(strstr(err, "no TSC offset"));
	assert_non_null(strstr(err, "\n  "));
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("PERFILE2and what follows", f);
	fclose(f);
	assert_int_equal(run(&cli), VMT_STATUS_NO_CAPABILITY);
	assert_non_null(strstr(err, "perf.data"));
}

static void show_text_and_csv(void **state)
{
	struct vmt_cli cli = { .verb = "tsc", .nr_args = 2 };

	(void)state;
	write_capture(two_vcpus, 4);
	cli.args[0] = "show";
	cli.args[1] = path;
	assert_int_equal(run(&cli), 0);
	assert_non_null(strstr(out, "web01         0     start     1.000                   -7 "
				    "0.500000000 debugfs\n"));
	assert_non_null(strstr(out, "web01         0     1.500       end          -2995683791 "));
	assert_non_null(strstr(out, "web01         1     start       end                    5 "
				    "1.000000000 debugfs\n"));
	cli.format = VMT_FORMAT_CSV;
	cli.vcpus.words[0] = 2;
	cli.vcpu_list = "1";
	assert_int_equal(run(&cli), 0);
	assert_string_equal(out,
			    "domain,vcpu,from_ns,to_ns,offset,multiplier,frac,snapshots,source\n"
			    "web01,1,1000000000,1000000000,5,281474976710656,48,1,debugfs\n");
}

static void show_json(void **state)
{
	struct vmt_cli cli = {
		.verb = "tsc", .input = path, .vcpus = { { 1 } }, .vcpu_list = "0", .nr_args = 1
	};

	(void)state;
	write_capture(two_vcpus, 3);
	cli.args[0] = "show";
	cli.format = VMT_FORMAT_JSON;
	assert_int_equal(run(&cli), 0);
	assert_non_null(strstr(out, "\"schema\": \"vmtrace-tsc/1\""));
	assert_non_null(strstr(out, "\"domain\": \"web01\""));
	assert_non_null(strstr(out, "\"offset\": \"0xfffffffffffffff9\""));
	assert_non_null(strstr(out, "\"multiplier\": \"0x800000000000\""));
	assert_non_null(strstr(out, "\"snapshots\": 2"));
}

/* Any bytes as snapshots: bounded, and what cannot be is counted. */
static void hostile_snapshots(void **state)
{
	struct vmt_tsc_maps maps;
	struct vmt_diag diag = { 0 };
	struct vmt_vcpu_tsc *many = calloc(6000, sizeof(*many));
	struct vmt_store_options options = { .force = true };
	struct vmt_store_writer *w = NULL;

	(void)state;
	assert_non_null(many);
	for (uint32_t i = 0; i < 6000; i++) {
		many[i].host_ns = i;
		many[i].vcpu = i * 4096;
		many[i].frac = i % 2 ? 0 : 200;
		many[i].source = (uint8_t)i;
	}
	many[0].frac = 0;
	assert_int_equal(vmt_store_create(&w, path, &options, &diag), 0);
	append(w, many, 6000);
	for (uint32_t i = 0; i < 6000; i++) {
		many[i].vcpu = 0;
		many[i].frac = 0;
		many[i].offset = i;
		many[i].host_ns = 10000 + i;
	}
	for (int k = 0; k < 12; k++)
		append(w, many, 6000);
	assert_int_equal(vmt_store_finish(w, &diag), 0);
	assert_int_equal(vmt_tsc_maps_read(&maps, path, &diag), 0);
	assert_true(maps.nr_vcpus <= VMT_TSC_VCPUS_MAX);
	assert_true(maps.nr_intervals <= VMT_TSC_INTERVALS_MAX);
	assert_true(maps.left_out >= 2999);
	assert_true(maps.vcpus[0].last.map.offset == 5999);
	vmt_tsc_maps_free(&maps);
	free(many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(last_map_of_the_vcpu), cmocka_unit_test(which_vcpu),
		cmocka_unit_test(which_domain),		cmocka_unit_test(no_snapshot),
		cmocka_unit_test(show_text_and_csv),	cmocka_unit_test(show_json),
		cmocka_unit_test(hostile_snapshots),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
