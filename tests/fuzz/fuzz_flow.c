/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as code and as a PT stream over it. The first bytes choose processor, settings, and how
 * the rest is split: code for the host, code for guests, a later version, the stream. Blocks join
 * on to each other and hold as many instructions as they say; counts agree with what was told;
 * the work for a packet is bounded; the flow does not depend on the pieces of the stream.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "decode/base/cursor.h"
#include "decode/flow/flow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A packet may lead through as many blocks as there are in so little code, twice. */
#define BLOCKS_A_BYTE 20000

struct sink {
	struct vmt_flow *flow;
	uint64_t hash, instructions, blocks, errors, listed;
};

static void mix(struct sink *s, uint64_t v)
{
	s->hash = (s->hash ^ v) * UINT64_C(0x100000001b3);
	s->hash ^= s->hash >> 29;
}

static void on_insn(void *context, uint64_t ip, const uint8_t *bytes, const struct vmt_insn *insn)
{
	struct sink *s = context;

	if (!insn->len || insn->len > 15)
		abort();
	s->listed++;
	mix(s, ip ^ bytes[insn->len - 1]);
}

static void on_block(void *context, const struct vmt_flow_state *state,
		     const struct vmt_flow_block *b)
{
	struct sink *s = context;

	if (!b->count || b->last_ip < b->ip || state->instructions != s->instructions)
		abort();
	s->blocks++;
	s->instructions += b->count;
	s->listed = 0;
	if (s->blocks < 4096) {
		vmt_flow_instructions(s->flow, b, on_insn, s);
		if (s->listed != b->count)
			abort();
	}
	mix(s, b->ip ^ b->next_ip << 1 ^ (uint64_t)b->count << 40 ^ (uint64_t)b->class << 56);
	mix(s, state->where.cr3 ^ state->where.vmcs ^ state->mode ^ state->where.nonroot);
	mix(s, state->tsc ^ state->offset << 3);
}

static void on_event(void *context, const struct vmt_flow_state *state,
		     const struct vmt_flow_event *e)
{
	struct sink *s = context;

	if (e->type >= VMT_FLOW_EVENT_COUNT || !vmt_flow_event_name(e->type))
		abort();
	if (e->type == VMT_FLOW_ERROR && !e->name)
		abort();
	s->errors += e->type == VMT_FLOW_ERROR;
	mix(s, e->type ^ e->ip ^ e->to << 1 ^ e->value << 2 ^ state->instructions);
}

static void run(const struct vmt_flow_options *options, const uint8_t *bytes, size_t len,
		size_t piece, struct sink *s)
{
	struct vmt_flow_options o = *options;
	struct vmt_flow_counts counts;
	struct vmt_ledger ledger;

	*s = (struct sink){ 0 };
	o.context = s;
	o.block = on_block;
	o.event = on_event;
	s->flow = vmt_flow_new(&o);
	if (!s->flow)
		abort();
	for (size_t at = 0; at < len; at += piece < len - at ? piece : len - at)
		vmt_flow_feed(s->flow, bytes + at, piece < len - at ? piece : len - at);
	vmt_flow_end(s->flow);
	counts = vmt_flow_counts(s->flow);
	ledger = vmt_flow_ledger(s->flow);
	if (ledger.bytes_decoded + ledger.bytes_skipped != len)
		abort();
	if (counts.instructions != s->instructions || counts.blocks != s->blocks ||
	    counts.errors != s->errors)
		abort();
	if (counts.blocks > (len + 1) * BLOCKS_A_BYTE)
		abort();
	vmt_flow_free(s->flow);
}

static size_t take(struct vmt_cursor *c, size_t want, const uint8_t **bytes)
{
	const size_t left = vmt_cursor_left(c), n = want < left ? want : left;

	*bytes = c->pos;
	c->pos += n;
	return n;
}

static void add(struct vmt_image *image, struct vmt_image_space space, uint64_t addr,
		const uint8_t *bytes, size_t len, uint64_t from)
{
	if (len)
		vmt_image_add(image, &space, addr, bytes, len, from, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t models[] = { 0, 0x3d, 0x5e, 0x55, 0x97, 0x5c };
	struct vmt_cursor c = vmt_cursor_of(data, size);
	const uint8_t flags = vmt_cursor_u8(&c), split = vmt_cursor_u8(&c);
	const size_t piece = 1 + vmt_cursor_u8(&c) % 40;
	const struct vmt_image_space host = { .world = VMT_IMAGE_HOST };
	const struct vmt_image_space guest = { VMT_IMAGE_GUEST, flags & 8, false, 0x1000, 0 };
	struct vmt_image *image = vmt_image_new();
	struct vmt_flow_options o = { .image = image, .pt = { .host_cpu = 3 } };
	struct sink whole, pieces;
	const uint8_t *code;
	size_t n;

	if (!image)
		abort();
	o.pt.cpu.model = models[flags % 6];
	o.pt.cpu.known = o.pt.cpu.model;
	o.pt.cpu.family = 6;
	o.no_ret_compression = flags >> 6 & 1;
	o.count_is_time = flags >> 7;
	o.nr_filters = flags >> 5 & 1;
	o.filters[0] = (struct vmt_flow_range){ 0x1000, 0x1020 };
	n = take(&c, 1 + split % 64, &code);
	add(image, host, 0x1000, code, n, 0);
	n = take(&c, split / 16, &code);
	add(image, guest, 0x1000, code, n, 0);
	n = take(&c, split % 8, &code);
	add(image, host, 0x1004, code, n, 5);
	add(image, host, UINT64_MAX - 2, code, n < 3 ? n : 3, 0);
	if (vmt_image_seal(image, NULL))
		abort();
	n = vmt_cursor_left(&c);
	run(&o, c.pos, n, n ? n : 1, &whole);
	run(&o, c.pos, n, piece, &pieces);
	if (whole.hash != pieces.hash)
		abort();
	vmt_image_free(image);
	return 0;
}
