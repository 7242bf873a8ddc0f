// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sub-keys: any text is refused or comes back the same; any key gives a text within its bound. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decode/base/key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void from_text(const uint8_t *data, size_t size)
{
	char text[256], again[VMT_KEY_TEXT_MAX];
	struct vmt_key key, second;

	if (size >= sizeof(text))
		size = sizeof(text) - 1;
	memcpy(text, data, size);
	text[size] = '\0';
	if (!vmt_key_parse(text, &key))
		return;
	vmt_key_name(&key);
	vmt_key_format(again, sizeof(again), &key);
	if (!vmt_key_parse(again, &second) || !vmt_key_equal(&key, &second))
		abort();
}

static void from_bits(const uint8_t *data, size_t size)
{
	char text[VMT_KEY_TEXT_MAX];
	struct vmt_key key = { .kind = VMT_KEY_NONE };

	if (size < 14)
		return;
	key.kind = (enum vmt_key_kind)(data[0] % 16);
	key.access = (enum vmt_access)(data[1] % 8);
	memcpy(&key.number, data + 2, 8);
	memcpy(&key.sub, data + 10, 4);
	vmt_key_format(text, sizeof(text), &key);
	if (strlen(text) + 1 >= sizeof(text))
		abort();
	vmt_key_name(&key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	from_text(data, size);
	from_bits(data, size);
	return 0;
}
