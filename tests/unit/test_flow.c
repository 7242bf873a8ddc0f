/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The flow's bounds: its cache, its views, code without packets; gaps in a stream. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "decode/flow/flow.h"
#include "tests/support/pt_encode.h"

#define BASE UINT64_C(0x10000)

struct seen {
	uint64_t errors, instructions;
	const char *why;
};

static void on_block(void *context, const struct vmt_flow_state *state,
		     const struct vmt_flow_block *block)
{
	struct seen *s = context;

	(void)state;
	s->instructions += block->count;
}

static void on_event(void *context, const struct vmt_flow_state *state,
		     const struct vmt_flow_event *event)
{
	struct seen *s = context;

	(void)state;
	if (event->type != VMT_FLOW_ERROR)
		return;
	s->errors++;
	s->why = event->name;
}

static struct vmt_flow *new_flow(const struct vmt_image *image, struct seen *seen)
{
	const struct vmt_flow_options o = {
		.image = image, .block = on_block, .event = on_event, .context = seen
	};
	struct vmt_flow *flow = vmt_flow_new(&o);

	assert_non_null(flow);
	*seen = (struct seen){ 0 };
	return flow;
}

static void begin(struct vmt_ptenc *e, uint64_t ip)
{
	vmt_ptenc_psb(e);
	vmt_ptenc_mode_exec(e, 1);
	vmt_ptenc_psbend(e);
	vmt_ptenc_ip(e, VMT_PTENC_TIP_PGE, VMT_PTENC_FULL, ip);
}

/* One section of `nr` times the same instruction. */
static struct vmt_image *repeated(const uint8_t *insn, size_t len, size_t nr, uint8_t **bytes)
{
	const struct vmt_image_space any = { .world = VMT_IMAGE_ANY };
	struct vmt_image *image = vmt_image_new();

	assert_non_null(image);
	*bytes = malloc(len * nr);
	assert_non_null(*bytes);
	for (size_t i = 0; i < nr; i++)
		memcpy(*bytes + i * len, insn, len);
	assert_int_equal(vmt_image_add(image, &any, BASE, *bytes, len * nr, 0, NULL), 0);
	assert_int_equal(vmt_image_seal(image, NULL), 0);
	return image;
}

/* More blocks than the cache has room for, twice, with calls that return across a flush. */
static void a_full_cache_begins_anew(void **state)
{
	static const uint8_t jnz[] = { 0x75, 0x00 };
	const size_t nr = 150000;
	struct vmt_ptenc e = { 0 };
	struct vmt_flow_counts counts;
	struct vmt_image *image;
	struct vmt_flow *flow;
	struct seen seen;
	uint8_t *bytes;

	(void)state;
	image = repeated(jnz, sizeof(jnz), nr, &bytes);
	memcpy(bytes, (const uint8_t[]){ 0xe8, 0x01, 0, 0, 0, 0xc3, 0x90, 0x90 }, 8);
	bytes[2 * nr - 2] = 0x90; /* call +1 over a ret ... nop; ret */
	bytes[2 * nr - 1] = 0xc3;
	flow = new_flow(image, &seen);
	for (unsigned int round = 0; round < 2; round++) {
		begin(&e, BASE);
		for (size_t i = 0; i < nr - 5; i++)
			vmt_ptenc_tnt(&e, i & 1, 1);
		vmt_ptenc_tnt(&e, 1, 1); /* the return to behind the call */
		vmt_ptenc_ip(&e, VMT_PTENC_FUP, VMT_PTENC_AUTO, BASE + 5);
		vmt_ptenc_ip(&e, VMT_PTENC_TIP_PGD, VMT_PTENC_SUPPRESSED, 0);
	}
	vmt_flow_feed(flow, e.bytes, e.len);
	vmt_flow_end(flow);
	counts = vmt_flow_counts(flow);
	assert_int_equal(seen.errors, 0);
	assert_true(counts.flushes >= 4);
	assert_int_equal(counts.instructions, 2 * (1 + 2 + (nr - 5) + 2));
	assert_int_equal(seen.instructions, counts.instructions);
	vmt_flow_free(flow);
	vmt_image_free(image);
	vmt_ptenc_free(&e);
	free(bytes);
}

/* More address spaces than the flow keeps apart at a time, each with code of its own. */
static void many_address_spaces(void **state)
{
	const unsigned int nr = 200;
	struct vmt_image *image = vmt_image_new();
	struct vmt_ptenc e = { 0 };
	struct vmt_flow *flow;
	struct seen seen;
	uint8_t code[200][8];

	(void)state;
	assert_non_null(image);
	for (unsigned int i = 0; i < nr; i++) {
		const struct vmt_image_space space = { VMT_IMAGE_HOST, true, false, (i + 1) << 12,
						       0 };

		/* nops, as many as i % 4; mov cr3, rax; jmp to the beginning */
		memset(code[i], 0x90, 8);
		memcpy(code[i] + i % 4, (const uint8_t[]){ 0x0f, 0x22, 0xd8 }, 3);
		assert_int_equal(vmt_image_add(image, &space, BASE, code[i], 8, 0, NULL), 0);
	}
	assert_int_equal(vmt_image_seal(image, NULL), 0);
	flow = new_flow(image, &seen);
	vmt_ptenc_psb(&e);
	vmt_ptenc_pip(&e, 1 << 12, false);
	vmt_ptenc_mode_exec(&e, 1);
	vmt_ptenc_psbend(&e);
	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < nr; i++) {
			vmt_ptenc_ip(&e, VMT_PTENC_TIP_PGE, VMT_PTENC_AUTO, BASE);
			vmt_ptenc_pip(&e, ((i + 1) % nr + 1) << 12, false);
			vmt_ptenc_ip(&e, VMT_PTENC_FUP, VMT_PTENC_AUTO, BASE + i % 4 + 3);
			vmt_ptenc_ip(&e, VMT_PTENC_TIP_PGD, VMT_PTENC_SUPPRESSED, 0);
		}
	}
	vmt_flow_feed(flow, e.bytes, e.len);
	vmt_flow_end(flow);
	assert_int_equal(seen.errors, 0);
	assert_int_equal(seen.instructions, 3 * (nr / 4) * (1 + 2 + 3 + 4));
	vmt_flow_free(flow);
	vmt_image_free(image);
	vmt_ptenc_free(&e);
}

static void code_that_no_packet_confirms_has_a_bound(void **state)
{
	static const uint8_t jmp[] = { 0xeb, 0x00 };
	struct vmt_ptenc e = { 0 };
	struct vmt_image *image;
	struct vmt_flow *flow;
	struct seen seen;
	uint8_t *bytes;

	(void)state;
	image = repeated(jmp, sizeof(jmp), 1 << 20, &bytes);
	flow = new_flow(image, &seen);
	begin(&e, BASE);
	vmt_ptenc_ip(&e, VMT_PTENC_TIP, VMT_PTENC_AUTO, BASE);
	vmt_flow_feed(flow, e.bytes, e.len);
	vmt_flow_end(flow);
	assert_int_equal(seen.errors, 1);
	assert_string_equal(seen.why, "too much code without a packet");
	assert_in_range(seen.instructions, 1 << 15, 1 << 17);
	vmt_flow_free(flow);
	vmt_image_free(image);
	vmt_ptenc_free(&e);
	free(bytes);
}

/* Loops of one to a thousand blocks: all end soon, wherever they are entered. */
static void loops_end(void **state)
{
	(void)state;
	for (size_t nr = 1; nr <= 1000; nr = nr * 3 + 1) {
		static const uint8_t jmp[] = { 0xeb, 0x00 };
		const int32_t back = -(int32_t)(2 * nr) - 3;
		struct vmt_ptenc e = { 0 };
		struct vmt_image *image;
		struct vmt_flow *flow;
		struct seen seen;
		uint8_t *bytes;

		image = repeated(jmp, sizeof(jmp), nr + 4, &bytes);
		bytes[2 * nr] = 0xe9;
		memcpy(bytes + 2 * nr + 1, &back, 4);
		flow = new_flow(image, &seen);
		begin(&e, BASE + (nr / 2) * 2);
		vmt_ptenc_tnt(&e, 1, 1);
		vmt_flow_feed(flow, e.bytes, e.len);
		vmt_flow_end(flow);
		assert_int_equal(seen.errors, 1);
		assert_string_equal(seen.why, "the code loops where the trace goes on");
		assert_true(seen.instructions <= 5 * (nr + 2));
		vmt_flow_free(flow);
		vmt_image_free(image);
		vmt_ptenc_free(&e);
		free(bytes);
	}
}

static void after_a_seek_nothing_counts_before_a_psb(void **state)
{
	static const uint8_t jnz[] = { 0x75, 0x00 };
	struct vmt_ptenc e = { 0 };
	struct vmt_image *image;
	struct vmt_flow *flow;
	struct seen seen;
	uint8_t *bytes;
	size_t first;

	(void)state;
	image = repeated(jnz, sizeof(jnz), 100, &bytes);
	flow = new_flow(image, &seen);
	begin(&e, BASE);
	vmt_ptenc_tnt(&e, 0, 3);
	first = e.len;
	vmt_ptenc_tnt(&e, 0, 6);
	begin(&e, BASE);
	vmt_ptenc_tnt(&e, 0, 2);
	vmt_flow_feed(flow, e.bytes, first);
	vmt_flow_seek(flow);
	vmt_flow_feed(flow, e.bytes + first, e.len - first);
	vmt_flow_end(flow);
	assert_int_equal(seen.instructions, 5);
	assert_int_equal(seen.errors, 1);
	assert_int_equal(vmt_flow_ledger(flow).bytes_skipped, 1);
	vmt_flow_free(flow);
	vmt_image_free(image);
	vmt_ptenc_free(&e);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_cache_begins_anew),
		cmocka_unit_test(many_address_spaces),
		cmocka_unit_test(code_that_no_packet_confirms_has_a_bound),
		cmocka_unit_test(loops_end),
		cmocka_unit_test(after_a_seek_nothing_counts_before_a_psb),
	};

	return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}
