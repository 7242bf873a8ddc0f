// SPDX-License-Identifier: LGPL-2.1-or-later
/* How a capture wants Intel PT traced, and what stream and controls in force say of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <string.h>

#include "decode/analyze/pt_controls.h"

static struct vmt_pt_controls take(const char *text)
{
	struct vmt_pt_controls c = { .known = false };
	json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);

	assert_non_null(json);
	vmt_pt_controls_take(&c, json);
	json_decref(json);
	return c;
}

#define VCPU(secondary, exit, entry)                                                               \
	"{\"tid\":7,\"in_force\":{\"secondary\":\"" secondary "\",\"exit\":\"" exit                \
	"\",\"entry\":\"" entry "\"},\"entries\":10,\"untraced\":2,\"left\":0,\"rewritten\":1}"
#define GUEST_ONLY(list)                                                                           \
	"{\"mode\":\"guest-only\",\"means\":\"vmx-controls\",\"conceal\":false,\"controls\":"      \
	"[" list "]}"

static void documents(void **state)
{
	static const char *const none[] = {
		"null", "7", "[]", "{}", "{\"mode\":7}", "{\"mode\":\"both\"}",
	};
	struct vmt_pt_controls c;

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(take(none[i]).known);
	c = take(GUEST_ONLY(VCPU("0x20034ea", "0x22befff",
				 "0x4d1ff") "," VCPU("0x20034ea", "0x32befff", "0x4d1ff")));
	assert_true(c.known && c.mode == VMX_PT_GUEST_ONLY && !c.conceal && c.nr_vcpus == 2);
	assert_int_equal(c.all[VMT_PT_EXIT], 0x22befff);
	assert_int_equal(c.any[VMT_PT_EXIT], 0x32befff);
	assert_true(c.entries == 20 && c.untraced == 4 && c.rewritten == 2 && c.left == 0);
	/* Words that are none leave the vCPU out. */
	c = take(GUEST_ONLY(VCPU("0x20034ea", "0x100000000", "0x4d1ff")));
	assert_int_equal(c.nr_vcpus, 0);
	assert_int_equal(take(GUEST_ONLY(VCPU("20034ea", "0x1", "0x1"))).nr_vcpus, 0);
	assert_int_equal(take(GUEST_ONLY(VCPU("0x", "0x1", "0x1"))).nr_vcpus, 0);
	assert_string_equal(take("{\"mode\":\"system\",\"means\":\"?\"}").means, "other");
}

static void words_in_force(void **state)
{
	struct vmx_pt_control planned;
	struct vmt_pt_controls c = take(GUEST_ONLY(VCPU("0x0", "0x2000000", "0x40000")));

	(void)state;
	assert_false(vmt_pt_controls_differ(&c, 0, &planned));
	c = take(GUEST_ONLY(
		VCPU("0x80000", "0x2000000", "0x40000") "," VCPU("0x0", "0x0", "0x40000")));
	assert_true(vmt_pt_controls_differ(&c, 0, &planned));
	assert_true(planned.word == VMX_CTL_PROC2 && planned.bit == 19 && !planned.value);
	assert_true(vmt_pt_controls_differ(&c, 1, &planned));
	assert_true(planned.word == VMX_CTL_EXIT && planned.bit == 25 && planned.value);
	assert_false(vmt_pt_controls_differ(&c, 2, &planned));
}

static void streams(void **state)
{
	static const struct {
		struct vmt_pt_controls wanted;
		struct vmt_pt_counts counts;
		bool guest_ran;
		const char *says; /* NULL: it fits */
	} rows[] = {
		{ { 0 },
		  { .pips = 90,
		    .nonroot_pips = 30,
		    .exit_pips = 30,
		    .exits = 30,
		    .entry_cfes = 30,
		    .exit_cfes = 30,
		    .events = 90 },
		  true,
		  NULL },
		/* nothing but host: by tracepoints a guest ran, too */
		{ { 0 }, { .pips = 50 }, true, "bit 19 of the secondary" },
		{ { 0 }, { .pips = 50 }, false, NULL },
		{ { 0 }, { .pips = 0 }, true, NULL }, /* without OS there is no PIP */
		/* exits are concealed; a single one may just be missing */
		{ { 0 },
		  { .pips = 50, .nonroot_pips = 30, .exits = 30 },
		  true,
		  "bit 24 of the VM-exit" },
		{ { 0 }, { .pips = 5, .nonroot_pips = 1, .exits = 1 }, true, NULL },
		{ { 0 },
		  { .pips = 60,
		    .nonroot_pips = 30,
		    .exit_pips = 30,
		    .exits = 30,
		    .exit_cfes = 30,
		    .events = 60 },
		  true,
		  "bit 17 of the VM-entry" },
		{ { .known = true, .conceal = true }, { .pips = 50 }, true, NULL },
		{ { .known = true, .conceal = true },
		  { .pips = 50, .nonroot_pips = 9 },
		  true,
		  "bit 19 of the secondary processor-based controls seems to be 0" },
		{ { .known = true, .mode = VMX_PT_GUEST_ONLY },
		  { .pips = 50, .exit_pips = 50, .exits = 50, .exit_cfes = 50, .events = 50 },
		  true,
		  NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *texts[VMX_PT_PROBLEMS_MAX];
		unsigned int nr = vmt_pt_controls_compare(&rows[i].wanted, &rows[i].counts,
							  rows[i].guest_ran, texts);

		if (!rows[i].says && nr)
			fail_msg("row %zu: %s", i, texts[0]);
		if (rows[i].says && (!nr || !strstr(texts[0], rows[i].says)))
			fail_msg("row %zu: %s", i, nr ? texts[0] : "nothing");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(documents),
		cmocka_unit_test(words_in_force),
		cmocka_unit_test(streams),
	};

	return cmocka_run_group_tests_name("pt_controls", tests, NULL, NULL);
}
