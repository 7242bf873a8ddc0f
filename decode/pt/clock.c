// SPDX-License-Identifier: LGPL-2.1-or-later
/* TSC packets in host and guest units, stamps, and what each timing packet does to the clock. */
#include "decode/pt/clock.h"

#include <string.h>

#include "decode/pt/clock_private.h"

#define TSC_BITS 56
#define TSC_MASK ((UINT64_C(1) << TSC_BITS) - 1)

/* A TSC packet may stand this little below the running time without meaning anything. */
#define TSC_SLIP 0x10000u

uint64_t pt_clock_scale(uint64_t value, uint64_t num, uint64_t den)
{
	uint64_t whole = value / den, rest = value % den * num / den, product;

	if (__builtin_mul_overflow(whole, num, &product) ||
	    __builtin_add_overflow(product, rest, &product))
		return UINT64_MAX;
	return product;
}

void vmt_pt_clock_init(struct vmt_pt_clock *clock, const struct vmt_pt_clock_params *params)
{
	memset(clock, 0, sizeof(*clock));
	clock->params = *params;
	clock->cycles.slack_shift = 6;
	if (clock->params.mtc_freq > 15 || !clock->params.art_den)
		clock->params.tsc_num = 0;
}

void pt_clock_set(struct vmt_pt_clock *clock, uint64_t value, uint64_t low, uint64_t high)
{
	if (clock->low < low)
		clock->low = low;
	clock->tsc = value < clock->low ? clock->low : value;
	if (high == VMT_PT_NO_BOUND || clock->ambiguous)
		return;
	clock->high = high < clock->low ? clock->low : high;
	if (clock->tsc > clock->high)
		clock->tsc = clock->high;
	clock->bounds++;
}

uint64_t pt_clock_widen(uint64_t low_bits, uint64_t near)
{
	uint64_t up = (low_bits - near) & TSC_MASK;
	uint64_t down = (near - low_bits) & TSC_MASK;

	if (up <= down)
		return near + up;
	return down <= near ? near - down : near + up;
}

static bool host_near(const struct vmt_pt_clock *clock, uint64_t *near)
{
	*near = clock->known ? clock->tsc : clock->params.reference;
	return clock->known || clock->params.reference;
}

/* Host TSC values that read as a guest's TSC packet; false when there is none. */
static bool from_guest(const struct vmt_pt_clock *clock, uint64_t packet,
		       const struct vmx_tsc_map *map, uint64_t *first, uint64_t *last)
{
	struct vmx_tsc_map scale = *map;
	uint64_t ticks = (packet - map->offset) & TSC_MASK, near;

	scale.offset = 0;
	if (host_near(clock, &near))
		ticks = pt_clock_widen(ticks, vmx_tsc_to_guest(&scale, near));
	return vmx_tsc_to_host(&scale, ticks, first, last);
}

bool vmt_pt_clock_convert(const struct vmt_pt_clock *clock, uint64_t payload, enum vmt_pt_mode mode,
			  const struct vmx_tsc_map *map, uint64_t *first, uint64_t *last)
{
	uint64_t near;

	if (mode == VMT_PT_MODE_NONROOT)
		return map && from_guest(clock, payload, map, first, last);
	if (mode != VMT_PT_MODE_ROOT)
		return false;
	*first = *last = host_near(clock, &near) ? pt_clock_widen(payload, near) : payload;
	return true;
}

/* Whether a TSC below the time known is taken: false to ignore it. */
static bool accept_older(struct vmt_pt_clock *clock, uint64_t first, uint64_t last, bool guest)
{
	if (clock->low - last <= TSC_SLIP) {
		clock->low = first;
		clock->sure = first;
		return true;
	}
	if (clock->older_tscs < UINT8_MAX)
		clock->older_tscs++;
	if (guest || (!clock->from_guest && clock->older_tscs < 2)) {
		clock->ignored++;
		return false;
	}
	clock->drops++;
	clock->low = 0;
	clock->sure = 0;
	clock->told = 0;
	clock->crystal.known = false;
	pt_clock_cycles_lost(clock);
	return true;
}

/* A TSC packet outside PSB+ says that the time before it was not counted: what MTC and CYC packets
 * bound ends there when the packet itself is of no use. */
static void jumped(struct vmt_pt_clock *clock)
{
	if (!clock->in_psb)
		vmt_pt_clock_lost(clock);
}

static void take_tsc(struct vmt_pt_clock *clock, const struct vmt_pt_packet *p,
		     enum vmt_pt_mode mode, const struct vmx_tsc_map *map)
{
	bool guest = mode == VMT_PT_MODE_NONROOT;
	uint64_t first, last;

	clock->has_root_tsc = false;
	if (!vmt_pt_clock_convert(clock, p->payload, mode, map, &first, &last)) {
		clock->ignored++;
		jumped(clock);
		return;
	}
	if (clock->known && last < clock->low && !accept_older(clock, first, last, guest)) {
		jumped(clock);
		return;
	}
	clock->older_tscs = 0;
	clock->known = true;
	clock->ambiguous = false;
	clock->from_guest = guest;
	if (clock->sure < first)
		clock->sure = first;
	pt_clock_set(clock, first, first, last);
	pt_clock_cycles_anchor(clock, first, last - first, !clock->in_psb);
	clock->after_psb = false;
	clock->has_root_tsc = !guest;
	clock->root_tsc = first;
}

static void take_tma(struct vmt_pt_clock *clock, const struct vmt_pt_packet *p,
		     enum vmt_pt_mode mode)
{
	if (mode != VMT_PT_MODE_ROOT || p->reserved || !clock->has_root_tsc)
		clock->ignored++;
	else
		pt_clock_tma(clock, p);
	clock->has_root_tsc = false;
}

void vmt_pt_clock_packet(struct vmt_pt_clock *clock, const struct vmt_pt_packet *packet,
			 enum vmt_pt_mode mode, const struct vmx_tsc_map *map)
{
	if (packet->type == VMT_PT_PAD)
		return;
	clock->here_at_cyc = clock->next_at_cyc;
	clock->next_at_cyc = false;
	switch (packet->type) {
	case VMT_PT_TSC:
		take_tsc(clock, packet, mode, map);
		break;
	case VMT_PT_TMA:
		take_tma(clock, packet, mode);
		break;
	case VMT_PT_MTC:
		pt_clock_mtc(clock, packet);
		break;
	case VMT_PT_CYC:
		pt_clock_cyc(clock, packet);
		break;
	case VMT_PT_CBR:
		pt_clock_cbr(clock, packet);
		break;
	case VMT_PT_PSB:
		clock->in_psb = true;
		clock->after_psb = true;
		break;
	case VMT_PT_PSBEND:
		clock->in_psb = false;
		break;
	case VMT_PT_OVF:
		clock->in_psb = false;
		vmt_pt_clock_lost(clock);
		break;
	default:
		break;
	}
	clock->next_counted = packet->type == VMT_PT_CYC;
}

void vmt_pt_clock_lost(struct vmt_pt_clock *clock)
{
	clock->ambiguous = true;
	clock->here_at_cyc = false;
	clock->next_at_cyc = false;
	clock->has_root_tsc = false;
	pt_clock_cycles_lost(clock);
}

struct vmt_pt_stamp vmt_pt_clock_stamp(const struct vmt_pt_clock *clock)
{
	return (struct vmt_pt_stamp){
		.known = clock->known,
		.closed = clock->known && clock->here_at_cyc,
		.tsc = clock->tsc,
		.low = clock->low,
		.high = clock->here_at_cyc ? clock->high : VMT_PT_NO_BOUND,
	};
}

static void close_at(struct vmt_pt_stamp *stamp, uint64_t high)
{
	if (!stamp->known || stamp->closed)
		return;
	stamp->closed = true;
	stamp->high = high;
	if (stamp->low > high)
		stamp->low = high;
	if (stamp->tsc > high)
		stamp->tsc = high;
}

void vmt_pt_stamp_close(struct vmt_pt_stamp *stamp, const struct vmt_pt_clock *clock)
{
	close_at(stamp, clock->high);
}

void vmt_pt_stamp_finish(struct vmt_pt_stamp *stamp, const struct vmt_pt_clock *clock)
{
	uint64_t edge = clock->ambiguous ? VMT_PT_NO_BOUND : pt_clock_next_edge(clock);

	if (edge != VMT_PT_NO_BOUND)
		close_at(stamp, edge);
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

struct vmt_pt_time vmt_pt_clock_tell(struct vmt_pt_clock *clock, const struct vmt_pt_stamp *stamp)
{
	struct vmt_pt_time t = { .known = stamp->known, .error = VMT_PT_NO_BOUND };
	uint64_t below, above;

	if (!stamp->known)
		return t;
	if (clock->told < stamp->tsc)
		clock->told = stamp->tsc;
	t.tsc.host_tsc = clock->told;
	t.low = stamp->low < clock->told ? stamp->low : clock->told;
	if (stamp->closed) {
		below = apart(clock->told, stamp->low);
		above = apart(clock->told, stamp->high);
		t.error = below > above ? below : above;
	}
	return t;
}
