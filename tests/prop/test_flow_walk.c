/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Random programs run by a simulated processor: the flow gives every instruction that a packet
 * confirms, in order, in the right world, and nothing else; however the stream is cut into pieces.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decode/flow/flow.h"
#include "tests/support/flow_generate.h"

struct check {
	const struct vmt_flowgen *gen;
	const struct vmt_flow *flow;
	size_t at;
	bool nonroot;
	uint64_t wrong, errors, asyncs;
	uint64_t seed;
};

static void on_insn(void *context, uint64_t ip, const uint8_t *bytes, const struct vmt_insn *insn)
{
	struct check *c = context;
	const struct vmt_flowgen_insn *want = &c->gen->truth[c->at];

	(void)bytes;
	(void)insn;
	if (c->at >= c->gen->nr_truth || want->ip != ip || want->nonroot != c->nonroot) {
		if (!c->wrong++)
			fprintf(stderr,
				"seed %" PRIu64 ": instruction %zu of %zu is 0x%" PRIx64 "\n",
				c->seed, c->at, c->gen->nr_truth, ip);
		return;
	}
	c->at++;
}

static void on_block(void *context, const struct vmt_flow_state *state,
		     const struct vmt_flow_block *block)
{
	struct check *c = context;
	const size_t before = c->at;

	c->nonroot = state->where.nonroot;
	vmt_flow_instructions(c->flow, block, on_insn, c);
	if (!c->wrong && (c->at - before != block->count || c->gen->truth[before].ip != block->ip ||
			  c->gen->truth[c->at - 1].ip != block->last_ip))
		c->wrong++;
}

static void on_event(void *context, const struct vmt_flow_state *state,
		     const struct vmt_flow_event *event)
{
	struct check *c = context;

	(void)state;
	c->asyncs += event->type == VMT_FLOW_ASYNC;
	if (event->type != VMT_FLOW_ERROR)
		return;
	if (!c->errors++)
		fprintf(stderr,
			"seed %" PRIu64 ": offset %" PRIu64 " ip 0x%" PRIx64
			" instruction %zu: %s\n",
			c->seed, state->offset, event->ip, c->at, event->name);
}

static void run(const struct vmt_flowgen_options *options, size_t piece)
{
	struct vmt_flowgen gen;
	struct check c = { .gen = &gen, .seed = options->seed };
	struct vmt_flow_options o = { .pt = { .host_cpu = UINT32_MAX },
				      .no_ret_compression = !options->ret_compression,
				      .block = on_block,
				      .event = on_event,
				      .context = &c };
	struct vmt_flow_counts counts;
	struct vmt_image *image;
	struct vmt_flow *flow;

	vmt_flowgen_run(&gen, options);
	image = vmt_flowgen_image(&gen);
	o.image = image;
	flow = vmt_flow_new(&o);
	assert_non_null(flow);
	c.flow = flow;
	for (size_t at = 0; at < gen.stream.len; at += piece)
		vmt_flow_feed(flow, gen.stream.bytes + at,
			      piece < gen.stream.len - at ? piece : gen.stream.len - at);
	vmt_flow_end(flow);
	counts = vmt_flow_counts(flow);
	vmt_flow_free(flow);
	vmt_image_free(image);
	assert_int_equal(c.errors, 0);
	assert_int_equal(c.wrong, 0);
	assert_int_equal(c.at, gen.nr_truth);
	assert_int_equal(counts.instructions, gen.nr_truth);
	assert_int_equal(counts.entries, gen.entries);
	assert_int_equal(counts.exits, gen.exits);
	assert_int_equal(counts.failed_entries, gen.failed_entries);
	assert_int_equal(counts.overflows, gen.overflows);
	assert_int_equal(c.asyncs, gen.asyncs);
	assert_int_equal(counts.lost_packets, 0);
	vmt_flowgen_free(&gen);
}

static const struct vmt_flowgen_options plain = {
	.instructions = 20000, .functions = 60, .ret_compression = true, .psb = 100
};

static void branches_alone(void **state)
{
	struct vmt_flowgen_options o = plain;

	(void)state;
	for (o.seed = 1; o.seed <= 20; o.seed++) {
		o.long_tnt = o.seed & 1;
		run(&o, SIZE_MAX);
	}
}

static void deferred_tips(void **state)
{
	struct vmt_flowgen_options o = plain;

	(void)state;
	o.deferred_tips = true;
	for (o.seed = 1; o.seed <= 20; o.seed++) {
		o.long_tnt = o.seed & 1;
		run(&o, SIZE_MAX);
	}
}

static void returns_astray_and_uncompressed(void **state)
{
	struct vmt_flowgen_options o = plain;

	(void)state;
	o.mismatch = 10000;
	for (o.seed = 1; o.seed <= 20; o.seed++) {
		o.ret_compression = o.seed & 3;
		run(&o, SIZE_MAX);
	}
}

static void interrupts_and_losses(void **state)
{
	struct vmt_flowgen_options o = plain;

	(void)state;
	o.interrupt = 1000;
	o.overflow = 300;
	o.disable = 500;
	o.psb = 500;
	for (o.seed = 1; o.seed <= 30; o.seed++) {
		o.event_trace = o.seed & 1;
		o.deferred_tips = o.seed & 2;
		o.pgd_has_ip = o.seed & 8;
		run(&o, o.seed & 4 ? 7 : SIZE_MAX);
	}
}

static void guests(void **state)
{
	struct vmt_flowgen_options o = plain;

	(void)state;
	o.guests = 2;
	o.interrupt = 500;
	for (o.seed = 1; o.seed <= 40; o.seed++) {
		o.event_trace = o.seed & 1;
		run(&o, SIZE_MAX);
	}
}

static void everything(void **state)
{
	struct vmt_flowgen_options o = plain;

	(void)state;
	o.guests = 2;
	o.interrupt = 500;
	o.overflow = 100;
	o.disable = 200;
	o.psb = 300;
	o.mismatch = 3000;
	o.versions = true;
	for (o.seed = 1; o.seed <= 60; o.seed++) {
		o.event_trace = o.seed & 1;
		o.deferred_tips = o.seed & 2;
		o.long_tnt = o.seed & 4;
		run(&o, o.seed & 8 ? 1 + o.seed % 30 : SIZE_MAX);
	}
}

/* ---- code that is not all known ---- */

static void on_some_insn(void *context, uint64_t ip, const uint8_t *bytes,
			 const struct vmt_insn *insn)
{
	struct check *c = context;

	(void)bytes;
	(void)insn;
	while (c->at < c->gen->nr_truth &&
	       (c->gen->truth[c->at].ip != ip || c->gen->truth[c->at].nonroot != c->nonroot))
		c->at++;
	if (c->at == c->gen->nr_truth)
		c->wrong++;
	else
		c->at++;
}

static void on_some_block(void *context, const struct vmt_flow_state *state,
			  const struct vmt_flow_block *block)
{
	struct check *c = context;

	c->nonroot = state->where.nonroot;
	vmt_flow_instructions(c->flow, block, on_some_insn, c);
}

/* What is shown ran, in this order and in the right world; interrupts lead back to it. */
static void half_of_the_code(void **state)
{
	struct vmt_flowgen_options o = plain;

	(void)state;
	o.guests = 1;
	o.interrupt = 500;
	o.overflow = 100;
	o.disable = 100;
	for (o.seed = 1; o.seed <= 60; o.seed++) {
		struct vmt_flowgen gen;
		struct check c = { .gen = &gen, .seed = o.seed };
		struct vmt_flow_options options = { .pt = { .host_cpu = UINT32_MAX },
						    .block = on_some_block,
						    .context = &c };
		struct vmt_flow_counts counts;
		struct vmt_image *image;
		struct vmt_flow *flow;

		o.deferred_tips = o.seed & 1;
		o.event_trace = o.seed & 2;
		vmt_flowgen_run(&gen, &o);
		for (size_t i = 0; i < gen.nr_sections; i++)
			gen.sections[i].len = gen.sections[i].len / 2;
		image = vmt_flowgen_image(&gen);
		options.image = image;
		flow = vmt_flow_new(&options);
		assert_non_null(flow);
		c.flow = flow;
		vmt_flow_feed(flow, gen.stream.bytes, gen.stream.len);
		vmt_flow_end(flow);
		counts = vmt_flow_counts(flow);
		vmt_flow_free(flow);
		vmt_image_free(image);
		assert_int_equal(c.wrong, 0);
		assert_true(counts.instructions > gen.nr_truth / 100);
		vmt_flowgen_free(&gen);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(branches_alone),
		cmocka_unit_test(deferred_tips),
		cmocka_unit_test(returns_astray_and_uncompressed),
		cmocka_unit_test(interrupts_and_losses),
		cmocka_unit_test(guests),
		cmocka_unit_test(everything),
		cmocka_unit_test(half_of_the_code),
	};

	return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}
