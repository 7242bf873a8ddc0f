// SPDX-License-Identifier: LGPL-2.1-or-later
#ifndef VMT_PTCPU_GUEST_OUTPUT_H
#define VMT_PTCPU_GUEST_OUTPUT_H
/*
 * Intel PT output of CPU 0 programmed without the kernel's driver: a ToPA table of single pages of
 * this process. Nothing may use intel_pt through perf at that time.
 */
#include <stdint.h>

enum { OUTPUT_PAGES = 256 };

/* Programs the output MSRs and the CR3 to match; gives the pages. Exits on failure. */
uint8_t *output_create(uint64_t cr3_match);
/* The same; gives the table. */
uint64_t *output_table(void);
/* Bytes that have been written so far. */
uint64_t output_bytes(void);

#endif
