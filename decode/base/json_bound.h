/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_BASE_JSON_BOUND_H
#define VMT_BASE_JSON_BOUND_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Values that a JSON text of unknown origin may hold. A parsed value takes up to 400 bytes, a text
 * of it as few as 3: without a bound a chunk of 16 MiB would ask for 1 GiB. A session document has
 * about 5 values a thread.
 */
#define VMT_JSON_VALUES_MAX (256u << 10)

/*
 * Whether a text has at most VMT_JSON_VALUES_MAX values, judged without parsing it by the brackets
 * and commas, those within strings as well.
 */
bool vmt_json_is_bounded(const void *text, size_t len);

#endif
