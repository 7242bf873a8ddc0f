/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_PT_PACKET_H
#define VMT_PT_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/err.h"

/*
 * Intel PT packets (SDM vol. 3 chapter 33, "Packet Definitions"), one at a time, from bytes in
 * memory. The reader holds what the encoding of the next packet depends on and nothing else: the
 * last IP, and whether a PEBS block is open (its BIP packets share their first byte with short
 * TNT).
 */
enum vmt_pt_type {
	VMT_PT_PAD,
	VMT_PT_TNT,
	VMT_PT_TNT_LONG,
	VMT_PT_TIP,
	VMT_PT_TIP_PGE,
	VMT_PT_TIP_PGD,
	VMT_PT_FUP,
	VMT_PT_PIP,
	VMT_PT_MODE_EXEC,
	VMT_PT_MODE_TSX,
	VMT_PT_TRACESTOP,
	VMT_PT_CBR,
	VMT_PT_TSC,
	VMT_PT_MTC,
	VMT_PT_TMA,
	VMT_PT_CYC,
	VMT_PT_VMCS,
	VMT_PT_OVF,
	VMT_PT_PSB,
	VMT_PT_PSBEND,
	VMT_PT_MNT,
	VMT_PT_PTW,
	VMT_PT_EXSTOP,
	VMT_PT_MWAIT,
	VMT_PT_PWRE,
	VMT_PT_PWRX,
	VMT_PT_BBP,
	VMT_PT_BIP,
	VMT_PT_BEP,
	VMT_PT_CFE,
	VMT_PT_EVD,
	VMT_PT_TRIG,
	VMT_PT_TYPE_COUNT,
};

enum vmt_pt_cfe { /* SDM table 33-50 */
		  VMT_PT_CFE_INTR = 0x01,
		  VMT_PT_CFE_IRET = 0x02,
		  VMT_PT_CFE_SMI = 0x03,
		  VMT_PT_CFE_RSM = 0x04,
		  VMT_PT_CFE_SIPI = 0x05,
		  VMT_PT_CFE_INIT = 0x06,
		  VMT_PT_CFE_VMENTRY = 0x07,
		  VMT_PT_CFE_VMEXIT = 0x08,
		  VMT_PT_CFE_VMEXIT_INTR = 0x09,
		  VMT_PT_CFE_SHUTDOWN = 0x0a,
		  VMT_PT_CFE_UINTR = 0x0c,
		  VMT_PT_CFE_UIRET = 0x0d,
		  VMT_PT_CFE_SWINTR = 0x0e,
		  VMT_PT_CFE_SYSCALL = 0x0f,
};

enum vmt_pt_evd { /* SDM table 33-51 */
		  VMT_PT_EVD_PFA = 0,
		  VMT_PT_EVD_VMXQ = 1,
		  VMT_PT_EVD_VMXR = 2,
};

enum vmt_pt_block { /* item size of an open PEBS block */
		    VMT_PT_BLOCK_NONE = 0,
		    VMT_PT_BLOCK_4 = 4,
		    VMT_PT_BLOCK_8 = 8,
};

struct vmt_pt_packet {
	uint8_t type;	  /* enum vmt_pt_type */
	uint8_t len;	  /* bytes in the stream */
	uint8_t ip_bytes; /* IP packets: the IPBytes field */
	uint8_t count;	  /* TNT: results, 0..47 */
	bool has_ip;	  /* IP packets: payload is not suppressed */
	bool ip_unsure;	  /* compressed against a last IP that is not known */
	bool ip_bit;	  /* CFE, PTW, EXSTOP, BEP, TRIG: a FUP with the address follows */
	bool nr;	  /* PIP: VMX non-root */
	bool reserved; /* an encoding that the manual reserves was accepted (MODE.Exec with D and L,
			* TMA with reserved bits, CYC beyond 64 bits, unknown CFE and EVD types) */
	uint8_t kind;  /* CFE, EVD, BBP type; BIP id; PTW payload bytes; TRIG vector */
	uint8_t vector;	  /* CFE */
	uint16_t fc;	  /* TMA: FastCounter, 9 bits */
	uint64_t payload; /* as in the stream: IP bytes, TNT bits (youngest at bit 0), TSC, CTC of
			   * MTC and TMA, CYC cycles, CBR ratio, mode bits, PIP and VMCS fields,
			   * 64-bit data */
	union {
		uint64_t ip;	  /* IP packets: rebuilt address, if has_ip */
		uint64_t address; /* PIP: CR3; VMCS: pointer (both shifted into place) */
	};
};

_Static_assert(sizeof(struct vmt_pt_packet) == 32, "a packet is one 32-byte store");

struct vmt_pt_reader {
	const uint8_t *begin, *pos, *end;
	uint64_t last_ip;
	bool last_ip_known; /* false until a PSB or a full IP */
	uint8_t block;	    /* enum vmt_pt_block */
};

/* A reader at the first byte of a stream. The bytes stay the caller's and must stay. */
struct vmt_pt_reader vmt_pt_reader_of(const uint8_t *bytes, size_t len);

/*
 * Takes the next packet. 1: *out is filled and the reader stands behind it. 0: the end. Errors
 * leave the reader at the packet: VMT_E_TRUNCATED when the bytes end inside it ("need more"),
 * VMT_E_DAMAGED when they are no packet (*why, unless NULL, gets static text). Bounded work.
 */
int vmt_pt_next(struct vmt_pt_reader *reader, struct vmt_pt_packet *out, const char **why);

/*
 * Steps to the next PSB at or behind the position + 1 and resets what a PSB resets. Returns the
 * bytes stepped over; at the end without a PSB the reader stands where a cut-off PSB could begin.
 */
size_t vmt_pt_sync(struct vmt_pt_reader *reader);

/* SDM spelling: "TIP.PGE"; "TNT" for both lengths. CFE and EVD type names, NULL for reserved ones.
 */
const char *vmt_pt_type_name(enum vmt_pt_type type);
const char *vmt_pt_cfe_name(uint8_t kind);
const char *vmt_pt_evd_name(uint8_t kind);

#endif
