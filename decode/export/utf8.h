/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_EXPORT_UTF8_H
#define VMT_EXPORT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VMT_UTF8_BAD UINT32_MAX

/*
 * The first character of a text that is not empty and ends in NUL, and its length in bytes (>= 1).
 * *c is VMT_UTF8_BAD for a byte that begins no well-formed, shortest, non-surrogate sequence.
 */
size_t vmt_utf8_next(const char *text, uint32_t *c);

/*
 * Whether a terminal shows the character as it is: no C0 or C1 control, no DEL, no line or
 * paragraph separator, nothing that changes the direction of writing.
 */
bool vmt_utf8_is_harmless(uint32_t c);

/*
 * Copies a text into buf, harmful characters as '?', cut off at a character's end after `columns`
 * characters (0: no limit). Returns the number of characters.
 */
size_t vmt_utf8_clean(char *buf, size_t size, const char *text, size_t columns);

#endif
