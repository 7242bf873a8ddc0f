// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/export/utf8.h"

#include <string.h>

size_t vmt_utf8_next(const char *text, uint32_t *c)
{
	static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
	unsigned char first = (unsigned char)text[0];
	size_t more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
	uint32_t value;

	*c = first;
	if (first < 0x80)
		return 1;
	*c = VMT_UTF8_BAD;
	if (first < 0xc2 || first > 0xf4)
		return 1;
	value = first & (0x3fu >> more);
	for (size_t i = 1; i <= more; i++) {
		unsigned char next = (unsigned char)text[i];

		if ((next & 0xc0) != 0x80) /* also at the NUL */
			return 1;
		value = value << 6 | (next & 0x3fu);
	}
	if (value < least[more] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
		return 1;
	*c = value;
	return more + 1;
}

bool vmt_utf8_is_harmless(uint32_t c)
{
	if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c > 0x10ffff)
		return false;
	return c != 0x61c && !(c >= 0x200b && c <= 0x200f) && !(c >= 0x2028 && c <= 0x202e) &&
	       !(c >= 0x2060 && c <= 0x2069) && c != 0xfeff && !(c >= 0xe0000 && c <= 0xe007f);
}

size_t vmt_utf8_clean(char *buf, size_t size, const char *text, size_t columns)
{
	size_t at = 0, characters = 0;

	while (*text && (!columns || characters < columns)) {
		uint32_t c;
		size_t n = vmt_utf8_next(text, &c);
		bool harmless = vmt_utf8_is_harmless(c);
		size_t need = harmless ? n : 1;

		if (at + need >= size)
			break;
		if (harmless)
			memcpy(buf + at, text, n);
		else
			buf[at] = '?';
		at += need;
		characters++;
		text += n;
	}
	buf[at] = '\0';
	return characters;
}
