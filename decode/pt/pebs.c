// SPDX-License-Identifier: LGPL-2.1-or-later
/* A function a block type puts an item where it belongs; everything else is about when a record is
 * whole. */
#include "decode/pt/pebs.h"

#include <string.h>

enum block_type {
	BLOCK_GPR = 0x01,
	BLOCK_BASIC = 0x04,
	BLOCK_MEMORY = 0x05,
	BLOCK_LBR_0 = 0x08,
	BLOCK_LBR_2 = 0x0a,
	BLOCK_XMM = 0x10,
};

/* Three blocks of 32 items hold FROM, TO, INFO of TOS, TOS - 1, … in turn. */
static bool put_lbr(struct vmt_pt_pebs_record *r, unsigned int block, unsigned int id,
		    uint64_t value)
{
	unsigned int n = 32 * block + id, entry = n / 3, part = n % 3;
	struct vmt_pt_lbr *lbr = &r->lbr[entry];

	r->has_lbr[part] |= 1u << entry;
	if (part == 0)
		lbr->from = value;
	else if (part == 1)
		lbr->to = value;
	else
		lbr->info = value;
	return true;
}

static bool put_item(struct vmt_pt_pebs_record *r, uint8_t type, uint8_t id, uint64_t value)
{
	switch (type) {
	case BLOCK_GPR:
		if (id >= VMT_PT_GPR_COUNT)
			return false;
		r->has_gpr |= 1u << id;
		r->gpr[id] = value;
		return true;
	case BLOCK_BASIC:
		if (id >= VMT_PT_BASIC_COUNT)
			return false;
		r->has_basic |= (uint8_t)(1u << id);
		r->basic[id] = value;
		return true;
	case BLOCK_MEMORY:
		if (id >= VMT_PT_MEMORY_COUNT)
			return false;
		r->has_memory |= (uint8_t)(1u << id);
		r->memory[id] = value;
		return true;
	case BLOCK_LBR_0:
	case BLOCK_LBR_0 + 1:
	case BLOCK_LBR_2:
		return put_lbr(r, type - (unsigned int)BLOCK_LBR_0, id & 31u, value);
	case BLOCK_XMM:
		r->has_xmm |= 1u << (id & 31u);
		r->xmm[id & 31u] = value;
		return true;
	default:
		return false;
	}
}

static bool finish(struct vmt_pt_pebs *pebs)
{
	pebs->wants_fup = false;
	pebs->records++;
	return true;
}

static void begin(struct vmt_pt_pebs *pebs, uint8_t type)
{
	if (!pebs->open)
		memset(&pebs->record, 0, sizeof(pebs->record));
	pebs->open = true;
	pebs->type = type;
}

/* Packets that may stand inside a block, or between BEP and its FUP, without ending it. */
static bool passes(unsigned int type)
{
	static const uint64_t mask =
		1ull << VMT_PT_PAD | 1ull << VMT_PT_TSC | 1ull << VMT_PT_TMA | 1ull << VMT_PT_MTC |
		1ull << VMT_PT_CYC | 1ull << VMT_PT_CBR | 1ull << VMT_PT_MNT | 1ull << VMT_PT_FUP |
		1ull << VMT_PT_EXSTOP | 1ull << VMT_PT_PWRE | 1ull << VMT_PT_PWRX;

	return mask >> type & 1;
}

static bool take_bep(struct vmt_pt_pebs *pebs, const struct vmt_pt_packet *p)
{
	if (!pebs->open)
		return false;
	pebs->open = false;
	pebs->wants_fup = p->ip_bit;
	return p->ip_bit ? false : finish(pebs);
}

bool vmt_pt_pebs_packet(struct vmt_pt_pebs *pebs, const struct vmt_pt_packet *p)
{
	bool waited = pebs->wants_fup;

	if (p->type == VMT_PT_FUP && waited) {
		pebs->record.has_ip = p->has_ip && !p->ip_unsure;
		pebs->record.ip = p->ip;
		return finish(pebs);
	}
	if (!pebs->open && !waited && p->type != VMT_PT_BBP)
		return false;
	switch (p->type) {
	case VMT_PT_BBP:
		if (waited) /* its FUP did not come */
			vmt_pt_pebs_lost(pebs);
		begin(pebs, p->kind);
		return false;
	case VMT_PT_BIP:
		if (pebs->open && !put_item(&pebs->record, pebs->type, p->kind, p->payload))
			pebs->record.unknown++;
		return false;
	case VMT_PT_BEP:
		return take_bep(pebs, p);
	default:
		if (!passes(p->type))
			vmt_pt_pebs_lost(pebs);
		return false;
	}
}

void vmt_pt_pebs_lost(struct vmt_pt_pebs *pebs)
{
	pebs->dropped += pebs->open || pebs->wants_fup;
	pebs->open = false;
	pebs->wants_fup = false;
}

const char *vmt_pt_gpr_name(unsigned int gpr)
{
	static const char *const names[VMT_PT_GPR_COUNT] = {
		"RFLAGS", "RIP", "RAX", "RCX", "RDX", "RBX", "RSP", "RBP", "RSI",
		"RDI",	  "R8",	 "R9",	"R10", "R11", "R12", "R13", "R14", "R15",
	};

	return gpr < VMT_PT_GPR_COUNT ? names[gpr] : NULL;
}
