/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_INSN_WORD_H
#define VMT_INSN_WORD_H

#include <stdint.h>

#include "decode/insn/insn.h"

/*
 * The word of an opcode holds all that its length and class need.
 *
 *   bits 0..3    enum vmt_w_imm                    bits 4..7    enum vmt_insn_class
 *   bit 8        a ModRM byte follows              bits 9..16   when it is #UD
 *   bits 19..23  enum vmt_w_kind                   bits 24..31  enum vmt_w_sub, or lengths
 *
 * In a word of the maps that has no subtable, bits 24..27 are the bytes of its immediate in 64-bit
 * mode without prefixes, and bits 28..31 with REX.W.
 */
enum vmt_w_imm {
	VMT_W_NONE,
	VMT_W_I8,
	VMT_W_I16,
	VMT_W_I24, /* ENTER: 16 and 8 bits */
	VMT_W_I32,
	VMT_W_IZ,    /* 16 or 32 bits by operand size */
	VMT_W_IV,    /* 16, 32 or 64 bits by operand size: MOV B8..BF */
	VMT_W_MOFFS, /* 16, 32 or 64 bits by address size: MOV A0..A3 */
	VMT_W_FAR,   /* an offset by operand size, and a selector */
	VMT_W_J8,    /* displacement of a near branch */
	VMT_W_JZ,    /* the same by operand size; in 64-bit mode always 32 bits */
	VMT_W_IMM_COUNT,
};

#define VMT_W_IMM_MASK	  0xfu
#define VMT_W_CLASS_SHIFT 4
#define VMT_W_CLASS_MASK  0xfu
#define VMT_W_MODRM	  (1u << 8)
#define VMT_W_NOT64	  (1u << 9)  /* in 64-bit mode */
#define VMT_W_ONLY64	  (1u << 10) /* outside 64-bit mode */
#define VMT_W_MEMORY	  (1u << 11) /* with a register as ModRM.rm */
#define VMT_W_REGISTER	  (1u << 12) /* with memory as ModRM.rm */
#define VMT_W_NO_SHIFT	  13
#define VMT_W_NO_NP	  (1u << 13) /* without a mandatory prefix, with one of these */
#define VMT_W_NO_66	  (1u << 14)
#define VMT_W_NO_F3	  (1u << 15)
#define VMT_W_NO_F2	  (1u << 16)
#define VMT_W_NO_MASK	  (0xfu << VMT_W_NO_SHIFT)
#define VMT_W_KIND_SHIFT  19
#define VMT_W_KIND_MASK	  0x1fu
#define VMT_W_SUB_SHIFT	  24
#define VMT_W_LEN_SHIFT	  24
#define VMT_W_LEN_MASK	  0xfu
#define VMT_W_IMM(kind, bytes, bytes_rex_w)                                                        \
	((uint32_t)VMT_W_##kind | (uint32_t)(bytes) << VMT_W_LEN_SHIFT |                           \
	 (uint32_t)(bytes_rex_w) << (VMT_W_LEN_SHIFT + 4))
/* What the fast path of 64-bit code without prefixes leaves to the slow one. */
#define VMT_W_SLOW                                                                                 \
	(VMT_W_NOT64 | VMT_W_REGISTER | VMT_W_NO_NP | VMT_W_KIND_MASK << VMT_W_KIND_SHIFT)

enum vmt_w_kind {
	VMT_W_OP,
	VMT_W_INVALID,
	VMT_W_PREFIX,
	VMT_W_REX,  /* 40..4F: INC and DEC outside 64-bit mode */
	VMT_W_0F,   /* the next byte is an opcode of this map */
	VMT_W_0F38, /* of these maps */
	VMT_W_0F3A,
	VMT_W_VEX2, /* or LDS */
	VMT_W_VEX3, /* or LES */
	VMT_W_EVEX, /* or BOUND */
	VMT_W_XOP,  /* or POP */
	VMT_W_X87,
	VMT_W_MOV_CR, /* 0F 20, 0F 22: ModRM.mod does not count */
	VMT_W_MOV_DR, /* 0F 21, 0F 23 */
	/* The word is one of a subtable: */
	VMT_W_BY_PREFIX, /* 4 words: no mandatory prefix, 66, F3, F2 */
	VMT_W_BY_REG,	 /* 16 words by ModRM.reg: with memory, with a register */
	VMT_W_BY_RM,	 /* 8 words by ModRM.rm */
};

/* The subtables; a name ends in the opcode bytes, the ModRM.reg and the operand it is for. */
enum vmt_w_sub {
	VMT_SUB_8C,
	VMT_SUB_8E,
	VMT_SUB_8F,
	VMT_SUB_C6,
	VMT_SUB_C6_7,
	VMT_SUB_C7,
	VMT_SUB_C7_7,
	VMT_SUB_F6,
	VMT_SUB_F7,
	VMT_SUB_FE,
	VMT_SUB_FF,
	VMT_SUB_0F00,
	VMT_SUB_0F01,
	VMT_SUB_0F01_0,
	VMT_SUB_0F01_1,
	VMT_SUB_0F01_2,
	VMT_SUB_0F01_3,
	VMT_SUB_0F01_5,
	VMT_SUB_0F01_7,
	VMT_SUB_0F01_C6,
	VMT_SUB_0F01_CF,
	VMT_SUB_0F01_EE,
	VMT_SUB_0F01_FA,
	VMT_SUB_0F01_FE,
	VMT_SUB_0F01_FF,
	VMT_SUB_0F12,
	VMT_SUB_0F16,
	VMT_SUB_0F2B,
	VMT_SUB_0F71,
	VMT_SUB_0F73,
	VMT_SUB_0F78,
	VMT_SUB_0F78_66,
	VMT_SUB_0F79,
	VMT_SUB_0FAE,
	VMT_SUB_0FAE_4,
	VMT_SUB_0FAE_6,
	VMT_SUB_0FAE_6_REG,
	VMT_SUB_0FBA,
	VMT_SUB_0FC7,
	VMT_SUB_0FC7_6_REG,
	VMT_SUB_0FC7_7_REG,
	VMT_SUB_0FD6,
	VMT_SUB_0F38D8,
	VMT_SUB_0F38DC,
	VMT_SUB_0F38DD,
	VMT_SUB_0F38F0,
	VMT_SUB_0F38F6,
	VMT_SUB_0F3AF0,
	VMT_SUB_0F3AF0_0,
	VMT_SUB_COUNT,
};

enum vmt_map {
	VMT_MAP_ONE,
	VMT_MAP_0F,
	VMT_MAP_0F38,
	VMT_MAP_0F3A,
	VMT_MAP_COUNT,
};

extern const uint32_t vmt_insn_map[VMT_MAP_COUNT][256];
extern const uint32_t vmt_insn_sub[VMT_SUB_COUNT][16];

/* Opcodes behind VEX, EVEX and XOP by map. */
enum vmt_vector {
	VMT_VECTOR_VEX_1 = 1,
	VMT_VECTOR_VEX_2,
	VMT_VECTOR_VEX_3,
	VMT_VECTOR_EVEX_1,
	VMT_VECTOR_EVEX_2,
	VMT_VECTOR_EVEX_3,
	VMT_VECTOR_EVEX_5,
	VMT_VECTOR_EVEX_6,
	VMT_VECTOR_XOP_8,
	VMT_VECTOR_XOP_9,
	VMT_VECTOR_XOP_A,
	VMT_VECTOR_COUNT,
};

/* Whether an opcode exists there, by bits, for each value of the prefix field pp. */
extern const uint64_t vmt_insn_vector[VMT_VECTOR_COUNT][4][4];

/* Opcodes with an x87 escape: whether ModRM bytes C0..FF of D8..DF, by bits, are instructions. */
extern const uint64_t vmt_insn_x87_register[8];
/* The same for memory operands, by bits of ModRM.reg. */
extern const uint8_t vmt_insn_x87_memory[8];

#endif
