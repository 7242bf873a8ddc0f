/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_FLOW_GENERATE_H
#define VMT_SUPPORT_FLOW_GENERATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/flow/flow.h"
#include "tests/support/pt_encode.h"

/*
 * Programs by chance but reproducibly, a processor that runs them, and the Intel PT stream that the
 * manual says it sends: the truth is every instruction that ran and that a packet confirms. The
 * programs of host and guests lie at the same addresses, so that a wrong address space shows.
 */
#define VMT_FLOWGEN_PROGRAMS_MAX 6

struct vmt_flowgen_options {
	uint64_t seed;
	uint64_t instructions;	/* to run */
	unsigned int functions; /* of each program */
	unsigned int guests;	/* 0..2 VMs; their programs are of 64, 32 and 16-bit code */
	bool long_tnt;		/* TNT packets of up to 47 results, else up to 6 */
	bool deferred_tips;	/* TIPs are held back while a TNT fills */
	bool ret_compression;
	bool event_trace;
	bool habits;	 /* most branches go one way most of the time, as those of real programs */
	bool pgd_has_ip; /* also where a conditional branch leaves a filter */
	bool versions;	 /* the host's code is patched now and then */
	/* Chances, in 100000 at each instruction. */
	unsigned int interrupt, psb, overflow, disable, mismatch /* of 100000 returns */;
};

struct vmt_flowgen_insn {
	uint64_t ip;
	bool nonroot;
};

struct vmt_flowgen_section {
	struct vmt_image_space space;
	uint64_t addr, from;
	uint8_t *bytes;
	size_t len;
};

struct vmt_flowgen {
	struct vmt_ptenc stream;
	struct vmt_flowgen_insn *truth;
	size_t nr_truth;
	struct vmt_flowgen_section *sections;
	size_t nr_sections;
	uint64_t entries, exits, failed_entries, overflows, asyncs;
};

void vmt_flowgen_run(struct vmt_flowgen *out, const struct vmt_flowgen_options *options);
void vmt_flowgen_free(struct vmt_flowgen *gen);
/* The sections as a sealed image; aborts when memory is short. */
struct vmt_image *vmt_flowgen_image(const struct vmt_flowgen *gen);

#endif
