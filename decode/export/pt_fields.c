// SPDX-License-Identifier: LGPL-2.1-or-later
/* The members of a packet's line, a function a shape of packet (SDM vol. 3, "Packet Definitions").
 */
#include "decode/export/pt_packet.h"

struct list {
	struct vmt_pt_field *fields;
	unsigned int n;
};

static void hex(struct list *l, const char *name, bool known, uint64_t value)
{
	l->fields[l->n++] = (struct vmt_pt_field){
		.name = name, .kind = VMT_PT_FIELD_HEX, .known = known, .value = value
	};
}

static void number(struct list *l, const char *name, bool known, uint64_t value)
{
	l->fields[l->n++] = (struct vmt_pt_field){
		.name = name, .kind = VMT_PT_FIELD_NUMBER, .known = known, .value = value
	};
}

static void text(struct list *l, const char *name, const char *value)
{
	l->fields[l->n++] = (struct vmt_pt_field){
		.name = name, .kind = VMT_PT_FIELD_TEXT, .known = value != NULL, .text = value
	};
}

static void payload(struct list *l, const struct vmt_pt_packet *p)
{
	hex(l, "payload", true, p->payload);
}

typedef void fill_fn(struct list *l, const struct vmt_pt_packet *p);

static void fill_plain(struct list *l, const struct vmt_pt_packet *p)
{
	(void)l;
	(void)p;
}

static void fill_tnt(struct list *l, const struct vmt_pt_packet *p)
{
	l->fields[l->n++] = (struct vmt_pt_field){ .name = "tnt",
						   .kind = VMT_PT_FIELD_TNT,
						   .known = true,
						   .count = p->count,
						   .value = p->payload };
	payload(l, p);
}

static void fill_ip(struct list *l, const struct vmt_pt_packet *p)
{
	number(l, "ip_bytes", true, p->ip_bytes);
	hex(l, "ip", p->has_ip, p->ip);
	if (p->ip_unsure)
		text(l, "note", "compressed against an address that is not known");
	hex(l, "payload", p->has_ip, p->payload);
}

static void fill_pip(struct list *l, const struct vmt_pt_packet *p)
{
	hex(l, "cr3", true, p->address);
	number(l, "nr", true, p->nr);
	payload(l, p);
}

static void fill_vmcs(struct list *l, const struct vmt_pt_packet *p)
{
	hex(l, "vmcs", true, p->address);
	payload(l, p);
}

static void fill_mode_exec(struct list *l, const struct vmt_pt_packet *p)
{
	static const char *const modes[] = { "16-bit", "64-bit", "32-bit" };

	text(l, "mode", p->reserved ? NULL : modes[p->payload & 3]);
	number(l, "if", true, p->payload >> 2 & 1);
	payload(l, p);
}

static void fill_mode_tsx(struct list *l, const struct vmt_pt_packet *p)
{
	number(l, "in_tx", true, p->payload & 1);
	number(l, "abort", true, p->payload >> 1 & 1);
	payload(l, p);
}

static void fill_cbr(struct list *l, const struct vmt_pt_packet *p)
{
	number(l, "ratio", true, p->payload);
	payload(l, p);
}

static void fill_tsc(struct list *l, const struct vmt_pt_packet *p)
{
	hex(l, "tsc", true, p->payload);
	payload(l, p);
}

static void fill_mtc(struct list *l, const struct vmt_pt_packet *p)
{
	number(l, "ctc", true, p->payload);
	payload(l, p);
}

static void fill_tma(struct list *l, const struct vmt_pt_packet *p)
{
	number(l, "ctc", true, p->payload);
	number(l, "fc", true, p->fc);
	payload(l, p);
}

static void fill_cyc(struct list *l, const struct vmt_pt_packet *p)
{
	number(l, "cycles", true, p->payload);
	payload(l, p);
}

static void fill_mwait(struct list *l, const struct vmt_pt_packet *p)
{
	hex(l, "hints", true, p->payload & 0xff);
	hex(l, "ext", true, p->payload >> 32 & 3);
	payload(l, p);
}

static void fill_pwre(struct list *l, const struct vmt_pt_packet *p)
{
	number(l, "hw", true, p->payload >> 7 & 1);
	number(l, "state", true, p->payload >> 12 & 15);
	number(l, "sub_state", true, p->payload >> 8 & 15);
	payload(l, p);
}

static void fill_pwrx(struct list *l, const struct vmt_pt_packet *p)
{
	number(l, "last", true, p->payload >> 4 & 15);
	number(l, "deepest", true, p->payload & 15);
	hex(l, "wake", true, p->payload >> 8 & 15);
	payload(l, p);
}

static void fill_ip_bit(struct list *l, const struct vmt_pt_packet *p)
{
	number(l, "ip_bit", true, p->ip_bit);
}

static void fill_ptw(struct list *l, const struct vmt_pt_packet *p)
{
	number(l, "ip_bit", true, p->ip_bit);
	number(l, "bytes", true, p->kind);
	payload(l, p);
}

static void fill_bbp(struct list *l, const struct vmt_pt_packet *p)
{
	number(l, "type", true, p->kind);
	number(l, "item_bytes", true, p->payload & 0x80 ? 4 : 8);
	payload(l, p);
}

static void fill_bip(struct list *l, const struct vmt_pt_packet *p)
{
	number(l, "id", true, p->kind);
	payload(l, p);
}

static bool has_vector(const struct vmt_pt_packet *p)
{
	switch (p->kind) {
	case VMT_PT_CFE_INTR:
	case VMT_PT_CFE_SIPI:
	case VMT_PT_CFE_VMEXIT_INTR:
	case VMT_PT_CFE_UINTR:
	case VMT_PT_CFE_SWINTR:
		return true;
	default:
		return p->reserved || p->vector;
	}
}

static void fill_cfe(struct list *l, const struct vmt_pt_packet *p)
{
	number(l, "type", true, p->kind);
	text(l, "name", vmt_pt_cfe_name(p->kind));
	number(l, "vector", has_vector(p), p->vector);
	number(l, "ip_bit", true, p->ip_bit);
	payload(l, p);
}

static void fill_evd(struct list *l, const struct vmt_pt_packet *p)
{
	number(l, "type", true, p->kind);
	text(l, "name", vmt_pt_evd_name(p->kind));
	payload(l, p);
}

static void fill_trig(struct list *l, const struct vmt_pt_packet *p)
{
	hex(l, "triggers", true, p->kind);
	number(l, "ip_bit", true, p->ip_bit);
	number(l, "more", true, p->payload >> 5 & 1);
	number(l, "instructions", p->len == 5, p->payload >> 16);
	payload(l, p);
}

static fill_fn *const fills[VMT_PT_TYPE_COUNT] = {
	[VMT_PT_PAD] = fill_plain,
	[VMT_PT_TNT] = fill_tnt,
	[VMT_PT_TNT_LONG] = fill_tnt,
	[VMT_PT_TIP] = fill_ip,
	[VMT_PT_TIP_PGE] = fill_ip,
	[VMT_PT_TIP_PGD] = fill_ip,
	[VMT_PT_FUP] = fill_ip,
	[VMT_PT_PIP] = fill_pip,
	[VMT_PT_MODE_EXEC] = fill_mode_exec,
	[VMT_PT_MODE_TSX] = fill_mode_tsx,
	[VMT_PT_TRACESTOP] = fill_plain,
	[VMT_PT_CBR] = fill_cbr,
	[VMT_PT_TSC] = fill_tsc,
	[VMT_PT_MTC] = fill_mtc,
	[VMT_PT_TMA] = fill_tma,
	[VMT_PT_CYC] = fill_cyc,
	[VMT_PT_VMCS] = fill_vmcs,
	[VMT_PT_OVF] = fill_plain,
	[VMT_PT_PSB] = fill_plain,
	[VMT_PT_PSBEND] = fill_plain,
	[VMT_PT_MNT] = payload,
	[VMT_PT_PTW] = fill_ptw,
	[VMT_PT_EXSTOP] = fill_ip_bit,
	[VMT_PT_MWAIT] = fill_mwait,
	[VMT_PT_PWRE] = fill_pwre,
	[VMT_PT_PWRX] = fill_pwrx,
	[VMT_PT_BBP] = fill_bbp,
	[VMT_PT_BIP] = fill_bip,
	[VMT_PT_BEP] = fill_ip_bit,
	[VMT_PT_CFE] = fill_cfe,
	[VMT_PT_EVD] = fill_evd,
	[VMT_PT_TRIG] = fill_trig,
};

unsigned int vmt_pt_fields(const struct vmt_pt_packet *packet, struct vmt_pt_field *fields)
{
	struct list l = { .fields = fields };

	if (packet->type < VMT_PT_TYPE_COUNT)
		fills[packet->type](&l, packet);
	if (packet->reserved)
		number(&l, "reserved", true, 1);
	return l.n;
}
