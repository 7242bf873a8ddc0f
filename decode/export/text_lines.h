/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_EXPORT_TEXT_LINES_H
#define VMT_EXPORT_TEXT_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "decode/export/out.h"

/* A page of text: wrapped lines, cells and colours. Widths count characters. */
enum vmt_text_style {
	VMT_STYLE_PLAIN,
	VMT_STYLE_HEADING,
	VMT_STYLE_CRITICAL,
	VMT_STYLE_WARN,
	VMT_STYLE_DIM,
};

struct vmt_page {
	struct vmt_out *out;
	unsigned int width;
	bool color;
};

/* A whole line of its own in a style. */
void vmt_page_line(const struct vmt_page *page, enum vmt_text_style style, const char *text);

/*
 * Text broken at spaces into lines of at most `width`, the first after `label` (`style`), the
 * others indented by `indent`. Words that are too long are cut
 * apart, paths behind a slash. At most max_lines lines (0:
 * no limit); what does not fit ends in "..." and makes the result true. Cleans the text.
 */
bool vmt_page_wrap(const struct vmt_page *page, enum vmt_text_style style, const char *label,
		   unsigned int indent, const char *text, unsigned int max_lines);

/* One cell, `columns` wide: cleaned, cut off with "~" when too long, right- or left-aligned. */
void vmt_page_left(const struct vmt_page *page, const char *text, unsigned int columns);
void vmt_page_right(const struct vmt_page *page, const char *text, unsigned int columns);

#endif
