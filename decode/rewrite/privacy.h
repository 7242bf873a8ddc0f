/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_REWRITE_PRIVACY_H
#define VMT_REWRITE_PRIVACY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/pt/errata.h"

/*
 * An Intel PT stream of host and guests becomes one of the guests alone, or of the host alone: what
 * a CPU would have sent whose ContextEn is 0 on the other side (SDM vol. 3 33.2.4.3). Of a span
 * that is left out remain PSB, TSC, TMA, MTC, CYC, CBR and OVF, and the transitions as the kept
 * side sees them. Of the guests: TIP.PGE with a full IP, behind PIP, and FUP and TIP.PGD; of the
 * host: TIP.PGD, CFE.VMENTRY and CFE.VMEXIT, and TIP.PGE. Where a transition cannot be told in this
 * way (no BranchEn, or behind a loss), a CFE without an IP tells it.
 *
 * No address and no CR3 of the other side is in the output, nor any whose side is not known: behind
 * a loss nothing is kept until a PIP, a PSB+ or a CFE of a transition. What is left out by that is
 * no loss in the output; OVF, bad bytes and gaps are. VMCS pointers, addresses of the host, are
 * replaced in the guests' stream by others, one for one (vmt_privacy_vmcs).
 *
 * What shows of the side is what counts: a guest whose VMCS conceals VMX from PT reads as the host.
 * Streams without PIP (RTIT_CTL.OS is 0) keep nothing, and one that the CPU itself made of guests
 * alone keeps only what a PIP tells to be theirs.
 */
enum vmt_privacy {
	VMT_PRIVACY_NONE,
	VMT_PRIVACY_GUEST, /* keep the guests */
	VMT_PRIVACY_HOST,  /* keep the host */
};

struct vmt_rewrite_options {
	enum vmt_privacy keep; /* not NONE */
	struct vmt_pt_cpu cpu; /* for errata */
	uint8_t block;	       /* enum vmt_pt_block that is open where the stream begins */
	/* One of the privilege levels is not traced, or CR3 is filtered: code that comes back
	 * into sight may be of either side. */
	bool context_filtered;
	/* What is written from a PSB on does not depend on where the input began: pieces of a ring
	 * that is overwritten can be compared. Transitions are told by CFE then. */
	bool from_any_psb;
	bool event_trace; /* RTIT_CTL.EventEn is known to be 1; else the first CFE or EVD tells */
	uint64_t key;	  /* of vmt_privacy_vmcs */
	void (*write)(void *context, const uint8_t *bytes, size_t len);
	void *context;
};

struct vmt_rewrite;

/* NULL when memory is short. */
struct vmt_rewrite *vmt_rewrite_new(const struct vmt_rewrite_options *options);
void vmt_rewrite_free(struct vmt_rewrite *rewrite);

/* Pieces as vmt_pt_decoder_feed, _gap and _seek take them. A gap flushes: what is written later
 * does not follow what was written before. */
void vmt_rewrite_feed(struct vmt_rewrite *rewrite, const uint8_t *bytes, size_t len);
void vmt_rewrite_gap(struct vmt_rewrite *rewrite);
void vmt_rewrite_seek(struct vmt_rewrite *rewrite);
/* Writes what can be written of what was fed. */
void vmt_rewrite_flush(struct vmt_rewrite *rewrite);
/* The end; flushes. */
void vmt_rewrite_end(struct vmt_rewrite *rewrite);

struct vmt_rewrite_counts {
	uint64_t bytes_in, bytes_out;
	uint64_t entries; /* into the kept side that were seen */
	uint64_t losses;  /* OVF, bad bytes, gaps */
};
struct vmt_rewrite_counts vmt_rewrite_counts(const struct vmt_rewrite *rewrite);

/* The VMCS pointer that stands for another one in the guests' stream; one for one for a key. */
uint64_t vmt_privacy_vmcs(uint64_t pointer, uint64_t key);

#endif
