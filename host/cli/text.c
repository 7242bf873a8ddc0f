// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/cli/text.h"

#include <stdlib.h>

#include "decode/export/utf8.h"

void vmt_text_put(FILE *file, const char *text)
{
	while (*text) {
		uint32_t c;
		size_t n = vmt_utf8_next(text, &c);

		if (vmt_utf8_is_harmless(c))
			fwrite(text, 1, n, file);
		else
			putc('?', file);
		text += n;
	}
}

char *vmt_text_safe(char *buf, size_t size, const char *text)
{
	vmt_utf8_clean(buf, size, text, 0);
	return buf;
}

static void put_escaped(FILE *file, uint32_t c)
{
	if (c >= 0x10000) {
		fprintf(file, "\\u%04x", 0xd800 + ((c - 0x10000) >> 10));
		c = 0xdc00 + ((c - 0x10000) & 0x3ff);
	}
	fprintf(file, "\\u%04x", c);
}

/* Outside of strings JSON has no other characters than ASCII; within, jansson escaped C0. */
void vmt_text_put_json(FILE *file, json_t *document, size_t flags)
{
	char *text = json_dumps(document, flags);

	json_decref(document);
	for (const char *at = text; at && *at;) {
		uint32_t c;
		size_t n = vmt_utf8_next(at, &c);

		if (*at == '\n' || vmt_utf8_is_harmless(c))
			fwrite(at, 1, n, file);
		else
			put_escaped(file, c == VMT_UTF8_BAD ? 0xfffd : c);
		at += n;
	}
	free(text);
	putc('\n', file);
}
