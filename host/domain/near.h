/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_DOMAIN_NEAR_H
#define VMT_DOMAIN_NEAR_H

#include <stddef.h>

/*
 * Edits (insert, delete, replace, swap of neighbours) between two names without regard to case,
 * counted up to 64 bytes of each.
 */
unsigned int vmt_name_distance(const char *a, const char *b);

/*
 * Writes up to three of the names that look like `wanted`, nearest first, as "web01, web02".
 * Returns how many; buf is "" when none is near.
 */
size_t vmt_near_names(char *buf, size_t size, const char *wanted, const char *const *names,
		      size_t count);

#endif
