// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The opcode maps (SDM volume 2 appendix A, tables) and the x87 escapes (tables A-7 to
 * A-22, with the aliases that processors execute, such as FFREEP). What the SDM calls reserved NOP
 * (0F 18 to 0F 1F) is an instruction; UD0 has a ModRM byte, as on Intel's processors; AMD's
 * additions (FEMMS, 3DNow!, SSE4a) keep their lengths. In the maps 0F 38 and 0F 3A every
 * instruction has a ModRM byte, so that a word of 0 is none.
 */
#include "decode/insn/word.h"

#define M	     VMT_W_MODRM
#define B	     VMT_W_IMM(I8, 1, 1)
#define W	     VMT_W_IMM(I16, 2, 2)
#define Z	     VMT_W_IMM(IZ, 4, 4)
#define V	     VMT_W_IMM(IV, 4, 8)
#define O	     VMT_W_IMM(MOFFS, 8, 8)
#define E	     VMT_W_IMM(I24, 3, 3)
#define REL8	     VMT_W_IMM(J8, 1, 1)
#define REL	     VMT_W_IMM(JZ, 4, 4)
#define PTR	     VMT_W_IMM(FAR, 0, 0)
#define MEM	     VMT_W_MEMORY
#define REG	     VMT_W_REGISTER
#define N64	     VMT_W_NOT64
#define O64	     VMT_W_ONLY64
#define NP	     VMT_W_NO_NP
#define N66	     VMT_W_NO_66
#define NF3	     VMT_W_NO_F3
#define NF2	     VMT_W_NO_F2
#define CLASS(c)     ((uint32_t)VMT_INSN_##c << VMT_W_CLASS_SHIFT)
#define KIND(k)	     ((uint32_t)VMT_W_##k << VMT_W_KIND_SHIFT)
#define SUB(s)	     ((uint32_t)VMT_SUB_##s << VMT_W_SUB_SHIFT)
#define BY_REG(s)    (M | KIND(BY_REG) | SUB(s))
#define BY_PREFIX(s) (M | KIND(BY_PREFIX) | SUB(s))
#define XX	     KIND(INVALID)
#define PF	     KIND(PREFIX)
#define RX	     KIND(REX)
#define F	     (M | KIND(X87))
#define CR	     (M | KIND(MOV_CR))
#define DR	     (M | KIND(MOV_DR))
#define CC8	     (REL8 | CLASS(JCC))
#define CC	     (REL | CLASS(JCC))
#define CALLF	     CLASS(FAR_CALL)
#define RETF	     CLASS(FAR_RET)
/* With which mandatory prefixes it exists: n none, 6 66, 3 F3, 2 F2. */
#define M_n   (M | N66 | NF3 | NF2)
#define M_6   (M | NP | NF3 | NF2)
#define M_3   (M | NP | N66 | NF2)
#define M_2   (M | NP | N66 | NF3)
#define M_n6  (M | NF3 | NF2)
#define M_n3  (M | N66 | NF2)
#define M_62  (M | NP | NF3)
#define M_n63 (M | NF2)
#define M_632 (M | NP)

/* clang-format off */
const uint32_t vmt_insn_map[VMT_MAP_COUNT][256] = {
	[VMT_MAP_ONE] = {
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
		/* 70 */ CC8, CC8, CC8, CC8, CC8, CC8, CC8, CC8,
		/* 78 */ CC8, CC8, CC8, CC8, CC8, CC8, CC8, CC8,
		/* 80 */ M | B, M | Z, M | B | N64, M | B, M, M, M, M,
		/* 88 */ M, M, M, M, BY_REG(8C), M | MEM, BY_REG(8E), KIND(XOP),
		/* 90 */ 0, 0, 0, 0, 0, 0, 0, 0,
		/* 98 */ 0, 0, PTR | N64 | CALLF, 0, 0, 0, 0, 0,
		/* a0 */ O, O, O, O, 0, 0, 0, 0,
		/* a8 */ B, Z, 0, 0, 0, 0, 0, 0,
		/* b0 */ B, B, B, B, B, B, B, B,
		/* b8 */ V, V, V, V, V, V, V, V,
		/* c0 */ M | B, M | B, W | CLASS(RET), CLASS(RET), KIND(VEX3), KIND(VEX2), BY_REG(C6), BY_REG(C7),
		/* c8 */ E, 0, W | RETF, RETF, CALLF, B | CALLF, N64 | CALLF, RETF,
		/* d0 */ M, M, M, M, B | N64, B | N64, N64, 0,
		/* d8 */ F, F, F, F, F, F, F, F,
		/* e0 */ CC8, CC8, CC8, CC8, B, B, B, B,
		/* e8 */ REL | CLASS(CALL), REL | CLASS(JMP), PTR | N64 | CLASS(FAR_JMP),
			 REL8 | CLASS(JMP), 0, 0, 0, 0,
		/* f0 */ PF, CALLF, PF, PF, 0, 0, BY_REG(F6), BY_REG(F7),
		/* f8 */ 0, 0, 0, 0, 0, 0, BY_REG(FE), BY_REG(FF),
	},
	[VMT_MAP_0F] = {
		/* 00 */ BY_REG(0F00), BY_REG(0F01), M, M, XX, CLASS(FAR_CALL) | O64, 0, CLASS(FAR_RET) | O64,
		/* 08 */ 0, 0, XX, 0, XX, M, 0, M | B,
		/* 10 */ M, M, BY_PREFIX(0F12), M_n6 | MEM, M_n6, M_n6, BY_PREFIX(0F16), M_n6 | MEM,
		/* 18 */ M, M, M, M, M, M, M, M,
		/* 20 */ CR, DR, CR, DR, XX, XX, XX, XX,
		/* 28 */ M_n6, M_n6, M, BY_PREFIX(0F2B), M, M, M_n6, M_n6,
		/* 30 */ 0, 0, 0, 0, CLASS(FAR_CALL), CLASS(FAR_RET), XX, N66 | NF3 | NF2,
		/* 38 */ KIND(0F38), XX, KIND(0F3A), XX, XX, XX, XX, XX,
		/* 40 */ M, M, M, M, M, M, M, M,
		/* 48 */ M, M, M, M, M, M, M, M,
		/* 50 */ M_n6 | REG, M, M_n3, M_n3, M_n6, M_n6, M_n6, M_n6,
		/* 58 */ M, M, M, M_n63, M, M, M, M,
		/* 60 */ M_n6, M_n6, M_n6, M_n6, M_n6, M_n6, M_n6, M_n6,
		/* 68 */ M_n6, M_n6, M_n6, M_n6, M_6, M_6, M_n6, M_n63,
		/* 70 */ M | B, BY_REG(0F71), BY_REG(0F71), BY_REG(0F73), M_n6, M_n6, M_n6, N66 | NF3 | NF2,
		/* 78 */ BY_PREFIX(0F78), BY_PREFIX(0F79), XX, XX, M_62, M_62, M_n63, M_n63,
		/* 80 */ CC, CC, CC, CC, CC, CC, CC, CC,
		/* 88 */ CC, CC, CC, CC, CC, CC, CC, CC,
		/* 90 */ M, M, M, M, M, M, M, M,
		/* 98 */ M, M, M, M, M, M, M, M,
		/* a0 */ 0, 0, 0, M, M | B, M, XX, XX,
		/* a8 */ 0, 0, CLASS(FAR_RET), M, M | B, M, BY_REG(0FAE), M,
		/* b0 */ M, M, M | MEM, M, M | MEM, M | MEM, M, M,
		/* b8 */ M_3, M, BY_REG(0FBA), M, M, M, M, M,
		/* c0 */ M, M, M | B, M_n | MEM, M_n6 | B, M_n6 | B | REG, M_n6 | B, BY_REG(0FC7),
		/* c8 */ 0, 0, 0, 0, 0, 0, 0, 0,
		/* d0 */ M_62, M_n6, M_n6, M_n6, M_n6, M_n6, BY_PREFIX(0FD6), M_n6 | REG,
		/* d8 */ M_n6, M_n6, M_n6, M_n6, M_n6, M_n6, M_n6, M_n6,
		/* e0 */ M_n6, M_n6, M_n6, M_n6, M_n6, M_n6, M_632, M_n6 | MEM,
		/* e8 */ M_n6, M_n6, M_n6, M_n6, M_n6, M_n6, M_n6, M_n6,
		/* f0 */ M_2 | MEM, M_n6, M_n6, M_n6, M_n6, M_n6, M_n6, M_n6 | REG,
		/* f8 */ M_n6, M_n6, M_n6, M_n6, M_n6, M_n6, M_n6, M,
	},
	[VMT_MAP_0F38] = {
		[0x00] = M_n6, M_n6, M_n6, M_n6, M_n6, M_n6, M_n6, M_n6,
		[0x08] = M_n6, M_n6, M_n6, M_n6,
		[0x10] = M_6, [0x14] = M_6, M_6, [0x17] = M_6, [0x1c] = M_n6, M_n6, M_n6,
		[0x20] = M_6, M_6, M_6, M_6, M_6, M_6, [0x28] = M_6, M_6, M_6 | MEM, M_6,
		[0x30] = M_6, M_6, M_6, M_6, M_6, M_6, [0x37] = M_6, M_6, M_6, M_6, M_6, M_6, M_6, M_6, M_6,
		[0x40] = M_6, M_6,
		[0x80] = M_6 | MEM, M_6 | MEM, M_6 | MEM,
		[0xc8] = M_n, M_n, M_n, M_n, M_n, M_n, [0xcf] = M_6,
		[0xd8] = BY_REG(0F38D8), [0xdb] = M_6,
		[0xdc] = BY_PREFIX(0F38DC), BY_PREFIX(0F38DD), BY_PREFIX(0F38DD), BY_PREFIX(0F38DD),
		[0xf0] = BY_PREFIX(0F38F0), BY_PREFIX(0F38F0),
		[0xf5] = M_6 | MEM, BY_PREFIX(0F38F6),
		[0xf8] = M_632 | MEM, M_n | MEM, M_3 | REG, M_3 | REG,
	},
	[VMT_MAP_0F3A] = {
		[0x08] = M_6 | B, M_6 | B, M_6 | B, M_6 | B, M_6 | B, M_6 | B, M_6 | B, M_n6 | B,
		[0x14] = M_6 | B, M_6 | B, M_6 | B, M_6 | B,
		[0x20] = M_6 | B, M_6 | B, M_6 | B,
		[0x40] = M_6 | B, M_6 | B, M_6 | B, [0x44] = M_6 | B,
		[0x60] = M_6 | B, M_6 | B, M_6 | B, M_6 | B,
		[0xcc] = M_n | B, [0xce] = M_6 | B, M_6 | B, [0xdf] = M_6 | B,
		[0xf0] = BY_REG(0F3AF0),
	},
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
