// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/support/pt_random.h"

#include <stddef.h>

struct random {
	uint64_t state;
	const struct vmt_pt_random_kinds *kinds;
};

static uint64_t below(struct random *r, uint64_t limit)
{
	uint64_t x = r->state += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (x ^ x >> 31) % limit;
}

static uint64_t bits(struct random *r)
{
	return below(r, UINT64_MAX) >> below(r, 64);
}

static void put_ip(struct random *r, struct vmt_ptenc *e)
{
	static const enum vmt_ptenc_ip kinds[] = { VMT_PTENC_TIP, VMT_PTENC_TIP_PGE,
						   VMT_PTENC_TIP_PGD, VMT_PTENC_FUP };
	static const enum vmt_ptenc_form forms[] = {
		VMT_PTENC_SUPPRESSED, VMT_PTENC_UPDATE_16, VMT_PTENC_UPDATE_32, VMT_PTENC_SIGN_48,
		VMT_PTENC_UPDATE_48,  VMT_PTENC_FULL,	   VMT_PTENC_AUTO,
	};
	const uint64_t near = e->last_ip ^ below(r, UINT64_MAX) >> (16 * below(r, 4));

	vmt_ptenc_ip(e, kinds[below(r, 4)], forms[below(r, 7)], near);
}

static void put_branch(struct random *r, struct vmt_ptenc *e)
{
	if (below(r, 4))
		vmt_ptenc_tnt(e, bits(r), 1 + (unsigned int)below(r, 6));
	else
		vmt_ptenc_tnt_long(e, bits(r), 1 + (unsigned int)below(r, 47));
}

static void put_time(struct random *r, struct vmt_ptenc *e)
{
	switch (below(r, 5)) {
	case 0:
		vmt_ptenc_tsc(e, bits(r));
		break;
	case 1:
		vmt_ptenc_tma(e, (uint16_t)bits(r), (uint16_t)below(r, 512));
		break;
	case 2:
		vmt_ptenc_mtc(e, (uint8_t)bits(r));
		break;
	case 3:
		vmt_ptenc_cyc(e, bits(r) >> (r->kinds->old ? 3 : 1));
		break;
	default:
		vmt_ptenc_cbr(e, (uint8_t)bits(r));
	}
}

static void put_state(struct random *r, struct vmt_ptenc *e)
{
	switch (below(r, 8)) {
	case 0:
		vmt_ptenc_pip(e, bits(r), below(r, 2));
		break;
	case 1:
		vmt_ptenc_vmcs(e, bits(r));
		break;
	case 2:
		vmt_ptenc_mode_exec(e, (uint8_t)(below(r, r->kinds->modes) | 4 * below(r, 2)));
		break;
	case 3:
		vmt_ptenc_mode_tsx(e, (uint8_t)below(r, 3));
		break;
	case 4:
		vmt_ptenc_ovf(e);
		break;
	case 5:
		if (!r->kinds->bare_psb || below(r, 2))
			vmt_ptenc_psb(e);
		if (!r->kinds->bare_psb || below(r, 2))
			vmt_ptenc_psbend(e);
		break;
	case 6:
		vmt_ptenc_tracestop(e);
		break;
	default:
		vmt_ptenc_pad(e);
	}
}

static void put_power(struct random *r, struct vmt_ptenc *e)
{
	switch (below(r, 6)) {
	case 0:
		vmt_ptenc_ptw(e, below(r, 2) ? 4 : 8, bits(r), below(r, 2));
		break;
	case 1:
		vmt_ptenc_exstop(e, below(r, 2));
		break;
	case 2:
		vmt_ptenc_mwait(e, (uint8_t)bits(r), (uint8_t)below(r, 4));
		break;
	case 3:
		vmt_ptenc_pwre(e, (uint8_t)below(r, 16), (uint8_t)below(r, 16),
			       !r->kinds->old && below(r, 2));
		break;
	case 4:
		vmt_ptenc_pwrx(e, (uint8_t)below(r, 16), (uint8_t)below(r, 16),
			       (uint8_t)(below(r, 16) & (r->kinds->old ? 0xd : 0xf)));
		break;
	default:
		vmt_ptenc_mnt(e, bits(r));
	}
}

static void put_event(struct random *r, struct vmt_ptenc *e)
{
	if (below(r, 2))
		vmt_ptenc_cfe(e, (uint8_t)(1 + below(r, 15)), (uint8_t)bits(r), below(r, 2));
	else
		vmt_ptenc_evd(e, (uint8_t)below(r, 64), bits(r));
}

static void put_pebs_block(struct random *r, struct vmt_ptenc *e)
{
	const unsigned int bytes = below(r, 2) ? 4 : 8;

	vmt_ptenc_bbp(e, (uint8_t)below(r, 32), bytes);
	for (uint64_t n = below(r, 8); n; n--)
		vmt_ptenc_bip(e, (uint8_t)below(r, 32), bytes,
			      bytes == 4 ? bits(r) & UINT32_MAX : bits(r));
	vmt_ptenc_bep(e, below(r, 2));
}

void vmt_pt_random(struct vmt_ptenc *e, const struct vmt_pt_random_kinds *kinds, uint64_t seed,
		   unsigned int n)
{
	static void (*const puts[])(struct random * r, struct vmt_ptenc * e) = {
		put_ip,	   put_ip,    put_branch, put_time,
		put_state, put_power, put_event,  put_pebs_block,
	};
	struct random r = { .state = seed, .kinds = kinds };

	vmt_ptenc_psb(e);
	while (n) {
		const size_t i = (size_t)below(&r, sizeof(puts) / sizeof(puts[0]));

		if ((puts[i] == put_event && !kinds->events) ||
		    (puts[i] == put_pebs_block && !kinds->blocks))
			continue;
		puts[i](&r, e);
		n--;
	}
}
