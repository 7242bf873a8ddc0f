// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant while filling: a slot is free (key 0) or holds one (row, bucket); every probe sequence
 * ends at a free slot, since at most three quarters of the slots are used. After the sort the first
 * `used` slots are in ascending order of key.
 */
#include "decode/analyze/hist.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 1024u
#define BUCKET_BITS 12

unsigned int vmt_hist_bucket(uint64_t value)
{
	unsigned int octave;

	if (value < (UINT64_C(2) << VMT_HIST_SUB_BITS))
		return (unsigned int)value;
	octave = 63u - (unsigned int)__builtin_clzll(value);
	return ((octave - VMT_HIST_SUB_BITS + 1u) << VMT_HIST_SUB_BITS) +
	       (unsigned int)((value >> (octave - VMT_HIST_SUB_BITS)) &
			      ((1u << VMT_HIST_SUB_BITS) - 1u));
}

uint64_t vmt_hist_value(unsigned int bucket)
{
	unsigned int shift;
	uint64_t low, width;

	if (bucket < (2u << VMT_HIST_SUB_BITS))
		return bucket;
	shift = (bucket >> VMT_HIST_SUB_BITS) - 1u;
	width = UINT64_C(1) << shift;
	low = ((bucket & ((1u << VMT_HIST_SUB_BITS) - 1u)) + (UINT64_C(1) << VMT_HIST_SUB_BITS))
	      << shift;
	return low + (width - 1u) / 2u;
}

void vmt_hist_free(struct vmt_hist *hist)
{
	free(hist->slots);
	*hist = (struct vmt_hist){ 0 };
}

static size_t slot_of(const struct vmt_hist *hist, uint32_t key)
{
	uint64_t mixed = key * UINT64_C(0x9e3779b97f4a7c15);
	size_t i = (size_t)(mixed >> 32) & (hist->nr_slots - 1);

	while (hist->slots[i].key && hist->slots[i].key != key)
		i = (i + 1) & (hist->nr_slots - 1);
	return i;
}

static bool grow(struct vmt_hist *hist)
{
	struct vmt_hist bigger = { .used = hist->used };

	bigger.nr_slots = hist->nr_slots ? hist->nr_slots * 2 : FIRST_SLOTS;
	if (bigger.nr_slots > VMT_HIST_SLOTS_MAX)
		return false;
	bigger.slots = calloc(bigger.nr_slots, sizeof(*bigger.slots));
	if (!bigger.slots)
		return false;
	for (size_t i = 0; i < hist->nr_slots; i++) {
		if (hist->slots[i].key)
			bigger.slots[slot_of(&bigger, hist->slots[i].key)] = hist->slots[i];
	}
	free(hist->slots);
	*hist = bigger;
	return true;
}

bool vmt_hist_add(struct vmt_hist *hist, uint32_t row, uint64_t value)
{
	uint32_t key = 1u + (row << BUCKET_BITS | vmt_hist_bucket(value));
	size_t i;

	if (hist->nr_slots) {
		i = slot_of(hist, key);
		if (hist->slots[i].key) {
			hist->slots[i].count++;
			return true;
		}
	}
	if (hist->used + 1 > hist->nr_slots / 4 * 3 && !grow(hist))
		return false;
	i = slot_of(hist, key);
	hist->slots[i] = (struct vmt_hist_entry){ .key = key, .count = 1 };
	hist->used++;
	return true;
}

static int by_key(const void *a, const void *b)
{
	const struct vmt_hist_entry *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

void vmt_hist_sort(struct vmt_hist *hist)
{
	size_t n = 0;

	for (size_t i = 0; i < hist->nr_slots; i++) {
		if (hist->slots[i].key)
			hist->slots[n++] = hist->slots[i];
	}
	if (n)
		qsort(hist->slots, n, sizeof(*hist->slots), by_key);
}

static size_t first_of(const struct vmt_hist *hist, uint32_t key)
{
	size_t low = 0, high = hist->used;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (hist->slots[middle].key < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ceil(percent * n / 100) without overflow. */
static uint64_t rank_of(uint64_t n, unsigned int percent)
{
	return n / 100 * percent + (n % 100 * percent + 99) / 100;
}

uint64_t vmt_hist_rank(const struct vmt_hist *hist, uint32_t row, const unsigned int *percents,
		       unsigned int nr, uint64_t *out)
{
	uint32_t first_key = 1u + (row << BUCKET_BITS);
	size_t first = first_of(hist, first_key);
	size_t end = first;
	uint64_t n = 0, seen = 0;
	unsigned int done = 0;

	for (; end < hist->used && hist->slots[end].key - first_key < (1u << BUCKET_BITS); end++)
		n += hist->slots[end].count;
	for (size_t i = first; i < end && done < nr; i++) {
		seen += hist->slots[i].count;
		while (done < nr && rank_of(n, percents[done]) <= seen)
			out[done++] = vmt_hist_value(hist->slots[i].key - first_key);
	}
	return n;
}
