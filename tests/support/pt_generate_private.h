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

/* Where a reader of the stream thinks that the CPU is. */
enum vmt_ptgen_told {
	VMT_PTGEN_TOLD_NOTHING,
	VMT_PTGEN_TOLD_ROOT,
	VMT_PTGEN_TOLD_NONROOT,
};

/* Packets from here on get lost. */
struct vmt_ptgen_loss {
	bool on;
	size_t len, nr_truth, nr_steps;
	uint64_t last_ip;
	bool damaged;
};

struct vmt_ptgen_world {
	struct vmt_ptgen *out;
	const struct vmt_ptgen_options *o;
	struct vmt_ptgen_clock clock;
	uint64_t random;
	bool trigger; /* TraceEn */
	bool outside; /* the code lies outside the filter ranges: FilterEn is 0 */
	bool in_guest;
	bool unbroken;	       /* nothing can stand between these packets */
	bool hidden_by_damage; /* what is under way began in bad bytes */
	bool whole;	       /* what is under way stands packet behind packet */
	unsigned int vm;       /* whose VMCS is current */
	uint64_t host_ip, guest_ip, host_cr3;
	uint64_t offsets[VMT_PTGEN_VMS_MAX]; /* TSC offsets of now */
	struct vmt_ptgen_loss loss;
	/* What a reader of the stream can know. */
	enum vmt_ptgen_told told; /* by the NR bit, since the last loss */
	bool damaged;		  /* bad bytes, and no PSB since */
	bool vmcs_known;	  /* a VMCS packet since the last loss */
	bool cr3_known;		  /* a PIP of the running guest since the last loss */
	size_t cap_truth, cap_steps;
};

uint64_t vmt_ptgen_random(struct vmt_ptgen_world *w, uint64_t below);
bool vmt_ptgen_chance(struct vmt_ptgen_world *w, unsigned int permille);

/* ---- pt_generate.c ---- */

/* The stream, for one packet more. */
struct vmt_ptenc *vmt_ptgen_stream(struct vmt_ptgen_world *w);
/* The packets that depend on PacketEn come. */
bool vmt_ptgen_packet_en(const struct vmt_ptgen_world *w);
uint64_t *vmt_ptgen_world_ip(struct vmt_ptgen_world *w);
bool vmt_ptgen_conceals(const struct vmt_ptgen_world *w, enum vmt_ptgen_conceal control);
void vmt_ptgen_ip(struct vmt_ptgen_world *w, enum vmt_ptenc_ip kind, uint64_t ip);
void vmt_ptgen_off(struct vmt_ptgen_world *w); /* TIP.PGD without an IP */
void vmt_ptgen_pip(struct vmt_ptgen_world *w, bool nr);
void vmt_ptgen_state_pip(struct vmt_ptgen_world *w); /* as the running world sends it */
void vmt_ptgen_vmcs(struct vmt_ptgen_world *w, uint64_t vmcs);
void vmt_ptgen_mode(struct vmt_ptgen_world *w);
void vmt_ptgen_cbr(struct vmt_ptgen_world *w);
void vmt_ptgen_cfe(struct vmt_ptgen_world *w, uint8_t type, uint8_t vector, bool ip);
/* enabling: TraceEn has just been set and PacketEn follows. */
void vmt_ptgen_psb(struct vmt_ptgen_world *w, bool enabling);
/* TraceEn 0 to 1 (SDM table 33-56 rows 2, 10 and 12) up to TIP.PGE; rsm: with CFE.RSM. */
void vmt_ptgen_enable(struct vmt_ptgen_world *w, bool pip, bool rsm);
void vmt_ptgen_branches(struct vmt_ptgen_world *w);
void vmt_ptgen_run_world(struct vmt_ptgen_world *w, unsigned int steps);

/* What happens now, to be ended before the next begins. */
struct vmt_ptgen_truth *vmt_ptgen_begin(struct vmt_ptgen_world *w, enum vmt_ptgen_kind kind);
void vmt_ptgen_end(struct vmt_ptgen_world *w);

/* ---- pt_generate_vm.c: one entry or exit ---- */
void vmt_ptgen_enter(struct vmt_ptgen_world *w);
void vmt_ptgen_leave(struct vmt_ptgen_world *w);
void vmt_ptgen_smm_exit(struct vmt_ptgen_world *w);

/* ---- pt_generate_event.c: something that stays in its world ---- */
void vmt_ptgen_event(struct vmt_ptgen_world *w);
void vmt_ptgen_interruption(struct vmt_ptgen_world *w);

/* ---- pt_generate_loss.c ---- */
void vmt_ptgen_lose(struct vmt_ptgen_world *w);
/* OVF, where packets are lost and an instruction ends. */
void vmt_ptgen_recover(struct vmt_ptgen_world *w);
void vmt_ptgen_damage(struct vmt_ptgen_world *w);

/* ---- pt_generate_time.c ---- */

/* Lets tsc ticks pass and writes the MTC packets that fall due. */
void vmt_ptgen_pass(struct vmt_ptgen_world *w, uint64_t ticks);
/* Stands before each packet that takes its time from CYC (SDM of 2016, 36.3.6). */
void vmt_ptgen_cyc(struct vmt_ptgen_world *w);
/* The counter of CYC packets begins again; what it held is not told. */
void vmt_ptgen_cyc_restart(struct vmt_ptgen_world *w);
/* TSC, and TMA behind it: TSC?, TMA? of the manual's tables. */
void vmt_ptgen_tsc(struct vmt_ptgen_world *w);

#endif
