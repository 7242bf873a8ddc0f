// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/base/json_bound.h"

bool vmt_json_is_bounded(const void *text, size_t len)
{
	const char *at = text;
	size_t values = 1;

	for (size_t i = 0; i < len; i++)
		values += at[i] == '{' || at[i] == '[' || at[i] == ',';
	return values <= VMT_JSON_VALUES_MAX;
}
