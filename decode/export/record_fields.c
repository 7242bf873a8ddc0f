// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/export/record_fields.h"

#include <stdio.h>
#include <string.h>

#include "decode/base/cursor.h"

#define BYTES_MAX 64u

enum kind {
	ABSENT,
	NUMBER,
	SIGNED,
	TEXT,
	BYTES,
};

struct value {
	enum kind kind;
	uint64_t number;
	char text[2 * BYTES_MAX + 1];
};

static uint64_t load(const uint8_t *p, unsigned int size)
{
	switch (size) {
	case 1:
		return p[0];
	case 2:
		return vmt_load_u16(p);
	case 4:
		return vmt_load_u32(p);
	default:
		return vmt_load_u64(p);
	}
}

/* A string that the record holds at offset | length << 16; a quote becomes an apostrophe. */
static void read_text(struct value *v, const uint8_t *raw, uint32_t len, uint32_t where)
{
	uint32_t offset = where & 0xffff, n = where >> 16;

	if (offset > len || n > len - offset)
		return;
	n = n < BYTES_MAX ? n : BYTES_MAX;
	for (uint32_t i = 0; i < n; i++)
		v->text[i] = (char)(raw[offset + i] == '"' ? '\'' : raw[offset + i]);
	v->text[n] = '\0';
	v->kind = TEXT;
}

static struct value read_field(const struct vmt_format_field *f, const uint8_t *raw, uint32_t len)
{
	struct value v = { .kind = ABSENT };
	unsigned int n = f->size < BYTES_MAX ? f->size : BYTES_MAX;

	if (f->offset > len || f->size > len - f->offset || f->size == 0)
		return v;
	if (f->is_dynamic && f->size == 4) {
		read_text(&v, raw, len, vmt_load_u32(raw + f->offset));
		return v;
	}
	if (f->size == 1 || f->size == 2 || f->size == 4 || f->size == 8) {
		unsigned int unused = 64u - 8u * f->size;

		v.kind = f->is_signed ? SIGNED : NUMBER;
		v.number = load(raw + f->offset, f->size);
		if (f->is_signed && (v.number << unused >> 63))
			v.number |= ~(UINT64_MAX << unused >> unused);
		return v;
	}
	v.kind = BYTES;
	for (unsigned int i = 0; i < n; i++)
		snprintf(v.text + 2 * (size_t)i, 3, "%02x", raw[f->offset + i]);
	return v;
}

static bool is_own(const struct vmt_format_field *f)
{
	return strncmp(f->name, "common_", 7) != 0;
}

void vmt_record_fields_text(struct vmt_out *out, const struct vmt_format *format,
			    const uint8_t *raw, uint32_t len)
{
	for (unsigned int i = 0; i < format->nr_fields; i++) {
		const struct vmt_format_field *f = &format->fields[i];
		struct value v = { .kind = ABSENT };

		if (is_own(f))
			v = read_field(f, raw, len);
		if (v.kind == ABSENT)
			continue;
		vmt_out_char(out, ' ');
		vmt_out_safe(out, f->name);
		if (v.kind == NUMBER)
			vmt_out_printf(out, f->size == 8 ? "=0x%llx" : "=%llu",
				       (unsigned long long)v.number);
		else if (v.kind == SIGNED)
			vmt_out_printf(out, "=%lld", (long long)v.number);
		else
			vmt_out_char(out, '=');
		if (v.kind == TEXT || v.kind == BYTES)
			vmt_out_safe(out, v.text);
	}
}

void vmt_record_fields_json(struct vmt_json *json, const struct vmt_format *format,
			    const uint8_t *raw, uint32_t len)
{
	vmt_json_open(json, "fields", '{');
	for (unsigned int i = 0; i < format->nr_fields; i++) {
		const struct vmt_format_field *f = &format->fields[i];
		struct value v = { .kind = ABSENT };

		if (is_own(f))
			v = read_field(f, raw, len);
		if (v.kind == NUMBER && f->size == 8)
			vmt_json_hex(json, f->name, true, v.number);
		else if (v.kind == NUMBER)
			vmt_json_number(json, f->name, true, v.number);
		else if (v.kind == SIGNED)
			vmt_json_signed(json, f->name, true, (int64_t)v.number);
		else if (v.kind != ABSENT)
			vmt_json_text(json, f->name, v.text);
	}
	vmt_json_close(json, '}');
}
