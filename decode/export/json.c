// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/export/json.h"

#include "decode/export/utf8.h"

static void escape(struct vmt_out *out, uint32_t c)
{
	switch (c) {
	case '"':
	case '\\':
		vmt_out_char(out, '\\');
		vmt_out_char(out, (char)c);
		break;
	case '\n':
		vmt_out_str(out, "\\n");
		break;
	case '\t':
		vmt_out_str(out, "\\t");
		break;
	default:
		if (c >= 0x10000) {
			vmt_out_printf(out, "\\u%04x", 0xd800 + ((c - 0x10000) >> 10));
			c = 0xdc00 + ((c - 0x10000) & 0x3ff);
		}
		vmt_out_printf(out, "\\u%04x", c);
		break;
	}
}

void vmt_json_quote(struct vmt_out *out, const char *text)
{
	vmt_out_char(out, '"');
	while (*text) {
		uint32_t c;
		size_t n = vmt_utf8_next(text, &c);

		if (c == VMT_UTF8_BAD)
			vmt_out_str(out, "\\ufffd");
		else if (c == '"' || c == '\\' || !vmt_utf8_is_harmless(c))
			escape(out, c);
		else
			vmt_out_bytes(out, text, n);
		text += n;
	}
	vmt_out_char(out, '"');
}

static void newline(struct vmt_json *json)
{
	if (!json->pretty)
		return;
	vmt_out_char(json->out, '\n');
	vmt_out_repeat(json->out, ' ', (size_t)json->depth * 2);
}

static void member(struct vmt_json *json, const char *name)
{
	if (json->depth) {
		if (json->has_member[json->depth - 1])
			vmt_out_char(json->out, ',');
		json->has_member[json->depth - 1] = true;
		newline(json);
	}
	if (name) {
		vmt_json_quote(json->out, name);
		vmt_out_char(json->out, ':');
		if (json->pretty)
			vmt_out_char(json->out, ' ');
	}
}

void vmt_json_open(struct vmt_json *json, const char *name, char bracket)
{
	member(json, name);
	vmt_out_char(json->out, bracket);
	if (json->depth < VMT_JSON_DEPTH)
		json->has_member[json->depth++] = false;
}

void vmt_json_close(struct vmt_json *json, char bracket)
{
	bool filled = json->depth && json->has_member[json->depth - 1];

	if (json->depth)
		json->depth--;
	if (filled)
		newline(json);
	vmt_out_char(json->out, bracket);
}

void vmt_json_text(struct vmt_json *json, const char *name, const char *text)
{
	member(json, name);
	if (text)
		vmt_json_quote(json->out, text);
	else
		vmt_out_str(json->out, "null");
}

void vmt_json_number(struct vmt_json *json, const char *name, bool known, uint64_t n)
{
	member(json, name);
	if (known)
		vmt_out_printf(json->out, "%llu", (unsigned long long)n);
	else
		vmt_out_str(json->out, "null");
}

void vmt_json_signed(struct vmt_json *json, const char *name, bool known, int64_t n)
{
	member(json, name);
	if (known)
		vmt_out_printf(json->out, "%lld", (long long)n);
	else
		vmt_out_str(json->out, "null");
}

void vmt_json_hex(struct vmt_json *json, const char *name, bool known, uint64_t n)
{
	member(json, name);
	if (known)
		vmt_out_printf(json->out, "\"0x%llx\"", (unsigned long long)n);
	else
		vmt_out_str(json->out, "null");
}

void vmt_json_bool(struct vmt_json *json, const char *name, bool known, bool value)
{
	member(json, name);
	vmt_out_str(json->out, !known ? "null" : value ? "true" : "false");
}

void vmt_json_real(struct vmt_json *json, const char *name, double value)
{
	member(json, name);
	vmt_out_printf(json->out, "%.3f", value);
}
