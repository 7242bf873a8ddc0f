// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/base/diag.h"

#include <string.h>

static void copy_text(char *dst, size_t size, const char *src)
{
	size_t len = src ? strlen(src) : 0;

	if (len >= size)
		len = size - 1;
	if (len)
		memcpy(dst, src, len);
	dst[len] = '\0';
}

int vmt_diag_set(struct vmt_diag *diag, enum vmt_err code, const char *what, const char *cure)
{
	if (!diag || diag->code)
		return (int)code;
	diag->code = code;
	copy_text(diag->what, sizeof(diag->what), what);
	copy_text(diag->cure, sizeof(diag->cure), cure);
	return (int)code;
}

int vmt_diag_at(struct vmt_diag *diag, enum vmt_err code, uint64_t offset, const char *what,
		const char *cure)
{
	if (diag && !diag->code) {
		diag->has_offset = true;
		diag->offset = offset;
	}
	return vmt_diag_set(diag, code, what, cure);
}

void vmt_diag_clear(struct vmt_diag *diag)
{
	if (diag)
		memset(diag, 0, sizeof(*diag));
}
