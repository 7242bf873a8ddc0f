// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Trace that stands in a capture. A record of trace is padded to 8 bytes with PAD packets, which
 * may only stand between packets: what an extent has beyond a multiple of 8 is written in front of
 * the next extent of its area, when that follows without a gap.
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

static struct vmt_perfdata_aux aux_of(const struct vmt_aux_area *area)
{
	return (struct vmt_perfdata_aux){ .idx = area->idx,
					  .tid = area->tid ? area->tid : UINT32_MAX,
					  .cpu = area->cpu };
}

static int put_rest(struct vmt_perfdata_export *e, size_t i)
{
	struct export_area *a = &e->areas[i];
	struct vmt_perfdata_aux aux = aux_of(&e->index->areas[i]);
	int err;

	if (!a->nr_rest)
		return 0;
	aux.size = a->nr_rest;
	aux.offset = a->offset - a->nr_rest;
	aux.reference = a->reference;
	err = vmt_perfdata_aux_begin(e->w, &aux, e->diag);
	if (!err)
		err = vmt_perfdata_aux_bytes(e->w, a->rest, a->nr_rest, e->diag);
	a->nr_rest = 0;
	return err ? err : vmt_perfdata_aux_end(e->w, e->diag);
}

/* Copies bytes [0..len) of the extent; fewer when the input has no more. */
static int copy_bytes(struct vmt_perfdata_export *e, const struct vmt_aux_extent *extent,
		      uint64_t len, uint64_t *copied)
{
	*copied = 0;
	while (*copied < len) {
		const uint64_t left = len - *copied;
		const size_t want = left < sizeof(e->chunk) ? (size_t)left : sizeof(e->chunk);
		struct vmt_diag damage = { 0 };
		size_t done = 0;
		int status = e->index->read(e->index->source, extent, *copied, e->chunk, want,
					    &done, &damage);
		int err = vmt_perfdata_aux_bytes(e->w, e->chunk, done, e->diag);

		*copied += done;
		e->totals->trace_bytes += done;
		if (err)
			return err;
		if (status == VMT_E_TRUNCATED || status == VMT_E_DAMAGED) {
			e->totals->lost_trace_bytes += extent->len - *copied;
			return 0;
		}
		if (status) {
			if (e->diag && !e->diag->code)
				*e->diag = damage;
			return status;
		}
	}
	return 0;
}

/* The bytes behind the last multiple of 8. */
static int keep_rest(struct vmt_perfdata_export *e, struct export_area *a,
		     const struct vmt_aux_extent *extent, size_t n)
{
	size_t done = 0;
	int status = n ? e->index->read(e->index->source, extent, extent->len - n, a->rest, n,
					&done, NULL)
		       : 0;

	a->nr_rest = done;
	a->reference = extent->reference;
	a->offset = extent->aux_offset + extent->len - n + done;
	e->totals->trace_bytes += done;
	e->totals->lost_trace_bytes += n - done;
	return status == VMT_E_IO || status == VMT_E_NOMEM ? status : 0;
}

/* An extent too short to fill 8 bytes. */
static int add_to_rest(struct vmt_perfdata_export *e, struct export_area *a,
		       const struct vmt_aux_extent *extent)
{
	size_t done = 0;
	int status = e->index->read(e->index->source, extent, 0, a->rest + a->nr_rest,
				    (size_t)extent->len, &done, NULL);

	a->nr_rest += done;
	a->reference = extent->reference;
	a->offset = extent->aux_offset + done;
	e->totals->trace_bytes += done;
	e->totals->lost_trace_bytes += extent->len - done;
	return status == VMT_E_IO || status == VMT_E_NOMEM ? status : 0;
}

static int put_extent(struct vmt_perfdata_export *e, size_t i, const struct vmt_item *item)
{
	const struct vmt_aux_extent *extent = item->aux;
	struct export_area *a = &e->areas[i];
	struct vmt_perfdata_aux aux = aux_of(&e->index->areas[i]);
	/* Snapshots are joined by what they have in common: each stays whole. */
	const uint64_t all = a->nr_rest + extent->len;
	const size_t rest = e->index->info.snapshot ? 0 : (size_t)(all % 8);
	uint64_t copied;
	int err;

	if (rest == all)
		return add_to_rest(e, a, extent);
	aux.size = all - rest;
	aux.tid = item->aux_thread;
	aux.offset = extent->aux_offset - a->nr_rest;
	aux.reference = extent->reference;
	err = vmt_perfdata_aux_begin(e->w, &aux, e->diag);
	if (!err)
		err = vmt_perfdata_aux_bytes(e->w, a->rest, a->nr_rest, e->diag);
	a->nr_rest = 0;
	if (!err)
		err = copy_bytes(e, extent, extent->len - rest, &copied);
	if (!err)
		err = vmt_perfdata_aux_end(e->w, e->diag);
	if (!err && copied == extent->len - rest)
		err = keep_rest(e, a, extent, rest);
	return err;
}

int export_extent(struct vmt_perfdata_export *e, const struct vmt_item *item)
{
	struct export_area *a;
	size_t i;
	int err;

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
	a = &e->areas[i];
	err = put_info(e);
	if (!err)
		err = export_links(e);
	if (!err && (a->offset != item->aux->aux_offset || item->aux->handle & VMT_AUX_RESTART))
		err = put_rest(e, i);
	return err ? err : put_extent(e, i, item);
}

int export_rests(struct vmt_perfdata_export *e)
{
	int err = 0;

	for (size_t i = 0; !err && e->areas && i < e->index->nr_areas; i++)
		err = put_rest(e, i);
	return err;
}
