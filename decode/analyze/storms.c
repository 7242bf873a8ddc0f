// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: all series share origin and width; bucket i of every series counts the exits of
 * [origin + i * width, origin + (i + 1) * width). A row's handle of a key series holds the series'
 * place and its generation; when the place was given to another row the generation is a different
 * one, and the row is refused from then on.
 */
#include "decode/analyze/storms.h"

#include <stdlib.h>
#include <string.h>

#define REFUSED	       UINT32_MAX
#define GENERATION_MAX (1u << 22)
#define FOUND_MAX      4096u

struct series {
	enum vmt_isa isa;
	uint32_t reason;
	struct vmt_key key; /* VMT_KEY_NONE: of the whole reason */
	uint32_t generation;
	uint64_t count;
	uint32_t buckets[VMT_STORM_BUCKETS];
};

struct vmt_storm_set {
	bool has_origin;
	uint64_t origin, width;
	struct series *keys[VMT_STORM_SERIES];
	struct series *reasons[VMT_STORM_REASONS];
	uint32_t nr_keys, nr_reasons;
};

struct vmt_storm_set *vmt_storms_new(void)
{
	struct vmt_storm_set *set = calloc(1, sizeof(*set));

	if (set)
		set->width = VMT_STORM_WIDTH_NS;
	return set;
}

void vmt_storms_free(struct vmt_storm_set *set)
{
	if (!set)
		return;
	for (uint32_t i = 0; i < set->nr_keys; i++)
		free(set->keys[i]);
	for (uint32_t i = 0; i < set->nr_reasons; i++)
		free(set->reasons[i]);
	free(set);
}

/* ---- filling ---- */

static uint32_t add_sat(uint32_t a, uint32_t b)
{
	return a + b < a ? UINT32_MAX : a + b;
}

static void halve(struct series *s)
{
	for (size_t i = 0; i < VMT_STORM_BUCKETS / 2; i++)
		s->buckets[i] = add_sat(s->buckets[2 * i], s->buckets[2 * i + 1]);
	memset(&s->buckets[VMT_STORM_BUCKETS / 2], 0, sizeof(s->buckets) / 2);
}

static uint32_t bucket_of(struct vmt_storm_set *set, uint64_t time)
{
	if (!set->has_origin) {
		set->has_origin = true;
		set->origin = time;
	}
	if (time <= set->origin)
		return 0;
	while ((time - set->origin) / set->width >= VMT_STORM_BUCKETS) {
		for (uint32_t i = 0; i < set->nr_keys; i++)
			halve(set->keys[i]);
		for (uint32_t i = 0; i < set->nr_reasons; i++)
			halve(set->reasons[i]);
		set->width *= 2;
	}
	return (uint32_t)((time - set->origin) / set->width);
}

static void assign(struct series *s, const struct vmt_row_id *id, bool with_key)
{
	s->isa = (enum vmt_isa)id->isa;
	s->reason = id->reason;
	s->key = (struct vmt_key){ 0 };
	if (with_key)
		s->key = (struct vmt_key){ .kind = (enum vmt_key_kind)id->kind,
					   .access = (enum vmt_access)id->access,
					   .number = id->number,
					   .sub = id->sub };
	s->count = 0;
	memset(s->buckets, 0, sizeof(s->buckets));
}

/* The series of the row's reason, or NULL; *handle is set on the first call. */
static bool reason_series(struct vmt_storm_set *set, struct vmt_row_sum *sum, struct series **out)
{
	*out = NULL;
	if (sum->reason_group == REFUSED)
		return true;
	for (uint32_t i = 0; !sum->reason_group && i < set->nr_reasons; i++) {
		if (set->reasons[i]->isa == (enum vmt_isa)sum->id.isa &&
		    set->reasons[i]->reason == sum->id.reason)
			sum->reason_group = i + 1;
	}
	if (!sum->reason_group && set->nr_reasons < VMT_STORM_REASONS) {
		struct series *s = calloc(1, sizeof(*s));

		if (!s)
			return false;
		assign(s, &sum->id, false);
		set->reasons[set->nr_reasons++] = s;
		sum->reason_group = set->nr_reasons;
	}
	if (!sum->reason_group) {
		sum->reason_group = REFUSED;
		return true;
	}
	*out = set->reasons[sum->reason_group - 1];
	return true;
}

static uint32_t smallest(const struct vmt_storm_set *set)
{
	uint32_t least = 0;

	for (uint32_t i = 1; i < set->nr_keys; i++) {
		if (set->keys[i]->count < set->keys[least]->count)
			least = i;
	}
	return least;
}

/* A place for a series: a new one, or that of the smallest, whose row is refused from then on. */
static bool place_for(struct vmt_storm_set *set, uint32_t *place)
{
	struct series *s;

	if (set->nr_keys == VMT_STORM_SERIES) {
		*place = smallest(set);
		set->keys[*place]->generation =
			(set->keys[*place]->generation + 1) % GENERATION_MAX;
		return true;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return false;
	*place = set->nr_keys;
	set->keys[set->nr_keys++] = s;
	return true;
}

static bool key_series(struct vmt_storm_set *set, struct vmt_row_sum *sum, struct series **out)
{
	uint32_t place;

	*out = NULL;
	if (sum->id.kind == VMT_KEY_NONE || sum->series == REFUSED ||
	    sum->count < VMT_STORM_CANDIDATE)
		return true;
	if (!sum->series) {
		if (!place_for(set, &place))
			return false;
		assign(set->keys[place], &sum->id, true);
		sum->series = 1 + (set->keys[place]->generation * VMT_STORM_SERIES + place);
	}
	place = (sum->series - 1) % VMT_STORM_SERIES;
	if (set->keys[place]->generation != (sum->series - 1) / VMT_STORM_SERIES) {
		sum->series = REFUSED;
		return true;
	}
	*out = set->keys[place];
	return true;
}

static void count(struct series *s, uint32_t bucket)
{
	if (!s)
		return;
	s->buckets[bucket] = add_sat(s->buckets[bucket], 1);
	s->count++;
}

bool vmt_storms_add(struct vmt_storm_set *set, struct vmt_row_sum *sum, uint64_t time_ns)
{
	struct series *of_reason, *of_key;
	uint32_t bucket;

	if (!sum->id.has_reason || sum->id.failed)
		return true;
	bucket = bucket_of(set, time_ns);
	if (!reason_series(set, sum, &of_reason) || !key_series(set, sum, &of_key))
		return false;
	count(of_reason, bucket);
	count(of_key, bucket);
	return true;
}

/* ---- finding ---- */

struct finder {
	const struct vmt_storm_set *set;
	uint32_t nr; /* buckets that the capture covers */
	uint64_t stop;
	uint32_t sorted[VMT_STORM_BUCKETS];
	struct vmt_storm *out;
	size_t nr_out, room;
};

static int by_value(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Value at `quarter` quarters of the buckets outside of [from, to). */
static double quantile(struct finder *f, const struct series *s, uint32_t from, uint32_t to,
		       unsigned int quarter)
{
	uint32_t n = 0, place;

	for (uint32_t i = 0; i < f->nr; i++) {
		if (i < from || i >= to)
			f->sorted[n++] = s->buckets[i];
	}
	if (n == 0)
		return 0;
	qsort(f->sorted, n, sizeof(f->sorted[0]), by_value);
	place = (n - 1) * quarter / 4;
	return f->sorted[place];
}

/* Square root for the noise of a count; exact enough after the steps below for any u32. */
static double square_root(double x)
{
	double r = x > 1 ? x : 1;

	for (int i = 0; i < 24; i++)
		r = (r + x / r) / 2;
	return r;
}

static double per_second(double exits, double ns)
{
	return ns > 0 ? exits * 1e9 / ns : 0;
}

/* Mean rate of up to 64 buckets before `from` that are not hot. */
static double rate_before(const struct finder *f, const struct series *s, uint32_t from,
			  double threshold, double fallback)
{
	double sum = 0, n = 0;

	for (uint32_t i = from; i > 0 && n < 64; i--) {
		if (s->buckets[i - 1] >= threshold)
			continue;
		sum += s->buckets[i - 1];
		n++;
	}
	return per_second(n > 0 ? sum / n : fallback, (double)f->set->width);
}

/* Beyond FOUND_MAX intervals, which only a stream made to be so has, the rest is left out. */
static bool keep(struct finder *f, const struct vmt_storm *storm)
{
	if (f->nr_out == FOUND_MAX)
		return true;
	if (f->nr_out == f->room) {
		size_t room = f->room ? f->room * 2 : 16;
		struct vmt_storm *bigger = realloc(f->out, room * sizeof(*bigger));

		if (!bigger)
			return false;
		f->out = bigger;
		f->room = room;
	}
	f->out[f->nr_out++] = *storm;
	return true;
}

/* How much of [from, to) the key storms of the same reason explain. */
static bool is_explained(const struct finder *f, const struct vmt_storm *storm)
{
	uint64_t explained = 0;

	for (size_t i = 0; i < f->nr_out; i++) {
		const struct vmt_storm *o = &f->out[i];

		if (o->key.kind != VMT_KEY_NONE && o->isa == storm->isa &&
		    o->reason == storm->reason && o->from_ns < storm->to_ns &&
		    storm->from_ns < o->to_ns)
			explained += o->count;
	}
	return explained * 2 >= storm->count;
}

static bool judge(struct finder *f, const struct series *s, uint32_t from, uint32_t to,
		  double threshold)
{
	struct vmt_storm storm = { .domain = UINT32_MAX,
				   .vcpu = UINT32_MAX,
				   .isa = s->isa,
				   .reason = s->reason,
				   .key = s->key };
	double median, ns;

	for (uint32_t i = from; i < to; i++)
		storm.count += s->buckets[i];
	storm.from_ns = f->set->origin + from * f->set->width;
	storm.to_ns = f->set->origin + to * f->set->width;
	if (storm.to_ns > f->stop)
		storm.to_ns = f->stop;
	ns = (double)(storm.to_ns - storm.from_ns);
	storm.rate = per_second((double)storm.count, ns);
	if (storm.count < VMT_STORM_MIN_COUNT || storm.rate < VMT_STORM_MIN_RATE ||
	    f->nr - (to - from) < VMT_STORM_MIN_BUCKETS / 2)
		return true;
	median = quantile(f, s, from, to, 2);
	if (storm.rate < VMT_STORM_FACTOR * per_second(median, (double)f->set->width))
		return true;
	storm.rate_before = rate_before(f, s, from, threshold, median);
	if (s->key.kind == VMT_KEY_NONE && is_explained(f, &storm))
		return true;
	return keep(f, &storm);
}

/* Intervals of hot buckets; up to two cold ones inside do not end an interval. */
static bool search(struct finder *f, const struct series *s)
{
	double base = quantile(f, s, 0, 0, 1);
	double noisy = base + 6 * square_root(base + 1);
	double threshold = base * VMT_STORM_FACTOR > noisy ? base * VMT_STORM_FACTOR : noisy;
	uint32_t from = 0, to = 0; /* none: to == 0 */

	for (uint32_t i = 0; i < f->nr; i++) {
		if (s->buckets[i] < threshold)
			continue;
		if (to && i > to + 2) {
			if (!judge(f, s, from, to, threshold))
				return false;
			to = 0;
		}
		if (!to)
			from = i;
		to = i + 1;
	}
	return !to || judge(f, s, from, to, threshold);
}

static int by_count(const void *a, const void *b)
{
	const struct vmt_storm *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

struct vmt_storm *vmt_storms_finish(struct vmt_storm_set *set, uint64_t stop_ns, size_t *nr)
{
	struct finder *f = calloc(1, sizeof(*f));
	struct vmt_storm *out = NULL;
	bool ok = f != NULL;

	*nr = 0;
	if (!f)
		return NULL;
	f->set = set;
	f->stop = stop_ns > set->origin ? stop_ns : set->origin;
	f->nr = set->has_origin ? bucket_of(set, f->stop) + 1 : 0;
	if (f->nr >= VMT_STORM_MIN_BUCKETS) {
		for (uint32_t i = 0; ok && i < set->nr_keys; i++)
			ok = search(f, set->keys[i]);
		for (uint32_t i = 0; ok && i < set->nr_reasons; i++)
			ok = search(f, set->reasons[i]);
	}
	if (ok && f->nr_out)
		qsort(f->out, f->nr_out, sizeof(*f->out), by_count);
	out = f->out;
	if (ok && !out)
		out = calloc(1, sizeof(*out));
	if (ok && out)
		*nr = f->nr_out < VMT_STORM_MAX ? f->nr_out : VMT_STORM_MAX;
	if (!ok) {
		free(out);
		out = NULL;
	}
	free(f);
	return out;
}
