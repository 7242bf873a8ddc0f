// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Lines of packets, written by hand. Invariant: a line needs at most LINE_MAX bytes, which are
 * reserved before it begins; all texts in it are the program's own.
 */
#include "decode/export/pt_packet.h"

#include <stdio.h>

#include "decode/export/csv.h"
#include "decode/export/json.h"

#define LINE_MAX 640u
#define U(x)	 ((unsigned long long)(x))

static char *put_text(char *p, const char *text)
{
	size_t len = strlen(text);

	memcpy(p, text, len);
	return p + len;
}

static char *put_number(char *p, uint64_t n)
{
	char digits[20];
	unsigned int i = sizeof(digits);

	do {
		digits[--i] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	memcpy(p, digits + i, sizeof(digits) - i);
	return p + sizeof(digits) - i;
}

static char *put_hex(char *p, uint64_t n, int least)
{
	static const char digits[] = "0123456789abcdef";
	int shift = n ? (63 - __builtin_clzll(n)) & ~3 : 0;

	if (shift < 4 * (least - 1))
		shift = 4 * (least - 1);
	*p++ = '0';
	*p++ = 'x';
	for (; shift >= 0; shift -= 4)
		*p++ = digits[n >> shift & 15];
	return p;
}

static char *put_tnt(char *p, const struct vmt_pt_field *f)
{
	for (unsigned int i = f->count; i-- > 0;)
		*p++ = f->value >> i & 1 ? 'T' : 'N';
	return p;
}

static char *put_value(char *p, const struct vmt_pt_field *f)
{
	switch (f->kind) {
	case VMT_PT_FIELD_NUMBER:
		return put_number(p, f->value);
	case VMT_PT_FIELD_TEXT:
		return put_text(p, f->text);
	case VMT_PT_FIELD_TNT:
		return put_tnt(p, f);
	default:
		return put_hex(p, f->value, 1);
	}
}

static char *json_field(char *p, const struct vmt_pt_field *f)
{
	bool quoted = f->kind != VMT_PT_FIELD_NUMBER;

	p = put_text(p, ",\"");
	p = put_text(p, f->name);
	p = put_text(p, "\":");
	if (!f->known)
		return put_text(p, "null");
	if (quoted)
		*p++ = '"';
	p = put_value(p, f);
	if (quoted)
		*p++ = '"';
	return p;
}

static void json_packet(const struct vmt_pt_lines *lines, uint64_t offset,
			const struct vmt_pt_packet *packet, const struct vmt_pt_field *fields,
			unsigned int n)
{
	char *p = vmt_out_room(lines->out, LINE_MAX);

	*p++ = '{';
	p = put_text(p, lines->area_json);
	p = put_number(put_text(p, "\"offset\":"), offset);
	p = put_number(put_text(p, ",\"len\":"), packet->len);
	p = put_text(p, ",\"packet\":\"");
	p = put_text(p, vmt_pt_type_name((enum vmt_pt_type)packet->type));
	*p++ = '"';
	for (unsigned int i = 0; i < n; i++)
		p = json_field(p, &fields[i]);
	vmt_out_took(lines->out, put_text(p, "}\n"));
}

static void text_packet(const struct vmt_pt_lines *lines, uint64_t offset,
			const struct vmt_pt_packet *packet, const struct vmt_pt_field *fields,
			unsigned int n)
{
	char *p = vmt_out_room(lines->out, LINE_MAX);

	p = put_text(p, lines->area_text);
	p = put_hex(p, offset, 8);
	p = put_text(p, packet->len < 10 ? "  " : " ");
	p = put_number(p, packet->len);
	*p++ = ' ';
	p = put_text(p, vmt_pt_type_name((enum vmt_pt_type)packet->type));
	for (unsigned int i = 0; i < n; i++) {
		*p++ = ' ';
		p = put_text(p, fields[i].name);
		*p++ = '=';
		p = fields[i].known ? put_value(p, &fields[i]) : put_text(p, "-");
	}
	vmt_out_took(lines->out, put_text(p, "\n"));
}

/* Members that have a column of their own; the others are in the payload. */
static const char *const columns[] = {
	"ip_bytes", "ip",   "cr3",    "vmcs",	"nr",  "tsc",	  "ctc",
	"fc",	    "type", "vector", "ip_bit", "tnt", "payload",
};

#define NR_COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void csv_packet(const struct vmt_pt_lines *lines, uint64_t offset,
		       const struct vmt_pt_packet *packet, const struct vmt_pt_field *fields,
		       unsigned int n)
{
	char *p = vmt_out_room(lines->out, LINE_MAX);

	p = put_number(p, offset);
	*p++ = ',';
	p = put_number(p, packet->len);
	*p++ = ',';
	p = put_text(p, vmt_pt_type_name((enum vmt_pt_type)packet->type));
	for (unsigned int c = 0; c < NR_COLUMNS; c++) {
		*p++ = ',';
		for (unsigned int i = 0; i < n; i++)
			if (fields[i].known && !strcmp(fields[i].name, columns[c]))
				p = put_value(p, &fields[i]);
	}
	p = put_text(p, ",,");
	p = put_text(p, lines->area_csv);
	vmt_out_took(lines->out, put_text(p, "\n"));
}

static void json_header(const struct vmt_pt_lines *lines)
{
	struct vmt_json j = { .out = lines->out };

	vmt_json_open(&j, NULL, '{');
	vmt_json_text(&j, "type", "header");
	vmt_json_text(&j, "schema", "vmtrace-packets/1");
	vmt_json_open(&j, "errata", '[');
	for (unsigned int bit = 0; bit < 32; bit++)
		if (lines->errata >> bit & 1)
			vmt_json_text(&j, NULL,
				      vmt_pt_erratum_name((enum vmt_pt_erratum)(1u << bit)));
	vmt_json_close(&j, ']');
	vmt_json_close(&j, '}');
	vmt_out_char(lines->out, '\n');
}

void vmt_pt_lines_begin(const struct vmt_pt_lines *lines)
{
	if (lines->format == VMT_SCRIPT_JSON)
		json_header(lines);
	if (lines->format != VMT_SCRIPT_CSV)
		return;
	vmt_out_str(lines->out, "offset,len,packet");
	for (unsigned int c = 0; c < NR_COLUMNS; c++)
		vmt_out_printf(lines->out, ",%s", columns[c]);
	vmt_out_str(lines->out, lines->areas ? ",skipped,error,cpu,tid\n" : ",skipped,error\n");
}

void vmt_pt_lines_area(struct vmt_pt_lines *lines, uint32_t cpu, uint32_t tid)
{
	bool is_cpu = cpu != VMT_AUX_NO_CPU;
	uint32_t n = is_cpu ? cpu : tid;

	snprintf(lines->area_json, sizeof(lines->area_json), "\"%s\":%u,", is_cpu ? "cpu" : "tid",
		 n);
	snprintf(lines->area_text, sizeof(lines->area_text), is_cpu ? "[%03u] " : "(%u) ", n);
	snprintf(lines->area_csv, sizeof(lines->area_csv), is_cpu ? ",%u," : ",,%u", n);
}

void vmt_pt_lines_packet(struct vmt_pt_lines *lines, uint64_t offset,
			 const struct vmt_pt_packet *packet)
{
	struct vmt_pt_field fields[VMT_PT_FIELDS_MAX];
	unsigned int n = vmt_pt_fields(packet, fields);

	lines->packets++;
	if (lines->format == VMT_SCRIPT_JSON)
		json_packet(lines, offset, packet, fields, n);
	else if (lines->format == VMT_SCRIPT_CSV)
		csv_packet(lines, offset, packet, fields, n);
	else
		text_packet(lines, offset, packet, fields, n);
}

void vmt_pt_lines_skipped(const struct vmt_pt_lines *lines, uint64_t offset, uint64_t len,
			  const char *why)
{
	if (lines->format == VMT_SCRIPT_JSON) {
		vmt_out_printf(lines->out,
			       "{%s\"offset\":%llu,\"skipped\":%llu,\"error\":\"%s\"}\n",
			       lines->area_json, U(offset), U(len), why);
	} else if (lines->format == VMT_SCRIPT_CSV) {
		vmt_out_printf(lines->out, "%llu,,", U(offset));
		vmt_out_repeat(lines->out, ',', NR_COLUMNS);
		vmt_out_printf(lines->out, ",%llu,%s%s\n", U(len), why, lines->area_csv);
	} else {
		vmt_out_printf(lines->out, "%s0x%08llx %2llu skipped: %s\n", lines->area_text,
			       U(offset), U(len), why);
	}
}

void vmt_pt_lines_ledger(const struct vmt_pt_lines *lines, const struct vmt_ledger *ledger)
{
	struct vmt_json j = { .out = lines->out };

	if (lines->format == VMT_SCRIPT_CSV)
		return;
	if (lines->format == VMT_SCRIPT_TEXT) {
		vmt_out_printf(lines->out,
			       "ledger: %llu bytes = %llu decoded + %llu skipped; %llu packets, "
			       "%llu overflows; %s\n",
			       U(ledger->bytes_total), U(ledger->bytes_decoded),
			       U(ledger->bytes_skipped), U(lines->packets), U(ledger->overflows),
			       ledger->truncated ? "cut off" : "complete");
		return;
	}
	vmt_json_open(&j, NULL, '{');
	vmt_json_open(&j, "ledger", '{');
	vmt_json_number(&j, "bytes_total", true, ledger->bytes_total);
	vmt_json_number(&j, "bytes_decoded", true, ledger->bytes_decoded);
	vmt_json_number(&j, "bytes_skipped", true, ledger->bytes_skipped);
	vmt_json_number(&j, "overflows", true, ledger->overflows);
	vmt_json_bool(&j, "truncated", true, ledger->truncated);
	vmt_json_number(&j, "packets", true, lines->packets);
	vmt_json_close(&j, '}');
	vmt_json_close(&j, '}');
	vmt_out_char(lines->out, '\n');
}
