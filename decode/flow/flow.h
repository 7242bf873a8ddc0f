/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_FLOW_FLOW_H
#define VMT_FLOW_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/flow/image.h"
#include "decode/insn/insn.h"
#include "decode/pt/decoder.h"

/*
 * The instructions that a processor ran, host and guest, from one Intel PT stream and the code in
 * memory (SDM vol. 3 33.4.2, 33.5, 33.7): TNT bits and TIPs are spent on the branches that sent
 * them, all other packets are tied to the instruction that they belong to.
 *
 * It walks on demand: a packet makes it go as far as the packet says and no farther. So what ran
 * behind the last packet before a loss or the end is not shown, and nothing is ever taken back.
 * An error ends the flow until the next PSB+ or TIP.PGE; where nothing but code is missing, until
 * an asynchronous event or a far branch with a PIP that leads to code which is known. Packets,
 * errata, time and VM events come from the stream's decoder (decode/pt/decoder.h), which the flow
 * owns and feeds. Memory is fixed; the work for a packet is bounded.
 */

/* The processor, as of the block or event that is told. */
struct vmt_flow_state {
	uint8_t mode; /* enum vmt_insn_mode */
	struct vmt_image_context where;
	bool has_tsc;
	uint64_t tsc;	       /* host TSC that the last timing packet before gives */
	uint64_t offset;       /* in the stream, of the packet that made the flow go on */
	uint64_t instructions; /* told before */
};

/* Instructions that ran one behind the other; only the last one may branch. */
struct vmt_flow_block {
	uint64_t ip, last_ip;
	uint64_t next_ip; /* valid if has_next: where it went on; where it did not branch, behind it
			   */
	uint32_t count;	  /* from 1 */
	uint8_t class;	  /* enum vmt_insn_class of the last instruction */
	bool has_next;	  /* false: the last instruction switched tracing off */
};

enum vmt_flow_event_type {
	VMT_FLOW_ENABLED,      /* TIP.PGE: goes on at `to` */
	VMT_FLOW_DISABLED,     /* TIP.PGD: at `ip` (not run) if the event was asynchronous */
	VMT_FLOW_RESUMED,      /* goes on at `to`: the first PSB+, or behind a loss */
	VMT_FLOW_OVERFLOW,     /* packets were lost behind `ip` */
	VMT_FLOW_ASYNC,	       /* interrupt, exception, abort, ...: from `ip` (not run) to `to` */
	VMT_FLOW_VM_ENTRY,     /* by the instruction at `ip`, to `to`; the state is the guest's */
	VMT_FLOW_VM_EXIT,      /* from `ip` (not run) to `to`; the state is the host's */
	VMT_FLOW_ENTRY_FAILED, /* VMLAUNCH or VMRESUME at `ip`: to `to`, behind it when it failed
				* early (`early`), else to the host's RIP in the VMCS */
	VMT_FLOW_CR3,	       /* MOV to CR3 at `ip`; the state has the new value */
	VMT_FLOW_IF,	       /* RFLAGS.IF became `value` at `ip` */
	VMT_FLOW_TSX,	       /* at `ip`; value: bit 0 InTX, bit 1 TXAbort */
	VMT_FLOW_PTWRITE,      /* at `ip`; value */
	VMT_FLOW_STOPPED, /* EXSTOP: the clock stopped at `ip`; value: MWAIT hints if has_value */
	VMT_FLOW_NOTE,	  /* a CFE that is no VM entry or exit: name, vector; at `ip`;
			   * value: CR2 of a page fault */
	VMT_FLOW_TRACESTOP,
	VMT_FLOW_ERROR, /* the flow is lost at `ip`: name says why */
	VMT_FLOW_EVENT_COUNT,
};

struct vmt_flow_event {
	uint8_t type; /* enum vmt_flow_event_type */
	bool has_ip, has_to, has_value;
	bool early;
	bool has_reason, has_qualification, has_vector; /* VM_EXIT: by EVD and CFE */
	uint8_t vector;
	uint32_t reason;
	uint64_t qualification;
	uint64_t ip, to, value;
	const char *name; /* static text */
};

const char *vmt_flow_event_name(enum vmt_flow_event_type type);

struct vmt_flow_range {
	uint64_t first, last; /* addresses */
};

#define VMT_FLOW_FILTERS_MAX 4

struct vmt_flow_options {
	/* packet, skipped and branches are the flow's own; emit gets VM events, later than the
	 * flow tells them. */
	struct vmt_pt_decoder_options pt;
	const struct vmt_image *image; /* sealed; must outlive the flow */
	bool count_is_time; /* times of sections are numbers of instructions told, not host TSC */
	bool no_ret_compression; /* RTIT_CTL.DisRETC: a TNT bit is never a return's */
	/* Where tracing is filtered to (RTIT_CTL.ADDRn_CFG = 1): only SKL014 needs it. */
	struct vmt_flow_range filters[VMT_FLOW_FILTERS_MAX];
	size_t nr_filters;
	/* Each may be NULL. What they get lasts as long as the call. */
	void (*block)(void *context, const struct vmt_flow_state *state,
		      const struct vmt_flow_block *block);
	void (*event)(void *context, const struct vmt_flow_state *state,
		      const struct vmt_flow_event *event);
	void *context; /* of block and event; pt.context is emit's and pebs's */
};

struct vmt_flow_counts {
	uint64_t instructions, blocks, branches; /* branches: TNT bits and TIPs spent */
	uint64_t errors, overflows, resumed;
	uint64_t lost_packets; /* TNT and IP packets while the flow was lost */
	uint64_t entries, exits, failed_entries;
	uint64_t decoded_blocks; /* that were not in the cache */
	uint64_t flushes;	 /* of the cache */
};

struct vmt_flow;

/* NULL when memory is short. */
struct vmt_flow *vmt_flow_new(const struct vmt_flow_options *options);
void vmt_flow_free(struct vmt_flow *flow);

/* As vmt_pt_decoder_feed, _gap, _seek and _end. */
void vmt_flow_feed(struct vmt_flow *flow, const uint8_t *bytes, size_t len);
void vmt_flow_gap(struct vmt_flow *flow);
void vmt_flow_seek(struct vmt_flow *flow);
void vmt_flow_end(struct vmt_flow *flow);

struct vmt_flow_counts vmt_flow_counts(const struct vmt_flow *flow);
struct vmt_ledger vmt_flow_ledger(const struct vmt_flow *flow);

/*
 * The instructions of a block, one by one, while it is told (inside options.block alone). bytes:
 * insn->len of them.
 */
typedef void vmt_flow_insn_fn(void *context, uint64_t ip, const uint8_t *bytes,
			      const struct vmt_insn *insn);
void vmt_flow_instructions(const struct vmt_flow *flow, const struct vmt_flow_block *block,
			   vmt_flow_insn_fn *fn, void *context);

#endif
