// SPDX-License-Identifier: LGPL-2.1-or-later
#ifndef VMT_PTCPU_CODE_PAGES_H
#define VMT_PTCPU_CODE_PAGES_H
/*
 * Code pages that were executed: the latest image of each physical page, and which image each
 * linear page of each address space was last seen with.
 */
#include <stdbool.h>
#include <stdint.h>

enum { CODE_PAGE_BYTES = 4096 };

struct code_pages;

/* NULL without memory. */
struct code_pages *code_pages_new(void);
void code_pages_free(struct code_pages *pages);
/* Reads the physical page; *number is its image's, *is_new when its bytes are not those of the
 * time before. NULL when the table is full. The image lives until the page's bytes change. */
const uint8_t *code_pages_look(struct code_pages *pages, uint64_t pa, uint64_t *number,
			       bool *is_new);
/* Whether that linear page had another image before, or none. */
bool code_pages_map(struct code_pages *pages, uint64_t space, uint64_t page, uint64_t number);

#endif
