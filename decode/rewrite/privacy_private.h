/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_REWRITE_PRIVACY_PRIVATE_H
#define VMT_REWRITE_PRIVACY_PRIVATE_H

#include "decode/pt/decoder.h"
#include "decode/rewrite/encode.h"
#include "decode/rewrite/privacy.h"

/* A PSB+ has no more than some ten packets. */
#define RW_STATUS_MAX 32u

enum rw_side {
	RW_UNKNOWN,
	RW_KEPT,
	RW_OTHER,
};

/* Where a reader of the output thinks that the CPU is. */
enum rw_told {
	RW_TOLD_NOTHING,
	RW_TOLD_KEPT,
	RW_TOLD_AWAY,
};

/* What waits for a packet to come. */
enum rw_wait {
	RW_ENTERING = 1u << 0, /* guests: a PIP into a guest; what follows may say that it failed */
	/* guests: CFE.VMEXIT was written, its FUP or a PIP ends it; host: CFE.VMENTRY was, its PIP
	 * does */
	RW_LEAVING = 1u << 1,
	/* A PIP of the host and nothing else; a TIP takes it back, and RW_ENTERING or RW_GONE */
	RW_LEFT = 1u << 2,
	RW_GOING = 1u << 3, /* host: CFE.VMENTRY has come, and maybe its FUP */
	RW_GONE = 1u << 4,  /* host: a PIP into a guest; another one says that it failed */
	RW_FUP = 1u << 5,   /* guests: fup is not written yet: what follows says what it is of */
	RW_AFTER_FUP = 1u << 6,	 /* a FUP of a branch, and nothing since that ends it */
	RW_BOUND = 1u << 7,	 /* the next FUP belongs to a packet that has one of its own */
	RW_MODE = 1u << 8,	 /* MODE.Exec of the kept side is not written yet */
	RW_DROP_FUP = 1u << 9,	 /* host: the next FUP is the guest's, of an exit */
	RW_AFTER_PIP = 1u << 10, /* a PIP changed sides, and nothing since */
	RW_UNSURE = 1u << 11,	 /* whose code a TIP.PGE will be is not known */
};

struct rw_address {
	bool known;
	uint64_t value;
};

struct rw_status {
	struct vmt_pt_packet packet;
	uint8_t bytes[16];
};

struct vmt_rewrite {
	struct vmt_rewrite_options options;
	struct vmt_pt_decoder *decoder; /* finds the packets */
	struct vmt_pt_encoder out;
	struct vmt_rewrite_counts counts;
	bool fresh; /* nothing was decoded since the beginning or a gap */

	/* ---- the input ---- */
	enum rw_side side;
	bool event_trace;
	bool other_ran; /* the other side did, in this stream */
	bool packet_en; /* PacketEn is 1, as far as it shows */
	uint32_t wait;	/* enum rw_wait */
	struct rw_address vmcs;
	bool has_mode;
	uint8_t mode;	  /* last MODE.Exec, of either side */
	uint8_t cbr;	  /* 0: not known */
	uint64_t cr3;	  /* RW_ENTERING: of the guest; with RW_GONE and RW_LEFT: of the host */
	uint64_t before;  /* cycles up to RW_ENTERING or RW_GONE */
	uint64_t between; /* cycles from RW_ENTERING or RW_GONE to RW_LEFT */
	bool has_fup;
	uint64_t fup; /* RW_FUP, RW_AFTER_FUP; RW_GOING, if has_fup */
	bool has_reason, has_qualification;
	uint32_t reason; /* EVD packets that wait for their CFE */
	uint64_t qualification;

	/* ---- the output ---- */
	enum rw_told told;
	bool on;     /* PacketEn is 1 */
	bool by_cfe; /* transitions are told by CFE, and the reader knows Event Trace */
	struct rw_address told_vmcs;
	uint64_t cycles; /* of CYC packets, for the next one */
	bool spent;	 /* the packet whose time they tell was left out */

	/* ---- PSB+ ---- */
	bool in_status;
	unsigned int nr_status;
	struct rw_status status[RW_STATUS_MAX];
};

/* ---- privacy.c ---- */
void rw_flush_cycles(struct vmt_rewrite *r);
/* MODE.Exec if known, TIP.PGE: packets are on. */
void rw_begin_span(struct vmt_rewrite *r, uint64_t ip);
/* TIP.PGD, if packets are on, or to end a transition that a CFE tells. */
void rw_close_span(struct vmt_rewrite *r, bool told);
/* VMCS, if the reader has another one. */
void rw_tell_vmcs(struct vmt_rewrite *r);

/* ---- privacy_turn.c: from one side to the other ---- */
/*
 * A packet comes, NULL: the end. What waits is written or taken back as far as the packet decides
 * it; one that tells time ends nothing that stands around it. True when that took the packet.
 */
bool rw_settle(struct vmt_rewrite *r, const struct vmt_pt_packet *packet);
void rw_turn_pip(struct vmt_rewrite *r, const struct vmt_pt_packet *packet);
void rw_turn_vmcs(struct vmt_rewrite *r, const struct vmt_pt_packet *packet);
void rw_turn_cfe(struct vmt_rewrite *r, const struct vmt_pt_packet *packet);
void rw_turn_evd(struct vmt_rewrite *r, const struct vmt_pt_packet *packet);
void rw_turn_fup(struct vmt_rewrite *r, const struct vmt_pt_packet *packet);

#endif
