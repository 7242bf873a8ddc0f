/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_RING_AUX_BUILD_H
#define VMT_RING_AUX_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/aux.h"

/*
 * Makes the tables of a struct vmt_aux_index while a file is walked. Bounded against hostile
 * input: what goes beyond is counted in lost_extents and lost_bytes.
 */
#define VMT_AUX_EXTENTS_MAX (1u << 20)
#define VMT_AUX_AREAS_MAX   8192u
#define VMT_AUX_CUTS_MAX    65536u

/* Where the trace of a CPU (or, VMT_AUX_NO_CPU, of a thread) was stopped. */
struct vmt_aux_cut {
	uint64_t aux_offset; /* of what came after */
	uint32_t cpu, tid;
};

struct vmt_aux_build {
	struct vmt_aux_index *index;
	size_t *caps; /* places for extents, one an area */
	size_t cap_areas;
	size_t last; /* area of the extent before */
	size_t nr_extents;
	struct vmt_aux_cut *cuts;
	size_t nr_cuts, cap_cuts;
};

/*
 * An extent of the area that idx, cpu and tid of `area` name. 1 when it is in the index, 0 when it
 * was counted as lost, VMT_E_NOMEM.
 */
int vmt_aux_build_add(struct vmt_aux_build *build, const struct vmt_aux_area *area,
		      const struct vmt_aux_extent *extent);

/* Notes a place where the trace was stopped; one too many is not noted. VMT_E_NOMEM. */
int vmt_aux_build_cut(struct vmt_aux_build *build, const struct vmt_aux_cut *cut);

/*
 * Ends the build: extents are divided where a cut falls into them (not in snapshots, whose
 * aux_offset means nothing), and what begins at one is marked VMT_AUX_RESTART. Frees what only the
 * build needed, also on failure. VMT_E_NOMEM.
 */
int vmt_aux_build_finish(struct vmt_aux_build *build);

/* Frees the tables. */
void vmt_aux_index_free(struct vmt_aux_index *index);

#endif
