// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * TNT, TIP, TIP.PGE and TIP.PGD: the branches of the walk, and what the packets before them change
 * with them: VM entries and exits, CR3, the execution mode.
 */
#include <string.h>

#include "decode/flow/flow_private.h"

void flow_take_tnt(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	flow_confirm(f);
	flow_abandon(f);
	f->blind_tnt = true;
	if (flow_is_lost(f))
		return;
	if (f->nr_tnt + p->count > 64) {
		flow_lose(f, "results of branches are left over");
		return;
	}
	f->tnt = f->tnt << p->count | p->payload;
	f->nr_tnt += p->count;
	flow_spend_tnt(f);
}

/*
 * What the packets before a TIP or TIP.PGD changed; told before the state becomes the new one
 * (VM_EXIT), or behind it. class: of the instruction at `ip` that branched, OTHER when the event
 * was asynchronous.
 */
static void transit(struct vmt_flow *f, const struct vmt_pt_packet *tip, uint64_t ip,
		    unsigned int class, uint64_t behind)
{
	const uint32_t pending = f->pending;
	/* A CFE tells an exit also where the stream has not told that a guest ran. */
	const bool was = f->state.where.nonroot || (class == VMT_INSN_OTHER && pending & FLOW_EXIT);
	const bool now = pending & FLOW_PIP ? f->pip.nr : was && !(pending & FLOW_EXIT);
	struct vmt_flow_event e = {
		.has_ip = true, .ip = ip, .has_to = tip->has_ip, .to = tip->ip
	};

	f->pending &= ~(uint32_t)(FLOW_PIP | FLOW_ENTRY | FLOW_MODE | FLOW_FUP | FLOW_EXIT |
				  FLOW_ABORT | FLOW_OWN | FLOW_OPENS | FLOW_EVD);
	flow_deliver(f, NULL);
	if (was && !now) {
		e.type = VMT_FLOW_VM_EXIT;
		f->counts.exits++;
		if (pending & FLOW_EXIT) {
			e.has_reason = f->exit.has_reason;
			e.reason = f->exit.reason;
			e.has_qualification = f->exit.has_qualification;
			e.qualification = f->exit.qualification;
			e.has_vector = f->exit_has_vector;
			e.vector = f->exit_vector;
		}
		flow_tell(f, &e);
		f->outside = tip->type == VMT_PT_TIP_PGD && !f->root_ran;
		f->left = f->state.where;
	}
	if (pending & FLOW_PIP)
		flow_set_pip(f, &f->pip);
	else
		flow_set_world(f, now);
	if (pending & FLOW_MODE)
		flow_set_mode(f, f->mode);
	f->root_ran = f->root_ran || (!now && tip->type == VMT_PT_TIP);
	if (was && !now)
		return;
	if (!was && now) {
		e.type = VMT_FLOW_VM_ENTRY;
		f->counts.entries++;
	} else if (class == VMT_INSN_VMENTRY && !now &&
		   (pending & FLOW_ENTRY || (tip->has_ip && tip->ip == behind))) {
		e.type = VMT_FLOW_ENTRY_FAILED;
		e.early = !(pending & FLOW_ENTRY);
		f->counts.failed_entries++;
	} else if (class == VMT_INSN_OTHER && tip->type == VMT_PT_TIP) {
		e.type = VMT_FLOW_ASYNC;
	} else {
		return;
	}
	flow_tell(f, &e);
}

static void async_tip(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	const uint64_t ip = f->ip;

	flow_jump(f, p->ip);
	transit(f, p, ip, VMT_INSN_OTHER, 0);
	f->counts.branches++;
	if (f->nr_tnt)
		flow_spend_tnt(f);
}

/* Spends the TIP of a branch; p NULL: nothing waits for a TIP. */
static void sync_tip(struct vmt_flow *f, uint64_t to, const struct vmt_pt_packet *p)
{
	struct flow_block *b = flow_go_to_class(f, FLOW_TIPS);
	uint64_t ip, behind;
	unsigned int class;

	if (!b)
		return;
	ip = flow_last_ip(b);
	behind = flow_behind(b);
	class = b->class;
	flow_run_indirect(f, b, to);
	if (p || class == VMT_INSN_VMENTRY) {
		const struct vmt_pt_packet tip = { .type = VMT_PT_TIP, .has_ip = true, .ip = to };

		transit(f, p ? p : &tip, ip, class, behind);
	}
	if (f->nr_tnt)
		flow_spend_tnt(f);
}

/*
 * A TIP out of code that is not known. Behind a TNT it may have been held back: then the results
 * before it are those of the code that it leads to, and nobody knows how many.
 */
static bool sees_again(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	const uint32_t pending = f->pending;
	const uint64_t ip = f->ip;
	const char *why;

	if (f->blind_tnt)
		return false;
	if (pending & FLOW_FUP)
		transit(f, p, ip, VMT_INSN_OTHER, 0);
	else if (pending & FLOW_PIP)
		flow_set_pip(f, &f->pip);
	if (pending & FLOW_MODE)
		flow_set_mode(f, f->mode);
	f->pending = 0;
	flow_deliver(f, NULL);
	if (!flow_block_at(f, p->ip, &why))
		return false;
	flow_start(f, p->ip);
	flow_confirm(f);
	return true;
}

void flow_take_tip(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	const bool known = p->has_ip && !p->ip_unsure;

	if (f->phase == FLOW_BLIND && known && sees_again(f, p))
		return;

	if (f->phase == FLOW_RESUME && known) {
		flow_start(f, p->ip); /* SKD010: no FUP came behind an overflow */
		f->pending = 0;
		flow_confirm(f);
		return;
	}
	if (f->phase == FLOW_ON && !known)
		flow_lose(f, "a TIP without an address");
	if (flow_is_lost(f)) {
		f->pending = 0;
		return;
	}
	flow_confirm(f);
	if (f->pending & FLOW_FUP)
		async_tip(f, p);
	else
		sync_tip(f, p->ip, f->pending || f->nr_waiting ? p : NULL);
}

void flow_take_pge(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	const uint32_t pending = f->pending;

	flow_deliver(f, NULL);
	f->pending = 0;
	f->unconfirmed = false;
	if (!p->has_ip || p->ip_unsure) {
		if (f->phase == FLOW_ON)
			flow_lose(f, "TIP.PGE without an address");
		f->phase = FLOW_LOST;
		return;
	}
	if (pending & FLOW_PIP)
		flow_set_pip(f, &f->pip);
	if (pending & FLOW_MODE)
		flow_set_mode(f, f->mode);
	if (f->outside) {
		/* Where only guests are traced, an entry that goes on without a PSB+ sends no PIP.
		 */
		f->outside = false;
		f->state.where = f->left;
		flow_view_changed(f);
	}
	flow_start(f, p->ip);
	f->unconfirmed = false;
	f->root_ran = f->root_ran || !f->state.where.nonroot;
	flow_tell(f, &(struct vmt_flow_event){
			     .type = VMT_FLOW_ENABLED, .has_to = true, .to = p->ip });
}

static bool leaves_filter(const struct vmt_flow *f, uint64_t ip)
{
	for (size_t i = 0; i < f->options.nr_filters; i++)
		if (ip >= f->options.filters[i].first && ip <= f->options.filters[i].last)
			return false;
	return f->options.nr_filters != 0;
}

/* The branch or MOV to CR3 that switches tracing off; NULL: told. */
static struct flow_block *find_disabling(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	const uint32_t direct = FLOW_CLASS(JMP) | FLOW_CLASS(CALL);
	const uint32_t classes =
		FLOW_TIPS | FLOW_CLASS(JCC) | direct | (p->has_ip ? 0 : FLOW_CLASS(MOV_CR3));
	struct flow_block *b;

	for (;;) {
		b = flow_go_to_class(f, classes);
		if (!b || !(direct >> b->class & 1))
			return b;
		if (p->has_ip ? b->target == p->ip
			      : f->errata & VMT_PT_SKL014 && leaves_filter(f, b->target))
			return b;
		if (!flow_pass(f, b))
			return NULL;
	}
}

/* SKD022: a VM entry that clears TraceEn sends a FUP. */
static bool entry_at_fup(struct vmt_flow *f)
{
	const char *why;
	const struct flow_block *b = flow_block_at(f, f->ip, &why);

	return b && b->class == VMT_INSN_VMENTRY && b->count == 1;
}

void flow_take_pgd(struct vmt_flow *f, const struct vmt_pt_packet *p)
{
	struct vmt_flow_event e = { .type = VMT_FLOW_DISABLED,
				    .has_to = p->has_ip && !p->ip_unsure,
				    .to = p->ip };
	bool async = f->pending & FLOW_FUP;
	struct flow_block *b;

	if (f->phase != FLOW_ON) {
		if (f->phase == FLOW_BLIND && f->pending & FLOW_FUP)
			transit(f, p, f->ip, VMT_INSN_OTHER, 0);
		f->phase = FLOW_OFF;
		f->pending = 0;
		f->unconfirmed = false;
		return;
	}
	flow_confirm(f);
	if (async && f->errata & VMT_PT_SKD022 && entry_at_fup(f)) {
		f->pending &= ~(uint32_t)FLOW_FUP;
		async = false;
	}
	e.has_ip = async;
	e.ip = f->ip;
	if (async) {
		transit(f, p, f->ip, VMT_INSN_OTHER, 0);
	} else {
		b = find_disabling(f, p);
		if (b) {
			const uint64_t ip = flow_last_ip(b), behind = flow_behind(b);
			const unsigned int class = b->class;

			flow_run(f, b, e.has_to, e.to);
			transit(f, p, ip, class, behind);
		}
	}
	if (f->phase == FLOW_ON && f->nr_tnt)
		flow_lose(f, "results of branches are left over");
	else if (f->phase == FLOW_ON)
		flow_tell(f, &e);
	f->phase = FLOW_OFF;
	f->nr_tnt = 0;
	f->stack_nr = 0;
}

/* ---- the short way ---- */

/* A PAD or TNT at the reader; false: it is another packet, or stands not whole. */
static inline bool plain_tnt(struct vmt_flow *f, struct vmt_pt_reader *r)
{
	const unsigned int byte = *r->pos;
	unsigned int len = 1, top;
	uint64_t bits = byte >> 1;

	if (byte == 0x02) {
		if (r->end - r->pos < 8 || r->pos[1] != 0xa3)
			return false;
		memcpy(&bits, r->pos, 8);
		bits >>= 16;
		len = 8;
	}
	if (bits <= 1) {
		r->pos += !byte; /* PAD */
		return !byte;
	}
	top = 63u - (unsigned int)__builtin_clzll(bits);
	if (f->nr_tnt + top > 64)
		return false;
	r->pos += len;
	f->tnt = f->tnt << top | (bits & ((UINT64_C(1) << top) - 1));
	f->nr_tnt += top;
	flow_spend_tnt(f);
	return true;
}

/* A TIP at the reader whose IP can be rebuilt. */
static inline bool plain_tip(struct vmt_flow *f, struct vmt_pt_reader *r)
{
	static const uint8_t payload[8] = { 0, 2, 4, 6, 6, 0, 8, 0 };
	const unsigned int byte = *r->pos, n = payload[byte >> 5];
	uint64_t ip = 0;

	if ((byte & 0x1f) != 0x0d || !n || !r->last_ip_known || r->end - r->pos < 1 + (ptrdiff_t)n)
		return false;
	memcpy(&ip, r->pos + 1, n);
	if (byte >> 5 == 3)
		ip = (uint64_t)((int64_t)(ip << 16) >> 16);
	else if (n < 8)
		ip |= r->last_ip & UINT64_MAX << (8 * n);
	r->last_ip = ip;
	r->pos += 1 + n;
	sync_tip(f, ip, NULL);
	return true;
}

/*
 * The many TNT and TIP packets between all others, taken from their bytes at once. What is not
 * plain stays for flow_packet: packets that something waits for, IPs that cannot be rebuilt.
 */
size_t flow_branches(void *context, uint64_t offset, struct vmt_pt_reader *r, const uint8_t *limit)
{
	struct vmt_flow *f = context;
	const uint8_t *const begin = r->pos;
	size_t packets = 0;

	if (f->phase != FLOW_ON || f->unconfirmed || f->pending || f->nr_waiting || f->psb.inside ||
	    f->skipped)
		return 0;
	f->state.has_tsc = f->clock->known;
	f->state.tsc = f->clock->tsc;
	for (; r->pos < limit && f->phase == FLOW_ON && !f->pending; packets++) {
		f->state.offset = offset + (uint64_t)(r->pos - begin);
		if (!(*r->pos & 1 ? plain_tip(f, r) : plain_tnt(f, r)))
			break;
	}
	return packets;
}
