// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Words of opcodes that more than the opcode tells apart: the groups of SDM volume 2 table A-6 and
 * opcodes whose operands differ by mandatory prefix. A row by ModRM.reg has eight words for memory
 * operands, then eight for registers.
 */
#include "decode/insn/word.h"

#define M	     VMT_W_MODRM
#define B	     VMT_W_I8
#define Z	     VMT_W_IZ
#define MEM	     VMT_W_MEMORY
#define REG	     VMT_W_REGISTER
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
#define BY_RM(s)     (M | KIND(BY_RM) | SUB(s))
#define XX	     KIND(INVALID)
#define M_n	     (M | N66 | NF3 | NF2)
#define M_6	     (M | NP | NF3 | NF2)
#define M_3	     (M | NP | N66 | NF2)
#define M_2	     (M | NP | N66 | NF3)
#define M_n6	     (M | NF3 | NF2)
#define M_n3	     (M | N66 | NF2)
#define M_32	     (M | NP | N66)

/* clang-format off */
const uint32_t vmt_insn_sub[VMT_SUB_COUNT][16] = {
	[VMT_SUB_8C] = { M, M, M, M, M, M, XX, XX, M, M, M, M, M, M, XX, XX },
	[VMT_SUB_8E] = { M, XX, M, M, M, M, XX, XX, M, XX, M, M, M, M, XX, XX },
	[VMT_SUB_8F] = { M, XX, XX, XX, XX, XX, XX, XX, M, XX, XX, XX, XX, XX, XX, XX },
	[VMT_SUB_C6] = { M | B, XX, XX, XX, XX, XX, XX, XX, M | B, XX, XX, XX, XX, XX, XX, BY_RM(C6_7) },
	[VMT_SUB_C6_7] = { M | B, XX, XX, XX, XX, XX, XX, XX }, /* XABORT */
	[VMT_SUB_C7] = { M | Z, XX, XX, XX, XX, XX, XX, XX, M | Z, XX, XX, XX, XX, XX, XX, BY_RM(C7_7) },
	[VMT_SUB_C7_7] = { M | Z, XX, XX, XX, XX, XX, XX, XX }, /* XBEGIN */
	[VMT_SUB_F6] = { M | B, M | B, M, M, M, M, M, M, M | B, M | B, M, M, M, M, M, M },
	[VMT_SUB_F7] = { M | Z, M | Z, M, M, M, M, M, M, M | Z, M | Z, M, M, M, M, M, M },
	[VMT_SUB_FE] = { M, M, XX, XX, XX, XX, XX, XX, M, M, XX, XX, XX, XX, XX, XX },
	[VMT_SUB_FF] = {
		M, M, M | CLASS(CALL_INDIRECT), M | CLASS(FAR_CALL),
		M | CLASS(JMP_INDIRECT), M | CLASS(FAR_JMP), M, XX,
		M, M, M | CLASS(CALL_INDIRECT), XX, M | CLASS(JMP_INDIRECT), XX, M, XX,
	},
	[VMT_SUB_0F00] = { M, M, M, M, M, M, XX, XX, M, M, M, M, M, M, XX, XX },
	[VMT_SUB_0F01] = {
		M, M, M, M, M, M_3, M, M,
		BY_RM(0F01_0), BY_RM(0F01_1), BY_RM(0F01_2), BY_RM(0F01_3),
		M, BY_RM(0F01_5), M, BY_RM(0F01_7),
	},
	[VMT_SUB_0F01_0] = { /* ENCLV VMCALL VMLAUNCH VMRESUME VMXOFF PCONFIG WRMSRNS - */
		M_n, M_n | CLASS(VMCALL), M_n | CLASS(VMENTRY), M_n | CLASS(VMENTRY),
		M_n, M_n, BY_PREFIX(0F01_C6), XX,
	},
	[VMT_SUB_0F01_C6] = { M, XX, M | O64, M | O64 }, /* WRMSRNS, WRMSRLIST, RDMSRLIST */
	[VMT_SUB_0F01_1] = { /* MONITOR MWAIT CLAC STAC TDCALL SEAMRET SEAMOPS ENCLS/SEAMCALL */
		M_n, M_n, M_n, M_n, M_6 | CLASS(VMCALL), M_6 | O64 | CLASS(VMENTRY), M_6 | O64, BY_PREFIX(0F01_CF),
	},
	[VMT_SUB_0F01_CF] = { M, M | O64 | CLASS(VMCALL), XX, XX },
	[VMT_SUB_0F01_2] = { /* XGETBV XSETBV - - VMFUNC XEND XTEST ENCLU */
		M_n, M_n, XX, XX, M_n | CLASS(VMCALL), M_n, M_n, M_n,
	},
	[VMT_SUB_0F01_3] = { /* AMD: VMRUN VMMCALL VMLOAD VMSAVE STGI CLGI SKINIT INVLPGA */
		M | CLASS(VMENTRY), M | CLASS(VMCALL), M, M, M, M, M, M,
	},
	[VMT_SUB_0F01_5] = { /* SERIALIZE/SETSSBSY/XSUSLDTRK, XRESLDTRK, SAVEPREVSSP, -, UIRET, TESTUI, ... */
		M | N66, M_2, M_3, XX, M_3 | O64 | CLASS(FAR_RET), M_3 | O64,
		BY_PREFIX(0F01_EE), BY_PREFIX(0F01_EE),
	},
	[VMT_SUB_0F01_EE] = { M, XX, M | O64, XX }, /* RDPKRU, CLUI; WRPKRU, STUI */
	[VMT_SUB_0F01_7] = { /* SWAPGS RDTSCP, AMD: MONITORX MWAITX CLZERO RDPRU INVLPGB TLBSYNC */
		M | O64, M, BY_PREFIX(0F01_FA), M_n, M, M, BY_PREFIX(0F01_FE), BY_PREFIX(0F01_FF),
	},
	[VMT_SUB_0F01_FA] = { M, XX, M, XX }, /* MONITORX, MCOMMIT */
	[VMT_SUB_0F01_FE] = { M, XX, M | O64, M | O64 }, /* INVLPGB, RMPADJUST, RMPUPDATE */
	[VMT_SUB_0F01_FF] = { M, XX, M | O64, M }, /* TLBSYNC, PSMASH, PVALIDATE */
	[VMT_SUB_0F12] = { M, M | MEM, M, M },
	[VMT_SUB_0F16] = { M, M | MEM, M, XX },
	[VMT_SUB_0F2B] = { M | MEM, M | MEM, M | MEM, M | MEM },
	[VMT_SUB_0F71] = {
		XX, XX, XX, XX, XX, XX, XX, XX,
		XX, XX, M_n6 | B, XX, M_n6 | B, XX, M_n6 | B, XX,
	},
	[VMT_SUB_0F73] = {
		XX, XX, XX, XX, XX, XX, XX, XX,
		XX, XX, M_n6 | B, M_6 | B, XX, XX, M_n6 | B, M_6 | B,
	},
	/* VMREAD, AMD: EXTRQ and INSERTQ with two bytes */
	[VMT_SUB_0F78] = { M, BY_REG(0F78_66), XX, M | REG | VMT_W_I16 },
	[VMT_SUB_0F78_66] = { XX, XX, XX, XX, XX, XX, XX, XX, M | VMT_W_I16, XX, XX, XX, XX, XX, XX, XX },
	[VMT_SUB_0F79] = { M, M | REG, XX, M | REG },
	[VMT_SUB_0FAE] = {
		M_n, M_n, M_n, M_n, BY_PREFIX(0FAE_4), M_n, BY_PREFIX(0FAE_6), M_n6,
		M_3 | O64, M_3 | O64, M_3 | O64, M_3 | O64,
		M_3 | CLASS(PTWRITE), M_n3, BY_PREFIX(0FAE_6_REG), M_n,
	},
	[VMT_SUB_0FAE_4] = { M, XX, M | CLASS(PTWRITE), XX },
	[VMT_SUB_0FAE_6] = { M, M, M, XX },
	[VMT_SUB_0FAE_6_REG] = { M, M, M, M },
	[VMT_SUB_0FBA] = {
		XX, XX, XX, XX, M | B, M | B, M | B, M | B,
		XX, XX, XX, XX, M | B, M | B, M | B, M | B,
	},
	[VMT_SUB_0FC7] = {
		XX, M, XX, M_n, M_n, M_n, M | NF2, M_n,
		XX, XX, XX, XX, XX, XX, BY_PREFIX(0FC7_6_REG), BY_PREFIX(0FC7_7_REG),
	},
	[VMT_SUB_0FC7_6_REG] = { M, M, M | O64, XX },
	[VMT_SUB_0FC7_7_REG] = { M, M, M, XX },
	[VMT_SUB_0FD6] = { XX, M, M | REG, M | REG },
	[VMT_SUB_0F38D8] = { M_3, M_3, M_3, M_3, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX },
	[VMT_SUB_0F38DC] = { XX, M, M, XX },
	[VMT_SUB_0F38DD] = { XX, M, M | MEM, XX },
	[VMT_SUB_0F38F0] = { M | MEM, M | MEM, XX, M },
	[VMT_SUB_0F38F6] = { M | MEM, M, M, XX },
	[VMT_SUB_0F3AF0] = { XX, XX, XX, XX, XX, XX, XX, XX, BY_RM(0F3AF0_0), XX, XX, XX, XX, XX, XX, XX },
	[VMT_SUB_0F3AF0_0] = { M_3 | B, XX, XX, XX, XX, XX, XX, XX }, /* HRESET */
};
/* clang-format on */
