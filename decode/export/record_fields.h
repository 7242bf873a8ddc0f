/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_EXPORT_RECORD_FIELDS_H
#define VMT_EXPORT_RECORD_FIELDS_H

#include "decode/export/json.h"
#include "decode/kvm/format.h"

/*
 * The fields of a tracepoint by its format, without the common ones: numbers of 1, 2, 4 and 8
 * bytes, strings (__data_loc) and other bytes as hex, at most 64 of them. A field that the raw
 * bytes do not hold is left out.
 */
void vmt_record_fields_text(struct vmt_out *out, const struct vmt_format *format,
			    const uint8_t *raw, uint32_t len);
void vmt_record_fields_json(struct vmt_json *json, const struct vmt_format *format,
			    const uint8_t *raw, uint32_t len);

#endif
