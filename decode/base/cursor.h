/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_BASE_CURSOR_H
#define VMT_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * The one checked reader of input bytes, little endian. Invariant: pos <= end. A read beyond the
 * end gives 0, leaves pos and sets `short_read`, which stays set, so that a parser may check once
 * after a group of reads.
 */
struct vmt_cursor {
	const uint8_t *pos;
	const uint8_t *end;
	bool short_read;
};

static inline struct vmt_cursor vmt_cursor_of(const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	return (struct vmt_cursor){ .pos = p, .end = len ? p + len : p, .short_read = false };
}

/* Bytes left to read. */
static inline size_t vmt_cursor_left(const struct vmt_cursor *c)
{
	return (size_t)(c->end - c->pos);
}

/* The next n bytes, or NULL when fewer are left. */
static inline const uint8_t *vmt_cursor_take(struct vmt_cursor *c, size_t n)
{
	const uint8_t *p = c->pos;

	if (n > vmt_cursor_left(c)) {
		c->short_read = true;
		return NULL;
	}
	c->pos += n;
	return p;
}

/* Loads of n <= 8 bytes at any alignment. The caller has checked the bounds. */
static inline uint16_t vmt_load_u16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t vmt_load_u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t vmt_load_u64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint8_t vmt_cursor_u8(struct vmt_cursor *c)
{
	const uint8_t *p = vmt_cursor_take(c, 1);

	return p ? *p : 0;
}

static inline uint16_t vmt_cursor_u16(struct vmt_cursor *c)
{
	const uint8_t *p = vmt_cursor_take(c, 2);

	return p ? vmt_load_u16(p) : 0;
}

static inline uint32_t vmt_cursor_u32(struct vmt_cursor *c)
{
	const uint8_t *p = vmt_cursor_take(c, 4);

	return p ? vmt_load_u32(p) : 0;
}

static inline uint64_t vmt_cursor_u64(struct vmt_cursor *c)
{
	const uint8_t *p = vmt_cursor_take(c, 8);

	return p ? vmt_load_u64(p) : 0;
}

#endif
