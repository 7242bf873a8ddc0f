// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a session document may do to the verbs that read a capture: nothing to a terminal, and no
 * output or memory without bound. */
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

#include "decode/base/json_bound.h"
#include "decode/export/utf8.h"
#include "decode/store/store.h"
#include "host/cli/cli.h"
#include "host/cli/text.h"

#define EVIL                                                                                       \
	"\033[31m\a\r\177\302\233"                                                                 \
	"31m\342\200\256\363\240\201\201"
#define OUTPUT_MAX 65536

static char folder[] = "/tmp/vmt-hostile-XXXXXX";
static char capture[64];

/* A capture with this name everywhere; NULL padding: with the harmful characters. */
static void write_capture(const char *padding)
{
	struct vmt_store_options options = { .force = true };
	struct vmt_store_writer *w;
	struct vmt_vcpu_tsc tsc = { .host_ns = 1, .ratio = UINT64_C(1) << 48, .frac = 48 };
	struct vmt_store_chunk chunk = { .type = VMT_CHUNK_VCPU_TSC,
					 .cpu = -1,
					 .nr_parts = 1,
					 .parts = { { &tsc, sizeof(tsc) } } };
	const char *name = padding ? padding : EVIL;
	json_t *doc = json_pack("{s:s,s:s,s:{s:s,s:s},s:i,s:[{s:s,s:s,s:[{s:i,s:i}]}]}", "schema",
				"vmtrace-session/1", "tool", name, "host", "hostname", name,
				"kernel", name, "start_ns", 1, "domains", "name", name, "uuid",
				name, "vcpus", "id", 0, "tid", 101);
	char *text = json_dumps(doc, 0);

	assert_non_null(text);
	assert_int_equal(vmt_store_create(&w, capture, &options, NULL), 0);
	assert_int_equal(vmt_store_session(w, text, NULL), 0);
	assert_int_equal(vmt_store_append(w, &chunk, NULL), 0);
	assert_int_equal(vmt_store_finish(w, NULL), 0);
	json_decref(doc);
	free(text);
}

static int set_up(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(capture, sizeof(capture), "%s/web01.vmt", folder);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(capture);
	return rmdir(folder);
}

/* Both streams of a verb; the caller frees. */
static char *output_of(vmt_verb_fn *verb, struct vmt_cli *cli)
{
	int out = memfd_create("out", 0), status = -1;
	char *text;
	pid_t child;
	off_t size;

	assert_true(out >= 0);
	fflush(NULL);
	child = fork();
	if (child == 0) {
		dup2(out, STDOUT_FILENO);
		dup2(out, STDERR_FILENO);
		status = verb(cli);
		fflush(NULL);
		_exit(status);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	size = lseek(out, 0, SEEK_END);
	text = calloc(1, (size_t)size + 1);
	assert_non_null(text);
	assert_int_equal(pread(out, text, (size_t)size, 0), size);
	close(out);
	return text;
}

static void check_output(const char *text)
{
	assert_true(strlen(text) < OUTPUT_MAX);
	while (*text) {
		uint32_t c;

		text += vmt_utf8_next(text, &c);
		assert_true(c == '\n' || c == '\t' || vmt_utf8_is_harmless(c));
	}
}

static void check_all_verbs(void)
{
	static vmt_verb_fn *const verbs[] = { vmt_verb_report, vmt_verb_script, vmt_verb_decode,
					      vmt_verb_tsc };
	static const char *const words[] = { NULL, NULL, "kvm", "show" };
	size_t written = 0; /* script in text has no lines without events */

	for (size_t v = 0; v < sizeof(verbs) / sizeof(verbs[0]); v++) {
		for (int format = VMT_FORMAT_TEXT; format <= VMT_FORMAT_CSV; format++) {
			struct vmt_cli cli = { .verb = "x",
					       .input = capture,
					       .format = (enum vmt_out_format)format,
					       .bill = true };
			char *text;

			if (words[v])
				cli.args[cli.nr_args++] = words[v];
			text = output_of(verbs[v], &cli);
			check_output(text);
			written += strlen(text);
			free(text);
		}
	}
	assert_true(written > 1000);
}

static void harmful_names_are_cleaned(void **state)
{
	(void)state;
	write_capture(NULL);
	check_all_verbs();
}

static void long_names_are_cut(void **state)
{
	char *name = calloc(1, 3000001);

	(void)state;
	assert_non_null(name);
	for (size_t i = 0; i < 3000000; i += 3)
		memcpy(name + i, "\344\270\255", 3);
	write_capture(name);
	free(name);
	check_all_verbs();
}

static void errors_are_cleaned(void **state)
{
	struct vmt_cli cli = { .verb = "report", .input = capture };
	char *text;

	(void)state;
	write_capture(NULL);
	cli.domains[cli.nr_domains++] = "a" EVIL;
	text = output_of(vmt_verb_report, &cli);
	assert_true(strlen(text) > 0);
	check_output(text);
	free(text);
}

static int put_document(struct vmt_cli *cli)
{
	(void)cli;
	vmt_text_put_json(stdout, json_pack("{s:s}", "name", "\303\251" EVIL), JSON_INDENT(2));
	return 0;
}

static void json_keeps_what_it_escapes(void **state)
{
	char *text = output_of(put_document, NULL);
	json_t *doc = json_loads(text, 0, NULL);

	(void)state;
	check_output(text);
	assert_string_equal(json_string_value(json_object_get(doc, "name")), "\303\251" EVIL);
	json_decref(doc);
	free(text);
}

static void values_are_bounded(void **state)
{
	size_t len = 3 * (size_t)VMT_JSON_VALUES_MAX;
	char *text = malloc(len);

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < len; i += 3)
		memcpy(text + i, "{},", 3);
	assert_false(vmt_json_is_bounded(text, len));
	assert_true(vmt_json_is_bounded(text, len / 3));
	assert_true(vmt_json_is_bounded("", 0));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(harmful_names_are_cleaned),
		cmocka_unit_test(long_names_are_cut),
		cmocka_unit_test(errors_are_cleaned),
		cmocka_unit_test(json_keeps_what_it_escapes),
		cmocka_unit_test(values_are_bounded),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
