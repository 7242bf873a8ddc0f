/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_PT_CLOCK_PRIVATE_H
#define VMT_PT_CLOCK_PRIVATE_H

#include "decode/pt/clock.h"

/* Units by which an edge that is computed from a TMA may be off: rounding of base, FC and ticks. */
#define PT_EDGE_ERROR 3

/* value * num / den for num and den below 2^32, den > 0; UINT64_MAX when it does not fit. */
uint64_t pt_clock_scale(uint64_t value, uint64_t num, uint64_t den);

/* The value with these low 56 bits, as TSC packets have them, that is nearest to near. */
uint64_t pt_clock_widen(uint64_t low_bits, uint64_t near);

/*
 * An interval for the last packet. high VMT_PT_NO_BOUND: unknown. Raises low; counts a bound when
 * high is one and nothing was lost since the last TSC.
 */
void pt_clock_set(struct vmt_pt_clock *clock, uint64_t value, uint64_t low, uint64_t high);

void pt_clock_tma(struct vmt_pt_clock *clock, const struct vmt_pt_packet *packet);
void pt_clock_mtc(struct vmt_pt_clock *clock, const struct vmt_pt_packet *packet);
/* Upper bound of the next MTC edge that is due; VMT_PT_NO_BOUND when MTC is not in use. */
uint64_t pt_clock_next_edge(const struct vmt_pt_clock *clock);

void pt_clock_cyc(struct vmt_pt_clock *clock, const struct vmt_pt_packet *packet);
void pt_clock_cbr(struct vmt_pt_clock *clock, const struct vmt_pt_packet *packet);
/*
 * The cycle counter is compared with a time that is known otherwise, to +- error, and starts from
 * it. stopped: the time before it is no measure of the ratio.
 */
void pt_clock_cycles_anchor(struct vmt_pt_clock *clock, uint64_t tsc, uint64_t error, bool stopped);
void pt_clock_cycles_lost(struct vmt_pt_clock *clock);

#endif
