/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/pt_vtt.h"

static const char *flag_text(bool flag, const char *text)
{
	return flag ? text : "";
}

static void ip_text(char *buf, size_t size, const char *name, const struct vmt_pt_packet *p)
{
	if (p->has_ip)
		snprintf(buf, size, "%s 0x%" PRIx64, name, p->ip);
	else
		snprintf(buf, size, "%s -", name);
}

static void tnt_text(char *buf, size_t size, const char *name, const struct vmt_pt_packet *p)
{
	char results[49] = "";

	for (unsigned int i = 0; i < p->count && i < sizeof(results) - 1; i++)
		results[i] = p->payload >> (p->count - 1u - i) & 1 ? 'T' : 'N';
	snprintf(buf, size, "%s %s", name, results);
}

static void mode_text(char *buf, size_t size, const struct vmt_pt_packet *p)
{
	static const char *const widths[] = { "16", "64", "32", "bad" };
	static const char *const states[] = { "end", "begin", "abort", "bad" };

	if (p->type == VMT_PT_MODE_EXEC)
		snprintf(buf, size, "mode.exec %s%s", widths[p->payload & 3],
			 flag_text(p->payload & 4, " if"));
	else
		snprintf(buf, size, "mode.tsx %s", states[p->payload & 3]);
}

static void power_text(char *buf, size_t size, const struct vmt_pt_packet *p)
{
	const unsigned int b0 = p->payload & 0xff, b1 = p->payload >> 8 & 0xff;

	if (p->type == VMT_PT_MWAIT)
		snprintf(buf, size, "mwait hints=0x%x ext=%u", b0,
			 (unsigned int)(p->payload >> 32 & 3));
	else if (p->type == VMT_PT_PWRE)
		snprintf(buf, size, "pwre state=%u sub=%u%s", b1 >> 4, b1 & 15,
			 flag_text(b0 & 0x80, " hw"));
	else
		snprintf(buf, size, "pwrx last=%u deepest=%u wake=%u", b0 >> 4, b0 & 15, b1 & 15);
}

static void event_text(char *buf, size_t size, const struct vmt_pt_packet *p)
{
	const bool is_cfe = p->type == VMT_PT_CFE;
	const char *known = is_cfe ? vmt_pt_cfe_name(p->kind) : vmt_pt_evd_name(p->kind);
	char type[16];

	if (known)
		snprintf(type, sizeof(type), "%s", known);
	else
		snprintf(type, sizeof(type), "0x%x", p->kind);
	if (is_cfe)
		snprintf(buf, size, "cfe %s ip=%d vec=%u", type, p->ip_bit, p->vector);
	else
		snprintf(buf, size, "evd %s 0x%" PRIx64, type, p->payload);
}

static void trig_text(char *buf, size_t size, const struct vmt_pt_packet *p)
{
	char count[24] = "";

	if (p->payload & 0x40)
		snprintf(count, sizeof(count), " icnt=%u",
			 (unsigned int)(p->payload >> 16 & 0xffff));
	snprintf(buf, size, "trig 0x%x%s%s%s", p->kind, flag_text(p->ip_bit, " ip"),
		 flag_text(p->payload & 0x20, " mult"), count);
}

/* Packets that are a name and one number, or a name alone. */
static const struct {
	const char *name;
	bool number;
} simple[VMT_PT_TYPE_COUNT] = {
	[VMT_PT_PAD] = { "pad", false },
	[VMT_PT_PSB] = { "psb", false },
	[VMT_PT_PSBEND] = { "psbend", false },
	[VMT_PT_OVF] = { "ovf", false },
	[VMT_PT_TRACESTOP] = { "tracestop", false },
	[VMT_PT_TSC] = { "tsc", true },
	[VMT_PT_MTC] = { "mtc", true },
	[VMT_PT_CYC] = { "cyc", true },
	[VMT_PT_CBR] = { "cbr", true },
	[VMT_PT_MNT] = { "mnt", true },
};

char *vmt_pt_packet_text(char *buf, size_t size, const struct vmt_pt_packet *p)
{
	static const char *const ip_names[] = { "tip", "tip.pge", "tip.pgd", "fup" };

	snprintf(buf, size, "type %u", p->type);
	switch (p->type) {
	case VMT_PT_TIP:
	case VMT_PT_TIP_PGE:
	case VMT_PT_TIP_PGD:
	case VMT_PT_FUP:
		ip_text(buf, size, ip_names[p->type - VMT_PT_TIP], p);
		break;
	case VMT_PT_TNT:
	case VMT_PT_TNT_LONG:
		tnt_text(buf, size, p->type == VMT_PT_TNT ? "tnt" : "tnt.long", p);
		break;
	case VMT_PT_PIP:
		snprintf(buf, size, "pip cr3=0x%" PRIx64 " nr=%d", p->address, p->nr);
		break;
	case VMT_PT_VMCS:
		snprintf(buf, size, "vmcs 0x%" PRIx64, p->address);
		break;
	case VMT_PT_MODE_EXEC:
	case VMT_PT_MODE_TSX:
		mode_text(buf, size, p);
		break;
	case VMT_PT_TMA:
		snprintf(buf, size, "tma ctc=0x%" PRIx64 " fc=0x%x", p->payload, p->fc);
		break;
	case VMT_PT_PTW:
		snprintf(buf, size, "ptw %u 0x%" PRIx64 "%s", p->kind, p->payload,
			 flag_text(p->ip_bit, " ip"));
		break;
	case VMT_PT_EXSTOP:
	case VMT_PT_BEP:
		snprintf(buf, size, "%s%s", p->type == VMT_PT_BEP ? "bep" : "exstop",
			 flag_text(p->ip_bit, " ip"));
		break;
	case VMT_PT_MWAIT:
	case VMT_PT_PWRE:
	case VMT_PT_PWRX:
		power_text(buf, size, p);
		break;
	case VMT_PT_BBP:
		snprintf(buf, size, "bbp 0x%x %d", p->kind, p->payload & 0x80 ? 4 : 8);
		break;
	case VMT_PT_BIP:
		snprintf(buf, size, "bip 0x%x 0x%" PRIx64, p->kind, p->payload);
		break;
	case VMT_PT_CFE:
	case VMT_PT_EVD:
		event_text(buf, size, p);
		break;
	case VMT_PT_TRIG:
		trig_text(buf, size, p);
		break;
	default:
		if (p->type < VMT_PT_TYPE_COUNT && simple[p->type].number)
			snprintf(buf, size, "%s 0x%" PRIx64, simple[p->type].name, p->payload);
		else if (p->type < VMT_PT_TYPE_COUNT && simple[p->type].name)
			snprintf(buf, size, "%s", simple[p->type].name);
	}
	return buf;
}
