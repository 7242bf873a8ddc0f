// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/export/text_lines.h"

#include <stdio.h>
#include <string.h>

#include "decode/export/utf8.h"

static const char *const codes[] = { "", "\033[1m", "\033[1;31m", "\033[1;33m", "\033[2m" };

static void begin_style(const struct vmt_page *page, enum vmt_text_style style)
{
	if (page->color)
		vmt_out_str(page->out, codes[style]);
}

static void end_style(const struct vmt_page *page, enum vmt_text_style style)
{
	if (page->color && style != VMT_STYLE_PLAIN)
		vmt_out_str(page->out, "\033[0m");
}

void vmt_page_line(const struct vmt_page *page, enum vmt_text_style style, const char *text)
{
	begin_style(page, style);
	vmt_out_safe(page->out, text);
	end_style(page, style);
	vmt_out_char(page->out, '\n');
}

static size_t characters(const char *text, size_t bytes)
{
	size_t n = 0;
	uint32_t c;

	for (size_t at = 0; at < bytes; n++)
		at += vmt_utf8_next(text + at, &c);
	return n;
}

/*
 * Bytes of the longest piece of text that fits `room` characters, ending at a space if it can, else
 * behind a slash.
 */
static size_t fitting(const char *text, size_t room)
{
	size_t at = 0, last_space = 0, last_slash = 0, n = 0;
	uint32_t c;

	while (text[at] && n < room) {
		if (text[at] == ' ')
			last_space = at;
		at += vmt_utf8_next(text + at, &c);
		n++;
		if (c == '/' && text[at] != '/')
			last_slash = at;
	}
	if (!text[at] || text[at] == ' ')
		return at;
	if (last_space)
		return last_space;
	return last_slash > 1 ? last_slash : at;
}

static size_t without_blanks(const char *text, size_t len)
{
	while (len && text[len - 1] == ' ')
		len--;
	return len;
}

bool vmt_page_wrap(const struct vmt_page *page, enum vmt_text_style style, const char *label,
		   unsigned int indent, const char *text, unsigned int max_lines)
{
	char clean[1024];
	const char *rest = clean;
	size_t used = characters(label, strlen(label));

	vmt_utf8_clean(clean, sizeof(clean), text, 0);
	begin_style(page, style);
	vmt_out_str(page->out, label);
	end_style(page, style);
	for (unsigned int line = 1;; line++) {
		size_t room = page->width > used + 8 ? page->width - used : 8;
		bool last = line == max_lines && characters(rest, strlen(rest)) > room;
		size_t n = fitting(rest, last ? room - 3 : room);

		vmt_out_bytes(page->out, rest, without_blanks(rest, n));
		vmt_out_str(page->out, last ? "...\n" : "\n");
		rest += n;
		rest += strspn(rest, " ");
		if (!*rest || last)
			return last;
		vmt_out_repeat(page->out, ' ', indent);
		used = indent;
	}
}

static void cell(const struct vmt_page *page, const char *text, unsigned int columns, bool right)
{
	char clean[512];
	size_t n = vmt_utf8_clean(clean, sizeof(clean), text, 0);

	if (n > columns) {
		n = vmt_utf8_clean(clean, sizeof(clean) - 1, text, columns - 1) + 1;
		snprintf(clean + strlen(clean), 2, "~");
	}
	if (right && n < columns)
		vmt_out_repeat(page->out, ' ', columns - n);
	vmt_out_str(page->out, clean);
	if (!right && n < columns)
		vmt_out_repeat(page->out, ' ', columns - n);
}

void vmt_page_left(const struct vmt_page *page, const char *text, unsigned int columns)
{
	cell(page, text, columns, false);
}

void vmt_page_right(const struct vmt_page *page, const char *text, unsigned int columns)
{
	cell(page, text, columns, true);
}
