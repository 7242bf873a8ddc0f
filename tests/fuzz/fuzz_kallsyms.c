// SPDX-License-Identifier: LGPL-2.1-or-later
/* kallsyms text of any bytes: names are printable and short, look-ups stay inside. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decode/symbols/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(const char *name)
{
	size_t len = strlen(name);

	if (len == 0 || len > 128)
		abort();
	for (size_t i = 0; i < len; i++) {
		if (name[i] < ' ' || name[i] > '~')
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vmt_kallsyms *k = NULL;
	struct vmt_diag diag = { 0 };
	int err = vmt_kallsyms_from_text(&k, data, size, &diag);

	if (err) {
		if (k || diag.code != (enum vmt_err)err)
			abort();
		return 0;
	}
	for (size_t i = 0; i < 64; i++) {
		uint64_t addr = i < 4 ? i - 2 : 0, offset = 0;
		const char *name;

		for (size_t b = 0; i >= 4 && b < 8 && i * 8 + b < size; b++)
			addr = addr << 8 | data[i * 8 + b];
		name = vmt_kallsyms_find(k, addr, &offset);
		if (!name)
			continue;
		check_name(name);
		if (offset > addr || vmt_kallsyms_find(k, addr - offset, NULL) != name)
			abort();
	}
	vmt_kallsyms_free(k);
	return 0;
}
