// SPDX-License-Identifier: LGPL-2.1-or-later
#ifndef VMT_PTCPU_TRUTH_H
#define VMT_PTCPU_TRUTH_H
/*
 * The truth about one run of one emulated logical processor: file NAME.cpuN.truth beside the packet
 * bytes NAME.cpuN.pt that reached memory. Readers need this header only.
 *
 * File = TRUTH_MAGIC (8 bytes), then records until TRUTH_END. Numbers are unsigned LEB128 ("u": 7
 * bits a byte, least significant first, bit 7 = more follow); "s" is a signed number as
 * zigzag u ((v << 1) ^ (v >> 63)). A record starts with one byte b:
 *
 *   b = 1..127     a block: b instructions that were retired one after another at rising
 *                  addresses. s: start address minus the end of the block before it (0 at first);
 *                  u: bytes of all b instructions together.
 *   b = 128 + type u: length of the body in bytes; body. Unknown types can be skipped.
 *
 * A retired REP string instruction counts once, when its last iteration is done. VMLAUNCH and
 * VMRESUME are retired when the guest is entered. Instructions that fault or that cause a
 * fault-like VM exit are not retired; INT n, INT3 and INTO are events, not instructions. Blocks are
 * logged while TriggerEn and BranchEn are 1; TRUTH_STATE tells whether PacketEn was 1 too.
 *
 * All TSCs are L1's ("host"), guest TSCs are what RDTSC would have returned in the guest.
 * Stream offsets count bytes of NAME.cpuN.pt. Bodies:
 */
#define TRUTH_MAGIC "PTCPUTR1"

enum truth_type {
	/* of the blocks that follow: u bits of code (16, 32, 64), u NR (1 non-root), u CPL,
	 * u PacketEn, u CR3, u TSC, u stream offset */
	TRUTH_STATE = 0,
	/* the 4096 bytes of image number n, n = count of such records before it */
	TRUTH_IMAGE = 1,
	/* from here on, with CR3 and NR of the last TRUTH_STATE: u address >> 12 holds u image;
	 * u physical address >> 12. A page is mapped when it is first executed, and again
	 * when it is executed after its bytes or its physical page changed. */
	TRUTH_MAP = 2,
	/* VM entry: u TSC, u guest TSC, u VMCS, u host RIP (of VMLAUNCH or VMRESUME), u guest RIP,
	 * u guest CR3, u stream offset, u TSC offset, u TSC multiplier (of 48 fraction bits) */
	TRUTH_ENTRY = 3,
	/* VM exit: u TSC, u guest TSC, u VMCS, u exit reason (32 bits), u qualification,
	 * u interruption information (reasons 0 and 1 only), u guest RIP, u guest CR3, u host RIP,
	 * u stream offset */
	TRUTH_EXIT = 4,
	/* interrupt or exception delivered: u vector, u from, u to, u CR2, u TSC, u NR */
	TRUTH_EVENT = 5,
	/* PacketEn is u (0, 1) from u address on, u TSC, u stream offset */
	TRUTH_TRACE = 6,
	/* u instructions in all blocks so far, u hash of their addresses: h = 0xcbf29ce484222325,
	 * for each address h = (h ^ address) * 0x100000001b3 */
	TRUTH_HASH = 7,
	/* u enum truth_lost, u TSC, u stream offset, u instructions so far */
	TRUTH_LOST = 8,
	/* a TSC packet at u stream offset: u TSC, u TSC as the packet has it (64 bits), u NR */
	TRUTH_TSC = 9,
	/* VMPTRLD: u VMCS, u TSC */
	TRUTH_VMPTRLD = 10,
	/* IA32_RTIT_CTL is u from now on, IA32_RTIT_STATUS is u, u TSC, u stream offset */
	TRUTH_CONTROL = 11,
	/* u instructions, u stream bytes */
	TRUTH_END = 12,
	/* of the TRUTH_ENTRY that follows: u secondary controls, u VM-exit controls, u VM-entry
	 * controls, u IA32_RTIT_CTL in the guest, u the same before the entry */
	TRUTH_ENTRY_CONTROLS = 13,
};

enum truth_lost {
	TRUTH_LOST_OVERFLOW_BEGIN = 0, /* packets from here on are not sent */
	TRUTH_LOST_OVERFLOW_END = 1,   /* the OVF packet has been sent */
	TRUTH_LOST_STOP = 2,	       /* a ToPA region with STOP is full, or TraceStop */
	TRUTH_LOST_FAULT = 3,	       /* bytes dropped, their guest-physical page is not mapped */
};

#endif
