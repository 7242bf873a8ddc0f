/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_FLOW_PROGRAM_H
#define VMT_SUPPORT_FLOW_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Machine code by chance: functions of blocks, each block some instructions and what ends it.
 * Direct jumps and calls lead forward alone, so that no code loops without a branch that sends a
 * packet.
 */
enum vmt_prog_class {
	VMT_PROG_OTHER,
	VMT_PROG_JCC,
	VMT_PROG_JMP,
	VMT_PROG_CALL,
	VMT_PROG_CALL_NEXT, /* to the instruction behind it */
	VMT_PROG_JMP_INDIRECT,
	VMT_PROG_CALL_INDIRECT,
	VMT_PROG_RET,
	VMT_PROG_SYSCALL,
	VMT_PROG_IRET,
	VMT_PROG_VMENTRY,
	VMT_PROG_MOV_CR3,
	VMT_PROG_PTWRITE,
	VMT_PROG_LABEL, /* a NOP of 5 bytes that can become a jump to its target */
};

struct vmt_prog_insn {
	uint64_t ip;
	uint32_t target;	  /* number of an instruction */
	uint32_t function, block; /* that the target is */
	uint8_t class, len;
	uint8_t bytes[15];
};

struct vmt_prog {
	unsigned int mode; /* 16, 32, 64 */
	uint64_t base;
	struct vmt_prog_insn *insns;
	uint32_t nr, cap;
	uint32_t *functions; /* their first instructions */
	uint32_t nr_functions;
	uint8_t *bytes;
	size_t len;
};

/* host: with VM entries. Aborts when memory is short. */
void vmt_prog_build(struct vmt_prog *prog, uint64_t seed, unsigned int mode, unsigned int functions,
		    bool host);
void vmt_prog_free(struct vmt_prog *prog);

/* A number below `below` from the state of a generator. */
uint64_t vmt_prog_random(uint64_t *state, uint64_t below);

#endif
