/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_ANALYZE_FILTER_H
#define VMT_ANALYZE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/base/event.h"
#include "decode/base/vcpu_set.h"

/* Which events are wanted: by domain, process and vCPU. All zero: all of them. */
#define VMT_FILTER_DOMAINS 1024u /* indices of domains that can be chosen */
#define VMT_FILTER_PIDS	   64u

struct vmt_filter {
	bool by_domain; /* domains or pids choose */
	uint64_t domains[VMT_FILTER_DOMAINS / 64];
	uint32_t pids[VMT_FILTER_PIDS];
	unsigned int nr_pids;
	bool by_vcpu;
	struct vmt_vcpu_set vcpus; /* others are not wanted */
};

/* False for an index beyond VMT_FILTER_DOMAINS. */
bool vmt_filter_add_domain(struct vmt_filter *filter, uint32_t domain);
/* False when there are VMT_FILTER_PIDS already. */
bool vmt_filter_add_pid(struct vmt_filter *filter, uint32_t pid);

/*
 * Whether the event is wanted. Losses and marks concern everybody unless they name somebody else;
 * any other event that does not say what the filter asks for is not wanted.
 */
bool vmt_filter_passes(const struct vmt_filter *filter, const struct vmt_event *event);

#endif
