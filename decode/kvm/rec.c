// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A format is compiled once into loads: where in the raw record, how wide, whether signed, and
 * where in the rec. Invariant: every load of a plan lies inside the plan's min_len bytes of raw
 * record, so that one length check a record is enough.
 */
#include "decode/kvm/rec.h"

#include <stdlib.h>
#include <string.h>

#include "decode/base/cursor.h"
#include "decode/base/event.h"
#include "decode/base/zero.h"
#include "decode/kvm/rec_table.h"

#define FORMATS_MAX	  4096
#define COMMON_PID_OFFSET 4
#define NO_CATALOG	  0xffff
#define AUX_FLAGS_LOST	  (VMT_RING_AUX_TRUNCATED | VMT_RING_AUX_PARTIAL | VMT_RING_AUX_COLLISION)

_Static_assert(sizeof(struct vmt_rec) == 88, "the merge counts on 88 bytes a rec");

/*
 * A field is read as the 8 bytes that hold it, of which a left and a right shift leave the field:
 * no branch on its width.
 */
struct load {
	uint16_t offset; /* of the 8 bytes in the raw record */
	uint8_t left, right;
	bool is_signed;
	uint8_t member; /* byte offset in struct vmt_rec */
	uint8_t store;	/* enum vmt_rec_store */
};

/* A field that is copied as it is. */
struct copy {
	uint16_t offset;
	uint8_t member;
};

struct plan {
	uint8_t kind;
	uint8_t flags;
	uint16_t min_len;
	uint8_t nr_wide, nr_narrow, nr_loads;
	struct copy wide[VMT_REC_FIELDS_MAX];	/* 8 bytes */
	struct copy narrow[VMT_REC_FIELDS_MAX]; /* 4 bytes */
	struct load loads[VMT_REC_FIELDS_MAX];	/* all others */
	struct vmt_format format;
};

struct vmt_catalog {
	struct plan **plans;
	size_t count, cap;
	uint16_t *by_id; /* index + 1 by tracepoint id below nr_by_id */
	size_t nr_by_id;
};

struct vmt_catalog *vmt_catalog_new(void)
{
	return calloc(1, sizeof(struct vmt_catalog));
}

void vmt_catalog_free(struct vmt_catalog *catalog)
{
	if (!catalog)
		return;
	for (size_t i = 0; i < catalog->count; i++)
		free(catalog->plans[i]);
	free(catalog->plans);
	free(catalog->by_id);
	free(catalog);
}

static void add_load(struct plan *plan, const struct vmt_rec_field *row)
{
	const struct vmt_format_field *f = vmt_format_find(&plan->format, row->name);
	unsigned int offset, shift;

	if (!f || f->is_dynamic || f->size < 1 || f->size > 8)
		return;
	plan->flags |= row->flag;
	if (f->size == 8 && row->store == VMT_STORE_U64) {
		plan->wide[plan->nr_wide++] = (struct copy){ f->offset, row->member };
		return;
	}
	if (f->size == 4 && row->store == VMT_STORE_U32) {
		plan->narrow[plan->nr_narrow++] = (struct copy){ f->offset, row->member };
		return;
	}
	/* The last 8 bytes of the record may be read, never more. */
	offset = f->offset;
	if (offset > plan->min_len - 8u)
		offset = plan->min_len - 8u;
	shift = 8 * (f->offset - offset);
	plan->loads[plan->nr_loads++] = (struct load){
		.offset = (uint16_t)offset,
		.left = (uint8_t)(64 - 8u * f->size - shift),
		.right = (uint8_t)(64 - 8u * f->size),
		.is_signed = f->is_signed,
		.member = row->member,
		.store = row->store,
	};
}

/* What a record of the format has at least: every field. 0 when no record can be that long. */
static uint16_t min_len_of(const struct vmt_format *format)
{
	uint32_t len = 8;

	for (unsigned int i = 0; i < format->nr_fields; i++) {
		uint32_t end = (uint32_t)format->fields[i].offset + format->fields[i].size;

		if (end > len)
			len = end;
	}
	return len > UINT16_MAX ? 0 : (uint16_t)len;
}

static void compile(struct plan *plan)
{
	const struct vmt_rec_row *row = vmt_rec_row_find(plan->format.name);

	plan->min_len = min_len_of(&plan->format);
	if (!row || !plan->min_len)
		return;
	plan->kind = row->kind;
	for (unsigned int i = 0; i < VMT_REC_FIELDS_MAX && row->fields[i].name; i++)
		add_load(plan, &row->fields[i]);
}

static int grow_index(struct vmt_catalog *catalog, uint32_t id)
{
	size_t nr = catalog->nr_by_id ? catalog->nr_by_id : 1024;
	uint16_t *by_id;

	while (nr <= id)
		nr *= 2;
	if (nr == catalog->nr_by_id)
		return 0;
	by_id = realloc(catalog->by_id, nr * sizeof(*by_id));
	if (!by_id)
		return VMT_E_NOMEM;
	memset(by_id + catalog->nr_by_id, 0, (nr - catalog->nr_by_id) * sizeof(*by_id));
	catalog->by_id = by_id;
	catalog->nr_by_id = nr;
	return 0;
}

static bool format_equal(const struct vmt_format *a, const struct vmt_format *b)
{
	return !memcmp(a, b, sizeof(*a));
}

int vmt_catalog_add(struct vmt_catalog *catalog, const struct vmt_format *format)
{
	struct plan *plan;
	int status;

	/* The kernel numbers tracepoints from a 16-bit space (trace_event.type). */
	if (format->id > UINT16_MAX)
		return VMT_E_DAMAGED;
	if (format->id < catalog->nr_by_id && catalog->by_id[format->id]) {
		uint16_t at = (uint16_t)(catalog->by_id[format->id] - 1);

		return format_equal(&catalog->plans[at]->format, format) ? at : VMT_E_DAMAGED;
	}
	if (catalog->count == FORMATS_MAX)
		return VMT_E_LIMIT;
	status = grow_index(catalog, format->id);
	if (status)
		return status;
	if (catalog->count == catalog->cap) {
		size_t cap = catalog->cap ? 2 * catalog->cap : 64;
		struct plan **plans = realloc(catalog->plans, cap * sizeof(struct plan *));

		if (!plans)
			return VMT_E_NOMEM;
		catalog->plans = plans;
		catalog->cap = cap;
	}
	plan = calloc(1, sizeof(*plan));
	if (!plan)
		return VMT_E_NOMEM;
	plan->format = *format;
	compile(plan);
	catalog->plans[catalog->count] = plan;
	catalog->by_id[format->id] = (uint16_t)(catalog->count + 1);
	return (int)catalog->count++;
}

size_t vmt_catalog_count(const struct vmt_catalog *catalog)
{
	return catalog->count;
}

const struct vmt_format *vmt_catalog_format(const struct vmt_catalog *catalog, size_t index)
{
	return index < catalog->count ? &catalog->plans[index]->format : NULL;
}

const char *vmt_catalog_name(const struct vmt_catalog *catalog, size_t index)
{
	return index < catalog->count ? catalog->plans[index]->format.name : NULL;
}

static uint64_t load_value(const uint8_t *raw, const struct load *load)
{
	uint64_t v = vmt_load_u64(raw + load->offset) << load->left;

	/* Arithmetic shift of a negative value: what every compiler of the project does. */
	return load->is_signed ? (uint64_t)((int64_t)v >> load->right) : v >> load->right;
}

static void store_value(struct vmt_rec *out, const struct load *load, uint64_t value)
{
	uint8_t *member = (uint8_t *)out + load->member;
	uint32_t narrow = (uint32_t)value;

	if (load->store == VMT_STORE_U64) {
		memcpy(member, &value, sizeof(value));
		return;
	}
	if (load->store == VMT_STORE_ACCESS)
		narrow = value ? VMT_ACCESS_WRITE : VMT_ACCESS_READ;
	else if (load->store == VMT_STORE_MMIO_ACCESS)
		narrow = value == 2 ? VMT_ACCESS_WRITE : VMT_ACCESS_READ;
	memcpy(member, &narrow, sizeof(narrow));
}

static void set_common(const struct vmt_ring_record *r, struct vmt_rec *out)
{
	vmt_zero(out, sizeof(*out));
	out->time_ns = r->time_ns;
	out->flags = r->has_time ? VMT_REC_HAS_TIME : 0;
	out->catalog = NO_CATALOG;
	out->cpu = r->has_cpu ? r->cpu : UINT32_MAX;
	out->pid = r->pid;
	out->tid = r->tid;
}

/* The plan of a raw record that is of interest and long enough for it; *status is the result. */
static const struct plan *plan_of(const struct vmt_catalog *catalog, const uint8_t *raw,
				  uint32_t raw_len, uint16_t *index, int *status)
{
	const struct plan *plan;
	uint16_t id;

	*status = VMT_E_DAMAGED;
	if (raw_len < 8)
		return NULL;
	id = vmt_load_u16(raw);
	*index = id < catalog->nr_by_id ? catalog->by_id[id] : 0;
	*status = VMT_E_UNSUPPORTED;
	if (!*index)
		return NULL;
	--*index;
	plan = catalog->plans[*index];
	*status = plan->kind == VMT_REC_NONE ? 0 : raw_len < plan->min_len ? VMT_E_DAMAGED : 1;
	return *status == 1 ? plan : NULL;
}

static void load_fields(const struct plan *plan, const uint8_t *raw, struct vmt_rec *out)
{
	uint8_t *to = (uint8_t *)out;

	for (unsigned int i = 0; i < plan->nr_wide; i++)
		memcpy(to + plan->wide[i].member, raw + plan->wide[i].offset, 8);
	for (unsigned int i = 0; i < plan->nr_narrow; i++)
		memcpy(to + plan->narrow[i].member, raw + plan->narrow[i].offset, 4);
	for (unsigned int i = 0; i < plan->nr_loads; i++)
		store_value(out, &plan->loads[i], load_value(raw, &plan->loads[i]));
}

static int decode_sample(const struct vmt_catalog *catalog, const struct vmt_ring_record *r,
			 struct vmt_rec *out)
{
	const struct plan *plan;
	uint16_t index;
	int status;

	if (!r->raw)
		return 0;
	plan = plan_of(catalog, r->raw, r->raw_len, &index, &status);
	if (!plan)
		return status;
	out->kind = plan->kind;
	out->flags |= plan->flags;
	out->catalog = index;
	if (!r->has_tid)
		out->tid = vmt_load_u32(r->raw + COMMON_PID_OFFSET);
	load_fields(plan, r->raw, out);
	return 1;
}

int vmt_rec_decode_sample(const struct vmt_catalog *catalog, const struct vmt_ring_sample *sample,
			  struct vmt_rec *out)
{
	uint16_t index;
	int status;
	const struct plan *plan = plan_of(catalog, sample->raw, sample->raw_len, &index, &status);

	if (!plan)
		return status;
	vmt_zero(out, sizeof(*out));
	out->time_ns = sample->time_ns;
	out->kind = plan->kind;
	out->flags = plan->flags | VMT_REC_HAS_TIME;
	out->catalog = index;
	out->cpu = sample->cpu;
	out->pid = sample->pid;
	out->tid = sample->tid;
	load_fields(plan, sample->raw, out);
	return 1;
}

static int decode_lost(const struct vmt_ring_record *r, enum vmt_lost_cause cause,
		       struct vmt_rec *out)
{
	out->kind = VMT_REC_LOST;
	out->u.lost.count = r->lost;
	out->u.lost.cause = cause;
	return 1;
}

/* PERF_RECORD_AUX: u64 offset, size, flags; of interest when trace was lost. */
static int decode_aux(const struct vmt_ring_record *r, struct vmt_rec *out)
{
	struct vmt_ring_aux aux;

	if (!vmt_ring_aux_of(r, &aux))
		return VMT_E_DAMAGED;
	out->kind = VMT_REC_AUX_LOST;
	out->u.any.first = aux.flags & AUX_FLAGS_LOST;
	return out->u.any.first != 0;
}

int vmt_rec_decode(const struct vmt_catalog *catalog, const struct vmt_ring_record *record,
		   struct vmt_rec *out)
{
	set_common(record, out);
	switch (record->type) {
	case VMT_RING_SAMPLE:
		return decode_sample(catalog, record, out);
	case VMT_RING_SWITCH:
	case VMT_RING_SWITCH_CPU_WIDE:
		out->kind = record->misc & VMT_RING_MISC_SWITCH_OUT ? VMT_REC_SWITCH_OUT
								    : VMT_REC_SWITCH_IN;
		if (record->misc & VMT_RING_MISC_SWITCH_OUT_PREEMPT)
			out->flags |= VMT_REC_PREEMPTED;
		return 1;
	case VMT_RING_ITRACE_START:
		out->kind = VMT_REC_ITRACE_START;
		return vmt_ring_task_of(record, &out->pid, &out->tid) ? 1 : VMT_E_DAMAGED;
	case VMT_RING_AUX:
		return decode_aux(record, out);
	case VMT_RING_LOST:
		return decode_lost(record, VMT_LOST_RECORDS, out);
	case VMT_RING_LOST_SAMPLES:
		return decode_lost(record, VMT_LOST_SAMPLES, out);
	case VMT_RING_THROTTLE:
	case VMT_RING_UNTHROTTLE:
		return decode_lost(record, VMT_LOST_THROTTLED, out);
	default:
		return 0;
	}
}

void vmt_rec_loss_begin(struct vmt_rec *lost, uint64_t since_ns, struct vmt_rec *begin)
{
	lost->u.lost.begun = 1;
	*begin = *lost;
	begin->time_ns = since_ns;
	begin->u.lost.cause = VMT_LOST_BEGIN;
	begin->u.lost.count = 0;
}
