/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PT_LOAD_H
#define VMT_SUPPORT_PT_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/pt_encode.h"

/*
 * Long PT streams for measuring: packets by chance in the proportions of a kind of program, none of
 * it a copy of an earlier stretch, reproducible by the seed. A CPU runs virtual machines: a PSB+
 * each 4 KiB, VM entries and exits with VMCS, PIP and TSC, branches in between. Every stream begins
 * with a PSB and is well formed, so that a decoder of packets and one of events can read it.
 */
enum vmt_ptload_kind {
	VMT_PTLOAD_MIXED,  /* kernel and guests, all packets */
	VMT_PTLOAD_REPLAY, /* loops: bodies of a few branches that come again and again */
	VMT_PTLOAD_CYC,	   /* a CYC before most branches */
	VMT_PTLOAD_GUEST,  /* TraceEn in VMX non-root alone, entries and exits concealed */
	VMT_PTLOAD_TNT,	   /* hardly anything but TNT */
	VMT_PTLOAD_KINDS,
};

struct vmt_ptload_options {
	enum vmt_ptload_kind kind;
	uint64_t seed;
	size_t bytes;	  /* the stream gets a little longer */
	bool event_trace; /* CFE and EVD */
};

const char *vmt_ptload_name(enum vmt_ptload_kind kind);

/* out is freed by vmt_ptenc_free; memory that is short aborts. */
void vmt_ptload_run(struct vmt_ptenc *out, const struct vmt_ptload_options *options);

#endif
