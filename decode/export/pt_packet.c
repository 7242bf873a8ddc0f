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

/* For texts of a few characters. */
static inline char *put_text(char *p, const char *text)
{
	while (*text)
		*p++ = *text++;
	return p;
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

/* The characters of 32 bits' digits, the highest in the lowest byte. */
static uint64_t hex_digits(uint32_t n)
{
	uint64_t v = n;

	v = (v | v << 16) & UINT64_C(0x0000ffff0000ffff);
	v = (v | v << 8) & UINT64_C(0x00ff00ff00ff00ff);
	v = (v | v << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	v += UINT64_C(0x3030303030303030) +
	     ((v + UINT64_C(0x0606060606060606)) >> 4 & UINT64_C(0x0101010101010101)) * 0x27;
	return __builtin_bswap64(v);
}

static char *put_word(char *p, uint64_t chars)
{
	memcpy(p, &chars, sizeof(chars));
	return p + sizeof(chars);
}

/* Writes 18 bytes at most, of which those behind the result do not count. */
static inline char *put_hex(char *p, uint64_t n, unsigned int least)
{
	unsigned int len = n ? (67u - (unsigned int)__builtin_clzll(n)) / 4 : 1;

	if (len < least)
		len = least;
	*p++ = '0';
	*p++ = 'x';
	if (len > 8) {
		put_word(p, hex_digits((uint32_t)(n >> 32)) >> 8 * (16 - len));
		put_word(p + len - 8, hex_digits((uint32_t)n));
	} else {
		put_word(p, hex_digits((uint32_t)n) >> 8 * (8 - len));
	}
	return p + len;
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

static char *json_tail(char *p, const struct vmt_pt_packet *packet,
		       const struct vmt_pt_field *fields, unsigned int n)
{
	p = put_number(put_text(p, ",\"len\":"), packet->len);
	p = put_text(p, ",\"packet\":\"");
	p = put_text(p, vmt_pt_type_name((enum vmt_pt_type)packet->type));
	*p++ = '"';
	for (unsigned int i = 0; i < n; i++)
		p = json_field(p, &fields[i]);
	return put_text(p, "}\n");
}

static char *text_tail(char *p, const struct vmt_pt_packet *packet,
		       const struct vmt_pt_field *fields, unsigned int n)
{
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
	*p++ = '\n';
	return p;
}

/* Members that have a column of their own; the others are in the payload. */
static const char *const columns[] = {
	"ip_bytes", "ip",   "cr3",    "vmcs",	"nr",  "tsc",	  "ctc",
	"fc",	    "type", "vector", "ip_bit", "tnt", "payload",
};

#define NR_COLUMNS (sizeof(columns) / sizeof(columns[0]))

static char *csv_tail(char *p, const struct vmt_pt_packet *packet,
		      const struct vmt_pt_field *fields, unsigned int n)
{
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
	return put_text(p, ",,");
}

/* What a line of the format has before the offset and behind it. */
static char *put_head(const struct vmt_pt_lines *lines, char *p, uint64_t offset)
{
	switch (lines->format) {
	case VMT_SCRIPT_JSON:
		*p++ = '{';
		p = put_text(p, lines->area_json);
		return put_number(put_text(p, "\"offset\":"), offset);
	case VMT_SCRIPT_CSV:
		return put_number(p, offset);
	default:
		return put_hex(put_text(p, lines->area_text), offset, 8);
	}
}

static char *put_tail(const struct vmt_pt_lines *lines, char *p, const struct vmt_pt_packet *packet)
{
	struct vmt_pt_field fields[VMT_PT_FIELDS_MAX];
	const unsigned int n = vmt_pt_fields(packet, fields);

	switch (lines->format) {
	case VMT_SCRIPT_JSON:
		return json_tail(p, packet, fields, n);
	case VMT_SCRIPT_CSV:
		return csv_tail(p, packet, fields, n);
	default:
		return text_tail(p, packet, fields, n);
	}
}

/* What stands between address and payload, and behind that; CSV has other things in between. */
static const struct between {
	const char *payload, *end;
} betweens[] = {
	[VMT_SCRIPT_TEXT] = { " payload=", "\n" },
	[VMT_SCRIPT_JSON] = { "\",\"payload\":\"", "\"}\n" },
	[VMT_SCRIPT_CSV] = { NULL, NULL },
};

/* Tails of IP packets end where the address begins: all addresses are made 0 here. */
static void make_tail(struct vmt_pt_lines *lines, struct vmt_pt_packet *packet,
		      struct vmt_pt_tail *tail)
{
	char line[LINE_MAX];
	size_t len;

	packet->payload = packet->has_ip ? 0 : packet->payload;
	packet->ip = 0;
	len = (size_t)(put_tail(lines, line, packet) - line);
	if (packet->has_ip) {
		const struct between *b = &betweens[lines->format];

		if (!b->payload)
			return;
		len -= strlen(b->payload) + strlen(b->end) + 2 * strlen("0x0");
	}
	if (len > VMT_PT_TAIL_MAX)
		return;
	memcpy(tail->text, line, len);
	tail->len = (uint8_t)len;
}

static void make_tails(struct vmt_pt_lines *lines)
{
	lines->head_span = 0;
	for (unsigned int b = 0; b < 256; b++) {
		const uint8_t bytes[9] = { (uint8_t)b };
		struct vmt_pt_reader r = vmt_pt_reader_of(bytes, sizeof(bytes));
		struct vmt_pt_packet packet;

		r.last_ip_known = true;
		lines->tails[b].len = 0;
		if (vmt_pt_next(&r, &packet, NULL) == 1 && (packet.has_ip || packet.len == 1))
			make_tail(lines, &packet, &lines->tails[b]);
	}
}

static char *put_addresses(const struct vmt_pt_lines *lines, char *p,
			   const struct vmt_pt_packet *packet)
{
	const struct between *b = &betweens[lines->format];

	p = put_text(put_hex(p, packet->ip, 1), b->payload);
	return put_text(put_hex(p, packet->payload, 1), b->end);
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

void vmt_pt_lines_begin(struct vmt_pt_lines *lines)
{
	make_tails(lines);
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

	lines->head_span = 0;
	snprintf(lines->area_json, sizeof(lines->area_json), "\"%s\":%u,", is_cpu ? "cpu" : "tid",
		 n);
	snprintf(lines->area_text, sizeof(lines->area_text), is_cpu ? "[%03u] " : "(%u) ", n);
	snprintf(lines->area_csv, sizeof(lines->area_csv), is_cpu ? ",%u," : ",,%u", n);
}

/* The head of lines around the offset. */
static void make_head(struct vmt_pt_lines *lines, uint64_t offset)
{
	const unsigned int span = lines->format == VMT_SCRIPT_TEXT ? 256 : 100;
	char head[LINE_MAX];
	size_t len;

	lines->head_base = offset - offset % span;
	lines->head_span = 0;
	if (span == 100 && !lines->head_base) /* there are offsets of one digit */
		return;
	len = (size_t)(put_head(lines, head, lines->head_base) - head) - 2;
	if (len > VMT_PT_HEAD_MAX)
		return;
	memcpy(lines->head, head, len);
	lines->head_len = (unsigned int)len;
	lines->head_span = span;
}

static char *put_offset(struct vmt_pt_lines *lines, char *p, uint64_t offset)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t rest = offset - lines->head_base;

	if (rest >= lines->head_span) {
		make_head(lines, offset);
		rest = offset - lines->head_base;
		if (!lines->head_span)
			return put_head(lines, p, offset);
	}
	memcpy(p, lines->head, VMT_PT_HEAD_MAX);
	p += lines->head_len;
	p[0] = digits[lines->head_span == 256 ? rest >> 4 : rest / 10];
	p[1] = digits[lines->head_span == 256 ? rest & 15 : rest % 10];
	return p + 2;
}

void vmt_pt_lines_packet(struct vmt_pt_lines *lines, uint64_t offset, const uint8_t *bytes,
			 const struct vmt_pt_packet *packet)
{
	const struct vmt_pt_tail *tail = &lines->tails[bytes[0]];
	char *p = put_offset(lines, vmt_out_room(lines->out, LINE_MAX), offset);

	lines->packets++;
	/* In a PEBS block the first byte means another packet. */
	if (tail->len && !packet->ip_unsure && packet->type != VMT_PT_BIP) {
		memcpy(p, tail->text, VMT_PT_TAIL_MAX);
		p += tail->len;
		if (packet->has_ip)
			p = put_addresses(lines, p, packet);
	} else {
		p = put_tail(lines, p, packet);
	}
	if (lines->format == VMT_SCRIPT_CSV) {
		p = put_text(p, lines->area_csv);
		*p++ = '\n';
	}
	vmt_out_took(lines->out, p);
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
