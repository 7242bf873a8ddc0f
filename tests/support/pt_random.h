/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PT_RANDOM_H
#define VMT_SUPPORT_PT_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/support/pt_encode.h"

/* Packets by chance, with no meaning: for comparing packet layers. */
struct vmt_pt_random_kinds {
	bool events;	    /* CFE, EVD */
	bool blocks;	    /* BBP, BIP, BEP */
	unsigned int modes; /* of MODE.Exec: 3 (16, 64, 32 bits), 4 with the reserved one */
	bool old;	    /* what Debian's libipt can tell: CYC of 61 bits, no HW in PWRE, no
			     * bit 1 of the wake reason in PWRX */
	bool bare_psb;	    /* PSB without PSBEND, PSBEND without PSB */
};

/* A PSB and `n` times a packet (a block is one). */
void vmt_pt_random(struct vmt_ptenc *e, const struct vmt_pt_random_kinds *kinds, uint64_t seed,
		   unsigned int n);

#endif
