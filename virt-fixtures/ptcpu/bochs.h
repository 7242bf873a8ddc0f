// SPDX-License-Identifier: LGPL-2.1-or-later
#ifndef VMT_PTCPU_BOCHS_H
#define VMT_PTCPU_BOCHS_H
/*
 * What this library knows of Debian's bochs-bin 2.7+dfsg-4+deb12u1: where class BX_CPU_C keeps a
 * few members, and the functions of its dynamic symbol table that are called. Nothing here is valid
 * for another build; hooks.c compares the build ID before any of it is used.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bochs_cpu; /* class BX_CPU_C */

/* Offsets in class BX_CPU_C, read from the disassembly of that build. */
enum bochs_member {
	BOCHS_ID = 0x30, /* u32 */
	BOCHS_RAX = 0x58,
	BOCHS_RCX = 0x60,
	BOCHS_RDX = 0x68,
	BOCHS_RBX = 0x70,
	BOCHS_RIP = 0xd8,
	BOCHS_EFLAGS = 0xf8, /* u32; IF is kept here, arithmetic flags are not */
	BOCHS_FLAGS_RESULT =
		0x100, /* arithmetic flags, as the two words that Bochs makes them from */
	BOCHS_FLAGS_CARRY = 0x108,
	BOCHS_PREV_RIP = 0x110, /* of the instruction in execution */
	BOCHS_ICOUNT = 0x130,
	BOCHS_CPL = 0x175, /* u8 */
	BOCHS_CR2 = 0x2a0,
	BOCHS_CR3 = 0x2a8,
	BOCHS_CR4 = 0x2b0,	  /* u32 */
	BOCHS_EFER = 0x2b8,	  /* u32 */
	BOCHS_TSC_OFFSET = 0x2c8, /* of the guest, 0 outside */
	BOCHS_LAPIC = 0xcd8,	  /* class bx_local_apic_c */
	BOCHS_IN_VMX = 0x8fc0,	  /* u8 */
	BOCHS_IN_GUEST = 0x8fc1,  /* u8 */
	BOCHS_VMCS = 0x8fc8,	  /* physical address, all ones: none */
	BOCHS_PRIMARY = 0x8fec,	  /* u32, processor-based controls in force */
	BOCHS_SECONDARY = 0x8ff0, /* u32 */
	BOCHS_TSC_MULTIPLIER = 0x9000,
	BOCHS_MAY_SECONDARY = 0x9238, /* u32, allowed-1 settings of the optional controls */
	BOCHS_MAY_EXIT = 0x923c,
	BOCHS_MAY_ENTRY = 0x9240,
	BOCHS_FETCH_PAGE = 0x93f8,    /* physical page that instructions are fetched from */
	BOCHS_FETCH_MODE = 0x2127590, /* u32: bit 0 CS.D = 1, bit 1 64-bit code */
	BOCHS_INSTRUCTION_LEN = 0x22, /* u8 in class bxInstruction_c */
};

static inline uint64_t bochs_u64(const struct bochs_cpu *cpu, enum bochs_member at)
{
	uint64_t value;

	memcpy(&value, (const char *)cpu + at, sizeof(value));
	return value;
}

static inline uint32_t bochs_u32(const struct bochs_cpu *cpu, enum bochs_member at)
{
	uint32_t value;

	memcpy(&value, (const char *)cpu + at, sizeof(value));
	return value;
}

static inline uint8_t bochs_u8(const struct bochs_cpu *cpu, enum bochs_member at)
{
	return ((const uint8_t *)cpu)[at];
}

static inline void bochs_set_u64(struct bochs_cpu *cpu, enum bochs_member at, uint64_t value)
{
	memcpy((char *)cpu + at, &value, sizeof(value));
}

static inline void bochs_set_u32(struct bochs_cpu *cpu, enum bochs_member at, uint32_t value)
{
	memcpy((char *)cpu + at, &value, sizeof(value));
}

/* Functions of bochs-bin, bound by name before the program's main runs. */
struct bochs_calls {
	uint64_t (*get_tsc)(struct bochs_cpu *cpu);
	uint64_t (*adjust_tsc)(struct bochs_cpu *cpu, uint64_t tsc); /* as RDTSC shows it now */
	uint32_t (*vmread32)(struct bochs_cpu *cpu, uint32_t field);
	uint64_t (*vmread64)(struct bochs_cpu *cpu, uint32_t field);
	void (*vmwrite32)(struct bochs_cpu *cpu, uint32_t field, uint32_t value);
	void (*vmwrite64)(struct bochs_cpu *cpu, uint32_t field, uint64_t value);
	void (*vmexit)(struct bochs_cpu *cpu, uint32_t reason, uint64_t qualification);
	void (*exception)(struct bochs_cpu *cpu, uint32_t vector, uint16_t error);
	void (*deliver_nmi)(struct bochs_cpu *cpu);
	bool (*translate_guest)(struct bochs_cpu *cpu, uint64_t gpa, uint64_t *pa, bool verbose);
	bool (*translate)(struct bochs_cpu *cpu, uint64_t linear, uint64_t *pa, uint64_t *mask,
			  bool verbose);
	/* One page at most; there is only one memory, so the methods take no object. */
	void (*read_memory)(uint64_t pa, uint32_t len, uint8_t *bytes);
	void (*write_memory)(uint64_t pa, uint32_t len, uint8_t *bytes);
	uint32_t (*lapic_read)(void *lapic, uint64_t pa);
	void (*lapic_set_lvt)(void *lapic, uint32_t at, uint32_t value);
	void (*lapic_trigger)(void *lapic, uint8_t vector, uint32_t trigger, bool bypass);
};

extern struct bochs_calls bochs;

/* Binds every function; false with the missing name in *name. */
bool bochs_bind(const char **name);
/* The CPU objects of the running machine. */
struct bochs_cpu *bochs_cpu(unsigned int id);
unsigned int bochs_cpu_count(void);

#endif
