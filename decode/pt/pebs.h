/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_PT_PEBS_H
#define VMT_PT_PEBS_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/pt/packet.h"

/*
 * PEBS records that come as blocks of a PT stream (SDM vol. 3, "Block Begin Packet", tables of BBP
 * types and BIP ids): BBP, BIP..., further BBPs, BEP, and a FUP when BEP says so. A block that
 * anything but BEP closes is dropped and counted.
 */
enum vmt_pt_gpr { /* ids of block type 1 */
		  VMT_PT_GPR_RFLAGS,
		  VMT_PT_GPR_RIP,
		  VMT_PT_GPR_RAX,
		  VMT_PT_GPR_RCX,
		  VMT_PT_GPR_RDX,
		  VMT_PT_GPR_RBX,
		  VMT_PT_GPR_RSP,
		  VMT_PT_GPR_RBP,
		  VMT_PT_GPR_RSI,
		  VMT_PT_GPR_RDI,
		  VMT_PT_GPR_R8,
		  VMT_PT_GPR_R15 = VMT_PT_GPR_R8 + 7,
		  VMT_PT_GPR_COUNT,
};

enum vmt_pt_basic { /* ids of block type 4 */
		    VMT_PT_BASIC_IP,
		    VMT_PT_BASIC_COUNTERS, /* bitmap of the counters that caused the record */
		    VMT_PT_BASIC_TSC,	   /* of the guest, in VMX non-root */
		    VMT_PT_BASIC_COUNT,
};

enum vmt_pt_memory { /* ids of block type 5 */
		     VMT_PT_MEMORY_ADDRESS,
		     VMT_PT_MEMORY_SOURCE, /* data source encoding */
		     VMT_PT_MEMORY_LATENCY,
		     VMT_PT_MEMORY_TSX,
		     VMT_PT_MEMORY_COUNT,
};

#define VMT_PT_LBR_ENTRIES 32
#define VMT_PT_XMM_WORDS   32

struct vmt_pt_lbr { /* entry n is TOS - n */
	uint64_t from, to, info;
};

/* A value counts only where its bit in the mask beside it is set. */
struct vmt_pt_pebs_record {
	bool has_ip; /* BEP's FUP */
	uint64_t ip;
	uint32_t has_gpr; /* bit enum vmt_pt_gpr */
	uint64_t gpr[VMT_PT_GPR_COUNT];
	uint8_t has_basic;
	uint64_t basic[VMT_PT_BASIC_COUNT];
	uint8_t has_memory;
	uint64_t memory[VMT_PT_MEMORY_COUNT];
	uint32_t has_lbr[3]; /* bit n: entry n has its FROM [0], TO [1], INFO [2] */
	struct vmt_pt_lbr lbr[VMT_PT_LBR_ENTRIES];
	uint32_t has_xmm; /* bit 2 * register + quadword */
	uint64_t xmm[VMT_PT_XMM_WORDS];
	uint32_t unknown; /* items of reserved types or ids, left out */
};

struct vmt_pt_pebs { /* all 0 at first */
	struct vmt_pt_pebs_record record;
	bool open;	/* a BBP was seen */
	bool wants_fup; /* BEP with an IP: its FUP is next */
	uint8_t type;	/* of the block that is open */
	uint64_t records, dropped;
};

/*
 * Takes any packet of the stream. True when pebs->record is complete; it stays until the next call.
 * After a loss call vmt_pt_pebs_lost.
 */
bool vmt_pt_pebs_packet(struct vmt_pt_pebs *pebs, const struct vmt_pt_packet *packet);
void vmt_pt_pebs_lost(struct vmt_pt_pebs *pebs);

/* "RAX"; NULL for a number that is none. */
const char *vmt_pt_gpr_name(unsigned int gpr);

#endif
