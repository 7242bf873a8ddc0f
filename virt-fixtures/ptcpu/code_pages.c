// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Two open-addressed tables of fixed size. Invariant: fewer than SLOTS entries are in use, so every
 * search ends.
 */
#include "virt-fixtures/ptcpu/code_pages.h"
#include "virt-fixtures/ptcpu/bochs.h"

#include <stdlib.h>

enum { SLOTS = 1 << 16, MOST = SLOTS / 4 * 3 };

struct physical {
	uint64_t pa, number;
	uint8_t *image; /* NULL: free slot */
};

struct linear {
	uint64_t space, page, number;
	bool used;
};

struct code_pages {
	struct physical physical[SLOTS];
	struct linear linear[SLOTS];
	unsigned int physical_count, linear_count;
	uint64_t images;
};

struct code_pages *code_pages_new(void)
{
	return calloc(1, sizeof(struct code_pages));
}

void code_pages_free(struct code_pages *pages)
{
	if (!pages)
		return;
	for (unsigned int i = 0; i < SLOTS; i++)
		free(pages->physical[i].image);
	free(pages);
}

static unsigned int slot(uint64_t a, uint64_t b)
{
	return (unsigned int)(((a ^ b << 21) * 0x9e3779b97f4a7c15) >> 48) % SLOTS;
}

const uint8_t *code_pages_look(struct code_pages *pages, uint64_t pa, uint64_t *number,
			       bool *is_new)
{
	uint8_t now[CODE_PAGE_BYTES];
	unsigned int i = slot(pa >> 12, 0);
	struct physical *e;

	while (pages->physical[i].image && pages->physical[i].pa != pa)
		i = (i + 1) % SLOTS;
	e = &pages->physical[i];
	bochs.read_memory(pa, sizeof(now), now);
	*is_new = !e->image || memcmp(e->image, now, sizeof(now)) != 0;
	if (!e->image) {
		if (pages->physical_count == MOST)
			return NULL;
		e->image = malloc(sizeof(now));
		if (!e->image)
			return NULL;
		pages->physical_count++;
		e->pa = pa;
	}
	if (*is_new) {
		memcpy(e->image, now, sizeof(now));
		e->number = pages->images++;
	}
	*number = e->number;
	return e->image;
}

bool code_pages_map(struct code_pages *pages, uint64_t space, uint64_t page, uint64_t number)
{
	unsigned int i = slot(space, page);
	struct linear *e;

	while (pages->linear[i].used &&
	       (pages->linear[i].space != space || pages->linear[i].page != page))
		i = (i + 1) % SLOTS;
	e = &pages->linear[i];
	if (e->used && e->number == number)
		return false;
	if (!e->used) {
		if (pages->linear_count == MOST)
			return true; /* logged again and again rather than not at all */
		pages->linear_count++;
	}
	*e = (struct linear){ .space = space, .page = page, .number = number, .used = true };
	return true;
}
