// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: without a table `one` holds the only value; with one, `one` is unused, at most three
 * quarters of the slots have a count, and each value stands where linear probing finds it.
 */
#include "decode/analyze/hitters.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 8u

void vmt_hitters_free(struct vmt_hitters *hitters)
{
	free(hitters->slots);
	*hitters = (struct vmt_hitters){ 0 };
}

static unsigned int slot_of(const struct vmt_hitter *slots, unsigned int nr, uint64_t value)
{
	unsigned int i = (unsigned int)((value * UINT64_C(0x9e3779b97f4a7c15)) >> 40) & (nr - 1u);

	while (slots[i].count && slots[i].value != value)
		i = (i + 1u) & (nr - 1u);
	return i;
}

/* Moves to a table of nr slots, each count lowered by `less` and dropped at nothing. */
static void refill(struct vmt_hitters *h, struct vmt_hitter *slots, unsigned int nr,
		   const struct vmt_hitter *from, unsigned int nr_from, uint64_t less)
{
	h->used = 0;
	for (unsigned int i = 0; i < nr_from; i++) {
		if (from[i].count <= less)
			continue;
		slots[slot_of(slots, nr, from[i].value)] =
			(struct vmt_hitter){ .value = from[i].value,
					     .count = from[i].count - less };
		h->used++;
	}
}

static bool grow(struct vmt_hitters *h, struct vmt_hitters_budget *budget)
{
	unsigned int nr = h->nr_slots ? h->nr_slots * 2u : FIRST_SLOTS;
	struct vmt_hitter *slots;

	if (nr > VMT_HITTERS_MAX || budget->slots_left < nr - h->nr_slots)
		return false;
	slots = calloc(nr, sizeof(*slots));
	if (!slots)
		return false;
	budget->slots_left -= nr - h->nr_slots;
	if (h->slots)
		refill(h, slots, nr, h->slots, h->nr_slots, 0);
	else
		refill(h, slots, nr, &h->one, 1, 0);
	free(h->slots);
	h->slots = slots;
	h->nr_slots = (uint16_t)nr;
	return true;
}

static int by_count(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Median of the counts; streams of unlike values have mostly ones, which needs no sorting. */
static uint64_t median(const struct vmt_hitters *h)
{
	uint64_t counts[VMT_HITTERS_MAX];
	unsigned int n = 0, ones = 0;

	for (unsigned int i = 0; i < h->nr_slots; i++) {
		if (!h->slots[i].count)
			continue;
		ones += h->slots[i].count == 1;
		counts[n++] = h->slots[i].count;
	}
	if (n == 0 || ones * 2u >= n)
		return 1;
	qsort(counts, n, sizeof(counts[0]), by_count);
	return counts[n / 2];
}

static void make_room(struct vmt_hitters *h)
{
	struct vmt_hitter old[VMT_HITTERS_MAX];
	uint64_t less = median(h);

	memcpy(old, h->slots, h->nr_slots * sizeof(old[0]));
	memset(h->slots, 0, h->nr_slots * sizeof(old[0]));
	refill(h, h->slots, h->nr_slots, old, h->nr_slots, less);
	h->taken += less;
}

static void add_without_table(struct vmt_hitters *h, uint64_t value)
{
	if (h->one.count == 0) {
		h->one = (struct vmt_hitter){ .value = value, .count = 1 };
	} else {
		h->one.count--;
		h->taken++;
	}
}

void vmt_hitters_add(struct vmt_hitters *hitters, struct vmt_hitters_budget *budget, uint64_t value)
{
	unsigned int i;

	if (!hitters->slots) {
		if (hitters->one.count && hitters->one.value == value) {
			hitters->one.count++;
			return;
		}
		if (hitters->one.count == 0 || !grow(hitters, budget)) {
			add_without_table(hitters, value);
			return;
		}
	}
	i = slot_of(hitters->slots, hitters->nr_slots, value);
	if (hitters->slots[i].count) {
		hitters->slots[i].count++;
		return;
	}
	if (hitters->used + 1u > hitters->nr_slots / 4u * 3u) {
		if (!grow(hitters, budget))
			make_room(hitters);
		i = slot_of(hitters->slots, hitters->nr_slots, value);
	}
	hitters->slots[i] = (struct vmt_hitter){ .value = value, .count = 1 };
	hitters->used++;
}

bool vmt_hitters_top(const struct vmt_hitters *hitters, struct vmt_hitter *top)
{
	top->value = hitters->slots ? 0 : hitters->one.value;
	top->count = hitters->slots ? 0 : hitters->one.count;
	for (unsigned int i = 0; hitters->slots && i < hitters->nr_slots; i++) {
		const struct vmt_hitter *h = &hitters->slots[i];

		if (h->count > top->count ||
		    (h->count && h->count == top->count && h->value < top->value))
			*top = *h;
	}
	return top->count > 0;
}
