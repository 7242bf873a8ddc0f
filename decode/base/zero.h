/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_BASE_ZERO_H
#define VMT_BASE_ZERO_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Zeroes n bytes in pieces of 64. For the structs that are filled once a record: gcc makes a memset
 * of 64 to 256 bytes a string instruction, which takes longer than decoding the record.
 */
static inline void vmt_zero(void *bytes, size_t n)
{
	uint8_t *p = bytes;
	size_t at = 0;

	for (; at + 64 <= n; at += 64)
		memset(p + at, 0, 64);
	memset(p + at, 0, n - at);
}

#endif
