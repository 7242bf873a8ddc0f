/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/support/flow_program.h"

#include <stdlib.h>
#include <string.h>

#define BLOCKS_MAX 12

uint64_t vmt_prog_random(uint64_t *state, uint64_t below)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (x ^ x >> 31) % below;
}

struct fixed {
	uint8_t len, bytes[10];
};

/* Instructions that go on, of every length up to 10 in 64-bit code. */
static const struct fixed plain_64[] = {
	{ 1, { 0x90 } },
	{ 2, { 0x31, 0xc0 } },
	{ 3, { 0x48, 0x89, 0xc3 } },
	{ 4, { 0x0f, 0x1f, 0x40, 0x00 } },
	{ 5, { 0xb8, 0xeb, 0xfe, 0xeb, 0xfe } },
	{ 6, { 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 } },
	{ 7, { 0x48, 0x8d, 0x05, 0xc3, 0xc3, 0xc3, 0xc3 } },
	{ 8, { 0x48, 0x8b, 0x84, 0x24, 0xe8, 0x00, 0x00, 0x00 } },
	{ 9, { 0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0x00, 0x00, 0x00 } },
	{ 10, { 0x48, 0xb8, 0xeb, 0xfe, 0xc3, 0xc3, 0xe9, 0, 0, 0 } },
	{ 3, { 0xc5, 0xf8, 0x77 } },
};

static const struct fixed plain_32[] = {
	{ 1, { 0x40 } },
	{ 2, { 0x31, 0xc0 } },
	{ 5, { 0xb8, 0xeb, 0xfe, 0xeb, 0xfe } },
	{ 3, { 0x8b, 0x45, 0xc3 } },
	{ 4, { 0x66, 0xb8, 0xc3, 0xc3 } },
	{ 6, { 0x8b, 0x05, 0xc3, 0xc3, 0xc3, 0xc3 } },
};

static const struct fixed plain_16[] = {
	{ 1, { 0x40 } },
	{ 2, { 0x31, 0xc0 } },
	{ 3, { 0xb8, 0xeb, 0xfe } },
	{ 6, { 0x66, 0xb8, 0xc3, 0xc3, 0xc3, 0xc3 } },
	{ 3, { 0x8b, 0x46, 0xc3 } },
	{ 4, { 0x8b, 0x06, 0xc3, 0xc3 } },
};

struct builder {
	struct vmt_prog *prog;
	uint64_t random;
	uint64_t ip;
	bool host;
	uint32_t *blocks; /* first instruction of [function][block] */
};

static uint64_t below(struct builder *b, uint64_t n)
{
	return vmt_prog_random(&b->random, n);
}

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static struct vmt_prog_insn *add(struct builder *b, enum vmt_prog_class class, size_t len,
				 const uint8_t *bytes)
{
	struct vmt_prog *p = b->prog;
	struct vmt_prog_insn *i;

	if (p->nr == p->cap) {
		p->cap = p->cap ? p->cap * 2 : 256;
		p->insns = must(realloc(p->insns, p->cap * sizeof(*p->insns)));
	}
	i = &p->insns[p->nr++];
	*i = (struct vmt_prog_insn){ .ip = b->ip, .class = (uint8_t) class, .len = (uint8_t)len };
	memcpy(i->bytes, bytes, len);
	b->ip += len;
	return i;
}

/* A direct branch to a block; its displacement comes later. */
static void add_direct(struct builder *b, enum vmt_prog_class class, uint32_t function,
		       uint32_t block)
{
	const size_t displacement = b->prog->mode == 16 ? 2 : 4;
	uint8_t bytes[6] = { 0 };
	struct vmt_prog_insn *i;

	if (class == VMT_PROG_JCC) {
		bytes[0] = 0x0f;
		bytes[1] = (uint8_t)(0x80 + below(b, 16));
		i = add(b, class, 2 + displacement, bytes);
	} else {
		bytes[0] = class == VMT_PROG_JMP ? 0xe9 : 0xe8;
		i = add(b, class, 1 + displacement, bytes);
	}
	i->function = function;
	i->block = block;
}

static void add_plain(struct builder *b)
{
	const unsigned int mode = b->prog->mode;
	const struct fixed *f = mode == 64   ? &plain_64[below(b, 11)]
				: mode == 32 ? &plain_32[below(b, 6)]
					     : &plain_16[below(b, 6)];

	add(b, VMT_PROG_OTHER, f->len, f->bytes);
}

static void add_label(struct builder *b, uint32_t function, uint32_t block)
{
	static const uint8_t nop[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	struct vmt_prog_insn *i;

	if (b->prog->mode != 64)
		return;
	i = add(b, VMT_PROG_LABEL, sizeof(nop), nop);
	i->function = function;
	i->block = block + 1;
}

/* What ends a block that is not a function's last. */
static void end_block(struct builder *b, uint32_t function, uint32_t block, uint32_t nr_blocks)
{
	static const uint8_t call_reg[] = { 0xff, 0xd0 }, mov_cr3[] = { 0x0f, 0x22, 0xd8 },
			     ptwrite[] = { 0xf3, 0x0f, 0xae, 0xe0 }, syscall[] = { 0x0f, 0x05 },
			     vmresume[] = { 0x0f, 0x01, 0xc3 }, vmlaunch[] = { 0x0f, 0x01, 0xc2 },
			     call_next[] = { 0xe8, 0, 0, 0, 0 }, loop[] = { 0xe2, 0x00 };
	const uint64_t kind = below(b, 100);
	const uint32_t rest = b->prog->nr_functions - 1 - function;

	if (kind < 50)
		add_direct(b, VMT_PROG_JCC, function, (uint32_t)below(b, nr_blocks));
	else if (kind < 58)
		add_direct(b, VMT_PROG_JMP, function,
			   block + 1 + (uint32_t)below(b, nr_blocks - block - 1));
	else if (kind < 72 && rest)
		add_direct(b, VMT_PROG_CALL, function + 1 + (uint32_t)below(b, rest), 0);
	else if (kind < 78)
		add(b, VMT_PROG_CALL_INDIRECT, sizeof(call_reg), call_reg);
	else if (kind < 79)
		add(b, VMT_PROG_CALL_NEXT, b->prog->mode == 16 ? 3 : 5, call_next);
	else if (kind < 80)
		add(b, VMT_PROG_MOV_CR3, sizeof(mov_cr3), mov_cr3);
	else if (kind < 81 && b->prog->mode == 64)
		add(b, VMT_PROG_PTWRITE, sizeof(ptwrite), ptwrite);
	else if (kind < 82 && b->prog->mode == 64)
		add(b, VMT_PROG_SYSCALL, sizeof(syscall), syscall);
	else if (kind < 84 && b->host)
		add(b, VMT_PROG_VMENTRY, 3, below(b, 2) ? vmresume : vmlaunch);
	else if (kind < 86) /* LOOP to the next instruction: both ways lead there */
		add(b, VMT_PROG_JCC, sizeof(loop), loop)->function = UINT32_MAX;
	else if (kind < 88)
		add_label(b, function, block);
}

static void end_function(struct builder *b)
{
	static const uint8_t jmp_reg[] = { 0xff, 0xe0 }, ret[] = { 0xc3 }, ret_n[] = { 0xc2, 8, 0 },
			     iret[] = { 0xcf }, iretq[] = { 0x48, 0xcf };
	const uint64_t kind = below(b, 100);

	if (kind < 60)
		add(b, VMT_PROG_RET, sizeof(ret), ret);
	else if (kind < 75)
		add(b, VMT_PROG_RET, sizeof(ret_n), ret_n);
	else if (kind < 95)
		add(b, VMT_PROG_JMP_INDIRECT, sizeof(jmp_reg), jmp_reg);
	else if (b->prog->mode == 64)
		add(b, VMT_PROG_IRET, sizeof(iretq), iretq);
	else
		add(b, VMT_PROG_IRET, sizeof(iret), iret);
}

static void link_targets(struct builder *b)
{
	struct vmt_prog *p = b->prog;

	for (uint32_t n = 0; n < p->nr; n++) {
		struct vmt_prog_insn *i = &p->insns[n];
		const size_t size = p->mode == 16 ? 2 : 4;
		int32_t displacement;

		if (i->class == VMT_PROG_CALL_NEXT || i->function == UINT32_MAX) {
			i->target = n + 1;
			continue;
		}
		if (i->class != VMT_PROG_JCC && i->class != VMT_PROG_JMP &&
		    i->class != VMT_PROG_CALL && i->class != VMT_PROG_LABEL)
			continue;
		i->target = b->blocks[i->function * BLOCKS_MAX + i->block];
		displacement = (int32_t)(p->insns[i->target].ip - (i->ip + i->len));
		if (i->class != VMT_PROG_LABEL)
			memcpy(i->bytes + i->len - size, &displacement, size);
	}
}

void vmt_prog_build(struct vmt_prog *prog, uint64_t seed, unsigned int mode, unsigned int functions,
		    bool host)
{
	struct builder b = { .prog = prog, .random = seed, .host = host };

	*prog = (struct vmt_prog){ .mode = mode, .base = mode == 16 ? 0x1000 : 0x401000 };
	prog->nr_functions = functions;
	prog->functions = must(calloc(functions, sizeof(*prog->functions)));
	b.blocks = must(calloc((size_t)functions * BLOCKS_MAX, sizeof(*b.blocks)));
	b.ip = prog->base;
	for (uint32_t f = 0; f < functions; f++) {
		const uint32_t nr_blocks = 2 + (uint32_t)below(&b, BLOCKS_MAX - 2);

		prog->functions[f] = prog->nr;
		for (uint32_t block = 0; block < nr_blocks; block++) {
			b.blocks[f * BLOCKS_MAX + block] = prog->nr;
			for (uint64_t n = below(&b, 7) + (block + 1 == nr_blocks); n; n--)
				add_plain(&b);
			if (block + 1 < nr_blocks)
				end_block(&b, f, block, nr_blocks);
		}
		end_function(&b);
	}
	link_targets(&b);
	free(b.blocks);
	prog->len = (size_t)(b.ip - prog->base);
	prog->bytes = must(malloc(prog->len));
	for (uint32_t n = 0; n < prog->nr; n++)
		memcpy(prog->bytes + (prog->insns[n].ip - prog->base), prog->insns[n].bytes,
		       prog->insns[n].len);
}

void vmt_prog_free(struct vmt_prog *prog)
{
	free(prog->insns);
	free(prog->functions);
	free(prog->bytes);
}
