// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Address filters: any text is refused, or becomes one that is understood again and stays the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host/capture/pt_filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[1200], once[VMT_PT_FILTER_MAX], twice[VMT_PT_FILTER_MAX];
	struct vmt_diag diag = { 0 };

	if (size >= sizeof(text))
		size = sizeof(text) - 1;
	memcpy(text, data, size);
	text[size] = '\0';
	if (vmt_pt_filter_make(once, text, 100, false, &diag)) {
		if (diag.has_offset && diag.offset > strlen(text))
			abort();
		return 0;
	}
	if (vmt_pt_filter_make(twice, once, 100, false, NULL) || strcmp(once, twice) != 0)
		abort();
	return 0;
}
