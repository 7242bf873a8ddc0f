/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Generated streams (tests/support/pt_generate.h) against their truth, over the settings that a
 * processor has: which world is traced, what is concealed, which packets come, which errata the
 * processor has, and where packets are lost. VMT_TEST_LONG=1 runs many more seeds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "decode/pt/errata.h"
#include "tests/support/pt_generate_check.h"

#define SEEDS	   4
#define LONG_SEEDS 150

static bool is_long(void)
{
	const char *text = getenv("VMT_TEST_LONG");

	return text && *text && strcmp(text, "0") != 0;
}

static struct vmt_ptgen_check check;

static void run_one(const struct vmt_ptgen *gen, size_t len)
{
	if (!vmt_ptgen_check(&check, gen, len))
		fail_msg("%s", check.why);
}

/* Runs a setting with some seeds, whole and cut off anywhere. */
static const struct vmt_ptgen_check *run_setting(struct vmt_ptgen_options options)
{
	const unsigned int seeds = is_long() ? LONG_SEEDS : SEEDS;
	const uint64_t first = 1000 * options.seed;

	vmt_ptgen_check_begin(&check, &options);
	for (unsigned int i = 0; i < seeds; i++) {
		struct vmt_ptgen gen;

		options.seed = first + i;
		vmt_ptgen_run(&gen, &options);
		run_one(&gen, gen.stream.len);
		for (unsigned int cut = 1; cut < 4; cut++)
			run_one(&gen, gen.stream.len * (cut * 7 + i % 12) / 40);
		vmt_ptgen_free(&gen);
	}
	check.options = NULL;
	return &check;
}

/* One more stream, with *place set. */
static void run_at(const struct vmt_ptgen_options *options, size_t *place, size_t at)
{
	struct vmt_ptgen gen;

	*place = at;
	vmt_ptgen_run(&gen, options);
	run_one(&gen, gen.stream.len);
	vmt_ptgen_free(&gen);
	*place = 0;
}

/* A short stream with a loss, a PSB+ or bad bytes before each of its packets, and cut off behind
 * each of its bytes. */
static void run_every_place(struct vmt_ptgen_options options)
{
	const unsigned int seeds = is_long() ? LONG_SEEDS / 5 : 1;
	const uint64_t first = 1000 * options.seed;

	vmt_ptgen_check_begin(&check, &options);
	for (unsigned int i = 0; i < seeds; i++) {
		struct vmt_ptgen gen;
		size_t packets;

		options.seed = first + i;
		vmt_ptgen_run(&gen, &options);
		packets = gen.nr_packets;
		for (size_t len = 1; len <= gen.stream.len; len++)
			run_one(&gen, len);
		vmt_ptgen_free(&gen);
		for (size_t at = 1; at <= packets; at++) {
			run_at(&options, &options.overflow_at, at);
			run_at(&options, &options.psb_at, at);
			run_at(&options, &options.damage_at, at);
		}
	}
	check.options = NULL;
}

static void every_transition_of_a_whole_stream(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		struct vmt_ptgen_options o = vmt_ptgen_usual;
		const struct vmt_ptgen_check *r;

		o.seed += i;
		o.event_trace = i & 1;
		o.branch = i & 2;
		o.scaling = i & 4;
		o.late_failure = 100;
		o.abort = 20;
		o.smm = 30;
		r = run_setting(o);
		assert_true(r->timed > r->events / 2 && r->bounded > r->events / 2);
		assert_true(r->exact > r->events / 40);
		assert_true(r->kinds[VMT_PTGEN_ENTRY] && r->kinds[VMT_PTGEN_EXIT]);
		if (o.event_trace || o.branch)
			assert_true(r->kinds[VMT_PTGEN_FAILED]);
		if (o.event_trace)
			assert_true(r->kinds[VMT_PTGEN_NOTE]);
	}
}

static void time_from_each_mix_of_packets(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		struct vmt_ptgen_options o = vmt_ptgen_usual;

		o.seed += 100 + i;
		o.tsc = true;
		o.mtc = i & 1;
		o.cyc = i & 2;
		o.mtc_freq = i & 4 ? 9 : 0;
		run_setting(o);
	}
}

static void a_map_that_changes_in_time(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct vmt_ptgen_options o = vmt_ptgen_usual;

		o.seed += 150 + i;
		o.map_step = 200;
		o.scaling = i & 1;
		o.overflow = i & 2 ? 50 : 0;
		run_setting(o);
	}
}

static void nothing_is_known_of_time_without_tsc(void **state)
{
	struct vmt_ptgen_options o = vmt_ptgen_usual;
	const struct vmt_ptgen_check *r;

	(void)state;
	o.seed += 200;
	o.tsc = false;
	r = run_setting(o);
	assert_true(r->events && !r->timed);
}

static void none_invented_across_overflows(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		struct vmt_ptgen_options o = vmt_ptgen_usual;

		o.seed += 300 + i;
		o.event_trace = i & 1;
		o.branch = i & 2;
		o.filter = i & 4 ? 30 : 0;
		o.overflow = 100;
		run_setting(o);
	}
}

static void none_invented_across_damage(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct vmt_ptgen_options o = vmt_ptgen_usual;

		o.seed += 400 + i;
		o.event_trace = i & 1;
		o.branch = i & 2;
		o.damage = 60;
		o.overflow = 30;
		run_setting(o);
	}
}

static void none_invented_when_concealed(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		struct vmt_ptgen_options o = vmt_ptgen_usual;
		const struct vmt_ptgen_check *r;

		o.seed += 500 + i;
		memset(o.conceal, VMT_PTGEN_CONCEAL_ALL, sizeof(o.conceal));
		o.event_trace = i & 1;
		o.branch = i & 2;
		o.tracing = i & 4 ? VMT_PTGEN_GUEST_ONLY : VMT_PTGEN_SYSTEM;
		o.overflow = 30;
		r = run_setting(o);
		assert_int_equal(r->kinds[VMT_PTGEN_ENTRY], 0);
		assert_int_equal(r->kinds[VMT_PTGEN_EXIT], 0);
	}
}

/* Each of the controls, alone and with others, with and without Event Trace. */
static void each_control_that_conceals(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 64; i++) {
		struct vmt_ptgen_options o = vmt_ptgen_usual;

		o.seed += 900 + i;
		memset(o.conceal, (int)(i & VMT_PTGEN_CONCEAL_ALL), sizeof(o.conceal));
		o.event_trace = i & 8;
		o.branch = i & 16;
		o.offset = false;
		o.overflow = i & 32 ? 40 : 0;
		o.filter = o.event_trace && o.conceal[0] & VMT_PTGEN_CONCEAL_ENTRY ? 20 : 0;
		run_setting(o);
	}
}

static void guests_of_different_settings_on_one_cpu(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 32; i++) {
		struct vmt_ptgen_options o = vmt_ptgen_usual;

		o.seed += 1000 + i;
		o.nr_vms = 4;
		for (unsigned int vm = 1; vm < 4; vm++)
			o.conceal[vm] = (uint8_t)((i + vm * 3) & VMT_PTGEN_CONCEAL_ALL);
		o.event_trace = i < 24;
		o.branch = i & 1 || !o.event_trace;
		o.offset = i & 2;
		o.overflow = i & 16 ? 40 : 0;
		run_setting(o);
	}
}

static void guest_only_streams(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 32; i++) {
		struct vmt_ptgen_options o = vmt_ptgen_usual;

		o.seed += 600 + i;
		o.tracing = VMT_PTGEN_GUEST_ONLY;
		o.nr_vms = 1;
		o.event_trace = i & 1;
		o.branch = i & 2;
		o.offset = i & 4;
		o.pip_at_enabling = i & 8;
		o.overflow = i & 16 ? 40 : 0;
		run_setting(o);
	}
}

static void host_only_streams(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 16; i++) {
		struct vmt_ptgen_options o = vmt_ptgen_usual;

		o.seed += 650 + i;
		o.tracing = VMT_PTGEN_HOST_ONLY;
		o.event_trace = i & 1;
		o.pip_at_enabling = i & 2;
		o.offset = i & 4;
		o.overflow = i & 8 ? 40 : 0;
		run_setting(o);
	}
}

static void packets_switched_by_address_filters(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct vmt_ptgen_options o = vmt_ptgen_usual;

		o.seed += 670 + i;
		o.event_trace = i & 1;
		o.filter = 60;
		o.scaling = i & 2;
		run_setting(o);
	}
}

/* Each processor with all of its errata. */
static void errata_of_each_processor(void **state)
{
	static const uint8_t models[] = { 0x3d, 0x5e, 0x55, 0x8f, 0x7e, 0x97, 0x5c, 0x7a };

	(void)state;
	for (unsigned int i = 0; i < 8 * sizeof(models); i++) {
		const struct vmt_pt_cpu cpu = { true, 6, models[i / 8], 1 };
		struct vmt_ptgen_options o = vmt_ptgen_usual;

		o.seed += 700 + i;
		o.errata = vmt_pt_errata_of(&cpu);
		o.event_trace = i & 1;
		o.branch = i & 2 || i & 4;
		o.filter = 30;
		o.overflow = 60;
		if ((i & 6) == 6)
			o.tracing = VMT_PTGEN_GUEST_ONLY;
		else if ((i & 6) == 4)
			o.tracing = VMT_PTGEN_HOST_ONLY;
		/* The lists switch TraceEn, no filter PacketEn besides. */
		if (o.tracing != VMT_PTGEN_SYSTEM)
			o.filter = 0;
		o.nr_vms = o.tracing == VMT_PTGEN_GUEST_ONLY ? 1 : 3;
		run_setting(o);
	}
}

static void losses_and_status_at_every_place(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 16; i++) {
		struct vmt_ptgen_options o = vmt_ptgen_usual;

		o.seed += 800 + i;
		o.rounds = 8;
		o.event_trace = i & 1;
		o.branch = i & 2;
		o.late_failure = 150;
		o.abort = 50;
		o.smm = 100;
		o.filter = i & 4 ? 30 : 0;
		if (i & 8) {
			o.filter = 0;
			o.tracing = i & 4 ? VMT_PTGEN_HOST_ONLY : VMT_PTGEN_GUEST_ONLY;
			o.branch = o.branch || i & 4;
			o.nr_vms = 1;
		}
		run_every_place(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_transition_of_a_whole_stream),
		cmocka_unit_test(time_from_each_mix_of_packets),
		cmocka_unit_test(a_map_that_changes_in_time),
		cmocka_unit_test(nothing_is_known_of_time_without_tsc),
		cmocka_unit_test(none_invented_across_overflows),
		cmocka_unit_test(none_invented_across_damage),
		cmocka_unit_test(none_invented_when_concealed),
		cmocka_unit_test(each_control_that_conceals),
		cmocka_unit_test(guests_of_different_settings_on_one_cpu),
		cmocka_unit_test(guest_only_streams),
		cmocka_unit_test(host_only_streams),
		cmocka_unit_test(packets_switched_by_address_filters),
		cmocka_unit_test(errata_of_each_processor),
		cmocka_unit_test(losses_and_status_at_every_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
