// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Items of a capture, in the order of the file, to records of a perf.data in the same order: what
 * ROUND promises of the order in time holds for FINISHED_ROUND.
 */
#include "decode/export/perfdata.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/anchor.h"
#include "decode/base/cursor.h"
#include "decode/export/perfdata_private.h"

#define FLAG_CONTEXT_SWITCH (UINT64_C(1) << 26)
#define USER_HEADER_FEATURE 80u

static int no_memory(struct vmt_diag *diag)
{
	return vmt_diag_set(diag, VMT_E_NOMEM, "cannot export the capture", "memory is short");
}

/* ---- metadata ---- */

static int take_attr(struct vmt_perfdata_export *e, const struct vmt_item *item)
{
	const struct vmt_perfdata_event event = { .attr = item->attr,
						  .bytes = item->attr_bytes,
						  .len = item->attr_len,
						  .ids = item->ids,
						  .nr_ids = item->nr_ids };

	if (item->attr->flags & FLAG_CONTEXT_SWITCH)
		e->has_switch_records = true;
	for (size_t i = 0; i < item->nr_ids; i++) {
		if (item->ids[i] >= e->next_id)
			e->next_id = item->ids[i] + 1;
	}
	if (vmt_ring_set_add(e->ring, item->attr, item->ids, item->nr_ids) == VMT_E_NOMEM)
		return no_memory(e->diag);
	return vmt_perfdata_attr(e->w, &event, e->diag);
}

static int take_format(struct vmt_perfdata_export *e, const struct vmt_item *item)
{
	static const char name[] = "name: sched_switch\n";

	if (item->len >= sizeof(name) && !memcmp(item->data, name, sizeof(name) - 1))
		e->has_sched_switch = true;
	return vmt_perfdata_format(e->w, item->system, (const char *)item->data, item->len,
				   e->diag);
}

static int take_anchors(struct vmt_perfdata_export *e, const struct vmt_item *item)
{
	struct vmt_anchor a;

	for (size_t at = 0; !e->has_time_conv && at + sizeof(a) <= item->len; at += sizeof(a)) {
		memcpy(&a, item->data + at, sizeof(a));
		if (a.flags & VMT_ANCHOR_NO_TIME_ZERO || !a.time_mult)
			continue;
		e->has_time_conv = true;
		return vmt_perfdata_time_conv(e->w, a.time_shift, a.time_mult, a.time_zero,
					      e->diag);
	}
	return 0;
}

/* ---- records ---- */

/* Counts whole records and keeps the time of the last one. */
static void count_records(struct vmt_perfdata_export *e, const struct vmt_item *item)
{
	struct vmt_ring_record r;
	size_t at = 0, last = 0;

	while (item->len - at >= 8) {
		const size_t size = vmt_load_u16(item->data + at + 6);

		if (size < 8 || size > item->len - at)
			break;
		last = at;
		at += size;
		e->totals->records++;
	}
	if (vmt_ring_parse(e->ring, item->data + last, item->len - last, &r, NULL) > 0 &&
	    r.has_time && r.time_ns > e->last_ns)
		e->last_ns = r.time_ns;
}

static int take_records(struct vmt_perfdata_export *e, const struct vmt_item *item)
{
	int err = export_names(e);

	count_records(e, item);
	return err ? err : vmt_perfdata_records(e->w, item->data, item->len, e->diag);
}

static int take_user(struct vmt_perfdata_export *e, const struct vmt_item *item)
{
	if (vmt_load_u32(item->data) != USER_HEADER_FEATURE)
		return vmt_perfdata_records(e->w, item->data, item->len, e->diag);
	/* Pipe mode: in a file the features stand behind the data. */
	if (item->len < 16 || vmt_load_u64(item->data + 8) >= VMT_PERFDATA_FEATURES)
		return 0;
	return vmt_perfdata_feature_bytes(e->w, (unsigned int)vmt_load_u64(item->data + 8),
					  item->data + 16, item->len - 16, e->diag);
}

/* Nothing is missing where a recorder dropped on purpose, or what is no record. */
static int take_loss(struct vmt_perfdata_export *e, const struct vmt_item *item)
{
	static const char *const harmless[] = { "keep", "auxtrace", "after-end", "aux-limit" };

	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
		if (!strcmp(item->loss_kind, harmless[i]))
			return 0;
	}
	if (!strcmp(item->loss_kind, "truncated") && !item->lost_bytes)
		return 0;
	return vmt_perfdata_lost(e->w, item->has_lost_records ? item->lost_records : 0, e->last_ns,
				 e->diag);
}

static int take_item(struct vmt_perfdata_export *e, const struct vmt_item *item)
{
	switch (item->type) {
	case VMT_ITEM_SESSION:
		return export_session(e, item->data, item->len);
	case VMT_ITEM_ATTR:
		return take_attr(e, item);
	case VMT_ITEM_FORMAT:
		return take_format(e, item);
	case VMT_ITEM_RECORDS:
		return take_records(e, item);
	case VMT_ITEM_ROUND:
		return vmt_perfdata_round(e->w, e->diag);
	case VMT_ITEM_ANCHOR:
		return take_anchors(e, item);
	case VMT_ITEM_LOSS:
		return take_loss(e, item);
	case VMT_ITEM_AUX:
		return export_extent(e, item);
	case VMT_ITEM_USER:
		return take_user(e, item);
	case VMT_ITEM_VCPU_LINK: /* of a perf.data, whose ID_INDEX is passed on */
	case VMT_ITEM_VCPU_TSC:
	case VMT_ITEM_MARK:
	case VMT_ITEM_END:
		return 0;
	}
	return 0;
}

/* ---- the whole ---- */

/* Features of file mode lie behind the data. */
static int copy_sections(struct vmt_perfdata_export *e)
{
	struct vmt_reader *reader;
	uint64_t offsets[VMT_PERFDATA_FEATURES], sizes[VMT_PERFDATA_FEATURES] = { 0 };
	int err = 0;

	for (unsigned int i = 0; i < VMT_PERFDATA_FEATURES; i++)
		vmt_perfdata_section(e->perf, i, &offsets[i], &sizes[i]);
	reader = vmt_perfdata_release(e->perf);
	e->perf = NULL;
	for (unsigned int i = 0; !err && i < VMT_PERFDATA_FEATURES; i++) {
		const uint8_t *bytes;
		int64_t got;

		e->totals->sections_left_out += sizes[i] > VMT_READER_MAX;
		if (!sizes[i] || sizes[i] > VMT_READER_MAX)
			continue;
		err = vmt_reader_seek(reader, offsets[i], e->diag);
		got = err ? err : vmt_reader_peek(reader, (size_t)sizes[i], &bytes, e->diag);
		if (got >= (int64_t)sizes[i])
			err = vmt_perfdata_feature_bytes(e->w, i, bytes, (size_t)sizes[i], e->diag);
		else if (got < 0)
			err = (int)got;
	}
	vmt_reader_close(reader);
	return err;
}

static int open_source(struct vmt_perfdata_export *e, struct vmt_reader *reader)
{
	const uint8_t *head;
	int64_t got = vmt_reader_peek(reader, 8, &head, e->diag);
	int err;

	if (got < 0)
		return (int)got;
	if (got >= 8 && (!memcmp(head, "PERFILE2", 8) || !memcmp(head, "2ELIFREP", 8))) {
		e->totals->format = "perf.data";
		err = vmt_perfdata_open(&e->perf, reader, e->diag);
		if (!err)
			vmt_perfdata_want_user(e->perf);
		return err;
	}
	err = vmt_store_recognise(reader, e->diag);
	if (err < 0)
		return err;
	if (got && !err)
		return vmt_diag_at(e->diag, VMT_E_DAMAGED, 0,
				   "the input is neither .vmt nor perf.data",
				   "--pt-raw says that it is a bare Intel PT stream");
	e->totals->format = "vmt";
	return vmt_store_open(&e->store, reader, e->diag);
}

/* The processor as session and trace tell it. */
static int put_cpuid(struct vmt_perfdata_export *e)
{
	const struct vmt_pt_info *info = e->index ? &e->index->info : NULL;

	if (!e->vendor[0])
		return 0;
	if (!info || !info->has_cpu_id)
		return export_cpuid(e->w, e->vendor, 0, 0, 0, e->diag);
	return export_cpuid(e->w, e->vendor, info->family, info->model, info->stepping, e->diag);
}

static int run(struct vmt_perfdata_export *e)
{
	struct vmt_item item;
	int err;

	while ((err = e->store ? vmt_store_next(e->store, &item, e->diag)
			       : vmt_perfdata_next(e->perf, &item, e->diag)) == 1) {
		err = take_item(e, &item);
		if (err)
			return err;
	}
	if (!err)
		err = put_cpuid(e);
	e->totals->ledger = e->store ? vmt_store_ledger(e->store) : vmt_perfdata_ledger(e->perf);
	return err;
}

static int export_capture(struct vmt_reader *reader, struct vmt_perfdata_writer *w,
			  struct vmt_perfdata_totals *totals, struct vmt_diag *diag)
{
	struct vmt_perfdata_export *e = calloc(1, sizeof(*e));
	int err;

	if (e)
		e->ring = vmt_ring_set_new();
	if (!e || !e->ring) {
		free(e);
		vmt_reader_close(reader);
		return no_memory(diag);
	}
	e->w = w;
	e->totals = totals;
	e->diag = diag;
	e->next_id = 1;
	err = open_source(e, reader);
	if (err)
		vmt_reader_close(reader);
	else
		err = run(e);
	if (!err && e->perf)
		err = copy_sections(e);
	vmt_store_close(e->store);
	vmt_perfdata_close(e->perf);
	vmt_ring_set_free(e->ring);
	free(e->areas);
	free(e->threads);
	free(e);
	return err;
}

int vmt_perfdata_export(struct vmt_reader *reader, const struct vmt_input_pt *pt,
			struct vmt_perfdata_writer *w, struct vmt_perfdata_totals *totals,
			struct vmt_diag *diag)
{
	int err;

	*totals = (struct vmt_perfdata_totals){ .format = "pt" };
	if (!pt)
		return export_capture(reader, w, totals, diag);
	err = export_raw(reader, pt, w, totals, diag);
	vmt_reader_close(reader);
	return err;
}
