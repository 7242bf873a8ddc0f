/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/support/line.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void vmt_line_put(struct vmt_line *line, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line->buf + line->len, line->size - line->len, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= line->size - line->len)
		abort();
	line->len += (size_t)n;
}

const char *vmt_event_type_text(enum vmt_event_type type)
{
	static const char *const types[VMT_EVENT_TYPE_COUNT] = {
		"entry",     "exit", "userspace", "switch", "wakeup", "inject",
		"tsc-write", "note", "mark",	  "loss",   "gap",
	};

	return types[type];
}
