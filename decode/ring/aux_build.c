// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: areas are sorted by idx, cpu, tid; the extents of each stand in the order in which
 * they were added; their number in all areas is nr_extents <= VMT_AUX_EXTENTS_MAX.
 */
#include "decode/ring/aux_build.h"

#include <stdlib.h>
#include <string.h>

static int compare(const struct vmt_aux_area *a, const struct vmt_aux_area *b)
{
	if (a->idx != b->idx)
		return a->idx < b->idx ? -1 : 1;
	if (a->cpu != b->cpu)
		return a->cpu < b->cpu ? -1 : 1;
	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

/* The place of an area: where it is, or where it belongs. */
static size_t place_of(const struct vmt_aux_index *index, const struct vmt_aux_area *area,
		       bool *found)
{
	size_t low = 0, high = index->nr_areas;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare(&index->areas[middle], area) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*found = low < index->nr_areas && !compare(&index->areas[low], area);
	return low;
}

static int grow_areas(struct vmt_aux_build *b)
{
	size_t cap = b->cap_areas ? b->cap_areas * 2 : 16;
	struct vmt_aux_area *areas;
	size_t *caps;

	if (b->index->nr_areas < b->cap_areas)
		return 0;
	areas = realloc(b->index->areas, cap * sizeof(*areas));
	if (!areas)
		return VMT_E_NOMEM;
	b->index->areas = areas;
	caps = realloc(b->caps, cap * sizeof(*caps));
	if (!caps)
		return VMT_E_NOMEM;
	b->caps = caps;
	b->cap_areas = cap;
	return 0;
}

/* 1 and the area in b->last, 0 when there are too many, VMT_E_NOMEM. */
static int find_area(struct vmt_aux_build *b, const struct vmt_aux_area *area)
{
	struct vmt_aux_index *index = b->index;
	size_t at, behind;
	bool found;

	if (b->last < index->nr_areas && !compare(&index->areas[b->last], area))
		return 1;
	at = place_of(index, area, &found);
	if (!found) {
		if (index->nr_areas == VMT_AUX_AREAS_MAX)
			return 0;
		if (grow_areas(b))
			return VMT_E_NOMEM;
		behind = index->nr_areas - at;
		memmove(&index->areas[at + 1], &index->areas[at], behind * sizeof(*area));
		memmove(&b->caps[at + 1], &b->caps[at], behind * sizeof(b->caps[0]));
		index->areas[at] = *area;
		index->areas[at].extents = NULL;
		index->areas[at].nr_extents = 0;
		b->caps[at] = 0;
		index->nr_areas++;
	}
	b->last = at;
	return 1;
}

static int grow_extents(struct vmt_aux_area *area, size_t *cap)
{
	size_t larger = *cap ? *cap + *cap / 2 + 1 : 8;
	struct vmt_aux_extent *extents;

	if (area->nr_extents < *cap)
		return 0;
	extents = realloc(area->extents, larger * sizeof(*extents));
	if (!extents)
		return VMT_E_NOMEM;
	area->extents = extents;
	*cap = larger;
	return 0;
}

int vmt_aux_build_add(struct vmt_aux_build *b, const struct vmt_aux_area *area,
		      const struct vmt_aux_extent *extent)
{
	int ok = b->nr_extents < VMT_AUX_EXTENTS_MAX ? find_area(b, area) : 0;
	struct vmt_aux_area *to;

	if (ok < 0)
		return ok;
	if (!ok) {
		b->index->lost_extents++;
		b->index->lost_bytes += extent->len;
		return 0;
	}
	to = &b->index->areas[b->last];
	if (grow_extents(to, &b->caps[b->last]))
		return VMT_E_NOMEM;
	to->extents[to->nr_extents++] = *extent;
	b->nr_extents++;
	return 1;
}

int vmt_aux_build_cut(struct vmt_aux_build *b, const struct vmt_aux_cut *cut)
{
	if (b->nr_cuts == VMT_AUX_CUTS_MAX)
		return 0;
	if (b->nr_cuts == b->cap_cuts) {
		size_t cap = b->cap_cuts ? b->cap_cuts * 2 : 64;
		struct vmt_aux_cut *cuts = realloc(b->cuts, cap * sizeof(*cuts));

		if (!cuts)
			return VMT_E_NOMEM;
		b->cuts = cuts;
		b->cap_cuts = cap;
	}
	b->cuts[b->nr_cuts++] = *cut;
	return 0;
}

static bool is_of(const struct vmt_aux_cut *cut, const struct vmt_aux_area *area)
{
	return area->cpu == VMT_AUX_NO_CPU ? cut->tid == area->tid : cut->cpu == area->cpu;
}

/* The next cut of the area, from nr on, that is not in front of aux_offset. */
static size_t next_cut(const struct vmt_aux_build *b, const struct vmt_aux_area *area, size_t nr,
		       uint64_t aux_offset)
{
	while (nr < b->nr_cuts &&
	       (!is_of(&b->cuts[nr], area) || b->cuts[nr].aux_offset < aux_offset))
		nr++;
	return nr;
}

/* Copies an extent, divided at the cuts from *nr on; returns where the next one goes. */
static struct vmt_aux_extent *divide(const struct vmt_aux_build *b, const struct vmt_aux_area *area,
				     struct vmt_aux_extent rest, size_t *nr,
				     struct vmt_aux_extent *out)
{
	for (;;) {
		uint64_t front;

		*nr = next_cut(b, area, *nr, rest.aux_offset);
		if (*nr == b->nr_cuts)
			break;
		front = b->cuts[*nr].aux_offset - rest.aux_offset;
		if (front >= rest.len)
			break;
		(*nr)++;
		if (front) {
			*out = rest;
			out++->len = front;
			rest.at += front;
			rest.len -= front;
			rest.aux_offset += front;
		}
		rest.handle |= VMT_AUX_RESTART;
	}
	*out++ = rest;
	return out;
}

/* Cuts and extents both ascend in the stream; a cut that is out of order is not found. */
static int cut_area(const struct vmt_aux_build *b, struct vmt_aux_area *area)
{
	size_t nr = next_cut(b, area, 0, 0);
	struct vmt_aux_extent *divided, *out;

	if (nr == b->nr_cuts)
		return 0;
	divided = malloc((area->nr_extents + b->nr_cuts - nr) * sizeof(*divided));
	if (!divided)
		return VMT_E_NOMEM;
	out = divided;
	for (size_t i = 0; i < area->nr_extents; i++)
		out = divide(b, area, area->extents[i], &nr, out);
	free(area->extents);
	area->extents = divided;
	area->nr_extents = (size_t)(out - divided);
	return 0;
}

int vmt_aux_build_finish(struct vmt_aux_build *b)
{
	int status = 0;

	for (size_t i = 0; !status && !b->index->info.snapshot && i < b->index->nr_areas; i++)
		status = cut_area(b, &b->index->areas[i]);
	free(b->cuts);
	free(b->caps);
	*b = (struct vmt_aux_build){ 0 };
	return status;
}

void vmt_aux_index_free(struct vmt_aux_index *index)
{
	for (size_t i = 0; i < index->nr_areas; i++)
		free(index->areas[i].extents);
	free(index->areas);
	index->areas = NULL;
	index->nr_areas = 0;
}
