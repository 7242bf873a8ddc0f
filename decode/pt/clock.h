/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_PT_CLOCK_H
#define VMT_PT_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/base/clock.h"
#include "decode/pt/packet.h"
#include "vmx/tsc.h"

/*
 * Host time from timing packets (SDM vol. 3 33.8.3): TSC, TMA, MTC, CYC and CBR, with a bound.
 *
 * Invariant: the true host TSC of the last packet is not below `low`. What bounds a packet from
 * above is the next timing packet: a stamp taken at an event is closed by it.
 *
 * In VMX non-root a TSC packet carries the guest's TSC (33.5.2.3) and is turned into host TSC by
 * the map of the VM that runs; MTC, CYC and CBR stay in host units; TMA in non-root is not trusted.
 */
struct vmt_pt_clock_params {
	uint8_t mtc_freq;   /* RTIT_CTL.MTCFreq */
	uint32_t tsc_num;   /* CPUID.15H:EBX, 0 unknown: MTC and TMA are ignored */
	uint32_t art_den;   /* CPUID.15H:EAX */
	uint32_t nom_ratio; /* max non-turbo ratio, 0 unknown: CYC is used by calibration alone */
	uint64_t tsc_hz;    /* 0 unknown */
	uint64_t reference; /* a host TSC within 2^55 of the first packet: gives the top byte that
			     * TSC packets lack; 0: the top byte is 0 */
	bool cyc_drops_at_psb; /* erratum SKL168 */
};

/* Where the CPU is, as far as the stream tells. */
enum vmt_pt_mode {
	VMT_PT_MODE_UNKNOWN, /* TSC packets are not used */
	VMT_PT_MODE_ROOT,
	VMT_PT_MODE_NONROOT,
};

/* No upper bound: the value is the earliest time that the stream allows. */
#define VMT_PT_NO_BOUND UINT64_MAX

struct vmt_pt_time {
	bool known;
	struct vmt_host_tsc tsc;
	uint64_t error; /* host TSC units; VMT_PT_NO_BOUND */
	uint64_t low;	/* the true value is not below */
};

/* When a packet happened: not before low, not after high once it is closed. */
struct vmt_pt_stamp {
	bool known, closed;
	uint64_t tsc, low, high;
};

/* Host TSC of the crystal edge `ctc` + ticks is base + ticks * N/D, to within a few units. */
struct vmt_pt_crystal {
	bool known;
	bool has_last; /* last holds the ticks of an MTC since the TMA */
	uint8_t bits;  /* low bits of ctc that are known: 16 from a TMA, more after an MTC */
	uint64_t base;
	uint64_t ctc;
	uint64_t last;
};

/* Core cycles since an anchor and the ratio of TSC ticks to cycles. */
struct vmt_pt_cycles {
	bool anchored;
	bool partial; /* the first CYC counts from before the anchor */
	uint64_t anchor, anchor_error;
	uint64_t count;
	uint64_t num, den;   /* ticks = count * num / den; den 0: not known; both below 2^32 */
	uint8_t slack_shift; /* a ratio is trusted to 1 / (1 << slack_shift) */
	uint8_t cbr;
	bool cal_open; /* measuring began at cal_tsc; cal_count cycles since */
	uint64_t cal_tsc, cal_count;
};

struct vmt_pt_clock {
	struct vmt_pt_clock_params params;
	bool known;
	uint64_t tsc;	  /* best estimate at the last packet */
	uint64_t low;	  /* the true time is not below */
	uint64_t sure;	  /* the same without help of CYC: by the last TSC or MTC */
	uint64_t high;	  /* nor above, at the last packet that bounds */
	uint64_t bounds;  /* counts packets that gave an upper bound to everything before them */
	uint64_t drops;	  /* timing packets that were lost or wrong, as far as it shows */
	uint64_t ignored; /* TMA in non-root or corrupt, TSC packets that could not be used */
	/* The rest is the clock's own. */
	bool ambiguous;	   /* packets were lost since the last TSC: nothing but a TSC bounds */
	bool next_at_cyc;  /* the last packet was a CYC that bounds */
	bool here_at_cyc;  /* the last packet happened at the time of a CYC that bounds */
	bool next_counted; /* the last packet was a CYC */
	bool in_psb;
	bool after_psb;	    /* no MTC or TSC since a PSB */
	bool has_root_tsc;  /* root_tsc waits for its TMA */
	bool from_guest;    /* low rests on a TSC packet of a guest */
	uint8_t older_tscs; /* TSC packets in a row that are below low */
	uint64_t root_tsc;
	uint64_t told;
	struct vmt_pt_crystal crystal;
	struct vmt_pt_cycles cycles;
};

void vmt_pt_clock_init(struct vmt_pt_clock *clock, const struct vmt_pt_clock_params *params);

/*
 * Feeds any packet. mode and map say what a TSC packet means: map NULL in non-root: not known, the
 * packet is not used. What is told moves back in one case alone: a TSC packet in root operation
 * shows that the time which a guest's TSC gave is wrong, or two in a row that an earlier one is
 * (counted in drops).
 */
void vmt_pt_clock_packet(struct vmt_pt_clock *clock, const struct vmt_pt_packet *packet,
			 enum vmt_pt_mode mode, const struct vmx_tsc_map *map);

/* The same for a packet that is no timing packet, PSB, PSBEND, OVF or PAD. */
static inline void vmt_pt_clock_plain(struct vmt_pt_clock *clock)
{
	clock->here_at_cyc = clock->next_at_cyc;
	clock->next_at_cyc = false;
	clock->next_counted = false;
}

/*
 * The host TSC values that a TSC packet may stand for, nearest to the time known. False when there
 * are none, or the mode is not known.
 */
bool vmt_pt_clock_convert(const struct vmt_pt_clock *clock, uint64_t payload, enum vmt_pt_mode mode,
			  const struct vmx_tsc_map *map, uint64_t *first, uint64_t *last);

/* Packets were lost here (OVF, bad bytes, a gap between AUX pieces). */
void vmt_pt_clock_lost(struct vmt_pt_clock *clock);

/* The time of the packet that was fed last; closed at once when a CYC stands before it. */
struct vmt_pt_stamp vmt_pt_clock_stamp(const struct vmt_pt_clock *clock);
/* Closes a stamp taken before the last packet that raised clock->bounds. */
void vmt_pt_stamp_close(struct vmt_pt_stamp *stamp, const struct vmt_pt_clock *clock);
/* Closes a stamp that no timing packet follows: by the next MTC that is due, if any. */
void vmt_pt_stamp_finish(struct vmt_pt_stamp *stamp, const struct vmt_pt_clock *clock);

/*
 * Time and error of a stamp, to be asked for in the order of the stream: what is told never goes
 * back. The error is VMT_PT_NO_BOUND until the stamp is closed.
 */
struct vmt_pt_time vmt_pt_clock_tell(struct vmt_pt_clock *clock, const struct vmt_pt_stamp *stamp);

#endif
