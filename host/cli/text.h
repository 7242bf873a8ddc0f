/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CLI_TEXT_H
#define VMT_CLI_TEXT_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

/* Text that may come from a file, a guest or a name, on its way to a terminal. */

/* Writes a text, each character that a terminal would not show as it is as '?'. */
void vmt_text_put(FILE *file, const char *text);

/* The same into a buffer. Returns buf. */
char *vmt_text_safe(char *buf, size_t size, const char *text);

/*
 * Writes a document and a newline to a stream and frees it. Characters that a terminal would
 * not show as they are stand escaped. flags: of json_dumps.
 */
void vmt_text_put_json(FILE *file, json_t *document, size_t flags);

#endif
