/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PT_ENCODE_H
#define VMT_SUPPORT_PT_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Writes Intel PT packets as the manual lays them out (SDM vol. 3 33.4.2). It shares no code and
 * no table with decode/pt, so that a wrong reading of the manual in one shows against the other.
 *
 * The buffer grows; memory that is short aborts. Every vmt_ptenc_* call below appends one packet.
 */
struct vmt_ptenc {
	uint8_t *bytes;
	size_t len, cap;
	uint64_t last_ip; /* what the next compressed IP counts from; 0 after a PSB */
};

void vmt_ptenc_free(struct vmt_ptenc *e);
void vmt_ptenc_raw(struct vmt_ptenc *e, const void *bytes, size_t len);

/* The low five bits of an IP packet's first byte. */
enum vmt_ptenc_ip {
	VMT_PTENC_TIP = 0x0d,
	VMT_PTENC_TIP_PGE = 0x11,
	VMT_PTENC_TIP_PGD = 0x01,
	VMT_PTENC_FUP = 0x1d,
};

/* IPBytes; AUTO: the shortest that gives the address. */
enum vmt_ptenc_form {
	VMT_PTENC_SUPPRESSED = 0,
	VMT_PTENC_UPDATE_16 = 1,
	VMT_PTENC_UPDATE_32 = 2,
	VMT_PTENC_SIGN_48 = 3,
	VMT_PTENC_UPDATE_48 = 4,
	VMT_PTENC_FULL = 6,
	VMT_PTENC_AUTO = 8,
};

/* False, and nothing is written, when the form cannot give the address from the last IP. */
bool vmt_ptenc_ip(struct vmt_ptenc *e, enum vmt_ptenc_ip kind, enum vmt_ptenc_form form,
		  uint64_t ip);

/* results: the youngest at bit 0. Short: 1..6 results; long: 1..47. */
void vmt_ptenc_tnt(struct vmt_ptenc *e, uint64_t results, unsigned int count);
void vmt_ptenc_tnt_long(struct vmt_ptenc *e, uint64_t results, unsigned int count);

void vmt_ptenc_pad(struct vmt_ptenc *e);
void vmt_ptenc_psb(struct vmt_ptenc *e);
void vmt_ptenc_psbend(struct vmt_ptenc *e);
void vmt_ptenc_ovf(struct vmt_ptenc *e);
void vmt_ptenc_tracestop(struct vmt_ptenc *e);

/* mode: bits 4:0. */
void vmt_ptenc_mode_exec(struct vmt_ptenc *e, uint8_t mode);
void vmt_ptenc_mode_tsx(struct vmt_ptenc *e, uint8_t mode);
/* cr3: bits 51:5 go into the packet. */
void vmt_ptenc_pip(struct vmt_ptenc *e, uint64_t cr3, bool nonroot);
/* pointer: bits 51:12 go into the packet. */
void vmt_ptenc_vmcs(struct vmt_ptenc *e, uint64_t pointer);

void vmt_ptenc_tsc(struct vmt_ptenc *e, uint64_t tsc);
void vmt_ptenc_tma(struct vmt_ptenc *e, uint16_t ctc, uint16_t fast_counter);
void vmt_ptenc_mtc(struct vmt_ptenc *e, uint8_t ctc);
void vmt_ptenc_cyc(struct vmt_ptenc *e, uint64_t cycles);
void vmt_ptenc_cbr(struct vmt_ptenc *e, uint8_t ratio);

/* bytes: 4 or 8. */
void vmt_ptenc_ptw(struct vmt_ptenc *e, unsigned int bytes, uint64_t value, bool ip);
void vmt_ptenc_exstop(struct vmt_ptenc *e, bool ip);
void vmt_ptenc_mwait(struct vmt_ptenc *e, uint8_t hints, uint8_t extensions);
void vmt_ptenc_pwre(struct vmt_ptenc *e, uint8_t state, uint8_t sub_state, bool hardware);
void vmt_ptenc_pwrx(struct vmt_ptenc *e, uint8_t last, uint8_t deepest, uint8_t wake);
void vmt_ptenc_mnt(struct vmt_ptenc *e, uint64_t payload);

/* item_bytes: 4 or 8, of the block's items. */
void vmt_ptenc_bbp(struct vmt_ptenc *e, uint8_t type, unsigned int item_bytes);
void vmt_ptenc_bip(struct vmt_ptenc *e, uint8_t id, unsigned int item_bytes, uint64_t value);
void vmt_ptenc_bep(struct vmt_ptenc *e, bool ip);

void vmt_ptenc_cfe(struct vmt_ptenc *e, uint8_t type, uint8_t vector, bool ip);
void vmt_ptenc_evd(struct vmt_ptenc *e, uint8_t type, uint64_t payload);
/* icount < 0: without an instruction count. */
void vmt_ptenc_trig(struct vmt_ptenc *e, uint8_t triggers, bool ip, bool multiple, int icount);

#endif
