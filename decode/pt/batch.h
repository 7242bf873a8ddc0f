/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_PT_BATCH_H
#define VMT_PT_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/pt/packet.h"

/*
 * Many packets a call: the same packets, in the same order, that vmt_pt_next gives. An engine is
 * the way they are found; all engines give the same. The scalar one calls vmt_pt_next and is the
 * reference; the AVX2 one classifies 64 bytes at once.
 */
#define VMT_PT_BATCH_MIN   128u /* below this the scalar way is taken */
#define VMT_PT_BATCH_SPARE 4u	/* skimming needs more than these */

struct vmt_pt_batch {
	struct vmt_pt_packet *packets; /* the caller's room */
	size_t max;		       /* packets that it holds */
	/* Stop before a CYC or TMA that an erratum can have spoilt (SKD007: a CYC of two bytes
	 * whose second is 02H; SKZ84: a TMA with reserved bits). */
	bool careful;
	/*
	 * Skim: give what VM events, time and losses need. Left out are PAD; each TNT and TIP
	 * that comes when nothing but TNT, TIP, PAD, MTC and held CYC came since the TNT or TIP
	 * that was given last: they all say that code ran; and each CYC but the first since a
	 * packet other than CYC, TNT, TIP and PAD: their cycles are held and given as one CYC,
	 * with a TNT of no results behind it where code ran since, before the next packet that is
	 * given and when read does not return 1.
	 */
	bool skim;
	struct vmt_pt_skim {
		bool quiet;    /* a TNT or TIP was given that stands for those to come */
		bool steady;   /* a CYC was given that the next ones are held behind */
		bool holds;    /* cycles are held */
		bool ran;      /* TNT or TIP left out behind the last held CYC */
		uint64_t held; /* cycles */
	} state;	       /* zero at first and after a gap */
	/* ---- results ---- */
	size_t len;	 /* packets filled */
	uint64_t passed; /* packets read, left out ones too */
	const char *why; /* of VMT_E_DAMAGED */
};

struct vmt_pt_engine {
	const char *name;
	/*
	 * Reads from the reader on, until the room is full or nearly so. 1: there is more, call
	 * again. 2: careful stopped, the next packet is for vmt_pt_next. Else what vmt_pt_next
	 * says to the packet behind those that were read: 0, VMT_E_TRUNCATED, VMT_E_DAMAGED.
	 * Every call that returns 1 reads something.
	 */
	int (*read)(struct vmt_pt_reader *reader, struct vmt_pt_batch *batch);
};

extern const struct vmt_pt_engine vmt_pt_engine_scalar;

/* The fastest that this CPU runs. It asks CPUID, which is slow in a guest: keep the answer. */
const struct vmt_pt_engine *vmt_pt_engine_best(void);

#endif
