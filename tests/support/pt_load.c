// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One row of chances a kind; a step is one branch packet with what may stand before it. Invariant:
 * inside `load.guest` the CPU is in VMX non-root, and every step leaves a whole number of packets.
 */
#include "tests/support/pt_load.h"

#include <stdlib.h>
#include <string.h>

#define PSB_EVERY 4096u
#define TARGETS	  1024u
#define BODY_MAX  12u
#define VMS	  4u

/* Chances in 1000 a step; the branches add up to 1000 with TNT. */
struct mix {
	const char *name;
	unsigned int tnt_long, tip, fup_tip;			     /* branches */
	unsigned int cyc, cyc_long, mtc, pad, cbr, mode, transition; /* before them */
	bool replay, guest_only;
};

static const struct mix mixes[VMT_PTLOAD_KINDS] = {
	[VMT_PTLOAD_MIXED] = { "mixed", 10, 150, 2, 80, 10, 20, 120, 1, 3, 2, false, false },
	[VMT_PTLOAD_REPLAY] = { "loop-replayed", 5, 180, 2, 0, 0, 20, 30, 1, 2, 2, true, false },
	[VMT_PTLOAD_CYC] = { "CYC-heavy", 5, 160, 2, 850, 200, 20, 10, 1, 2, 2, false, false },
	[VMT_PTLOAD_GUEST] = { "guest-only", 8, 150, 2, 0, 0, 20, 60, 1, 2, 5, false, true },
	[VMT_PTLOAD_TNT] = { "TNT-heavy", 10, 15, 1, 0, 0, 10, 10, 1, 1, 1, false, false },
};

struct step {
	uint64_t target; /* 0: TNT */
	uint64_t results;
	unsigned int count;
};

struct load {
	struct vmt_ptenc *out;
	const struct mix *mix;
	uint64_t random;
	bool event_trace, guest;
	unsigned int vm;
	uint64_t tsc, ip;
	uint64_t targets[TARGETS];
	struct step body[BODY_MAX];
	unsigned int body_len, body_at, body_left; /* replay: rounds left */
	size_t next_psb;
};

static uint64_t bits(struct load *l)
{
	uint64_t x = l->random += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static unsigned int below(struct load *l, unsigned int n)
{
	return (unsigned int)((bits(l) >> 32) * n >> 32);
}

static bool chance(struct load *l, unsigned int of_1000)
{
	return of_1000 && below(l, 1000) < of_1000;
}

const char *vmt_ptload_name(enum vmt_ptload_kind kind)
{
	return mixes[kind].name;
}

/* ---- time and state ---- */

static void tick(struct load *l)
{
	l->tsc += 20 + below(l, 60);
}

static uint64_t cr3_of(unsigned int world)
{
	return UINT64_C(0x10a2b000) + world * UINT64_C(0x1234000);
}

static uint64_t vmcs_of(unsigned int vm)
{
	return UINT64_C(0x1bff6a000) + vm * UINT64_C(0x3000);
}

static void put_pip(struct load *l)
{
	vmt_ptenc_pip(l->out, cr3_of(l->guest ? 1 + l->vm : 0), l->guest);
}

static void put_psb_plus(struct load *l)
{
	vmt_ptenc_psb(l->out);
	vmt_ptenc_tsc(l->out, l->tsc);
	vmt_ptenc_tma(l->out, (uint16_t)(l->tsc / 88), (uint16_t)(l->tsc % 88));
	vmt_ptenc_cbr(l->out, (uint8_t)(20 + below(l, 16)));
	vmt_ptenc_mode_exec(l->out, 1);
	if (!l->mix->guest_only) {
		vmt_ptenc_vmcs(l->out, vmcs_of(l->vm));
		put_pip(l);
	}
	vmt_ptenc_ip(l->out, VMT_PTENC_FUP, VMT_PTENC_AUTO, l->ip);
	vmt_ptenc_psbend(l->out);
	l->next_psb = l->out->len + PSB_EVERY - 40 + below(l, 80);
}

static uint64_t new_target(struct load *l)
{
	/* Most jumps stay near: a region of 64 KiB, of 4 GiB, or user space. */
	uint64_t *slot = &l->targets[below(l, TARGETS)];
	uint64_t ip = *slot;

	switch (below(l, 16)) {
	case 0:
		ip = UINT64_C(0x00007f1200000000) | (bits(l) & 0x3ffffffff);
		break;
	case 1:
	case 2:
		ip = UINT64_C(0xffffffff81000000) | (bits(l) & 0xffffff);
		break;
	default:
		ip = (l->ip & ~UINT64_C(0xffff)) | (bits(l) & 0xffff);
	}
	if (below(l, 4))
		return *slot;
	*slot = ip;
	return ip;
}

/* ---- VM entries and exits ---- */

static void put_exit(struct load *l)
{
	if (l->event_trace) {
		vmt_ptenc_evd(l->out, 1, bits(l) & 0xffff);
		vmt_ptenc_evd(l->out, 2, 30);
		vmt_ptenc_cfe(l->out, 8, 0, false);
	}
	vmt_ptenc_ip(l->out, VMT_PTENC_FUP, VMT_PTENC_AUTO, l->ip + below(l, 64));
	l->guest = false;
	put_pip(l);
	l->ip = UINT64_C(0xffffffffc0395040);
	vmt_ptenc_ip(l->out, VMT_PTENC_TIP, VMT_PTENC_AUTO, l->ip);
}

static void put_entry(struct load *l)
{
	if (!below(l, 4)) {
		l->vm = below(l, VMS);
		vmt_ptenc_vmcs(l->out, vmcs_of(l->vm));
	}
	if (l->event_trace) {
		vmt_ptenc_cfe(l->out, 7, 0, true);
		vmt_ptenc_ip(l->out, VMT_PTENC_FUP, VMT_PTENC_AUTO, l->ip);
	}
	if (below(l, 2))
		vmt_ptenc_tsc(l->out, l->tsc);
	l->guest = true;
	put_pip(l);
	l->ip = l->targets[below(l, TARGETS)];
	vmt_ptenc_ip(l->out, VMT_PTENC_TIP, VMT_PTENC_AUTO, l->ip);
}

/* All three VMX conceal controls are set and TraceEn is 0 in root operation. */
static void put_absence(struct load *l)
{
	vmt_ptenc_ip(l->out, VMT_PTENC_FUP, VMT_PTENC_AUTO, l->ip);
	vmt_ptenc_ip(l->out, VMT_PTENC_TIP_PGD, VMT_PTENC_SUPPRESSED, 0);
	l->tsc += 2000 + below(l, 4000);
	vmt_ptenc_tsc(l->out, l->tsc);
	vmt_ptenc_tma(l->out, (uint16_t)(l->tsc / 88), (uint16_t)(l->tsc % 88));
	vmt_ptenc_cbr(l->out, (uint8_t)(20 + below(l, 16)));
	vmt_ptenc_mode_exec(l->out, 1);
	vmt_ptenc_ip(l->out, VMT_PTENC_TIP_PGE, VMT_PTENC_AUTO, l->ip + 3);
}

static void put_transition(struct load *l)
{
	if (l->mix->guest_only)
		put_absence(l);
	else if (l->guest)
		put_exit(l);
	else
		put_entry(l);
}

/* ---- branches ---- */

static void put_before(struct load *l)
{
	const struct mix *m = l->mix;

	if (chance(l, m->transition))
		put_transition(l);
	if (chance(l, m->mtc))
		vmt_ptenc_mtc(l->out, (uint8_t)(l->tsc / 88 / 8));
	if (chance(l, m->pad))
		for (unsigned int n = 1 + below(l, 6); n; n--)
			vmt_ptenc_pad(l->out);
	if (chance(l, m->cbr))
		vmt_ptenc_cbr(l->out, (uint8_t)(20 + below(l, 16)));
	if (chance(l, m->cyc))
		vmt_ptenc_cyc(l->out, chance(l, m->cyc_long) ? 32 + below(l, 6000) : below(l, 32));
}

static struct step new_step(struct load *l)
{
	const unsigned int n = below(l, 1000);
	const struct mix *m = l->mix;
	struct step s = { 0 };

	if (n < m->tip) {
		s.target = new_target(l);
	} else {
		s.count = n < m->tip + m->tnt_long ? 7 + below(l, 41) : 6 - below(l, 10) / 8;
		s.results = bits(l);
	}
	return s;
}

static void put_step(struct load *l, const struct step *s)
{
	const struct mix *m = l->mix;

	if (s->target) {
		if (chance(l, m->mode)) {
			vmt_ptenc_mode_exec(l->out, 1);
			vmt_ptenc_ip(l->out, VMT_PTENC_TIP, VMT_PTENC_FULL, s->target);
		} else {
			vmt_ptenc_ip(l->out, VMT_PTENC_TIP, VMT_PTENC_AUTO, s->target);
		}
		l->ip = s->target;
	} else if (s->count > 6) {
		vmt_ptenc_tnt_long(l->out, s->results, s->count);
	} else {
		vmt_ptenc_tnt(l->out, s->results, s->count);
	}
	if (chance(l, m->fup_tip)) {
		vmt_ptenc_ip(l->out, VMT_PTENC_FUP, VMT_PTENC_AUTO, l->ip + 5);
		l->ip = UINT64_C(0xffffffff81a00000) + below(l, 64) * 16;
		vmt_ptenc_ip(l->out, VMT_PTENC_TIP, VMT_PTENC_AUTO, l->ip);
	}
}

static struct step next_step(struct load *l)
{
	if (!l->mix->replay)
		return new_step(l);
	if (!l->body_left) {
		l->body_len = 2 + below(l, BODY_MAX - 1);
		l->body_left = 20 + below(l, 400);
		l->body_at = 0;
		for (unsigned int i = 0; i < l->body_len; i++)
			l->body[i] = new_step(l);
	}
	if (l->body_at == l->body_len) {
		l->body_at = 0;
		l->body_left--;
	}
	return l->body[l->body_at++];
}

void vmt_ptload_run(struct vmt_ptenc *out, const struct vmt_ptload_options *options)
{
	struct load *l = calloc(1, sizeof(*l));

	*out = (struct vmt_ptenc){ .cap = options->bytes + (64u << 10) };
	out->bytes = malloc(out->cap);
	if (!l || !out->bytes)
		abort();
	l->out = out;
	l->mix = &mixes[options->kind];
	l->random = options->seed;
	l->event_trace = options->event_trace;
	l->guest = l->mix->guest_only;
	l->tsc = UINT64_C(0x123456789a);
	l->ip = UINT64_C(0xffffffff81000000);
	for (unsigned int i = 0; i < TARGETS; i++)
		l->targets[i] = UINT64_C(0xffffffff81000000) | (bits(l) & 0x3ffff);
	while (out->len < options->bytes) {
		struct step step;

		if (out->len >= l->next_psb)
			put_psb_plus(l);
		tick(l);
		put_before(l);
		step = next_step(l);
		put_step(l, &step);
	}
	free(l);
}
