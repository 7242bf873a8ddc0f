// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Dispatch in the manual's order: BIP while a block is open; even bytes are PAD, extended or short
 * TNT; xxxxx011 is CYC; then the low five bits select the IP packets, then whole bytes. Each packet
 * has one take_* function that is entered with all of its bytes present.
 */
#include "decode/pt/packet.h"

#include <string.h>

#include "decode/base/cursor.h"

#define PSB_LEN 16

static const uint8_t psb_bytes[PSB_LEN] = { 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
					    0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82 };

static uint64_t load_bytes(const uint8_t *p, unsigned int n)
{
	uint64_t v = 0;

	memcpy(&v, p, n);
	return v;
}

struct vmt_pt_reader vmt_pt_reader_of(const uint8_t *bytes, size_t len)
{
	return (struct vmt_pt_reader){ .begin = bytes,
				       .pos = bytes,
				       .end = len ? bytes + len : bytes }; /* NULL when empty */
}

static int bad(const char **why, const char *text)
{
	if (why)
		*why = text;
	return VMT_E_DAMAGED;
}

/* ---- packets with one take function each; p points to the first byte, all len bytes are there
 * ---- */

static int take_short_tnt(const uint8_t *p, struct vmt_pt_packet *out)
{
	unsigned int top = 31u - (unsigned int)__builtin_clz(p[0]);

	out->count = (uint8_t)(top - 1);
	out->payload = (uint64_t)(p[0] & ((1u << top) - 1)) >> 1;
	return 1;
}

static int take_long_tnt(const uint8_t *p, struct vmt_pt_packet *out, const char **why)
{
	uint64_t bits = load_bytes(p + 2, 6);
	unsigned int top;

	if (bits <= 1)
		return bad(why, "long TNT without a result");
	top = 63u - (unsigned int)__builtin_clzll(bits);
	out->count = (uint8_t)top;
	out->payload = bits & ((UINT64_C(1) << top) - 1);
	return 1;
}

/* Payload bytes by IPBytes; 0xff: reserved. */
static const uint8_t ip_payload_bytes[8] = { 0, 2, 4, 6, 6, 0xff, 8, 0xff };

static int take_ip(struct vmt_pt_reader *r, const uint8_t *p, struct vmt_pt_packet *out)
{
	unsigned int kind = p[0] >> 5, n = ip_payload_bytes[kind];
	uint64_t v = load_bytes(p + 1, n), keep;

	out->ip_bytes = (uint8_t)kind;
	out->payload = v;
	if (!n)
		return 1;
	if (kind == 3)
		v = (uint64_t)((int64_t)(v << 16) >> 16);
	keep = kind == 3 || n == 8 ? 0 : UINT64_MAX << (8 * n);
	out->has_ip = true;
	out->ip_unsure = keep && !r->last_ip_known;
	out->ip = (r->last_ip & keep) | v;
	r->last_ip = out->ip;
	r->last_ip_known = r->last_ip_known || !keep;
	return 1;
}

static int take_mode(const uint8_t *p, struct vmt_pt_packet *out, const char **why)
{
	out->payload = p[1] & 0x1f;
	switch (p[1] >> 5) {
	case 0:
		out->type = VMT_PT_MODE_EXEC;
		out->reserved = (p[1] & 3) == 3;
		return 1;
	case 1:
		out->type = VMT_PT_MODE_TSX;
		out->reserved = (p[1] & 3) == 3;
		return 1;
	default:
		return bad(why, "MODE with a reserved leaf");
	}
}

static int take_pip(const uint8_t *p, struct vmt_pt_packet *out)
{
	out->payload = load_bytes(p + 2, 6);
	out->nr = out->payload & 1;
	out->address = out->payload >> 1 << 5;
	return 1;
}

static int take_vmcs(const uint8_t *p, struct vmt_pt_packet *out)
{
	out->payload = load_bytes(p + 2, 5);
	out->address = out->payload << 12;
	return 1;
}

static int take_tma(const uint8_t *p, struct vmt_pt_packet *out)
{
	out->payload = vmt_load_u16(p + 2);
	out->fc = (uint16_t)(p[5] | (p[6] & 1) << 8);
	out->reserved = p[4] || p[6] & 0xfe;
	return 1;
}

static int take_cfe(const uint8_t *p, struct vmt_pt_packet *out)
{
	out->ip_bit = p[2] >> 7;
	out->kind = p[2] & 0x1f;
	out->vector = p[3];
	out->payload = vmt_load_u16(p + 2);
	out->reserved = !vmt_pt_cfe_name(out->kind);
	return 1;
}

static int take_evd(const uint8_t *p, struct vmt_pt_packet *out)
{
	out->kind = p[2] & 0x3f;
	out->payload = vmt_load_u64(p + 3);
	out->reserved = !vmt_pt_evd_name(out->kind);
	return 1;
}

static int take_bbp(struct vmt_pt_reader *r, const uint8_t *p, struct vmt_pt_packet *out)
{
	out->payload = p[2];
	out->kind = p[2] & 0x1f;
	r->block = p[2] & 0x80 ? VMT_PT_BLOCK_4 : VMT_PT_BLOCK_8;
	return 1;
}

static int take_bip(const struct vmt_pt_reader *r, const uint8_t *p, struct vmt_pt_packet *out)
{
	out->kind = p[0] >> 3;
	out->payload = load_bytes(p + 1, r->block);
	return 1;
}

static int take_cyc(struct vmt_pt_reader *r, struct vmt_pt_packet *out, const char **why)
{
	const uint8_t *p = r->pos;
	uint64_t v = p[0] >> 3;
	unsigned int n = 1, shift = 5;
	bool more = p[0] & 4;

	while (more) {
		if (n == 10)
			return bad(why, "CYC of more than 10 bytes");
		if (p + n == r->end)
			return VMT_E_TRUNCATED;
		if (shift < 64)
			v |= (uint64_t)(p[n] >> 1) << shift;
		out->reserved = out->reserved || (shift + 7 > 64 && p[n] >> 1 >> (64 - shift));
		more = p[n++] & 1;
		shift += 7;
	}
	out->len = (uint8_t)n;
	out->payload = v;
	return 1;
}

/* ---- dispatch ---- */

/* Second byte after 02: type and length. Length 0: no packet. */
struct extended_row {
	uint8_t type, len;
};

static const struct extended_row extended[256] = {
	[0x03] = { VMT_PT_CBR, 4 },	  [0x13] = { VMT_PT_CFE, 4 },
	[0x22] = { VMT_PT_PWRE, 4 },	  [0x23] = { VMT_PT_PSBEND, 2 },
	[0x33] = { VMT_PT_BEP, 2 },	  [0x43] = { VMT_PT_PIP, 8 },
	[0x53] = { VMT_PT_EVD, 11 },	  [0x62] = { VMT_PT_EXSTOP, 2 },
	[0x63] = { VMT_PT_BBP, 3 },	  [0x73] = { VMT_PT_TMA, 7 },
	[0x82] = { VMT_PT_PSB, PSB_LEN }, [0x83] = { VMT_PT_TRACESTOP, 2 },
	[0xa2] = { VMT_PT_PWRX, 7 },	  [0xa3] = { VMT_PT_TNT_LONG, 8 },
	[0xb3] = { VMT_PT_BEP, 2 },	  [0xc2] = { VMT_PT_MWAIT, 10 },
	[0xc3] = { VMT_PT_MNT, 11 },	  [0xc8] = { VMT_PT_VMCS, 7 },
	[0xe2] = { VMT_PT_EXSTOP, 2 },	  [0xf3] = { VMT_PT_OVF, 2 },
	[0x12] = { VMT_PT_PTW, 6 },	  [0x92] = { VMT_PT_PTW, 6 },
	[0x32] = { VMT_PT_PTW, 10 },	  [0xb2] = { VMT_PT_PTW, 10 },
};

/* Packets that close an open block (perf's decoder and the manual's "block" section). */
static bool closes_block(unsigned int type)
{
	static const uint64_t mask =
		1ull << VMT_PT_TNT | 1ull << VMT_PT_TNT_LONG | 1ull << VMT_PT_TIP |
		1ull << VMT_PT_TIP_PGE | 1ull << VMT_PT_TIP_PGD | 1ull << VMT_PT_MODE_EXEC |
		1ull << VMT_PT_MODE_TSX | 1ull << VMT_PT_PIP | 1ull << VMT_PT_OVF |
		1ull << VMT_PT_VMCS | 1ull << VMT_PT_TRACESTOP | 1ull << VMT_PT_PSB |
		1ull << VMT_PT_PSBEND | 1ull << VMT_PT_PTW | 1ull << VMT_PT_MWAIT |
		1ull << VMT_PT_BEP | 1ull << VMT_PT_CFE | 1ull << VMT_PT_EVD;

	return mask >> type & 1;
}

static int take_extended(struct vmt_pt_reader *r, const uint8_t *p, struct vmt_pt_packet *out,
			 const char **why)
{
	switch (out->type) {
	case VMT_PT_PSB:
		if (memcmp(p, psb_bytes, PSB_LEN))
			return bad(why, "PSB pattern is broken");
		r->last_ip = 0;
		r->last_ip_known = true;
		return 1;
	case VMT_PT_TNT_LONG:
		return take_long_tnt(p, out, why);
	case VMT_PT_PIP:
		return take_pip(p, out);
	case VMT_PT_VMCS:
		return take_vmcs(p, out);
	case VMT_PT_TMA:
		return take_tma(p, out);
	case VMT_PT_CFE:
		return take_cfe(p, out);
	case VMT_PT_EVD:
		return take_evd(p, out);
	case VMT_PT_BBP:
		return take_bbp(r, p, out);
	case VMT_PT_CBR:
		out->payload = p[2];
		return 1;
	case VMT_PT_MNT:
		if (p[2] != 0x88)
			return bad(why, "no packet has the bytes 02 c3 without 88");
		out->payload = vmt_load_u64(p + 3);
		return 1;
	case VMT_PT_EXSTOP:
	case VMT_PT_BEP:
		out->ip_bit = p[1] >> 7;
		return 1;
	default: /* PTW, MWAIT, PWRE, PWRX: the bytes behind the two of the header */
		out->ip_bit = out->type == VMT_PT_PTW && p[1] >> 7;
		out->kind = out->type == VMT_PT_PTW ? (uint8_t)(out->len - 2) : 0;
		out->payload = load_bytes(p + 2, out->len - 2u);
		return 1;
	}
}

static int classify_extended(const struct vmt_pt_reader *r, struct vmt_pt_packet *out,
			     const char **why)
{
	const struct extended_row *row;

	if (r->end - r->pos < 2)
		return VMT_E_TRUNCATED;
	row = &extended[r->pos[1]];
	if (!row->len)
		return bad(why, (r->pos[1] & 0x1f) == 0x12 ? "PTW with a reserved payload size"
							   : "no packet has this second byte");
	out->type = row->type;
	out->len = row->len;
	return 1;
}

static const uint8_t ip_types[32] = {
	[0x0d] = VMT_PT_TIP,
	[0x11] = VMT_PT_TIP_PGE,
	[0x01] = VMT_PT_TIP_PGD,
	[0x1d] = VMT_PT_FUP,
};

/* Type and length of the packet at an odd first byte that is no CYC. */
static int classify_odd(const struct vmt_pt_reader *r, struct vmt_pt_packet *out, const char **why)
{
	uint8_t b = r->pos[0];

	if (ip_types[b & 0x1f]) {
		if (ip_payload_bytes[b >> 5] == 0xff)
			return bad(why, "IP packet with reserved IPBytes");
		out->type = ip_types[b & 0x1f];
		out->len = (uint8_t)(1 + ip_payload_bytes[b >> 5]);
		return 1;
	}
	switch (b) {
	case 0x19:
		out->type = VMT_PT_TSC;
		out->len = 8;
		return 1;
	case 0x59:
		out->type = VMT_PT_MTC;
		out->len = 2;
		return 1;
	case 0x99:
		out->type = VMT_PT_MODE_EXEC;
		out->len = 2;
		return 1;
	case 0xd9:
		if (r->end - r->pos < 2)
			return VMT_E_TRUNCATED;
		out->type = VMT_PT_TRIG;
		out->len = r->pos[1] & 0x40 ? 5 : 3;
		return 1;
	default:
		return bad(why, "no packet has this first byte");
	}
}

static int take_odd(struct vmt_pt_reader *r, const uint8_t *p, struct vmt_pt_packet *out,
		    const char **why)
{
	switch (out->type) {
	case VMT_PT_TSC:
		out->payload = load_bytes(p + 1, 7);
		return 1;
	case VMT_PT_MTC:
		out->payload = p[1];
		return 1;
	case VMT_PT_MODE_EXEC:
		return take_mode(p, out, why);
	case VMT_PT_TRIG:
		out->ip_bit = p[1] >> 7;
		out->kind = p[2];
		out->payload = load_bytes(p + 1, out->len - 1u);
		return 1;
	default:
		return take_ip(r, p, out);
	}
}

int vmt_pt_next(struct vmt_pt_reader *r, struct vmt_pt_packet *out, const char **why)
{
	const uint8_t *p = r->pos;
	int status;

	memset(out, 0, sizeof(*out));
	if (p == r->end)
		return 0;
	if (r->block && (p[0] & 7) == 4) {
		out->type = VMT_PT_BIP;
		out->len = (uint8_t)(1 + r->block);
		status = 1;
	} else if (!(p[0] & 1)) {
		out->len = 1;
		out->type = p[0] ? VMT_PT_TNT : VMT_PT_PAD;
		status = p[0] == 0x02 ? classify_extended(r, out, why) : 1;
	} else if ((p[0] & 3) == 3) {
		out->type = VMT_PT_CYC;
		status = take_cyc(r, out, why);
	} else {
		status = classify_odd(r, out, why);
	}
	if (status != 1)
		return status;
	if (r->end - p < out->len)
		return VMT_E_TRUNCATED;
	if (out->type == VMT_PT_BIP)
		take_bip(r, p, out);
	else if (p[0] == 0x02)
		status = take_extended(r, p, out, why);
	else if (out->type == VMT_PT_TNT)
		take_short_tnt(p, out);
	else if (p[0] & 1 && out->type != VMT_PT_CYC)
		status = take_odd(r, p, out, why);
	if (status != 1)
		return status;
	if (r->block && closes_block(out->type))
		r->block = VMT_PT_BLOCK_NONE;
	r->pos += out->len;
	return 1;
}

size_t vmt_pt_sync(struct vmt_pt_reader *r)
{
	const uint8_t *from = r->pos, *p = from == r->end ? from : from + 1;

	for (; r->end - p >= PSB_LEN; p++) {
		p = memchr(p, 0x02, (size_t)(r->end - p) - (PSB_LEN - 1));
		if (!p)
			break;
		if (!memcmp(p, psb_bytes, PSB_LEN)) {
			r->pos = p;
			r->block = VMT_PT_BLOCK_NONE;
			return (size_t)(p - from);
		}
	}
	/* No whole PSB: stand where a beginning one could be cut off. */
	p = r->end - from > PSB_LEN - 1 ? r->end - (PSB_LEN - 1) : from;
	while (p < r->end && memcmp(p, psb_bytes, (size_t)(r->end - p)))
		p++;
	r->pos = p;
	r->block = VMT_PT_BLOCK_NONE;
	return (size_t)(p - from);
}

static const char *const type_names[VMT_PT_TYPE_COUNT] = {
	"PAD",	     "TNT",	 "TNT",	      "TIP",	"TIP.PGE", "TIP.PGD", "FUP",	"PIP",
	"MODE.Exec", "MODE.TSX", "TraceStop", "CBR",	"TSC",	   "MTC",     "TMA",	"CYC",
	"VMCS",	     "OVF",	 "PSB",	      "PSBEND", "MNT",	   "PTW",     "EXSTOP", "MWAIT",
	"PWRE",	     "PWRX",	 "BBP",	      "BIP",	"BEP",	   "CFE",     "EVD",	"TRIG",
};

const char *vmt_pt_type_name(enum vmt_pt_type type)
{
	return (unsigned int)type < VMT_PT_TYPE_COUNT ? type_names[type] : NULL;
}

static const char *const cfe_names[32] = {
	[VMT_PT_CFE_INTR] = "INTR",
	[VMT_PT_CFE_IRET] = "IRET",
	[VMT_PT_CFE_SMI] = "SMI",
	[VMT_PT_CFE_RSM] = "RSM",
	[VMT_PT_CFE_SIPI] = "SIPI",
	[VMT_PT_CFE_INIT] = "INIT",
	[VMT_PT_CFE_VMENTRY] = "VMENTRY",
	[VMT_PT_CFE_VMEXIT] = "VMEXIT",
	[VMT_PT_CFE_VMEXIT_INTR] = "VMEXIT_INTR",
	[VMT_PT_CFE_SHUTDOWN] = "SHUTDOWN",
	[VMT_PT_CFE_UINTR] = "UINTR",
	[VMT_PT_CFE_UIRET] = "UIRET",
	[VMT_PT_CFE_SWINTR] = "SWINTR",
	[VMT_PT_CFE_SYSCALL] = "SYSCALL",
};

const char *vmt_pt_cfe_name(uint8_t kind)
{
	return kind < 32 ? cfe_names[kind] : NULL;
}

const char *vmt_pt_evd_name(uint8_t kind)
{
	static const char *const names[] = { "PFA", "VMXQ", "VMXR" };

	return kind < 3 ? names[kind] : NULL;
}
