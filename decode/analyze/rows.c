// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * An open-addressing index over an array of rows. Invariant: index[i] is 0 or 1 + the number of a
 * row, each row is found by linear probing from its hash, at most half of the index is used.
 */
#include "decode/analyze/rows.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROWS 64u

struct vmt_rows {
	unsigned int dims;
	struct vmt_row_sum *sums;
	uint32_t *index;
	uint32_t nr, room, nr_index;
	uint64_t dropped;
	struct vmt_hist hist;
	struct vmt_hitters_budget budget;
};

struct vmt_rows *vmt_rows_new(unsigned int dims)
{
	struct vmt_rows *rows = calloc(1, sizeof(*rows));

	if (rows) {
		rows->dims = dims;
		rows->budget.slots_left = VMT_ROWS_RIP_BUDGET;
	}
	return rows;
}

void vmt_rows_free(struct vmt_rows *rows)
{
	if (!rows)
		return;
	for (uint32_t i = 0; i < rows->nr; i++)
		vmt_hitters_free(&rows->sums[i].rips);
	vmt_hist_free(&rows->hist);
	free(rows->sums);
	free(rows->index);
	free(rows);
}

unsigned int vmt_rows_dims(const char *by)
{
	static const char *const words[] = { "reason", "key", "rip", "vcpu" };
	unsigned int dims = 0;

	if (!by)
		return VMT_ROWS_BY_REASON | VMT_ROWS_BY_KEY;
	for (;;) {
		size_t len = strcspn(by, ",");
		unsigned int i = 0;

		while (i < 4 && (strlen(words[i]) != len || memcmp(words[i], by, len) != 0))
			i++;
		if (i == 4)
			return 0;
		dims |= 1u << i;
		if (by[len] == '\0')
			return dims;
		by += len + 1;
	}
}

static struct vmt_row_id id_of(unsigned int dims, const struct vmt_event *e)
{
	struct vmt_row_id id;

	memset(&id, 0, sizeof(id));
	id.isa = (uint8_t)e->isa;
	id.nested = e->nested;
	id.failed = e->failed_entry;
	if ((dims & VMT_ROWS_BY_REASON) && (e->has & VMT_HAS_REASON)) {
		id.has_reason = 1;
		id.reason = e->reason;
		id.flags = e->reason_flags;
	}
	if ((dims & VMT_ROWS_BY_KEY) && e->key.kind != VMT_KEY_NONE) {
		id.kind = (uint8_t)e->key.kind;
		id.access = (uint8_t)e->key.access;
		id.number = e->key.number;
		id.sub = e->key.sub;
	}
	if ((dims & VMT_ROWS_BY_RIP) && (e->has & VMT_HAS_RIP)) {
		id.has_rip = 1;
		id.rip = e->guest_rip;
	}
	id.domain = id.vcpu = UINT32_MAX;
	if ((dims & VMT_ROWS_BY_VCPU) && (e->has & VMT_HAS_VCPU)) {
		id.vcpu = e->vcpu;
		if (e->has & VMT_HAS_DOMAIN)
			id.domain = e->domain;
	}
	return id;
}

#define ID_WORDS (sizeof(struct vmt_row_id) / 8)
_Static_assert(sizeof(struct vmt_row_id) == 8 * ID_WORDS && ID_WORDS == 6, "an id is whole words");

/* One product a word, independent of each other, so that they are computed side by side. */
static uint32_t hash_of(const uint64_t *words)
{
	static const uint64_t odd[ID_WORDS] = {
		UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xbf58476d1ce4e5b9),
		UINT64_C(0x94d049bb133111eb), UINT64_C(0xd6e8feb86659fd93),
		UINT64_C(0xa0761d6478bd642f), UINT64_C(0xe7037ed1a0b428db),
	};
	uint64_t h = 0;

	for (size_t i = 0; i < ID_WORDS; i++)
		h += (words[i] ^ words[i] >> 32) * odd[i];
	return (uint32_t)((h ^ h >> 29) * odd[0] >> 32);
}

static bool equal(const struct vmt_row_id *id, const uint64_t *words)
{
	uint64_t own[ID_WORDS], different = 0;

	memcpy(own, id, sizeof(own));
	for (size_t i = 0; i < ID_WORDS; i++)
		different |= own[i] ^ words[i];
	return !different;
}

static uint32_t place_of(const struct vmt_rows *rows, const struct vmt_row_id *id)
{
	uint64_t words[ID_WORDS];
	uint32_t i;

	memcpy(words, id, sizeof(words));
	i = hash_of(words) & (rows->nr_index - 1);
	while (rows->index[i] && !equal(&rows->sums[rows->index[i] - 1].id, words))
		i = (i + 1) & (rows->nr_index - 1);
	return i;
}

static bool make_room(struct vmt_rows *rows)
{
	uint32_t room = rows->room ? rows->room * 2 : FIRST_ROWS;
	struct vmt_row_sum *sums;
	uint32_t *index;

	if (rows->nr < rows->room)
		return true;
	sums = realloc(rows->sums, room * sizeof(*sums));
	if (!sums)
		return false;
	rows->sums = sums;
	index = calloc((size_t)room * 2, sizeof(*index));
	if (!index)
		return false;
	free(rows->index);
	rows->index = index;
	rows->room = room;
	rows->nr_index = room * 2;
	for (uint32_t n = 0; n < rows->nr; n++)
		rows->index[place_of(rows, &rows->sums[n].id)] = n + 1;
	return true;
}

static uint8_t class_of(const struct vmt_row_id *id)
{
	const struct vmx_reason_row *row;

	if (!id->has_reason)
		return VMX_CLASS_OTHER;
	row = id->isa == VMT_ISA_SVM ? svm_exit_find(id->reason) : vmx_reason_find(id->reason);
	return row && row->class < VMX_CLASS_COUNT ? row->class : (uint8_t)VMX_CLASS_OTHER;
}

static struct vmt_row_sum *find_or_add(struct vmt_rows *rows, const struct vmt_row_id *id,
				       uint32_t limit)
{
	struct vmt_row_sum *sum;
	uint32_t place;

	if (!make_room(rows))
		return NULL;
	place = place_of(rows, id);
	if (rows->index[place])
		return &rows->sums[rows->index[place] - 1];
	if (rows->nr >= limit)
		return NULL;
	sum = &rows->sums[rows->nr];
	memset(sum, 0, sizeof(*sum));
	sum->id = *id;
	sum->number = rows->nr++;
	sum->class = class_of(id);
	sum->min_ns = UINT64_MAX;
	rows->index[place] = rows->nr;
	return sum;
}

/* The row of last resort: the reason alone; for hostile reasons without end, not even that. */
static struct vmt_row_sum *row_without_key(struct vmt_rows *rows, struct vmt_row_id id)
{
	struct vmt_row_sum *sum;

	id.kind = id.access = id.has_rip = 0;
	id.number = id.rip = 0;
	id.sub = 0;
	id.domain = id.vcpu = UINT32_MAX;
	sum = find_or_add(rows, &id, VMT_ROWS_MAX + VMT_ROWS_SPARE);
	if (sum)
		return sum;
	id.has_reason = 0;
	id.reason = id.flags = 0;
	return find_or_add(rows, &id, VMT_ROWS_MAX + VMT_ROWS_SPARE + 64);
}

static uint64_t add_sat(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static void add_duration(struct vmt_rows *rows, struct vmt_row_sum *sum, const struct vmt_event *e)
{
	uint64_t ns = e->duration_ns;

	sum->timed++;
	sum->total_ns = add_sat(sum->total_ns, ns);
	if (ns < sum->min_ns)
		sum->min_ns = ns;
	if (ns > sum->max_ns)
		sum->max_ns = ns;
	if (e->userspace_part_ns)
		sum->userspace_ns = add_sat(sum->userspace_ns, e->userspace_part_ns);
	if (!vmt_hist_add(&rows->hist, sum->number, ns))
		sum->no_percentiles = true;
}

struct vmt_row_sum *vmt_rows_add(struct vmt_rows *rows, const struct vmt_event *exit)
{
	struct vmt_row_id id = id_of(rows->dims, exit);
	struct vmt_row_sum *sum = find_or_add(rows, &id, VMT_ROWS_MAX);

	if (!sum) {
		sum = row_without_key(rows, id);
		if (!sum)
			return NULL;
		rows->dropped++;
	}
	sum->count++;
	if (exit->has & VMT_HAS_DURATION)
		add_duration(rows, sum, exit);
	if (exit->has & VMT_HAS_RIP)
		vmt_hitters_add(&sum->rips, &rows->budget, exit->guest_rip);
	return sum;
}

uint64_t vmt_rows_dropped(const struct vmt_rows *rows)
{
	return rows->dropped;
}

static uint64_t within(uint64_t value, uint64_t low, uint64_t high)
{
	return value < low ? low : value > high ? high : value;
}

static void fill_times(const struct vmt_rows *rows, const struct vmt_row_sum *sum,
		       struct vmt_row *row)
{
	static const unsigned int percents[] = { 50, 95, 99 };
	uint64_t p[3] = { 0 };

	row->timed = sum->timed;
	if (!sum->timed)
		return;
	row->total_ns = sum->total_ns;
	row->min_ns = sum->min_ns;
	row->max_ns = sum->max_ns;
	row->userspace_ns = sum->userspace_ns;
	row->has_percentiles = !sum->no_percentiles;
	if (row->has_percentiles && vmt_hist_rank(&rows->hist, sum->number, percents, 3, p)) {
		row->p50_ns = within(p[0], row->min_ns, row->max_ns);
		row->p95_ns = within(p[1], row->min_ns, row->max_ns);
		row->p99_ns = within(p[2], row->min_ns, row->max_ns);
	}
}

static void fill(const struct vmt_rows *rows, const struct vmt_row_sum *sum, struct vmt_row *row)
{
	const struct vmt_row_id *id = &sum->id;
	struct vmt_hitter top;

	*row = (struct vmt_row){ 0 };
	row->isa = (enum vmt_isa)id->isa;
	row->has_reason = id->has_reason;
	row->reason = id->reason;
	row->reason_flags = id->flags;
	row->class = sum->class;
	row->key = (struct vmt_key){ .kind = (enum vmt_key_kind)id->kind,
				     .access = (enum vmt_access)id->access,
				     .number = id->number,
				     .sub = id->sub };
	row->failed_entry = id->failed;
	row->nested = id->nested;
	row->domain = id->domain;
	row->vcpu = id->vcpu;
	row->count = sum->count;
	if (vmt_hitters_top(&sum->rips, &top)) {
		row->has_rip = true;
		row->guest_rip = top.value;
		row->rip_count = top.count;
		row->rip_is_bound = sum->rips.taken > 0;
	}
	fill_times(rows, sum, row);
}

#define ORDER(a, b)                                                                                \
	do {                                                                                       \
		if ((a) != (b))                                                                    \
			return (a) < (b) ? -1 : 1;                                                 \
	} while (0)

static int by_total(const void *a, const void *b)
{
	const struct vmt_row *x = a, *y = b;

	ORDER(y->total_ns, x->total_ns);
	ORDER(y->count, x->count);
	ORDER(x->isa, y->isa);
	ORDER(x->reason, y->reason);
	ORDER(x->reason_flags, y->reason_flags);
	ORDER(x->key.kind, y->key.kind);
	ORDER(x->key.number, y->key.number);
	ORDER(x->key.sub, y->key.sub);
	ORDER(x->key.access, y->key.access);
	ORDER(x->domain, y->domain);
	ORDER(x->vcpu, y->vcpu);
	ORDER(x->guest_rip, y->guest_rip);
	ORDER(x->nested, y->nested);
	ORDER(x->failed_entry, y->failed_entry);
	return 0;
}

struct vmt_row *vmt_rows_finish(struct vmt_rows *rows, size_t *nr)
{
	struct vmt_row *out = calloc(rows->nr + 1u, sizeof(*out));

	*nr = 0;
	if (!out)
		return NULL;
	vmt_hist_sort(&rows->hist);
	for (uint32_t i = 0; i < rows->nr; i++)
		fill(rows, &rows->sums[i], &out[i]);
	qsort(out, rows->nr, sizeof(*out), by_total);
	*nr = rows->nr;
	return out;
}
