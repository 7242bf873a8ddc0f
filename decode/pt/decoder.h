/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_PT_DECODER_H
#define VMT_PT_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/event.h"
#include "decode/base/item.h"
#include "decode/pt/clock.h"
#include "decode/pt/errata.h"
#include "decode/pt/maps.h"
#include "decode/pt/packet.h"
#include "decode/pt/pebs.h"

/*
 * One PT stream (a CPU's or a thread's) to VM events: packets -> clock -> binding of FUP, TIP, PIP,
 * VMCS, MODE, CFE and EVD -> entries, exits, gaps. Bytes come in pieces of any size; a packet that
 * is cut off at the end of a piece is carried over. Memory is fixed.
 */
struct vmt_pt_vm {     /* what --vm says, or the session knows */
	uint64_t vmcs; /* pointer; VMT_PT_ANY_VMCS: every VMCS */
	struct vmx_tsc_map map;
	bool has_map;
	const struct vmt_pt_map_change *changes; /* of map; outlive the decoder */
	size_t nr_changes;
	bool has_domain, has_vcpu;
	uint32_t domain, vcpu;
};

#define VMT_PT_ANY_VMCS UINT64_MAX
#define VMT_PT_VMS_MAX	256

struct vmt_pt_decoder_options {
	struct vmt_pt_cpu cpu; /* for errata */
	struct vmt_pt_clock_params clock;
	bool event_trace; /* RTIT_CTL.EventEn is known to be 1; else the first CFE tells */
	uint8_t block;	  /* enum vmt_pt_block that is open where the stream begins */
	const struct vmt_pt_vm *vms;
	size_t nr_vms;
	/* The VM of a thread's stream, for a VMCS that no row names; NULL: not known. It must
	 * outlive the decoder, and may change between two pieces, as rows may. */
	const struct vmt_pt_vm *own_vm;
	uint32_t host_cpu;  /* UINT32_MAX: not known */
	uint32_t pid, tid;  /* 0: not known */
	vmt_event_fn *emit; /* may be NULL */
	/* Every packet with its offset, before its meaning; may be NULL. */
	void (*packet)(void *context, uint64_t offset, const uint8_t *bytes,
		       const struct vmt_pt_packet *packet);
	/* Every stretch of bytes that is no packet; may be NULL. */
	void (*skipped)(void *context, uint64_t offset, uint64_t len, const char *why);
	/* Every place where packets are missing, with the kind of the loss: "overflow" (behind its
	 * OVF), "undecodable" (behind `skipped`), "aux-gap"; may be NULL. */
	void (*lost)(void *context, const char *name);
	/* Every PEBS record, with where the CPU was at its BEP; may be NULL. */
	void (*pebs)(void *context, const struct vmt_pt_pebs_record *record, enum vmt_pt_mode mode);
	/*
	 * Takes packets that stand at the reader and begin before limit, as long as they are plain
	 * TNT, TIP and PAD, instead of packet(): the reader stands behind the last of them. Returns
	 * how many. May be NULL. Called where such packets mean nothing to VM events.
	 */
	size_t (*branches)(void *context, uint64_t offset, struct vmt_pt_reader *reader,
			   const uint8_t *limit);
	void *context;
	void *packet_context; /* of packet, skipped, lost and branches; NULL: context is theirs too
			       */
};

struct vmt_pt_decoder;

/* NULL when memory is short. The vms array must outlive the decoder. */
struct vmt_pt_decoder *vmt_pt_decoder_new(const struct vmt_pt_decoder_options *options);
void vmt_pt_decoder_free(struct vmt_pt_decoder *decoder);

/* Decodes a piece that follows the one before without a gap. */
void vmt_pt_decoder_feed(struct vmt_pt_decoder *decoder, const uint8_t *bytes, size_t len);
/*
 * The next piece does not follow the last one (lost AUX data, new buffer): state becomes unsure. It
 * begins with a whole packet; where that is not certain, seek: nothing before the next PSB counts.
 */
void vmt_pt_decoder_gap(struct vmt_pt_decoder *decoder);
void vmt_pt_decoder_seek(struct vmt_pt_decoder *decoder);
/* The end: an unfinished packet is truncated, an open exit goes out without a duration. */
void vmt_pt_decoder_end(struct vmt_pt_decoder *decoder);

/* The clock as of the last packet whose meaning was taken; lives as long as the decoder. */
const struct vmt_pt_clock *vmt_pt_decoder_clock(const struct vmt_pt_decoder *decoder);

struct vmt_pt_counts {
	uint64_t packets, entries, exits, failed_entries, gaps, overflows, resyncs;
	bool nonroot_seen; /* a PIP with NR=1, a VM transition, or a CFE of one */
	/* Packets that VMX controls can conceal: all PIPs, those with NR=1, those that end VMX
	 * non-root operation, CFEs of entries and of exits; and all CFEs and EVDs. */
	uint64_t pips, nonroot_pips, exit_pips, entry_cfes, exit_cfes, events;
};
struct vmt_pt_counts vmt_pt_decoder_counts(const struct vmt_pt_decoder *decoder);
struct vmt_ledger vmt_pt_decoder_ledger(const struct vmt_pt_decoder *decoder);

#endif
