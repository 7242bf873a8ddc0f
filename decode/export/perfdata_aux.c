// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Trace that stands in a capture. A .vmt holds what was drained in pieces that may part a packet:
 * pieces that follow each other are written together, when the first one is met. A perf.data
 * stays as it is. Invariant: of an area, `written` extents are in the output or lost.
 */
#include <stdlib.h>
#include <string.h>

#include "decode/export/perfdata_private.h"

static int order(const struct vmt_aux_area *area, const struct vmt_item *item)
{
	const uint32_t a[] = { area->idx, area->cpu, area->tid };
	const uint32_t b[] = { item->aux_idx, item->aux_cpu, item->aux_tid };

	for (size_t i = 0; i < 3; i++) {
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	}
	return 0;
}

/* The number of the item's area, nr_areas when the index does not have it. */
static size_t find_area(const struct vmt_aux_index *index, const struct vmt_item *item)
{
	size_t from = 0, to = index->nr_areas;

	while (from < to) {
		const size_t middle = from + (to - from) / 2;
		const int c = order(&index->areas[middle], item);

		if (!c)
			return middle;
		if (c < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return index->nr_areas;
}

/* In a perf.data the recorder's own AUXTRACE_INFO has been passed on. */
static int put_info(struct vmt_perfdata_export *e)
{
	const struct vmt_pt_info *info = &e->index->info;
	enum vmt_perfdata_switches switches = VMT_PERFDATA_SWITCHES_NONE;

	if (e->has_pt_info || e->perf)
		return 0;
	e->has_pt_info = true;
	if (e->has_sched_switch)
		switches = VMT_PERFDATA_SWITCHES_TRACEPOINT;
	else if (e->has_switch_records)
		switches =
			info->per_cpu ? VMT_PERFDATA_SWITCHES_CPU_WIDE : VMT_PERFDATA_SWITCHES_IN;
	return vmt_perfdata_pt_info(e->w, info, switches, e->diag);
}

/* Bytes of an extent; fewer when the input has no more. */
static int copy_extent(struct vmt_perfdata_export *e, struct export_trace *t,
		       const struct vmt_aux_extent *extent, bool *is_whole)
{
	uint64_t copied = 0;

	t->aux.reference = extent->reference;
	while (copied < extent->len) {
		const uint64_t left = extent->len - copied;
		const size_t want = left < sizeof(e->chunk) ? (size_t)left : sizeof(e->chunk);
		size_t done = 0;
		int status = e->index->read(e->index->source, extent, copied, e->chunk, want, &done,
					    e->diag);
		int err = done ? export_trace_bytes(t, e->chunk, done) : 0;

		copied += done;
		e->totals->trace_bytes += done;
		if (err)
			return err;
		*is_whole = status == 0;
		if (status == VMT_E_TRUNCATED || status == VMT_E_DAMAGED) {
			vmt_diag_clear(e->diag);
			e->totals->lost_trace_bytes += extent->len - copied;
			return 0;
		}
		if (status)
			return status;
	}
	return 0;
}

static bool follows(const struct vmt_perfdata_export *e, const struct vmt_aux_extent *extent)
{
	return e->store && !e->index->info.snapshot && !(extent[1].handle & VMT_AUX_RESTART) &&
	       extent[1].aux_offset == extent->aux_offset + extent->len;
}

/* Writes the extents from `from` on that follow each other. Returns their number or an error. */
static int64_t put_run(struct vmt_perfdata_export *e, const struct vmt_aux_area *area, size_t from,
		       struct export_trace *t)
{
	size_t to = from + 1;
	bool is_whole = true;
	int err = 0;

	t->size = area->extents[from].len;
	for (; to < area->nr_extents && follows(e, &area->extents[to - 1]); to++)
		t->size += area->extents[to].len;
	for (size_t i = from; !err && is_whole && i < to; i++) {
		err = copy_extent(e, t, &area->extents[i], &is_whole);
		if (!is_whole)
			to = i + 1;
	}
	if (!err)
		err = export_trace_end(t);
	return err ? err : (int64_t)(to - from);
}

static int put_extents(struct vmt_perfdata_export *e, size_t i, const struct vmt_item *item)
{
	const struct vmt_aux_area *area = &e->index->areas[i];
	struct export_area *a = &e->areas[i];
	struct export_trace t = { .w = e->w,
				  .diag = e->diag,
				  .aux = { .offset = item->aux->aux_offset,
					   .idx = area->idx,
					   .tid = item->aux_thread,
					   .cpu = area->cpu },
				  .keep_whole = e->perf != NULL,
				  .has_size = true };
	bool is_whole;
	int64_t n;
	int err;

	if (a->seen++ < a->written)
		return 0;
	if (a->seen <= area->nr_extents) {
		n = put_run(e, area, a->seen - 1, &t);
		a->written += n > 0 ? (size_t)n : 0;
		return n < 0 ? (int)n : 0;
	}
	/* Behind what the index has: the file was still written to. */
	t.size = item->aux->len;
	err = copy_extent(e, &t, item->aux, &is_whole);
	return err ? err : export_trace_end(&t);
}

int export_extent(struct vmt_perfdata_export *e, const struct vmt_item *item)
{
	size_t i;
	int err;

	if (!item->aux->len)
		return 0;
	e->index = e->perf ? vmt_perfdata_aux(e->perf) : vmt_store_aux_index(e->store);
	if (!e->areas && e->index->nr_areas) {
		e->areas = calloc(e->index->nr_areas, sizeof(*e->areas));
		if (!e->areas)
			return vmt_diag_set(e->diag, VMT_E_NOMEM, "cannot export the capture",
					    "memory is short");
	}
	i = find_area(e->index, item);
	if (i == e->index->nr_areas) { /* beyond the limits of the index */
		e->totals->lost_trace_bytes += item->aux->len;
		return 0;
	}
	err = put_info(e);
	if (!err)
		err = export_links(e);
	return err ? err : put_extents(e, i, item);
}
