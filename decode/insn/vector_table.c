// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which opcodes exist behind VEX, EVEX (SDM volume 2, the opcode maps with their prefix field pp;
 * map 5 and 6 for FP16) and XOP (APM volume 6). Whether W, L, vvvv and ModRM.mod of one fit is not
 * told here: no length depends on them.
 */
#include "decode/insn/word.h"

/* clang-format off */
const uint64_t vmt_insn_vector[VMT_VECTOR_COUNT][4][4] = {
	[VMT_VECTOR_VEX_1] = {
		[0] = { 0x0000cb0000ff0000, 0x00800000ffff0cf6, 0x00004000030f0000, 0x0000000000000044 },
		[1] = { 0x0000cb0000ff0000, 0xf07ffffffff30cf6, 0x00000000030f0000, 0x7ffeffffffff0074 },
		[2] = { 0x0000340000470000, 0xc0018000ff0e0000, 0, 0x0000004000000004 },
		[3] = { 0x0000340000070000, 0x30010000f7020000, 0x00000000000c0000, 0x0001004000010004 },
	},
	[VMT_VECTOR_VEX_2] = {
		[0] = { 0, 0x0000000040000200, 0, 0x00ac000000000000 },
		[1] = { 0xffffff3f77c8ffff, 0x03000000470f0ae3, 0xffc0ffc0ffcf5000, 0x00800000f8008000 },
		[2] = { 0, 0x0000000050000800, 0, 0x00a0000000000000 },
		[3] = { 0, 0x0000000040000a00, 0, 0x00e0000000000000 },
	},
	[VMT_VECTOR_VEX_3] = {
		[1] = { 0x030f000723f0ff77, 0xff00ff0ff0001f57, 0, 0x000000008000c000 },
		[3] = { 0, 0, 0, 0x0001000000000000 },
	},
	[VMT_VECTOR_EVEX_1] = {
		[0] = { 0x0000cb0000ff0000, 0x03000000fff20000, 0, 0x0000000000000044 },
		[1] = { 0x0000cb0000ff0000, 0xcf7ffffffff20000, 0, 0x7f7effffff7e0074 },
		[2] = { 0x0000340000470000, 0xcf018000ff020000, 0, 0x0000004000000004 },
		[3] = { 0x0000340000070000, 0x8f018000f7020000, 0, 0x0000004000000004 },
	},
	[VMT_VECTOR_EVEX_2] = {
		[1] = { 0xffff3fffff7f3811, 0xffef007c0f3ff0fd, 0xfff0ffcfffcfaf08, 0x00000000f000bdd0 },
		[2] = { 0x073f07ff003f0000, 0x0004000000040000, 0, 0 },
		[3] = { 0, 0x00040100000c0000, 0x00000c000c000000, 0 },
	},
	[VMT_VECTOR_EVEX_3] = {
		[0] = { 0x000000c000000500, 0x000000c000c00000, 0, 0x0000000000000004 },
		[1] = { 0xcf0000efeff08f3b, 0x000f00c000f3001c, 0, 0x000000000000c000 },
		[2] = { 0, 0, 0, 0x0000000000000004 },
	},
	[VMT_VECTOR_EVEX_5] = {
		[0] = { 0x0000c00020000000, 0x33000000ff020000, 0, 0 },
		[1] = { 0x0000000020000000, 0x7f0040000c000000, 0, 0 },
		[2] = { 0x0000340000030000, 0x2b000000ff020000, 0, 0 },
		[3] = { 0, 0x2400000004000000, 0, 0 },
	},
	[VMT_VECTOR_EVEX_6] = {
		[0] = { 0x0000000000080000, 0, 0, 0 },
		[1] = { 0x0000300000080000, 0x000000000000f00c, 0xffc0ffc0ffc00000, 0 },
		[2] = { 0, 0x0000000000c00000, 0, 0x0000000000c00000 },
		[3] = { 0, 0x0000000000c00000, 0, 0x0000000000c00000 },
	},
	[VMT_VECTOR_XOP_8] = {
		[0] = { 0, 0, 0x0040004cc0e0c0e0, 0x0000f0000000f00f },
	},
	[VMT_VECTOR_XOP_9] = {
		[0] = { 0x0000000000040006, 0, 0x000000000fff000f, 0x0000000e08ce08ce },
	},
	[VMT_VECTOR_XOP_A] = {
		[0] = { 0x0000000000050000, 0, 0, 0 },
	},
};
/* clang-format on */
