// SPDX-License-Identifier: LGPL-2.1-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/cli/options.h"

#define ARGS_MAX 24

/* Parses a line of words; errors go to /dev/null. */
static int parse(const char *line, struct vmt_cli *cli, const struct vmt_verb_row **verb)
{
	static char words[512];
	char *argv[ARGS_MAX + 1] = { words };
	int argc = 0, status, keep;
	bool done;
	FILE *null = fopen("/dev/null", "w");

	snprintf(words, sizeof(words), "vmtrace %s", line);
	for (char *w = strtok(words, " "); w && argc < ARGS_MAX; w = strtok(NULL, " "))
		argv[argc++] = w;
	fflush(stderr);
	keep = dup(2);
	dup2(fileno(null), 2);
	status = vmt_cli_parse(cli, argc, argv, verb, &done);
	fflush(stderr);
	dup2(keep, 2);
	close(keep);
	fclose(null);
	return status;
}

static void test_values(void **state)
{
	struct vmt_cli cli;
	const struct vmt_verb_row *verb;

	(void)state;
	assert_int_equal(parse("-d web01 start --domain=3 --buffer 64M --keep 30s --limit 4GiB -vv",
			       &cli, &verb),
			 0);
	assert_string_equal(verb->name, "start");
	assert_int_equal(cli.nr_domains, 2);
	assert_string_equal(cli.domains[1], "3");
	assert_int_equal(cli.buffer_bytes, 64u << 20);
	assert_true(cli.keep_ns == UINT64_C(30000000000));
	assert_true(cli.limit_bytes == UINT64_C(4) << 30);
	assert_int_equal(cli.verbose, 2);

	assert_int_equal(
		parse("report x.vmt --time 1.5,2.25 --vcpu 0,2-3 --max-loss 0.5 --fail-on warn",
		      &cli, &verb),
		0);
	assert_string_equal(cli.input, "x.vmt");
	assert_true(vmt_cli_wants_vcpu(&cli, 0) && vmt_cli_wants_vcpu(&cli, 3));
	assert_false(vmt_cli_wants_vcpu(&cli, 1) || vmt_cli_wants_vcpu(&cli, 64));
	assert_true(cli.window.has_from && cli.window.has_to && !cli.window.percent);
	assert_true(cli.window.from == 1.5 && cli.window.to == 2.25);
	assert_true(cli.has_max_loss && cli.max_loss == 0.5);
	assert_true(cli.has_fail_on && cli.fail_on == VMT_SEVERITY_WARN);

	assert_int_equal(parse("list --vcpu 0x40-0x41,010,1023", &cli, &verb), 0);
	assert_true(vmt_cli_wants_vcpu(&cli, 64) && vmt_cli_wants_vcpu(&cli, 65) &&
		    vmt_cli_wants_vcpu(&cli, 8) && vmt_cli_wants_vcpu(&cli, 1023));
	assert_false(vmt_cli_wants_vcpu(&cli, 0) || vmt_cli_wants_vcpu(&cli, 10) ||
		     vmt_cli_wants_vcpu(&cli, 1024));
	assert_int_equal(parse("list", &cli, &verb), 0);
	assert_true(vmt_cli_wants_vcpu(&cli, 5000));

	assert_int_equal(parse("report --time 10%,20%", &cli, &verb), 0);
	assert_true(cli.window.percent && cli.window.from == 10 && cli.window.to == 20);
	assert_int_equal(parse("report --time ,3", &cli, &verb), 0);
	assert_true(!cli.window.has_from && cli.window.to == 3);

	assert_int_equal(parse("tsc convert --to host --offset -5 --mult 0x10 --frac 4 -7 0x20",
			       &cli, &verb),
			 0);
	assert_int_equal(cli.nr_args, 3);
	assert_true(cli.has_offset && cli.offset == -5 && cli.has_mult && cli.mult == 16);
	assert_int_equal(cli.frac, 4);

	assert_int_equal(parse("decode kvm file", &cli, &verb), 0);
	assert_string_equal(cli.input, "file");
	assert_int_equal(cli.nr_args, 1);
	assert_int_equal(parse("report -i -", &cli, &verb), 0);
	assert_string_equal(cli.input, "-");
	assert_int_equal(parse("tsc convert -- 5 -0x6", &cli, &verb), 0);
	assert_int_equal(cli.nr_args, 3);
	assert_string_equal(cli.args[2], "-0x6");
	assert_int_equal(parse("report -- --force", &cli, &verb), 0);
	assert_string_equal(cli.input, "--force");
	assert_int_equal(parse("explain -- -- x", &cli, &verb), 0);
	assert_string_equal(cli.args[0], "--");
	assert_int_equal(parse("list --", &cli, &verb), 0);
	assert_int_equal(parse("record -- sleep 1", &cli, &verb), 0);
	assert_string_equal(cli.command[0], "sleep");
}

static void test_refused(void **state)
{
	static const char *const lines[] = {
		"rport",
		"list x",
		"start --by reason",
		"report --format xml",
		"report --vcpu 1024",
		"report --vcpu 08",
		"report --vcpu 0x",
		"report --vcpu 1--2",
		"report --vcpu 3-1",
		"report --vcpu 1,",
		"report --time 5,4",
		"report --time 10",
		"report --time 1%,2",
		"report --time 101%",
		"report --max-loss 101",
		"report --max-loss nan",
		"report --fail-on bad",
		"report --input",
		"report a b",
		"report -i a b",
		"report -i a -i b",
		"report -i a --input=a",
		"report -o a --format csv -o b",
		"report --guest-kallsyms a --guest-kallsyms b",
		"report --no-such",
		"report -x",
		"report --force=1",
		"start --buffer 64X",
		"start --buffer 99999999999999T",
		"start --keep 0",
		"start --keep -1s",
		"start --keep inf",
		"start --pid 0",
		"start --pid 12x",
		"start --pid 08",
		"start --pid +5",
		"tsc",
		"tsc convert --frac 64 1",
		"tsc convert --mult -1 1",
		"start -- ls",
		"report -- a b",
		"list -- --all",
		"record --",
		"decode",
	};
	struct vmt_cli cli;
	const struct vmt_verb_row *verb;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		if (parse(lines[i], &cli, &verb) != VMT_STATUS_USAGE)
			fail_msg("accepted: %s", lines[i]);
	}
}

static void test_tables(void **state)
{
	size_t nr_options, nr_verbs;
	const struct vmt_option_row *options = vmt_options(&nr_options);
	const struct vmt_verb_row *verbs = vmt_verbs(&nr_verbs);

	(void)state;
	for (size_t i = 0; i < nr_options; i++) {
		bool taken = vmt_option_is_global(&options[i]);

		assert_ptr_equal(vmt_option_find(options[i].name, strlen(options[i].name)),
				 &options[i]);
		for (size_t v = 0; v < nr_verbs; v++)
			taken = taken || vmt_verb_takes(&verbs[v], &options[i]);
		if (!taken)
			fail_msg("no verb takes --%s", options[i].name);
	}
	for (size_t v = 0; v < nr_verbs; v++) {
		char list[256];

		snprintf(list, sizeof(list), "%s", verbs[v].options);
		for (char *w = strtok(list, " "); w; w = strtok(NULL, " "))
			assert_non_null(vmt_option_find(w, strlen(w)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
