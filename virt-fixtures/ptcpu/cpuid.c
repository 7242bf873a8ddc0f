// SPDX-License-Identifier: LGPL-2.1-or-later
/* What CPUID adds to the model's own answers: PT as this library emits it, and the counters. */
#include "virt-fixtures/ptcpu/ptcpu.h"

enum { EAX, EBX, ECX, EDX };

static const struct {
	uint32_t leaf, sub_leaf;
	uint32_t keep[4], set[4]; /* EAX, EBX, ECX, EDX */
} leaves[] = {
	/* Intel PT */
	{ 0x07, 0, { ~0U, ~0U, ~0U, ~0U }, { 0, 1U << 25, 0, 0 } },
	/* CR3 filter, PSB and CYC, IP filter, MTC, Event Trace, TNT disable; ToPA with many
	 * entries, single range */
	{ 0x14, 0, { 0 }, { 1, 0x18f, 7, 0 } },
	/* two ranges; MTC periods 0, 3, 6, 9; CYC thresholds 0..13; PSB periods 0..5 */
	{ 0x14, 1, { 0 }, { 0x02490002, 0x003f3fff, 0, 0 } },
	/* arch-perfmon 4: four general counters of 48 bits, three fixed ones of 48 bits */
	{ 0x0a, 0, { 0 }, { 0x07300404, 0, 0, 0x603 } },
};

void cpuid_adjust(uint32_t leaf, uint32_t sub_leaf, uint32_t registers[4])
{
	for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++) {
		if (leaves[i].leaf != leaf || leaves[i].sub_leaf != sub_leaf)
			continue;
		for (unsigned int r = EAX; r <= EDX; r++)
			registers[r] = (registers[r] & leaves[i].keep[r]) | leaves[i].set[r];
	}
}
