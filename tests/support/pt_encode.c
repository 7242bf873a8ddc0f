/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Payloads are little-endian and are put byte by byte. last_ip is what a decoder has rebuilt after
 * the bytes written so far.
 */
#include "tests/support/pt_encode.h"

#include <stdlib.h>
#include <string.h>

void vmt_ptenc_free(struct vmt_ptenc *e)
{
	free(e->bytes);
	*e = (struct vmt_ptenc){ 0 };
}

void vmt_ptenc_raw(struct vmt_ptenc *e, const void *bytes, size_t len)
{
	if (!len)
		return;
	if (e->cap - e->len < len) {
		e->cap = 2 * e->cap + len + 256;
		e->bytes = realloc(e->bytes, e->cap);
		if (!e->bytes)
			abort();
	}
	memcpy(e->bytes + e->len, bytes, len);
	e->len += len;
}

static void put(struct vmt_ptenc *e, unsigned int byte)
{
	const uint8_t b = (uint8_t)byte;

	vmt_ptenc_raw(e, &b, 1);
}

static void put_le(struct vmt_ptenc *e, uint64_t value, unsigned int bytes)
{
	for (unsigned int i = 0; i < bytes; i++)
		put(e, (unsigned int)(value >> (8 * i) & 0xff));
}

/* Packets that begin with 02H and a second byte. */
static void put_extended(struct vmt_ptenc *e, unsigned int opcode)
{
	put(e, 0x02);
	put(e, opcode);
}

static uint64_t sign_extend_48(uint64_t ip)
{
	const uint64_t low = ip & 0xffffffffffff;

	return low & 0x800000000000 ? low | 0xffff000000000000 : low;
}

/* SDM table 33-12: what each IPBytes value rebuilds, and how many bytes it takes. */
static bool form_fits(uint64_t last_ip, enum vmt_ptenc_form form, uint64_t ip)
{
	switch (form) {
	case VMT_PTENC_SUPPRESSED:
	case VMT_PTENC_FULL:
		return true;
	case VMT_PTENC_UPDATE_16:
		return last_ip >> 16 == ip >> 16;
	case VMT_PTENC_UPDATE_32:
		return last_ip >> 32 == ip >> 32;
	case VMT_PTENC_SIGN_48:
		return sign_extend_48(ip) == ip;
	case VMT_PTENC_UPDATE_48:
		return last_ip >> 48 == ip >> 48;
	case VMT_PTENC_AUTO:
		break;
	}
	return false;
}

static unsigned int form_bytes(enum vmt_ptenc_form form)
{
	switch (form) {
	case VMT_PTENC_UPDATE_16:
		return 2;
	case VMT_PTENC_UPDATE_32:
		return 4;
	case VMT_PTENC_SIGN_48:
	case VMT_PTENC_UPDATE_48:
		return 6;
	case VMT_PTENC_FULL:
		return 8;
	case VMT_PTENC_SUPPRESSED:
	case VMT_PTENC_AUTO:
		break;
	}
	return 0;
}

static enum vmt_ptenc_form shortest_form(uint64_t last_ip, uint64_t ip)
{
	static const enum vmt_ptenc_form by_length[] = { VMT_PTENC_UPDATE_16, VMT_PTENC_UPDATE_32,
							 VMT_PTENC_SIGN_48, VMT_PTENC_UPDATE_48 };

	for (size_t i = 0; i < sizeof(by_length) / sizeof(by_length[0]); i++)
		if (form_fits(last_ip, by_length[i], ip))
			return by_length[i];
	return VMT_PTENC_FULL;
}

bool vmt_ptenc_ip(struct vmt_ptenc *e, enum vmt_ptenc_ip kind, enum vmt_ptenc_form form,
		  uint64_t ip)
{
	if (form == VMT_PTENC_AUTO)
		form = shortest_form(e->last_ip, ip);
	if (!form_fits(e->last_ip, form, ip))
		return false;
	put(e, (unsigned int)form << 5 | (unsigned int)kind);
	put_le(e, ip, form_bytes(form));
	if (form != VMT_PTENC_SUPPRESSED)
		e->last_ip = ip;
	return true;
}

/* ---- branches ---- */

void vmt_ptenc_tnt(struct vmt_ptenc *e, uint64_t results, unsigned int count)
{
	const uint64_t mask = (UINT64_C(1) << count) - 1;

	if (count < 1 || count > 6)
		abort();
	put(e, (unsigned int)((UINT64_C(1) << count | (results & mask)) << 1));
}

void vmt_ptenc_tnt_long(struct vmt_ptenc *e, uint64_t results, unsigned int count)
{
	const uint64_t mask = (UINT64_C(1) << count) - 1;

	if (count < 1 || count > 47)
		abort();
	put_extended(e, 0xa3);
	put_le(e, UINT64_C(1) << count | (results & mask), 6);
}

/* ---- state ---- */

void vmt_ptenc_pad(struct vmt_ptenc *e)
{
	put(e, 0);
}

void vmt_ptenc_psb(struct vmt_ptenc *e)
{
	for (unsigned int i = 0; i < 8; i++)
		put_extended(e, 0x82);
	e->last_ip = 0;
}

void vmt_ptenc_psbend(struct vmt_ptenc *e)
{
	put_extended(e, 0x23);
}

void vmt_ptenc_ovf(struct vmt_ptenc *e)
{
	put_extended(e, 0xf3);
}

void vmt_ptenc_tracestop(struct vmt_ptenc *e)
{
	put_extended(e, 0x83);
}

void vmt_ptenc_mode_exec(struct vmt_ptenc *e, uint8_t mode)
{
	put(e, 0x99);
	put(e, mode & 0x1fu);
}

void vmt_ptenc_mode_tsx(struct vmt_ptenc *e, uint8_t mode)
{
	put(e, 0x99);
	put(e, 0x20u | (mode & 0x1fu));
}

void vmt_ptenc_pip(struct vmt_ptenc *e, uint64_t cr3, bool nonroot)
{
	const uint64_t field = (cr3 & 0xfffffffffffe0) >> 4; /* CR3[51:5] at payload bits 47:1 */

	put_extended(e, 0x43);
	put_le(e, field | nonroot, 6);
}

void vmt_ptenc_vmcs(struct vmt_ptenc *e, uint64_t pointer)
{
	put_extended(e, 0xc8);
	put_le(e, pointer >> 12, 5);
}

/* ---- time ---- */

void vmt_ptenc_tsc(struct vmt_ptenc *e, uint64_t tsc)
{
	put(e, 0x19);
	put_le(e, tsc, 7);
}

void vmt_ptenc_tma(struct vmt_ptenc *e, uint16_t ctc, uint16_t fast_counter)
{
	put_extended(e, 0x73);
	put_le(e, ctc, 2);
	put(e, 0);
	put_le(e, fast_counter & 0x1ffu, 2);
}

void vmt_ptenc_mtc(struct vmt_ptenc *e, uint8_t ctc)
{
	put(e, 0x59);
	put(e, ctc);
}

void vmt_ptenc_cyc(struct vmt_ptenc *e, uint64_t cycles)
{
	uint64_t rest = cycles >> 5;

	put(e, (unsigned int)(cycles & 0x1f) << 3 | (rest ? 4u : 0u) | 3u);
	while (rest) {
		const unsigned int bits = (unsigned int)(rest & 0x7f) << 1;

		rest >>= 7;
		put(e, bits | (rest ? 1u : 0u));
	}
}

void vmt_ptenc_cbr(struct vmt_ptenc *e, uint8_t ratio)
{
	put_extended(e, 0x03);
	put(e, ratio);
	put(e, 0);
}

/* ---- PTWRITE, power, maintenance ---- */

void vmt_ptenc_ptw(struct vmt_ptenc *e, unsigned int bytes, uint64_t value, bool ip)
{
	put_extended(e, (ip ? 0x80u : 0u) | (bytes == 8 ? 0x20u : 0u) | 0x12u);
	put_le(e, value, bytes == 8 ? 8 : 4);
}

void vmt_ptenc_exstop(struct vmt_ptenc *e, bool ip)
{
	put_extended(e, ip ? 0xe2 : 0x62);
}

void vmt_ptenc_mwait(struct vmt_ptenc *e, uint8_t hints, uint8_t extensions)
{
	put_extended(e, 0xc2);
	put_le(e, hints, 4);
	put_le(e, extensions & 3u, 4);
}

void vmt_ptenc_pwre(struct vmt_ptenc *e, uint8_t state, uint8_t sub_state, bool hardware)
{
	put_extended(e, 0x22);
	put(e, hardware ? 0x80u : 0u);
	put(e, (state & 0xfu) << 4 | (sub_state & 0xfu));
}

void vmt_ptenc_pwrx(struct vmt_ptenc *e, uint8_t last, uint8_t deepest, uint8_t wake)
{
	put_extended(e, 0xa2);
	put(e, (last & 0xfu) << 4 | (deepest & 0xfu));
	put(e, wake & 0xfu);
	put_le(e, 0, 3);
}

void vmt_ptenc_mnt(struct vmt_ptenc *e, uint64_t payload)
{
	put_extended(e, 0xc3);
	put(e, 0x88);
	put_le(e, payload, 8);
}

/* ---- blocks ---- */

void vmt_ptenc_bbp(struct vmt_ptenc *e, uint8_t type, unsigned int item_bytes)
{
	put_extended(e, 0x63);
	put(e, (item_bytes == 4 ? 0x80u : 0u) | (type & 0x1fu));
}

void vmt_ptenc_bip(struct vmt_ptenc *e, uint8_t id, unsigned int item_bytes, uint64_t value)
{
	put(e, (id & 0x1fu) << 3 | 4u);
	put_le(e, value, item_bytes == 4 ? 4 : 8);
}

void vmt_ptenc_bep(struct vmt_ptenc *e, bool ip)
{
	put_extended(e, ip ? 0xb3 : 0x33);
}

/* ---- Event Trace and triggers ---- */

void vmt_ptenc_cfe(struct vmt_ptenc *e, uint8_t type, uint8_t vector, bool ip)
{
	put_extended(e, 0x13);
	put(e, (ip ? 0x80u : 0u) | (type & 0x1fu));
	put(e, vector);
}

void vmt_ptenc_evd(struct vmt_ptenc *e, uint8_t type, uint64_t payload)
{
	put_extended(e, 0x53);
	put(e, type & 0x3fu);
	put_le(e, payload, 8);
}

void vmt_ptenc_trig(struct vmt_ptenc *e, uint8_t triggers, bool ip, bool multiple, int icount)
{
	put(e, 0xd9);
	put(e, (ip ? 0x80u : 0u) | (icount >= 0 ? 0x40u : 0u) | (multiple ? 0x20u : 0u));
	put(e, triggers);
	if (icount >= 0)
		put_le(e, (uint64_t)icount, 2);
}
