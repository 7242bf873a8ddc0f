// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: bytes with an address are written in two cases alone: the side is RW_KEPT, or they are
 * of a transition and its kept end. Everything else that is written says when and where packets are
 * missing, and nothing of where the CPU was.
 */
#include "decode/rewrite/privacy.h"

#include <stdlib.h>
#include <string.h>

#include "decode/rewrite/privacy_private.h"

typedef void take_fn(struct vmt_rewrite *r, const uint8_t *bytes, const struct vmt_pt_packet *p);

#define VMCS_BITS 40
#define HALF_MASK UINT64_C(0xfffff)

/* Four rounds over two halves of 20 bits: one for one whatever the function is. */
static uint64_t scramble(uint64_t v, uint64_t key)
{
	uint64_t left = v >> 20 & HALF_MASK, right = v & HALF_MASK;

	for (unsigned int i = 0; i < 4; i++) {
		uint64_t x = (right + key + i) * UINT64_C(0x9e3779b97f4a7c15), swap = right;

		x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9) + (key >> 32);
		right = left ^ ((x ^ x >> 32) & HALF_MASK);
		left = swap;
	}
	return left << 20 | right;
}

uint64_t vmt_privacy_vmcs(uint64_t pointer, uint64_t key)
{
	const uint64_t none = (UINT64_C(1) << VMCS_BITS) - 1;
	uint64_t v = pointer >> 12 & none;

	if (v == none)
		return none << 12;
	/* All ones stays all ones, so that what would become it goes where that would have gone. */
	v = scramble(v, key);
	if (v == none)
		v = scramble(none, key);
	return v << 12;
}

/* ---- the output ---- */

/*
 * The packet behind a CYC happened at its time. Where that one was left out, CBR keeps the next one
 * from being taken for it.
 */
void rw_flush_cycles(struct vmt_rewrite *r)
{
	if (!r->cycles)
		return;
	vmt_pt_put_cyc(&r->out, r->cycles);
	if (r->spent && r->cbr)
		vmt_pt_put_cbr(&r->out, r->cbr);
	r->cycles = 0;
}

static void put_mode(struct vmt_rewrite *r)
{
	if (r->has_mode)
		vmt_pt_put_mode_exec(&r->out, r->mode);
	r->wait &= ~(uint32_t)RW_MODE;
}

void rw_begin_span(struct vmt_rewrite *r, uint64_t ip)
{
	rw_flush_cycles(r);
	put_mode(r);
	vmt_pt_put_ip(&r->out, VMT_PT_TIP_PGE, ip, true);
	r->on = true;
}

void rw_close_span(struct vmt_rewrite *r, bool told)
{
	if (!r->on && !told)
		return;
	rw_flush_cycles(r);
	vmt_pt_put_no_ip(&r->out, VMT_PT_TIP_PGD);
	r->on = false;
}

static uint64_t vmcs_for_reader(const struct vmt_rewrite *r, uint64_t pointer)
{
	return r->options.keep == VMT_PRIVACY_GUEST ? vmt_privacy_vmcs(pointer, r->options.key)
						    : pointer;
}

void rw_tell_vmcs(struct vmt_rewrite *r)
{
	if (!r->vmcs.known && !r->told_vmcs.known)
		return;
	if (r->vmcs.known && r->told_vmcs.known && r->vmcs.value == r->told_vmcs.value)
		return;
	vmt_pt_put_vmcs(&r->out, r->vmcs.known ? vmcs_for_reader(r, r->vmcs.value) : UINT64_MAX);
	r->told_vmcs = r->vmcs;
}

/* ---- time ---- */

static void take_cyc(struct vmt_rewrite *r, const uint8_t *bytes, const struct vmt_pt_packet *p)
{
	(void)bytes;
	if (r->cycles + p->payload < r->cycles)
		rw_flush_cycles(r);
	r->cycles += p->payload;
	r->spent = false;
}

static void take_time(struct vmt_rewrite *r, const uint8_t *bytes, const struct vmt_pt_packet *p)
{
	rw_settle(r, p);
	if (p->type == VMT_PT_CBR)
		r->cbr = (uint8_t)p->payload;
	rw_flush_cycles(r);
	vmt_pt_put_raw(&r->out, bytes, p->len);
}

/* The other side's TSC is of use to a reader who knows that it is not the kept side's. */
static bool tells_tsc(const struct vmt_rewrite *r)
{
	return r->side == RW_KEPT || r->told != RW_TOLD_KEPT;
}

static void take_tsc(struct vmt_rewrite *r, const uint8_t *bytes, const struct vmt_pt_packet *p)
{
	rw_settle(r, p);
	if (!tells_tsc(r))
		return;
	rw_flush_cycles(r);
	vmt_pt_put_raw(&r->out, bytes, p->len);
}

/* ---- PSB+: what it holds is kept until it is known whose it is ---- */

static bool is_status(enum vmt_pt_type type)
{
	static const uint64_t mask =
		1ull << VMT_PT_TSC | 1ull << VMT_PT_TMA | 1ull << VMT_PT_MTC | 1ull << VMT_PT_CYC |
		1ull << VMT_PT_CBR | 1ull << VMT_PT_PIP | 1ull << VMT_PT_VMCS | 1ull << VMT_PT_FUP |
		1ull << VMT_PT_MODE_EXEC | 1ull << VMT_PT_MODE_TSX | 1ull << VMT_PT_MNT;

	return mask >> type & 1;
}

static bool is_other_pip(const struct vmt_rewrite *r, const struct vmt_pt_packet *p)
{
	return p->nr == (r->options.keep == VMT_PRIVACY_HOST);
}

static void learn_status(struct vmt_rewrite *r)
{
	bool pips[2] = { false, false }; /* of either side */
	enum rw_side side = r->side;

	for (unsigned int i = 0; i < r->nr_status; i++) {
		const struct vmt_pt_packet *p = &r->status[i].packet;

		if (p->type == VMT_PT_PIP)
			pips[is_other_pip(r, p)] = true;
		else if (p->type == VMT_PT_VMCS)
			r->vmcs = (struct rw_address){ p->payload != UINT64_C(0xffffffffff),
						       p->address };
		else if (p->type == VMT_PT_CBR)
			r->cbr = (uint8_t)p->payload;
	}
	/* Both: these are no packets of a processor. */
	if (pips[0] || pips[1])
		side = pips[0] && pips[1] ? RW_UNKNOWN : pips[0] ? RW_KEPT : RW_OTHER;
	/* The side changed and no packet told how: the reader cannot know. */
	if (r->side == RW_KEPT && side != RW_KEPT)
		r->by_cfe = true;
	if (side == RW_KEPT)
		r->told = RW_TOLD_KEPT;
	r->side = side;
}

static bool has_status(const struct vmt_rewrite *r, enum vmt_pt_type type)
{
	for (unsigned int i = 0; i < r->nr_status; i++)
		if (r->status[i].packet.type == type)
			return true;
	return false;
}

static void write_status(struct vmt_rewrite *r, const struct rw_status *s)
{
	const bool kept = r->side == RW_KEPT;
	const struct vmt_pt_packet *p = &s->packet;

	switch (p->type) {
	case VMT_PT_TSC:
	case VMT_PT_TMA:
		if (tells_tsc(r))
			vmt_pt_put_raw(&r->out, s->bytes, p->len);
		break;
	case VMT_PT_MTC:
	case VMT_PT_CYC:
	case VMT_PT_CBR:
		vmt_pt_put_raw(&r->out, s->bytes, p->len);
		break;
	case VMT_PT_VMCS:
		/* The host's address, whoever runs. */
		if (kept || r->options.keep == VMT_PRIVACY_HOST) {
			r->told_vmcs.known = false;
			rw_tell_vmcs(r);
		}
		break;
	case VMT_PT_FUP:
		if (kept && p->has_ip) {
			vmt_pt_put_ip(&r->out, VMT_PT_FUP, p->ip, true);
			r->on = true;
		}
		break;
	case VMT_PT_MODE_EXEC:
		r->has_mode = true;
		r->mode = (uint8_t)p->payload;
		if (kept)
			vmt_pt_put_raw(&r->out, s->bytes, p->len);
		break;
	case VMT_PT_PIP:
	case VMT_PT_MODE_TSX:
		if (kept)
			vmt_pt_put_raw(&r->out, s->bytes, p->len);
		break;
	default:
		break;
	}
}

static void end_status(struct vmt_rewrite *r)
{
	r->in_status = false;
	if (r->options.from_any_psb) {
		r->told_vmcs.known = r->vmcs.known = false;
		r->has_mode = false;
	}
	learn_status(r);
	r->packet_en = has_status(r, VMT_PT_FUP);
	if (r->side != RW_KEPT)
		rw_close_span(r, false);
	else if (!r->packet_en)
		r->on = false;
	rw_flush_cycles(r);
	vmt_pt_put_psb(&r->out);
	for (unsigned int i = 0; i < r->nr_status; i++)
		write_status(r, &r->status[i]);
	vmt_pt_put_psbend(&r->out);
	r->wait &= RW_BOUND;
}

static void take_psb(struct vmt_rewrite *r, const uint8_t *bytes, const struct vmt_pt_packet *p)
{
	(void)bytes;
	rw_settle(r, p);
	r->in_status = true;
	r->nr_status = 0;
}

/* False when the packet does not belong to the PSB+ that it stands in. */
static bool take_status(struct vmt_rewrite *r, const uint8_t *bytes, const struct vmt_pt_packet *p)
{
	if (p->type == VMT_PT_PSBEND) {
		end_status(r);
		return true;
	}
	if (!is_status((enum vmt_pt_type)p->type)) {
		end_status(r);
		return false;
	}
	if (r->nr_status == RW_STATUS_MAX)
		return true;
	r->status[r->nr_status].packet = *p;
	memcpy(r->status[r->nr_status].bytes, bytes, p->len);
	r->nr_status++;
	return true;
}

/* ---- packets of the side that runs ---- */

static void take_pip(struct vmt_rewrite *r, const uint8_t *bytes, const struct vmt_pt_packet *p)
{
	(void)bytes;
	rw_turn_pip(r, p);
}

static void take_vmcs(struct vmt_rewrite *r, const uint8_t *bytes, const struct vmt_pt_packet *p)
{
	(void)bytes;
	rw_turn_vmcs(r, p);
}

static void take_cfe(struct vmt_rewrite *r, const uint8_t *bytes, const struct vmt_pt_packet *p)
{
	(void)bytes;
	rw_turn_cfe(r, p);
}

static void take_evd(struct vmt_rewrite *r, const uint8_t *bytes, const struct vmt_pt_packet *p)
{
	(void)bytes;
	rw_turn_evd(r, p);
}

static void take_fup(struct vmt_rewrite *r, const uint8_t *bytes, const struct vmt_pt_packet *p)
{
	(void)bytes;
	if (r->wait & RW_MODE && !(r->wait & RW_AFTER_FUP) && r->side == RW_KEPT) {
		/* RFLAGS.IF changed. */
		rw_flush_cycles(r);
		put_mode(r);
		r->wait |= RW_BOUND;
	}
	rw_turn_fup(r, p);
}

static void take_mode(struct vmt_rewrite *r, const uint8_t *bytes, const struct vmt_pt_packet *p)
{
	(void)bytes;
	r->has_mode = true;
	r->mode = (uint8_t)p->payload;
	if (r->side == RW_KEPT)
		r->wait |= RW_MODE;
}

static void take_tnt(struct vmt_rewrite *r, const uint8_t *bytes, const struct vmt_pt_packet *p)
{
	if (r->wait)
		rw_settle(r, p);
	r->packet_en = true;
	if (r->side != RW_KEPT || !r->on)
		return;
	rw_flush_cycles(r);
	vmt_pt_put_raw(&r->out, bytes, p->len);
}

static void take_tip(struct vmt_rewrite *r, const uint8_t *bytes, const struct vmt_pt_packet *p)
{
	const bool mode = r->wait & RW_MODE;
	const bool taken = r->wait && rw_settle(r, p);

	(void)bytes;
	r->packet_en = true;
	if (taken || r->side != RW_KEPT || !p->has_ip || p->ip_unsure)
		return;
	if (!r->on) {
		rw_begin_span(r, p->ip);
		return;
	}
	rw_flush_cycles(r);
	if (mode)
		put_mode(r);
	vmt_pt_put_ip(&r->out, VMT_PT_TIP, p->ip, false);
}

static void take_pge(struct vmt_rewrite *r, const uint8_t *bytes, const struct vmt_pt_packet *p)
{
	const bool unsure = r->wait & RW_UNSURE;
	const bool taken = rw_settle(r, p);

	(void)bytes;
	r->packet_en = true;
	if (taken)
		return;
	r->wait &= ~(uint32_t)RW_UNSURE;
	if (unsure)
		r->side = RW_UNKNOWN;
	if (r->side == RW_KEPT && p->has_ip && !p->ip_unsure)
		rw_begin_span(r, p->ip);
}

static void take_pgd(struct vmt_rewrite *r, const uint8_t *bytes, const struct vmt_pt_packet *p)
{
	const bool ip = p->has_ip && !p->ip_unsure;
	const bool unsure = !p->has_ip && (r->wait & RW_AFTER_PIP || r->options.context_filtered);

	(void)bytes;
	if (!rw_settle(r, p) && r->side == RW_KEPT && r->on) {
		rw_flush_cycles(r);
		if (ip)
			vmt_pt_put_ip(&r->out, VMT_PT_TIP_PGD, p->ip, false);
		else
			vmt_pt_put_no_ip(&r->out, VMT_PT_TIP_PGD);
		r->on = false;
	}
	r->packet_en = false;
	if (unsure)
		r->wait |= RW_UNSURE;
}

/* What the side that runs says for itself. */
static void take_own(struct vmt_rewrite *r, const uint8_t *bytes, const struct vmt_pt_packet *p)
{
	const bool tsx = p->type == VMT_PT_MODE_TSX && !(p->payload & 2);

	rw_settle(r, p);
	if (r->side != RW_KEPT)
		return;
	rw_flush_cycles(r);
	if (p->type == VMT_PT_BIP)
		vmt_pt_put_bip(&r->out, bytes, p->len);
	else
		vmt_pt_put_raw(&r->out, bytes, p->len);
	if (p->ip_bit || tsx)
		r->wait |= RW_BOUND;
}

static take_fn *const handlers[VMT_PT_TYPE_COUNT] = {
	[VMT_PT_TNT] = take_tnt,       [VMT_PT_TNT_LONG] = take_tnt,   [VMT_PT_TIP] = take_tip,
	[VMT_PT_TIP_PGE] = take_pge,   [VMT_PT_TIP_PGD] = take_pgd,    [VMT_PT_FUP] = take_fup,
	[VMT_PT_PIP] = take_pip,       [VMT_PT_MODE_EXEC] = take_mode, [VMT_PT_MODE_TSX] = take_own,
	[VMT_PT_TRACESTOP] = take_own, [VMT_PT_CBR] = take_time,       [VMT_PT_TSC] = take_tsc,
	[VMT_PT_MTC] = take_time,      [VMT_PT_TMA] = take_tsc,	       [VMT_PT_CYC] = take_cyc,
	[VMT_PT_VMCS] = take_vmcs,     [VMT_PT_PSB] = take_psb,	       [VMT_PT_PTW] = take_own,
	[VMT_PT_EXSTOP] = take_own,    [VMT_PT_MWAIT] = take_own,      [VMT_PT_PWRE] = take_own,
	[VMT_PT_PWRX] = take_own,      [VMT_PT_BBP] = take_own,	       [VMT_PT_BIP] = take_own,
	[VMT_PT_BEP] = take_own,       [VMT_PT_CFE] = take_cfe,	       [VMT_PT_EVD] = take_evd,
	[VMT_PT_TRIG] = take_own,
};

/* Packets that take their time from a CYC before them (SDM of 2016, 36.3.6). */
static bool takes_cycles(enum vmt_pt_type type)
{
	static const uint64_t mask =
		1ull << VMT_PT_TNT | 1ull << VMT_PT_TNT_LONG | 1ull << VMT_PT_TIP |
		1ull << VMT_PT_TIP_PGE | 1ull << VMT_PT_TIP_PGD | 1ull << VMT_PT_PIP |
		1ull << VMT_PT_VMCS | 1ull << VMT_PT_MODE_EXEC | 1ull << VMT_PT_MODE_TSX |
		1ull << VMT_PT_PTW | 1ull << VMT_PT_EXSTOP | 1ull << VMT_PT_MWAIT |
		1ull << VMT_PT_TSC;

	return mask >> type & 1;
}

static void on_packet(void *context, uint64_t offset, const uint8_t *bytes,
		      const struct vmt_pt_packet *p)
{
	const uint32_t waits = RW_ENTERING | RW_LEFT | RW_GOING | RW_GONE | RW_MODE;
	struct vmt_rewrite *r = context;
	const uint64_t before = r->out.total;

	(void)offset;
	r->fresh = false;
	if (r->in_status && take_status(r, bytes, p))
		return;
	if (handlers[p->type])
		handlers[p->type](r, bytes, p);
	r->other_ran = r->other_ran || r->side == RW_OTHER;
	if (r->out.total == before && takes_cycles((enum vmt_pt_type)p->type) && !(r->wait & waits))
		r->spent = true;
}

/* ---- losses ---- */

static void on_lost(void *context, const char *name)
{
	struct vmt_rewrite *r = context;
	const bool told = !strcmp(name, "aux-gap") || r->fresh;

	r->in_status = false;
	rw_settle(r, NULL);
	r->side = RW_UNKNOWN;
	r->wait = 0;
	r->packet_en = false;
	r->vmcs.known = false;
	r->has_mode = false;
	r->has_reason = r->has_qualification = false;
	rw_flush_cycles(r);
	/* A gap shows by itself, as does what was skipped at its end. */
	if (!told)
		vmt_pt_put_ovf(&r->out);
	r->counts.losses++;
	r->told = RW_TOLD_NOTHING;
	r->told_vmcs.known = false;
	r->on = false;
	r->by_cfe = r->by_cfe || r->out.total;
}

/* ---- life ---- */

static void count_out(void *context, const uint8_t *bytes, size_t len)
{
	struct vmt_rewrite *r = context;

	r->counts.bytes_out += len;
	r->options.write(r->options.context, bytes, len);
}

struct vmt_rewrite *vmt_rewrite_new(const struct vmt_rewrite_options *options)
{
	struct vmt_rewrite *r = calloc(1, sizeof(*r));
	const struct vmt_pt_decoder_options decoder = {
		.cpu = options->cpu,
		.block = options->block,
		.host_cpu = UINT32_MAX,
		.packet = on_packet,
		.lost = on_lost,
		.packet_context = r,
	};

	if (!r)
		return NULL;
	r->options = *options;
	r->fresh = true;
	r->by_cfe = options->keep == VMT_PRIVACY_HOST || options->from_any_psb;
	r->event_trace = options->event_trace;
	r->out.write = count_out;
	r->out.context = r;
	r->decoder = vmt_pt_decoder_new(&decoder);
	if (r->decoder)
		return r;
	free(r);
	return NULL;
}

void vmt_rewrite_free(struct vmt_rewrite *r)
{
	if (r)
		vmt_pt_decoder_free(r->decoder);
	free(r);
}

void vmt_rewrite_feed(struct vmt_rewrite *r, const uint8_t *bytes, size_t len)
{
	r->counts.bytes_in += len;
	vmt_pt_decoder_feed(r->decoder, bytes, len);
}

static void begin_anew(struct vmt_rewrite *r)
{
	vmt_pt_encoder_flush(&r->out);
	r->fresh = true;
	r->out.last_ip_known = false;
}

void vmt_rewrite_gap(struct vmt_rewrite *r)
{
	vmt_pt_decoder_gap(r->decoder);
	begin_anew(r);
}

void vmt_rewrite_seek(struct vmt_rewrite *r)
{
	vmt_pt_decoder_seek(r->decoder);
	begin_anew(r);
}

void vmt_rewrite_flush(struct vmt_rewrite *r)
{
	vmt_pt_encoder_flush(&r->out);
}

void vmt_rewrite_end(struct vmt_rewrite *r)
{
	vmt_pt_decoder_end(r->decoder);
	if (r->in_status)
		end_status(r);
	rw_settle(r, NULL);
	rw_flush_cycles(r);
	vmt_pt_encoder_flush(&r->out);
}

struct vmt_rewrite_counts vmt_rewrite_counts(const struct vmt_rewrite *r)
{
	return r->counts;
}
