/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_PT_ERRATA_H
#define VMT_PT_ERRATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Errata of Intel PT that a decoder must know, by family, model and stepping, as data with their
 * published names.
 */
enum vmt_pt_erratum {
	VMT_PT_BDM70 = 1u << 0,	 /* PSB+ with FUP although PacketEn=0, followed by TIP.PGE */
	VMT_PT_BDM64 = 1u << 1,	 /* wrong branch target before a transactional abort */
	VMT_PT_SKD007 = 1u << 2, /* OVF after the first byte of a CYC */
	VMT_PT_SKD010 = 1u << 3, /* no FUP after OVF although PacketEn=1 */
	VMT_PT_SKD022 = 1u << 4, /* VM entry that clears TraceEn: FUP before TIP.PGD */
	VMT_PT_SKL014 = 1u << 5, /* TIP.PGD without IP on a direct branch leaving the filter */
	VMT_PT_SKL168 = 1u << 6, /* CYC and MTC dropped before PSB */
	VMT_PT_APL11 = 1u << 7,	 /* OVF followed by TIP.PGD */
	VMT_PT_APL12 = 1u << 8,	 /* FUP after OVF although PacketEn=0 */
	VMT_PT_SKZ84 =
		1u << 9, /* corrupt TMA and a stray byte in guests with TSC offset or scaling */
};

struct vmt_pt_cpu {
	bool known;
	uint16_t family;
	uint8_t model, stepping;
};

/* Errata of a CPU as a mask. Unknown CPU: tolerance of BDM70 and survival of SKZ84. */
uint32_t vmt_pt_errata_of(const struct vmt_pt_cpu *cpu);
/* Published name of one erratum ("SKZ84"). */
const char *vmt_pt_erratum_name(enum vmt_pt_erratum erratum);
/* "6/0x55/4" (C syntax numbers) or perf's "GenuineIntel,6,85,4"; false when neither or another
 * vendor. */
bool vmt_pt_cpu_parse(const char *text, struct vmt_pt_cpu *cpu);

#endif
