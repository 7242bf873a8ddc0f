/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PT_GENERATE_PRIVATE_H
#define VMT_SUPPORT_PT_GENERATE_PRIVATE_H

#include "tests/support/pt_generate.h"

/* Time as the processor counts it. */
struct vmt_ptgen_clock {
	uint64_t tsc;		/* host */
	uint64_t tsc_at_art_0;	/* K of TSC = ART * N/D + K */
	uint64_t core;		/* core cycles, 32 fraction bits */
	uint64_t cyc_from;	/* whole core cycles at the last CYC packet */
	uint64_t tsc_packet_at; /* host TSC at the last TSC packet, 0: none */
	uint8_t ratio;		/* core clock : bus clock */
};

struct vmt_ptgen_world {
	struct vmt_ptgen *out;
	const struct vmt_ptgen_options *o;
	struct vmt_ptgen_clock clock;
	uint64_t random;
	bool trigger; /* TraceEn */
	bool in_guest;
	unsigned int vm; /* whose VMCS is current */
	uint64_t host_ip, guest_ip, host_cr3;
	/* What a reader of the stream can know. */
	bool damaged;	 /* bad bytes, and no PSB since */
	bool nr_known;	 /* a PIP since the last loss */
	bool vmcs_known; /* a VMCS packet since the last loss */
	bool cr3_known;	 /* a PIP of the running guest since the last loss */
	size_t cap_truth;
};

uint64_t vmt_ptgen_random(struct vmt_ptgen_world *w, uint64_t below);
bool vmt_ptgen_chance(struct vmt_ptgen_world *w, unsigned int permille);

/* Lets tsc ticks pass and writes the MTC packets that fall due. */
void vmt_ptgen_pass(struct vmt_ptgen_world *w, uint64_t ticks);
/* Stands before each packet that takes its time from CYC (SDM of 2016, 36.3.6). */
void vmt_ptgen_cyc(struct vmt_ptgen_world *w);
/* TSC, and TMA behind it: TSC?, TMA? of the manual's tables. */
void vmt_ptgen_tsc(struct vmt_ptgen_world *w);

#endif
