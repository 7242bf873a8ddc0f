// SPDX-License-Identifier: LGPL-2.1-or-later
/* Controls, IA32_RTIT_CTL, guest time and the comparison with a stream; texts are golden elsewhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "vmx/pt_plan.h"
#include "vmx/rtit.h"

/* All six controls, PT in VMX, Event Trace, crystal 24 MHz, TSC 146/2 of it. */
static struct vmx_pt_caps full(void)
{
	static const uint32_t leaf7[4] = { 0, 1u << 25, 0, 0 };
	static const uint32_t leaf14[4] = { 1, 0x18f, 7, 0 };
	static const uint32_t leaf14_1[4] = { 0x02490002, 0x003f3fff, 0, 0 };
	static const uint32_t leaf15[4] = { 2, 146, 24000000, 0 };
	struct vmx_pt_caps caps = { 0 };

	vmx_pt_caps_cpuid(&caps, 7, 0, leaf7);
	vmx_pt_caps_cpuid(&caps, 0x14, 0, leaf14);
	vmx_pt_caps_cpuid(&caps, 0x14, 1, leaf14_1);
	vmx_pt_caps_cpuid(&caps, 0x15, 0, leaf15);
	vmx_pt_caps_msr(&caps, 0xce, 35u << 8);
	vmx_pt_caps_msr(&caps, 0x485, 1u << 14);
	vmx_pt_caps_msr(&caps, 0x48b, UINT64_C(0x031f7fff00000000));
	vmx_pt_caps_msr(&caps, 0x483, UINT64_C(0x037fffff00036dff));
	vmx_pt_caps_msr(&caps, 0x484, UINT64_C(0x0006ffff000011ff));
	return caps;
}

static void what_is_not_given_is_unknown(void **state)
{
	struct vmx_pt_caps caps = { 0 };
	const struct vmx_pt_request request = { .mode = VMX_PT_GUEST_ONLY, .event_trace = true };
	const uint32_t none[4] = { 0 };
	struct vmx_pt_plan plan;
	uint32_t must, may;

	(void)state;
	assert_int_equal(vmx_pt_caps_pt(&caps), VMX_UNKNOWN);
	assert_int_equal(vmx_pt_caps_in_vmx(&caps), VMX_UNKNOWN);
	assert_int_equal(vmx_pt_caps_bit(&caps, VMX_EBX, VMX_PT_EBX_EVENT), VMX_UNKNOWN);
	assert_false(vmx_ctl_allowed(&caps, VMX_CTL_EXIT, &must, &may));
	vmx_pt_plan_make(&request, &caps, &plan);
	assert_true(plan.unsure);
	assert_false(plan.entry_fails);
	assert_false(vmx_pt_caps_msr(&caps, 0x10, 1));
	assert_false(vmx_pt_caps_cpuid(&caps, 4, 0, none));
	vmx_pt_caps_cpuid(&caps, 7, 0, none);
	assert_int_equal(vmx_pt_caps_bit(&caps, VMX_EBX, VMX_PT_EBX_EVENT), VMX_NO);
}

static void true_msrs_count_where_basic_says_so(void **state)
{
	struct vmx_pt_caps caps = { 0 };
	uint32_t must, may;

	(void)state;
	vmx_pt_caps_msr(&caps, 0x483, UINT64_C(0x00ffffff00036dff));
	vmx_pt_caps_msr(&caps, 0x48f, UINT64_C(0x01ffffff00036dfb));
	assert_true(vmx_ctl_allowed(&caps, VMX_CTL_EXIT, &must, &may));
	assert_int_equal(must, 0x36dff);
	vmx_pt_caps_msr(&caps, 0x480, UINT64_C(1) << 55);
	assert_true(vmx_ctl_allowed(&caps, VMX_CTL_EXIT, &must, &may));
	assert_int_equal(must, 0x36dfb);
	assert_int_equal(may, 0x01ffffff);
}

/* Bits 19/24, 24/25, 17/18 by mode and conceal: SDM table 33-52 and 33.5.2. */
static void controls_by_mode(void **state)
{
	static const struct {
		enum vmx_pt_mode mode;
		bool conceal;
		uint32_t proc2, exit, entry;
		uint64_t root_trace, guest_trace;
		bool lists;
	} rows[] = {
		{ VMX_PT_SYSTEM, false, 0, 0, 0, 1, 0, false },
		{ VMX_PT_SYSTEM, true, 1u << 19, 1u << 24, 1u << 17, 1, 0, false },
		{ VMX_PT_GUEST_ONLY, false, 0, 1u << 25, 1u << 18, 0, 1, false },
		{ VMX_PT_GUEST_ONLY, true, 1u << 19, 3u << 24, 3u << 17, 0, 1, false },
		{ VMX_PT_HOST_ONLY, false, 0, 0, 0, 1, 0, true },
	};
	const struct vmx_pt_caps caps = full();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct vmx_pt_request request = { .mode = rows[i].mode,
							.conceal = rows[i].conceal };
		struct vmx_pt_plan plan;
		uint32_t set, clear;

		vmx_pt_plan_make(&request, &caps, &plan);
		assert_false(plan.entry_fails || plan.unsure);
		vmx_pt_plan_word(&plan, VMX_CTL_PROC2, &set, &clear);
		assert_int_equal(set, rows[i].proc2);
		assert_int_equal(set | clear, 1u << 19 | 1u << 24);
		vmx_pt_plan_word(&plan, VMX_CTL_EXIT, &set, &clear);
		assert_int_equal(set, rows[i].exit);
		vmx_pt_plan_word(&plan, VMX_CTL_ENTRY, &set, &clear);
		assert_int_equal(set, rows[i].entry);
		assert_int_equal(plan.root_ctl & VMX_RTIT_TRACE_EN, rows[i].root_trace);
		assert_int_equal(plan.has_guest_ctl, rows[i].mode != VMX_PT_SYSTEM);
		if (plan.has_guest_ctl)
			assert_int_equal(plan.guest_ctl & VMX_RTIT_TRACE_EN, rows[i].guest_trace);
		assert_int_equal(plan.msr_lists, rows[i].lists);
	}
}

static void older_cpus_use_the_msr_lists(void **state)
{
	const struct vmx_pt_request request = { .mode = VMX_PT_GUEST_ONLY };
	struct vmx_pt_caps caps = full();
	struct vmx_pt_plan plan;

	(void)state;
	vmx_pt_caps_msr(&caps, 0x484, UINT64_C(0x0002ffff000011ff));
	vmx_pt_plan_make(&request, &caps, &plan);
	assert_true(plan.msr_lists);
	assert_false(plan.entry_fails);
	for (unsigned int i = 0; i < VMX_PT_CONTROLS; i++)
		assert_false(plan.controls[i].value);
}

static void a_control_that_must_be_1_is_refused(void **state)
{
	const struct vmx_pt_request request = { .mode = VMX_PT_SYSTEM };
	struct vmx_pt_caps caps = full();
	struct vmx_pt_plan plan;

	(void)state;
	vmx_pt_caps_msr(&caps, 0x483, UINT64_C(0x037fffff01036dff)); /* exit bit 24: must */
	vmx_pt_plan_make(&request, &caps, &plan);
	assert_true(plan.entry_fails);
	assert_int_equal(plan.controls[2].verdict, VMX_PT_REFUSED);
}

static void fields_of_rtit_ctl_have_names(void **state)
{
	char text[200], small[8];

	(void)state;
	vmx_rtit_ctl_text(UINT64_C(0x8000e70d), text, sizeof(text));
	assert_string_equal(text, "TraceEn OS User ToPA MTCEn TSCEn BranchEn MTCFreq=3 EventEn");
	vmx_rtit_ctl_text(0, text, sizeof(text));
	assert_string_equal(text, "0");
	vmx_rtit_ctl_text(UINT64_MAX, small, sizeof(small));
	assert_int_equal(strlen(small), 7);
}

/* SDM 33.5.2.4: EBX/EAX and the non-turbo ratio fit the scaled TSC. */
static void a_guest_is_told_its_rate(void **state)
{
	static const struct {
		uint64_t multiplier;
		uint32_t num, den;
		uint8_t ratio;
		bool exact;
	} rows[] = {
		{ UINT64_C(1) << 48, 73, 1, 35, true },
		{ UINT64_C(1) << 47, 73, 2, 18, true },
		{ UINT64_C(3) << 47, 219, 2, 53, true },
		{ UINT64_C(93825528393178), 0, 0, 12, false },
	};
	const struct vmx_pt_caps caps = full();
	const struct vmx_pt_caps nothing = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vmx_pt_guest_time t = vmx_pt_guest_time_of(&caps, rows[i].multiplier, 48);
		double want = 73.0 * (double)rows[i].multiplier / 281474976710656.0;
		double got = (double)t.tsc_num / (double)t.art_den;

		assert_true(t.known);
		assert_int_equal(t.exact, rows[i].exact);
		assert_int_equal(t.max_nonturbo_ratio, rows[i].ratio);
		if (rows[i].exact) {
			assert_int_equal(t.tsc_num, rows[i].num);
			assert_int_equal(t.art_den, rows[i].den);
		}
		assert_true(got > want * (1 - 1e-8) && got < want * (1 + 1e-8));
		assert_int_equal(t.guest_tsc_hz, (uint64_t)24000000 * t.tsc_num / t.art_den);
	}
	assert_false(vmx_pt_guest_time_of(&nothing, UINT64_C(1) << 48, 48).known);
	assert_false(vmx_pt_guest_time_of(&caps, 0, 48).known);
}

static unsigned int compare(const struct vmx_pt_request *request, const struct vmx_pt_seen *seen,
			    const char **first)
{
	const struct vmx_pt_caps caps = full();
	const char *texts[VMX_PT_PROBLEMS_MAX];
	struct vmx_pt_plan plan;
	unsigned int nr;

	vmx_pt_plan_make(request, &caps, &plan);
	nr = vmx_pt_plan_compare(&plan, seen, texts);
	*first = nr ? texts[0] : "";
	return nr;
}

static void a_stream_is_held_against_the_plan(void **state)
{
	static const struct {
		struct vmx_pt_request request;
		struct vmx_pt_seen seen;
		const char *says; /* NULL: it fits */
	} rows[] = {
		{ { .event_trace = true },
		  { .nonroot = true,
		    .exit_pip = true,
		    .exit_event = true,
		    .entry_event = true,
		    .event_trace = true },
		  NULL },
		{ { 0 }, { .nonroot = true }, "bit 24 of the VM-exit controls seems to be 1" },
		{ { 0 }, { .guest_ran = true }, "bit 19" },
		{ { .conceal = true }, { .nonroot = true, .exit_pip = true }, "bit 19" },
		{ { .conceal = true, .event_trace = true },
		  { .exit_event = true, .event_trace = true },
		  "bit 24" },
		{ { .conceal = true, .event_trace = true },
		  { .entry_event = true, .event_trace = true },
		  "bit 17" },
		{ { .event_trace = true }, { .nonroot = true, .exit_pip = true }, "EventEn" },
		{ { 0 }, { .event_trace = true }, "EventEn" },
		{ { .mode = VMX_PT_HOST_ONLY }, { .nonroot = true }, "TraceEn" },
		{ { .conceal = true }, { .guest_ran = true }, NULL },
		/* IA32_RTIT_CTL may be loaded without a PIP. */
		{ { .mode = VMX_PT_GUEST_ONLY }, { .guest_ran = true }, NULL },
		{ { .event_trace = true },
		  { .nonroot = true, .exit_pip = true, .entry_event = true, .event_trace = true },
		  "bit 24 of the VM-exit controls seems to be 1" },
		{ { .event_trace = true },
		  { .nonroot = true, .exit_pip = true, .exit_event = true, .event_trace = true },
		  "bit 17 of the VM-entry controls seems to be 1" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *first;
		unsigned int nr = compare(&rows[i].request, &rows[i].seen, &first);

		assert_int_equal(nr != 0, rows[i].says != NULL);
		if (rows[i].says)
			assert_non_null(strstr(first, rows[i].says));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_given_is_unknown),
		cmocka_unit_test(true_msrs_count_where_basic_says_so),
		cmocka_unit_test(controls_by_mode),
		cmocka_unit_test(older_cpus_use_the_msr_lists),
		cmocka_unit_test(a_control_that_must_be_1_is_refused),
		cmocka_unit_test(fields_of_rtit_ctl_have_names),
		cmocka_unit_test(a_guest_is_told_its_rate),
		cmocka_unit_test(a_stream_is_held_against_the_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
