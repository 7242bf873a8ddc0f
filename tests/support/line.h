/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_LINE_H
#define VMT_SUPPORT_LINE_H

#include <stddef.h>

#include "decode/base/event.h"

/* A line of text in a buffer of the caller's; what does not fit aborts. */
struct vmt_line {
	char *buf;
	size_t size, len;
};

void vmt_line_put(struct vmt_line *line, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* "entry". */
const char *vmt_event_type_text(enum vmt_event_type type);

#endif
