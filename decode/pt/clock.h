/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_PT_CLOCK_H
#define VMT_PT_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/base/clock.h"
#include "decode/pt/packet.h"
#include "vmx/tsc.h"

/*
 * Host time from timing packets (SDM vol. 3 33.8.3): TSC, TMA, MTC, CYC and CBR, with an error
 * bound: the true host TSC of the last packet lies within +- error.
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
};

/* Where the CPU is, as far as the stream tells. */
enum vmt_pt_mode {
	VMT_PT_MODE_UNKNOWN,
	VMT_PT_MODE_ROOT,
	VMT_PT_MODE_NONROOT,
};

struct vmt_pt_time {
	bool known;
	struct vmt_host_tsc tsc;
	uint64_t error; /* host TSC units */
};

struct vmt_pt_clock {
	struct vmt_pt_clock_params params;
	struct vmt_pt_time now;
	/* The rest is the clock's own. */
	bool has_anchor, has_mtc, mtc_fixup, in_psb, tsc_since_tma;
	uint64_t anchor; /* host TSC at the last exact point */
	uint64_t anchor_error;
	uint64_t ctc_base;  /* host TSC at the crystal edge that ctc_delta counts from */
	uint64_t ctc_delta; /* crystal ticks since, in full */
	uint16_t last_ctc;  /* full 16 bits when known */
	uint8_t last_mtc;
	uint64_t cycles; /* core cycles since the anchor */
	uint8_t cbr;
	uint64_t ratio_num, ratio_den; /* calibrated TSC ticks a cycle, den 0: not calibrated */
	uint64_t cal_tsc, cal_cycles;
	uint64_t drops;	  /* timing packets that were lost, as far as it shows */
	uint64_t ignored; /* TMA in non-root, TSC packets that could not be converted */
};

void vmt_pt_clock_init(struct vmt_pt_clock *clock, const struct vmt_pt_clock_params *params);

/*
 * Feeds any packet. mode and map say what a TSC packet means: map NULL in non-root: not known, the
 * packet is not used. Time never moves back.
 */
void vmt_pt_clock_packet(struct vmt_pt_clock *clock, const struct vmt_pt_packet *packet,
			 enum vmt_pt_mode mode, const struct vmx_tsc_map *map);

/* Packets were lost here (OVF, bad bytes, a gap between AUX pieces). */
void vmt_pt_clock_lost(struct vmt_pt_clock *clock);

#endif
