/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PT_PEERS_H
#define VMT_SUPPORT_PT_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "decode/pt/packet.h"

/*
 * What a decoder of Intel PT packets gives, summed: equal sums are the same packets. Payloads are
 * those of struct vmt_pt_packet; the address of an IP packet is rebuilt from the one before.
 */
struct vmt_pt_sums {
	uint64_t counts[VMT_PT_TYPE_COUNT];
	uint64_t bytes, payloads, ips;
};

/*
 * libipt's packet decoder over a stream that begins with a PSB. False when it was not there at
 * build time (package libipt-dev), or stopped before the end.
 */
bool vmt_pt_sum_libipt(uint8_t *bytes, size_t len, struct vmt_pt_sums *sums);
/* The same with one printf a packet. */
bool vmt_pt_print_libipt(uint8_t *bytes, size_t len, FILE *out);

/*
 * perf's packet decoder, in a shared object that the caller built from the kernel's sources with
 * tests/bench/perf_peer.c. PADs behind another packet belong to that one there.
 */
typedef int vmt_pt_sum_perf_fn(const uint8_t *bytes, size_t len, struct vmt_pt_sums *sums);
vmt_pt_sum_perf_fn *vmt_pt_perf_open(const char *path);

#endif
