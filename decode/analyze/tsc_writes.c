// SPDX-License-Identifier: LGPL-2.1-or-later
/* Invariant: records are stepped over by their sizes; only those of the one tracepoint are decoded.
 */
#include "decode/analyze/input_private.h"

#include <stdlib.h>
#include <string.h>

#include "decode/kvm/rec.h"
#include "decode/ring/ring.h"

#define FIRST_ROWS 64u

struct search {
	struct vmt_tsc_writes *out;
	struct vmt_ring_set *ring;
	struct vmt_catalog *catalog; /* of that tracepoint alone */
	bool known;		     /* its format was there */
	bool short_of_memory;
};

static void add(struct search *s, const struct vmt_rec *rec)
{
	struct vmt_tsc_writes *w = s->out;

	if (w->nr == VMT_TSC_WRITES_MAX) {
		w->too_many = true;
		return;
	}
	if (w->nr == w->room) {
		const size_t room = w->room ? 2 * w->room : FIRST_ROWS;
		struct vmt_tsc_write *rows = realloc(w->rows, room * sizeof(*rows));

		if (!rows) {
			s->short_of_memory = true;
			return;
		}
		w->rows = rows;
		w->room = room;
	}
	w->rows[w->nr++] = (struct vmt_tsc_write){ .time_ns = rec->time_ns,
						   .previous = rec->u.tsc.previous,
						   .next = rec->u.tsc.next,
						   .pid = rec->pid,
						   .tid = rec->tid,
						   .vcpu = rec->u.tsc.vcpu_id };
}

static bool is_write(const struct vmt_rec *rec)
{
	return rec->kind == VMT_REC_KVM_WRITE_TSC_OFFSET && rec->flags & VMT_REC_HAS_VCPU &&
	       rec->flags & VMT_REC_HAS_TIME;
}

static void look(struct search *s, const uint8_t *bytes, size_t len)
{
	struct vmt_rec rec;

	for (size_t at = 0; at < len;) {
		struct vmt_ring_sample sample;
		struct vmt_ring_record record;
		int attr, size = vmt_ring_sample(s->ring, bytes + at, len - at, &sample);

		if (size > 0) {
			at += (size_t)size;
			if (vmt_rec_decode_sample(s->catalog, &sample, &rec) == 1 && is_write(&rec))
				add(s, &rec);
			continue;
		}
		size = vmt_ring_parse(s->ring, bytes + at, len - at, &record, &attr);
		if (size > 0 && vmt_rec_decode(s->catalog, &record, &rec) == 1 && is_write(&rec))
			add(s, &rec);
		if (size <= 0 && (size != VMT_E_DAMAGED || record.size < 8 || record.size % 8 ||
				  record.size > len - at))
			return;
		at += size > 0 ? (size_t)size : record.size;
	}
}

static int take_format(struct search *s, const struct vmt_item *item)
{
	struct vmt_format format;

	if (vmt_format_parse((const char *)item->data, item->len, &format, NULL) ||
	    strcmp(format.name, "kvm_write_tsc_offset") != 0)
		return 0;
	s->known = true;
	return vmt_catalog_add(s->catalog, &format) == VMT_E_NOMEM ? VMT_E_NOMEM : 0;
}

static int take_first(struct vmt_tsc_writes *w, const struct vmt_item *item)
{
	const size_t nr = item->len / sizeof(*w->first);

	if (w->first || !nr)
		return 0;
	w->first = malloc(nr * sizeof(*w->first));
	if (!w->first)
		return VMT_E_NOMEM;
	memcpy(w->first, item->data, nr * sizeof(*w->first));
	w->nr_first = nr;
	return 0;
}

/* 1: there is nothing to look for. */
static int take(struct search *s, const struct vmt_aux_index *trace, const struct vmt_item *item)
{
	switch (item->type) {
	case VMT_ITEM_ATTR:
		return vmt_ring_set_add(s->ring, item->attr, item->ids, item->nr_ids) == VMT_E_NOMEM
			       ? VMT_E_NOMEM
			       : 0;
	case VMT_ITEM_FORMAT:
		return take_format(s, item);
	case VMT_ITEM_VCPU_TSC:
		return take_first(s->out, item);
	case VMT_ITEM_RECORDS:
		if (!s->known || !trace->nr_areas)
			return 1;
		look(s, item->data, item->len);
		return s->short_of_memory ? VMT_E_NOMEM : 0;
	default:
		return 0;
	}
}

int input_find_tsc_writes(struct vmt_input *in, struct vmt_diag *diag)
{
	struct search s = { .out = &in->writes,
			    .ring = vmt_ring_set_new(),
			    .catalog = vmt_catalog_new() };
	int status = s.ring && s.catalog ? 0 : VMT_E_NOMEM;
	struct vmt_item item;

	while (!status) {
		status = input_next_item(in, &item, diag);
		if (status != 1)
			break;
		status = take(&s, input_aux_index(in), &item);
	}
	vmt_ring_set_free(s.ring);
	vmt_catalog_free(s.catalog);
	if (status == VMT_E_NOMEM)
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot read the capture",
				    "memory is short");
	return status < 0 ? status : 0;
}

void vmt_tsc_writes_free(struct vmt_tsc_writes *w)
{
	free(w->rows);
	free(w->first);
	*w = (struct vmt_tsc_writes){ 0 };
}
