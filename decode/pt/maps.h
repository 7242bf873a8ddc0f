/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_PT_MAPS_H
#define VMT_PT_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmx/tsc.h"

/* From a moment on a vCPU's TSC follows another map: the VMM wrote it, or KVM moved its offset. */
struct vmt_pt_map_change {
	/* Host TSC: the map before is in force until `last`, this one from `first` on. Between is
	 * what the time of the change leaves open. */
	uint64_t first, last;
	struct vmx_tsc_map map;
	/* Set by vmt_pt_maps_prepare: the guest's TSC at `first`, and the least of this and all
	 * later changes. */
	uint64_t begins, least;
};

/* After changes, sorted by first, were filled in. */
void vmt_pt_maps_prepare(struct vmt_pt_map_change *changes, size_t nr);

/* A vCPU's TSC over time. */
struct vmt_pt_maps {
	const struct vmx_tsc_map *base; /* before the first change */
	const struct vmt_pt_map_change *changes;
	size_t nr;
};

/*
 * The map by which a TSC packet of the guest is read: that of the only stretch of time which is not
 * over at host TSC `low` and in which the guest's TSC can have the payload's value. NULL when there
 * is no such stretch, or more than one.
 */
const struct vmx_tsc_map *vmt_pt_maps_at(const struct vmt_pt_maps *maps, uint64_t low,
					 uint64_t payload);

#endif
