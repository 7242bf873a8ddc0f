// SPDX-License-Identifier: LGPL-2.1-or-later
/* Any bytes as an ELF file: segments hold bytes of the file, no more than it has each. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decode/symbols/elf_image.h"
#include "tests/support/memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vmt_elf_image *image = NULL;
	struct vmt_diag diag = { 0 };
	const int err = vmt_elf_image_from_fd(&image, vmt_memory_file(data, size), &diag);
	size_t count;

	if (err) {
		if (image || diag.code != (enum vmt_err)err)
			abort();
		return 0;
	}
	const struct vmt_elf_segment *s = vmt_elf_image_segments(image, &count);

	for (size_t i = 0; i < count; i++) {
		uint64_t bias;

		if (!s[i].len || s[i].offset > size || s[i].len > size - s[i].offset ||
		    memcmp(s[i].bytes, data + s[i].offset, s[i].len) != 0)
			abort();
		if (!vmt_elf_image_bias(image, 0, s[i].offset, &bias))
			abort();
	}
	vmt_elf_image_free(image);
	return 0;
}
