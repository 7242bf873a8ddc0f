/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as a tracepoint format. What parses must compile into loads that stay inside the
 * shortest record that the decoder accepts.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decode/kvm/rec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode_with(const struct vmt_format *format)
{
	struct vmt_catalog *catalog = vmt_catalog_new();
	struct vmt_ring_record record = { .type = 9 };
	struct vmt_rec rec;

	if (!catalog)
		return;
	if (vmt_catalog_add(catalog, format) >= 0) {
		uint32_t end = 8;
		uint8_t *raw;

		for (unsigned int i = 0; i < format->nr_fields; i++) {
			uint32_t e = (uint32_t)format->fields[i].offset + format->fields[i].size;

			end = e > end ? e : end;
		}
		raw = calloc(1, end); /* exactly as long, so that a sanitizer sees a byte too far */
		if (!raw)
			abort();
		raw[0] = (uint8_t)format->id;
		raw[1] = (uint8_t)(format->id >> 8);
		record.raw = raw;
		record.raw_len = end;
		if (vmt_rec_decode(catalog, &record, &rec) < 0)
			abort();
		record.raw_len = end - 1;
		vmt_rec_decode(catalog, &record, &rec);
		free(raw);
	}
	vmt_catalog_free(catalog);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vmt_diag diag = { 0 };
	struct vmt_format format;
	char *text = malloc(size ? size : 1);
	int status;

	if (!text)
		return 0;
	memcpy(text, data, size);
	status = vmt_format_parse(text, size, &format, &diag);
	if ((status != 0) != (diag.code != 0) || (status && diag.offset > size))
		abort();
	if (!status) {
		if (format.nr_fields == 0 || format.nr_fields > VMT_FORMAT_FIELDS_MAX)
			abort();
		if (vmt_format_find(&format, format.fields[0].name) != &format.fields[0])
			abort();
		decode_with(&format);
	}
	free(text);
	return 0;
}
