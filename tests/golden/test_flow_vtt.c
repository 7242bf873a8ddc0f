/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tests/golden/flow/NAME.vtt: code, an Intel PT stream and the flow that they give, in one text
 * (tests/support/pt_vtt.h, flow_text.h). VMT_TEST_REGENERATE=1 writes what comes out in place of
 * what is expected.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "tests/support/flow_text.h"
#include "tests/support/pt_vtt_file.h"

#define MAX_FIXTURES 256

static void a_fixture_gives_what_it_says(void **state)
{
	struct vmt_flow_counts counts;
	struct vmt_vtt_file file;
	size_t len;
	char *text;

	assert_true(vmt_vtt_file_load(&file, *state));
	assert_non_null(file.vtt.expect_flow);
	text = vmt_flow_list(&file.vtt, &len, &counts);
	assert_true(vmt_vtt_file_expect(&file, VMT_VTT_FLOW, text, len));
	free(text);
	vmt_vtt_file_free(&file);
}

int main(void)
{
	static struct vmt_vtt_path paths[MAX_FIXTURES];
	static struct CMUnitTest tests[MAX_FIXTURES];
	const size_t nr = vmt_vtt_file_list("tests/golden/flow", paths, MAX_FIXTURES);

	for (size_t i = 0; i < nr; i++)
		tests[i] = (struct CMUnitTest){ .name = paths[i].name,
						.test_func = a_fixture_gives_what_it_says,
						.initial_state = paths[i].path };
	return nr ? _cmocka_run_group_tests("flow", tests, nr, NULL, NULL) : 1;
}
