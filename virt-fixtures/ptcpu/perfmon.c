// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Architectural performance monitoring, version 4: three fixed counters that count (instructions,
 * core and reference cycles; both cycles run at the TSC's rate here), general counters and their
 * controls that only keep what is written. Counters raise no interrupt of their own.
 */
#include "virt-fixtures/ptcpu/ptcpu.h"

enum {
	FIXED = 3,
	MSR_FIXED = 0x309,
	MSR_FIXED_CTRL = 0x38d,
	MSR_GLOBAL_STATUS = 0x38e,
	MSR_GLOBAL_CTRL = 0x38f,
	MSR_GLOBAL_RESET = 0x390,
	MSR_GLOBAL_SET = 0x391,
	MSR_FULL_WIDTH = 0x4c1,
	MSR_GENERAL = 0xc1,
	VECTOR_GP = 13,
	EXIT_RDPMC = 15,
};
#define COUNTER_MASK  0xffffffffffffULL
#define STATUS_TRACE  (1ULL << 55)
#define PRIMARY_RDPMC (1U << 11)
#define CR4_PCE	      (1U << 8)
#define RDPMC_FIXED   (1U << 30)

struct perfmon {
	uint64_t fixed[FIXED], since[FIXED]; /* value when last folded, and the clock then */
	uint64_t stored[64];
};

static struct perfmon units[PTCPU_MAX_CPUS];

/* MSRs that keep what is written; the second name of a general counter is the first one's row. */
static const struct {
	uint32_t first, last;
	unsigned int slot;
} stored[] = {
	{ MSR_GENERAL, 0xc4, 0 },
	{ MSR_FULL_WIDTH, 0x4c4, 0 },
	{ 0x186, 0x189, 8 },
	{ 0x345, 0x345, 12 },
	{ MSR_FIXED_CTRL, MSR_GLOBAL_CTRL, 13 },
	{ 0x3f1, 0x3f1, 16 },
	{ 0x3f6, 0x3f7, 17 },
	{ 0x392, 0x392, 19 },
};
enum { SLOT_FIXED_CTRL = 13, SLOT_GLOBAL_STATUS = 14, SLOT_GLOBAL_CTRL = 15 };

static uint64_t *find(struct perfmon *u, uint32_t index)
{
	for (size_t i = 0; i < sizeof(stored) / sizeof(stored[0]); i++)
		if (index >= stored[i].first && index <= stored[i].last)
			return &u->stored[stored[i].slot + index - stored[i].first];
	return NULL;
}

static uint64_t clock_of(const struct ptcpu *p, unsigned int n)
{
	return n ? bochs.get_tsc(p->cpu) : bochs_u64(p->cpu, BOCHS_ICOUNT);
}

/* Adds what was counted since the last time, before a control changes or a value is read. */
static void fold(struct ptcpu *p, struct perfmon *u)
{
	for (unsigned int n = 0; n < FIXED; n++) {
		const uint64_t now = clock_of(p, n);

		if ((u->stored[SLOT_FIXED_CTRL] >> (4 * n) & 3) &&
		    (u->stored[SLOT_GLOBAL_CTRL] >> (32 + n) & 1))
			u->fixed[n] = (u->fixed[n] + now - u->since[n]) & COUNTER_MASK;
		u->since[n] = now;
	}
}

enum ptcpu_answer perfmon_read(struct ptcpu *p, uint32_t index, uint64_t *value)
{
	struct perfmon *u = &units[p->id];
	const uint64_t *word = find(u, index);

	if (index >= MSR_FIXED && index < MSR_FIXED + FIXED) {
		fold(p, u);
		*value = u->fixed[index - MSR_FIXED];
		return ANSWER_DONE;
	}
	if (!word)
		return ANSWER_NOT_MINE;
	*value = *word;
	return ANSWER_DONE;
}

enum ptcpu_answer perfmon_write(struct ptcpu *p, uint32_t index, uint64_t value)
{
	struct perfmon *u = &units[p->id];
	uint64_t *word = find(u, index);

	fold(p, u);
	if (index >= MSR_FIXED && index < MSR_FIXED + FIXED)
		u->fixed[index - MSR_FIXED] = value & COUNTER_MASK;
	else if (index == MSR_GLOBAL_RESET)
		u->stored[SLOT_GLOBAL_STATUS] &= ~value;
	else if (index == MSR_GLOBAL_SET)
		u->stored[SLOT_GLOBAL_STATUS] |= value;
	else if (word)
		*word = value;
	else
		return ANSWER_NOT_MINE;
	return ANSWER_DONE;
}

void perfmon_pmi(struct ptcpu *p)
{
	units[p->id].stored[SLOT_GLOBAL_STATUS] |= STATUS_TRACE;
}

void perfmon_rdpmc(struct bochs_cpu *cpu, void *instruction)
{
	struct ptcpu *p = ptcpu_get(bochs_u32(cpu, BOCHS_ID));
	const uint32_t ecx = bochs_u32(cpu, BOCHS_RCX), n = ecx & ~RDPMC_FIXED;
	const bool fixed = ecx & RDPMC_FIXED;
	uint64_t value = 0;

	(void)instruction;
	if (bochs_u8(cpu, BOCHS_CPL) && !(bochs_u32(cpu, BOCHS_CR4) & CR4_PCE))
		bochs.exception(cpu, VECTOR_GP, 0);
	if (ptcpu_in_guest(p) && (bochs_u32(cpu, BOCHS_PRIMARY) & PRIMARY_RDPMC))
		bochs.vmexit(cpu, EXIT_RDPMC, 0);
	if (perfmon_read(p, (fixed ? MSR_FIXED : MSR_GENERAL) + n, &value) != ANSWER_DONE)
		bochs.exception(cpu, VECTOR_GP, 0);
	bochs_set_u64(cpu, BOCHS_RAX, value & 0xffffffff);
	bochs_set_u64(cpu, BOCHS_RDX, value >> 32);
}
