// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: last_ip is what a reader of the bytes so far has as its last IP, when last_ip_known.
 */
#include "decode/rewrite/encode.h"

#include <string.h>

#define PACKET_MAX 16u

void vmt_pt_encoder_flush(struct vmt_pt_encoder *e)
{
	if (e->len)
		e->write(e->context, e->room, e->len);
	e->len = 0;
}

static void append(struct vmt_pt_encoder *e, const uint8_t *bytes, size_t len)
{
	if (e->len + len > VMT_PT_ENCODER_ROOM)
		vmt_pt_encoder_flush(e);
	memcpy(e->room + e->len, bytes, len);
	e->len += len;
	e->total += len;
}

/* Packets behind which a PEBS block stays open: those that tell time or power, FUP and MNT. */
static bool leaves_block_open(const uint8_t *p, size_t len)
{
	static const uint8_t second[] = { 0x03, 0x22, 0x62, 0xe2, 0x73, 0xa2, 0xc3, 0x63 };
	const bool odd = p[0] == 0x19 || p[0] == 0x59 || p[0] == 0xd9;

	if (!p[0] || (p[0] & 3) == 3 || (p[0] & 0x1f) == 0x1d || odd)
		return true;
	return p[0] == 0x02 && len > 1 && memchr(second, p[1], sizeof(second));
}

void vmt_pt_put_raw(struct vmt_pt_encoder *e, const uint8_t *bytes, size_t len)
{
	static const uint8_t bep[] = { 0x02, 0x33 };

	if (!len || len > PACKET_MAX)
		return;
	/* A TNT that would read as an item. */
	if (e->in_block && (bytes[0] & 7) == 4)
		append(e, bep, sizeof(bep));
	append(e, bytes, len);
	e->in_block = (e->in_block && leaves_block_open(bytes, len)) ||
		      (len == 3 && bytes[0] == 0x02 && bytes[1] == 0x63);
}

void vmt_pt_put_bip(struct vmt_pt_encoder *e, const uint8_t *bytes, size_t len)
{
	if (e->in_block && len && len <= PACKET_MAX)
		append(e, bytes, len);
}

/* A header of one or two bytes, and the low bytes of a value. */
static void put(struct vmt_pt_encoder *e, unsigned int header, size_t header_len, uint64_t value,
		size_t len)
{
	uint8_t bytes[PACKET_MAX] = { (uint8_t)header, (uint8_t)(header >> 8) };

	for (size_t i = 0; i < len; i++)
		bytes[header_len + i] = (uint8_t)(value >> (8 * i));
	vmt_pt_put_raw(e, bytes, header_len + len);
}

static unsigned int opcode_of(enum vmt_pt_type type)
{
	switch (type) {
	case VMT_PT_TIP_PGE:
		return 0x11;
	case VMT_PT_TIP_PGD:
		return 0x01;
	case VMT_PT_FUP:
		return 0x1d;
	default:
		return 0x0d;
	}
}

static bool is_canonical(uint64_t ip)
{
	return (uint64_t)((int64_t)(ip << 16) >> 16) == ip;
}

void vmt_pt_put_ip(struct vmt_pt_encoder *e, enum vmt_pt_type type, uint64_t ip, bool full)
{
	const uint64_t differ = ip ^ e->last_ip;
	const bool free = full || !e->last_ip_known;
	unsigned int form = is_canonical(ip) ? 3 : 6;
	size_t len = form == 3 ? 6 : 8;

	if (!free && !(differ >> 16)) {
		form = 1;
		len = 2;
	} else if (!free && !(differ >> 32)) {
		form = 2;
		len = 4;
	}
	put(e, opcode_of(type) | form << 5, 1, ip, len);
	e->last_ip = ip;
	e->last_ip_known = true;
}

void vmt_pt_put_no_ip(struct vmt_pt_encoder *e, enum vmt_pt_type type)
{
	put(e, opcode_of(type), 1, 0, 0);
}

void vmt_pt_put_psb(struct vmt_pt_encoder *e)
{
	uint8_t bytes[PACKET_MAX];

	for (size_t i = 0; i < PACKET_MAX; i++)
		bytes[i] = i & 1 ? 0x82 : 0x02;
	vmt_pt_put_raw(e, bytes, PACKET_MAX);
	e->last_ip = 0;
	e->last_ip_known = true;
}

void vmt_pt_put_psbend(struct vmt_pt_encoder *e)
{
	put(e, 0x2302, 2, 0, 0);
}

void vmt_pt_put_ovf(struct vmt_pt_encoder *e)
{
	put(e, 0xf302, 2, 0, 0);
}

void vmt_pt_put_pip(struct vmt_pt_encoder *e, uint64_t cr3, bool nr)
{
	put(e, 0x4302, 2, cr3 >> 5 << 1 | nr, 6);
}

void vmt_pt_put_vmcs(struct vmt_pt_encoder *e, uint64_t pointer)
{
	put(e, 0xc802, 2, pointer >> 12, 5);
}

void vmt_pt_put_mode_exec(struct vmt_pt_encoder *e, uint8_t mode)
{
	put(e, 0x99, 1, mode & 0x1f, 1);
}

void vmt_pt_put_cbr(struct vmt_pt_encoder *e, uint8_t ratio)
{
	put(e, 0x0302, 2, ratio, 2);
}

void vmt_pt_put_cyc(struct vmt_pt_encoder *e, uint64_t cycles)
{
	uint8_t bytes[PACKET_MAX];
	size_t len = 1;

	bytes[0] = (uint8_t)((cycles & 0x1f) << 3 | 3);
	if (cycles >>= 5)
		bytes[0] |= 4;
	for (; cycles; cycles >>= 7)
		bytes[len++] = (uint8_t)((cycles & 0x7f) << 1 | (cycles >> 7 != 0));
	vmt_pt_put_raw(e, bytes, len);
}

void vmt_pt_put_cfe(struct vmt_pt_encoder *e, uint8_t kind, uint8_t vector, bool ip_bit)
{
	put(e, 0x1302, 2, (uint64_t)vector << 8 | (uint64_t)ip_bit << 7 | kind, 2);
}

void vmt_pt_put_evd(struct vmt_pt_encoder *e, uint8_t kind, uint64_t payload)
{
	const uint8_t bytes[] = { 0x02,
				  0x53,
				  kind,
				  (uint8_t)payload,
				  (uint8_t)(payload >> 8),
				  (uint8_t)(payload >> 16),
				  (uint8_t)(payload >> 24),
				  (uint8_t)(payload >> 32),
				  (uint8_t)(payload >> 40),
				  (uint8_t)(payload >> 48),
				  (uint8_t)(payload >> 56) };

	vmt_pt_put_raw(e, bytes, sizeof(bytes));
}
