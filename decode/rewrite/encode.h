/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_REWRITE_ENCODE_H
#define VMT_REWRITE_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/pt/packet.h"

/*
 * Intel PT packets into bytes (SDM vol. 3 33.4.2). Each call appends one packet; when the room is
 * used up it is handed to write, and vmt_pt_encoder_flush hands over what is left. A packet is
 * never divided between two writes.
 */
#define VMT_PT_ENCODER_ROOM 4096u

struct vmt_pt_encoder {
	void (*write)(void *context, const uint8_t *bytes, size_t len);
	void *context;
	uint64_t last_ip; /* what the next compressed IP counts from */
	bool last_ip_known;
	bool in_block;	/* a reader takes xxxxx100 for a BIP */
	uint64_t total; /* bytes appended so far */
	size_t len;
	uint8_t room[VMT_PT_ENCODER_ROOM];
};

void vmt_pt_encoder_flush(struct vmt_pt_encoder *e);

/* A packet without an address, as it stood in another stream; at most 16 bytes. */
void vmt_pt_put_raw(struct vmt_pt_encoder *e, const uint8_t *bytes, size_t len);
/* A BIP; left out where a packet before it has closed its block. */
void vmt_pt_put_bip(struct vmt_pt_encoder *e, const uint8_t *bytes, size_t len);
/* TIP, TIP.PGE, TIP.PGD or FUP; full: the address can be read without what came before. */
void vmt_pt_put_ip(struct vmt_pt_encoder *e, enum vmt_pt_type type, uint64_t ip, bool full);
/* The same with the address suppressed. */
void vmt_pt_put_no_ip(struct vmt_pt_encoder *e, enum vmt_pt_type type);
void vmt_pt_put_psb(struct vmt_pt_encoder *e);
void vmt_pt_put_psbend(struct vmt_pt_encoder *e);
void vmt_pt_put_ovf(struct vmt_pt_encoder *e);
void vmt_pt_put_pip(struct vmt_pt_encoder *e, uint64_t cr3, bool nr);
void vmt_pt_put_vmcs(struct vmt_pt_encoder *e, uint64_t pointer);
void vmt_pt_put_mode_exec(struct vmt_pt_encoder *e, uint8_t mode);
void vmt_pt_put_cbr(struct vmt_pt_encoder *e, uint8_t ratio);
void vmt_pt_put_cyc(struct vmt_pt_encoder *e, uint64_t cycles);
void vmt_pt_put_cfe(struct vmt_pt_encoder *e, uint8_t kind, uint8_t vector, bool ip_bit);
void vmt_pt_put_evd(struct vmt_pt_encoder *e, uint8_t kind, uint64_t payload);

#endif
