// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One-byte opcodes (SDM volume 2 appendix A, table A-2), their groups (table A-6) and the x87
 * escapes (tables, with the aliases that processors execute, such as FFREEP).
 */
#include "decode/insn/word.h"

#define M	  VMT_W_MODRM
#define B	  VMT_W_I8
#define W	  VMT_W_I16
#define Z	  VMT_W_IZ
#define N64	  VMT_W_NOT64
#define MEM	  VMT_W_MEMORY
#define CLASS(c)  ((uint32_t)VMT_INSN_##c << VMT_W_CLASS_SHIFT)
#define KIND(k)	  ((uint32_t)VMT_W_##k << VMT_W_KIND_SHIFT)
#define XX	  KIND(INVALID)
#define PF	  KIND(PREFIX)
#define RX	  KIND(REX)
#define BY_REG(s) (M | KIND(BY_REG) | (uint32_t)VMT_SUB_##s << VMT_W_SUB_SHIFT)
#define JC	  (VMT_W_J8 | CLASS(JCC))
#define V	  VMT_W_IV
#define O	  VMT_W_MOFFS
#define F	  (M | KIND(X87))
#define FAR_CALL  CLASS(FAR_CALL)
#define FAR_RET	  CLASS(FAR_RET)

/* clang-format off */
const uint32_t vmt_insn_map_one[256] = {
	/* 00 */ M, M, M, M, B, Z, N64, N64,
	/* 08 */ M, M, M, M, B, Z, N64, KIND(0F),
	/* 10 */ M, M, M, M, B, Z, N64, N64,
	/* 18 */ M, M, M, M, B, Z, N64, N64,
	/* 20 */ M, M, M, M, B, Z, PF, N64,
	/* 28 */ M, M, M, M, B, Z, PF, N64,
	/* 30 */ M, M, M, M, B, Z, PF, N64,
	/* 38 */ M, M, M, M, B, Z, PF, N64,
	/* 40 */ RX, RX, RX, RX, RX, RX, RX, RX,
	/* 48 */ RX, RX, RX, RX, RX, RX, RX, RX,
	/* 50 */ 0, 0, 0, 0, 0, 0, 0, 0,
	/* 58 */ 0, 0, 0, 0, 0, 0, 0, 0,
	/* 60 */ N64, N64, KIND(EVEX), M, PF, PF, PF, PF,
	/* 68 */ Z, M | Z, B, M | B, 0, 0, 0, 0,
	/* 70 */ JC, JC, JC, JC, JC, JC, JC, JC,
	/* 78 */ JC, JC, JC, JC, JC, JC, JC, JC,
	/* 80 */ M | B, M | Z, M | B | N64, M | B, M, M, M, M,
	/* 88 */ M, M, M, M, BY_REG(8C), M | MEM, BY_REG(8E), KIND(XOP),
	/* 90 */ 0, 0, 0, 0, 0, 0, 0, 0,
	/* 98 */ 0, 0, VMT_W_FAR | N64 | FAR_CALL, 0, 0, 0, 0, 0,
	/* a0 */ O, O, O, O, 0, 0, 0, 0,
	/* a8 */ B, Z, 0, 0, 0, 0, 0, 0,
	/* b0 */ B, B, B, B, B, B, B, B,
	/* b8 */ V, V, V, V, V, V, V, V,
	/* c0 */ M | B, M | B, W | CLASS(RET), CLASS(RET), KIND(VEX3), KIND(VEX2), BY_REG(C6), BY_REG(C7),
	/* c8 */ VMT_W_I24, 0, W | FAR_RET, FAR_RET, FAR_CALL, B | FAR_CALL, N64 | FAR_CALL, FAR_RET,
	/* d0 */ M, M, M, M, B | N64, B | N64, N64, 0,
	/* d8 */ F, F, F, F, F, F, F, F,
	/* e0 */ JC, JC, JC, JC, B, B, B, B,
	/* e8 */ VMT_W_JZ | CLASS(CALL), VMT_W_JZ | CLASS(JMP), VMT_W_FAR | N64 | CLASS(FAR_JMP),
		 VMT_W_J8 | CLASS(JMP), 0, 0, 0, 0,
	/* f0 */ PF, FAR_CALL, PF, PF, 0, 0, BY_REG(F6), BY_REG(F7),
	/* f8 */ 0, 0, 0, 0, 0, 0, BY_REG(FE), BY_REG(FF),
};

const uint64_t vmt_insn_x87_register[8] = {
	0xffffffffffffffff, /* d8 */
	0xffff7f33ff01ffff, /* d9 */
	0x00000200ffffffff, /* da */
	0x00ffff1fffffffff, /* db */
	0xffffffffffffffff, /* dc */
	0x0000ffffffffffff, /* dd */
	0xffffffff02ffffff, /* de */
	0x00ffff01ffffffff, /* df */
};

const uint8_t vmt_insn_x87_memory[8] = { 0xff, 0xfd, 0xff, 0xaf, 0xff, 0xdf, 0xff, 0xff };
/* clang-format on */
