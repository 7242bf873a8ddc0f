/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The flow of random programs against libipt's instruction decoder and block decoder. What libipt's
 * reading of the manual lacks is left out: Event Trace, code by VMCS, returns that do not go to
 * their call (libipt leaves the call on its stack), code that changes, losses (libipt goes on as
 * far as the code needs no packet), TIP.PGD without an IP at a conditional branch. Without libipt's
 * header at build time the tests are skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>

#include "decode/flow/flow.h"
#include "tests/support/flow_generate.h"

#if defined(__has_include) && __has_include(<intel-pt.h>)

#include "tests/support/flow_ipt.h"

struct ips {
	uint64_t *ips;
	size_t nr, cap;
};

static void add(struct ips *l, uint64_t ip)
{
	if (l->nr == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 65536;
		l->ips = realloc(l->ips, l->cap * sizeof(*l->ips));
		assert_non_null(l->ips);
	}
	l->ips[l->nr++] = ip;
}

static void on_insn(void *context, uint64_t ip, const uint8_t *bytes, const struct vmt_insn *insn)
{
	(void)bytes;
	(void)insn;
	add(context, ip);
}

struct own {
	struct vmt_flow *flow;
	struct ips list;
};

static void on_block(void *context, const struct vmt_flow_state *state,
		     const struct vmt_flow_block *block)
{
	struct own *own = context;

	(void)state;
	vmt_flow_instructions(own->flow, block, on_insn, &own->list);
}

static void own_insns(const struct vmt_flowgen *gen, struct own *own)
{
	struct vmt_image *image = vmt_flowgen_image(gen);
	const struct vmt_flow_options o = { .image = image, .block = on_block, .context = own };

	own->flow = vmt_flow_new(&o);
	assert_non_null(own->flow);
	vmt_flow_feed(own->flow, gen->stream.bytes, gen->stream.len);
	vmt_flow_end(own->flow);
	assert_int_equal(vmt_flow_counts(own->flow).errors, 0);
	vmt_flow_free(own->flow);
	vmt_image_free(image);
}

static void on_ipt_insn(void *context, const struct pt_insn *insn)
{
	add(context, insn->ip);
}

struct blocks {
	const struct ips *own;
	size_t at;
	bool differs;
};

static void on_ipt_block(void *context, const struct pt_block *block)
{
	struct blocks *b = context;

	if (b->differs || b->own->nr - b->at < block->ninsn || b->own->ips[b->at] != block->ip ||
	    b->own->ips[b->at + block->ninsn - 1] != block->end_ip) {
		b->differs = true;
		return;
	}
	b->at += block->ninsn;
}

static void run(const struct vmt_flowgen_options *options)
{
	struct vmt_flowgen gen;
	struct own own = { .flow = NULL };
	struct ips theirs = { .ips = NULL };
	struct blocks blocks = { .own = &own.list };
	struct flow_ipt ipt;
	size_t same = 0;

	vmt_flowgen_run(&gen, options);
	own_insns(&gen, &own);
	flow_ipt_open(&ipt, &gen);
	assert_int_equal(flow_ipt_insns(&ipt, on_ipt_insn, &theirs), 0);
	while (same < own.list.nr && same < theirs.nr && own.list.ips[same] == theirs.ips[same])
		same++;
	if (same != own.list.nr || same != theirs.nr)
		fprintf(stderr,
			"seed %" PRIu64 ": %zu of %zu instructions are libipt's %zu; 0x%" PRIx64
			" against 0x%" PRIx64 "\n",
			options->seed, same, own.list.nr, theirs.nr,
			same < own.list.nr ? own.list.ips[same] : 0,
			same < theirs.nr ? theirs.ips[same] : 0);
	assert_int_equal(same, own.list.nr);
	assert_int_equal(same, theirs.nr);
	assert_true(flow_ipt_blocks(&ipt, on_ipt_block, &blocks) >= 0);
	assert_false(blocks.differs);
	assert_int_equal(blocks.at, own.list.nr);
	flow_ipt_close(&ipt);
	free(theirs.ips);
	free(own.list.ips);
	vmt_flowgen_free(&gen);
}

static const struct vmt_flowgen_options plain = {
	.instructions = 50000, .functions = 80, .ret_compression = true, .psb = 100
};

static void branches_alone(void **state)
{
	struct vmt_flowgen_options o = plain;

	(void)state;
	for (o.seed = 1; o.seed <= 10; o.seed++) {
		o.long_tnt = o.seed & 1;
		o.deferred_tips = o.seed & 2;
		run(&o);
	}
}

static void interrupts_and_filters(void **state)
{
	struct vmt_flowgen_options o = plain;

	(void)state;
	o.interrupt = 500;
	o.disable = 300;
	o.pgd_has_ip = true;
	for (o.seed = 1; o.seed <= 20; o.seed++)
		run(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(branches_alone),
		cmocka_unit_test(interrupts_and_filters),
	};

	return cmocka_run_group_tests_name("flow against libipt", tests, NULL, NULL);
}

#else

static void without_libipt(void **state)
{
	(void)state;
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(without_libipt) };

	return cmocka_run_group_tests_name("flow against libipt", tests, NULL, NULL);
}

#endif
