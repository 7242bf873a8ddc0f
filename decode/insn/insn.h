/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_INSN_INSN_H
#define VMT_INSN_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * x86 instruction length and branch class from tables, for following Intel PT: not a disassembler.
 * Pure; no state. Where processors differ, Intel's answer: 66 does not change near branches in
 * 64-bit mode, SYSCALL is none outside it. Source: SDM volume 2; for XOP, 3DNow! and SVM the APM.
 */
enum vmt_insn_class {
	VMT_INSN_OTHER,		/* goes on behind itself */
	VMT_INSN_JCC,		/* TNT bit: Jcc, LOOPcc, JCXZ/JECXZ/JRCXZ */
	VMT_INSN_JMP,		/* direct near jump: no packet */
	VMT_INSN_CALL,		/* direct near call: no packet */
	VMT_INSN_JMP_INDIRECT,	/* TIP */
	VMT_INSN_CALL_INDIRECT, /* TIP */
	VMT_INSN_RET,		/* near: TIP, or a taken TNT bit with RET compression */
	VMT_INSN_FAR_CALL,	/* far CALL, INT n, INT3, INT1, INTO, SYSCALL, SYSENTER: TIP */
	VMT_INSN_FAR_RET,	/* far RET, IRET, SYSRET, SYSEXIT, RSM, UIRET: TIP */
	VMT_INSN_FAR_JMP,	/* TIP */
	VMT_INSN_VMENTRY,	/* VMLAUNCH, VMRESUME, SEAMRET: far transfer into the guest */
	VMT_INSN_VMCALL,	/* VMCALL, VMFUNC, TDCALL, SEAMCALL */
	VMT_INSN_PTWRITE,
	VMT_INSN_MOV_CR3, /* PIP without a TIP */
};

enum vmt_insn_mode { VMT_INSN_16 = 16, VMT_INSN_32 = 32, VMT_INSN_64 = 64 };

struct vmt_insn {
	uint8_t len;   /* 1..15 */
	uint8_t class; /* enum vmt_insn_class */
	bool direct;   /* displacement counts, see vmt_insn_target; else it is 0 */
	int32_t displacement;
	bool operand_16; /* near branch with a 16-bit operand size: the target is cut to 16 bits */
};

/*
 * Decodes the instruction at bytes[0..len) and reads no other byte; with 24 bytes or more it is
 * fastest. Returns 1; 0 when `len` is too short to know (fewer than 15 bytes given); -1 when it is
 * no instruction (#UD by encoding, or longer than 15 bytes). *out counts with 1 alone.
 *
 * Behind VEX, EVEX and XOP an opcode that exists is an instruction whatever W, L, vvvv and its
 * operands are: they change no length. For the same reason each last byte of 3DNow! is taken.
 */
int vmt_insn_decode(const uint8_t *bytes, size_t len, enum vmt_insn_mode mode,
		    struct vmt_insn *out);

/* Where a direct branch at ip goes. */
uint64_t vmt_insn_target(const struct vmt_insn *insn, uint64_t ip, enum vmt_insn_mode mode);

#endif
