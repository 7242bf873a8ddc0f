// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/export/records.h"

#include <stdio.h>
#include <string.h>

#include "decode/base/aux.h"
#include "decode/export/csv.h"
#include "decode/export/json.h"
#include "decode/export/record_fields.h"

#define U(x) ((unsigned long long)(x))

int vmt_records_new(struct vmt_records *records, struct vmt_out *out, enum vmt_script_format format)
{
	*records = (struct vmt_records){ .out = out,
					 .format = format,
					 .set = vmt_ring_set_new(),
					 .catalog = vmt_catalog_new() };
	if (format == VMT_SCRIPT_CSV)
		vmt_out_str(out, "offset,at,length,record,stream,time_ns,pid,tid,cpu,event,fields,"
				 "skipped,error\n");
	if (format == VMT_SCRIPT_JSON)
		vmt_out_str(out, "{\"type\":\"header\",\"schema\":\"vmtrace-records/1\"}\n");
	return records->set && records->catalog ? 0 : VMT_E_NOMEM;
}

void vmt_records_free(struct vmt_records *records)
{
	vmt_ring_set_free(records->set);
	vmt_catalog_free(records->catalog);
}

static const char *type_name(uint32_t type, char *buf, size_t size)
{
	static const char *const names[] = { [VMT_RING_MMAP] = "MMAP",
					     [VMT_RING_LOST] = "LOST",
					     [VMT_RING_COMM] = "COMM",
					     [VMT_RING_EXIT] = "EXIT",
					     [VMT_RING_THROTTLE] = "THROTTLE",
					     [VMT_RING_UNTHROTTLE] = "UNTHROTTLE",
					     [VMT_RING_FORK] = "FORK",
					     [VMT_RING_SAMPLE] = "SAMPLE",
					     [VMT_RING_MMAP2] = "MMAP2",
					     [VMT_RING_AUX] = "AUX",
					     [VMT_RING_ITRACE_START] = "ITRACE_START",
					     [VMT_RING_LOST_SAMPLES] = "LOST_SAMPLES",
					     [VMT_RING_SWITCH] = "SWITCH",
					     [VMT_RING_SWITCH_CPU_WIDE] = "SWITCH_CPU_WIDE" };

	if (type < sizeof(names) / sizeof(names[0]) && names[type])
		return names[type];
	snprintf(buf, size, "TYPE_%u", type);
	return buf;
}

/* One line: a record, something else in the file, or bytes that are no record. */
struct line {
	uint64_t offset, at, length;
	const char *kind;
	uint32_t stream;
	const struct vmt_ring_record *record; /* NULL: not a record */
	const struct vmt_format *format;      /* NULL: not a tracepoint that is known */
	const char *text;		      /* of other items, or NULL */
	const char *error;		      /* NULL: none */
};

static void write_text(struct vmt_records *r, const struct line *l)
{
	const struct vmt_ring_record *rec = l->record;

	vmt_out_printf(r->out, "0x%08llx+0x%05llx %6llu %s", U(l->offset), U(l->at), U(l->length),
		       l->error ? "skipped" : l->kind);
	if (rec && rec->has_time)
		vmt_out_printf(r->out, " %llu.%09llu", U(rec->time_ns / 1000000000),
			       U(rec->time_ns % 1000000000));
	if (rec && rec->has_tid)
		vmt_out_printf(r->out, " %u/%u", rec->pid, rec->tid);
	if (rec && rec->has_cpu)
		vmt_out_printf(r->out, " [%03u]", rec->cpu);
	if (l->format) {
		vmt_out_char(r->out, ' ');
		vmt_out_safe(r->out, l->format->name);
		vmt_record_fields_text(r->out, l->format, rec->raw, rec->raw_len);
	}
	if (rec && rec->lost)
		vmt_out_printf(r->out, " lost=%llu", U(rec->lost));
	if (l->text || l->error) {
		vmt_out_char(r->out, ' ');
		vmt_out_safe(r->out, l->error ? l->error : l->text);
	}
	vmt_out_char(r->out, '\n');
}

static void write_json(struct vmt_records *r, const struct line *l)
{
	const struct vmt_ring_record *rec = l->record;
	struct vmt_json j = { .out = r->out };

	vmt_json_open(&j, NULL, '{');
	vmt_json_number(&j, "offset", true, l->offset);
	vmt_json_number(&j, "at", true, l->at);
	if (l->error) {
		vmt_json_number(&j, "skipped", true, l->length);
		vmt_json_text(&j, "error", l->error);
	} else {
		vmt_json_number(&j, "len", true, l->length);
		vmt_json_text(&j, "record", l->kind);
		vmt_json_number(&j, "stream", true, l->stream);
	}
	if (rec) {
		vmt_json_number(&j, "time_ns", rec->has_time, rec->time_ns);
		vmt_json_number(&j, "pid", rec->has_tid, rec->pid);
		vmt_json_number(&j, "tid", rec->has_tid, rec->tid);
		vmt_json_number(&j, "cpu", rec->has_cpu, rec->cpu);
		vmt_json_text(&j, "event", l->format ? l->format->name : NULL);
	}
	if (rec && rec->lost)
		vmt_json_number(&j, "lost", true, rec->lost);
	if (l->format)
		vmt_record_fields_json(&j, l->format, rec->raw, rec->raw_len);
	if (l->text)
		vmt_json_text(&j, "text", l->text);
	vmt_json_close(&j, '}');
	vmt_out_char(r->out, '\n');
}

static void write_csv(struct vmt_records *r, const struct line *l)
{
	static const struct vmt_ring_record none = { 0 };
	const struct vmt_ring_record *rec = l->record ? l->record : &none;
	struct vmt_csv csv = { .out = r->out };

	vmt_csv_number(&csv, true, l->offset);
	vmt_csv_number(&csv, true, l->at);
	vmt_csv_number(&csv, !l->error, l->length);
	vmt_csv_text(&csv, l->error ? NULL : l->kind);
	vmt_csv_number(&csv, !l->error, l->stream);
	vmt_csv_number(&csv, rec->has_time, rec->time_ns);
	vmt_csv_number(&csv, rec->has_tid, rec->pid);
	vmt_csv_number(&csv, rec->has_tid, rec->tid);
	vmt_csv_number(&csv, rec->has_cpu, rec->cpu);
	vmt_csv_text(&csv, l->format ? l->format->name : NULL);
	vmt_csv_text(&csv, l->text);
	if (l->format) { /* in the cell of the text, which a record does not have */
		vmt_out_char(r->out, '"');
		vmt_record_fields_text(r->out, l->format, rec->raw, rec->raw_len);
		vmt_out_char(r->out, '"');
	}
	vmt_csv_number(&csv, l->error != NULL, l->length);
	vmt_csv_text(&csv, l->error);
	vmt_csv_end(&csv);
}

static void write_line(struct vmt_records *r, const struct line *l)
{
	if (r->format == VMT_SCRIPT_JSON)
		write_json(r, l);
	else if (r->format == VMT_SCRIPT_CSV)
		write_csv(r, l);
	else
		write_text(r, l);
}

/* The format of a sample: by the tracepoint id in its raw bytes' attr. */
static const struct vmt_format *format_of(const struct vmt_records *r, int attr_index)
{
	const struct vmt_ring_attr *attr =
		attr_index < 0 ? NULL : vmt_ring_set_attr(r->set, (size_t)attr_index);

	if (!attr || attr->type != 2)
		return NULL;
	for (size_t i = 0; i < vmt_catalog_count(r->catalog); i++) {
		const struct vmt_format *f = vmt_catalog_format(r->catalog, i);

		if (f->id == attr->config)
			return f;
	}
	return NULL;
}

/* Bytes that are no record: up to the end, since nothing says where the next one begins. */
static void skip(struct vmt_records *r, const struct vmt_item *item, size_t at, const char *why)
{
	struct line l = { .offset = item->offset,
			  .at = at,
			  .length = item->len - at,
			  .stream = item->stream,
			  .error = why };

	r->skipped += l.length;
	write_line(r, &l);
}

static void write_records(struct vmt_records *r, const struct vmt_item *item)
{
	char name[24];
	size_t at = 0;

	while (at < item->len) {
		struct vmt_ring_record rec;
		int attr = -1;
		int n = vmt_ring_parse(r->set, item->data + at, item->len - at, &rec, &attr);
		struct line l = { .offset = item->offset, .at = at, .stream = item->stream };

		if (n == VMT_E_DAMAGED && rec.size >= 8 && rec.size % 8 == 0 &&
		    rec.size <= item->len - at) {
			l.length = rec.size;
			l.error = "the record's contents do not fit its size";
			r->skipped += rec.size;
			write_line(r, &l);
			at += rec.size;
			continue;
		}
		if (n <= 0) {
			skip(r, item, at,
			     n == VMT_E_TRUNCATED ? "a record is cut off"
						  : "a record's size cannot be");
			return;
		}
		l.length = (uint64_t)n;
		l.kind = type_name(rec.type, name, sizeof(name));
		l.record = &rec;
		l.format = rec.raw ? format_of(r, attr) : NULL;
		r->records++;
		write_line(r, &l);
		at += (size_t)n;
	}
}

static void learn_format(struct vmt_records *r, const struct vmt_item *item, char *text,
			 size_t size)
{
	struct vmt_format format;

	if (vmt_format_parse((const char *)item->data, item->len, &format, NULL) ||
	    vmt_catalog_add(r->catalog, &format) < 0)
		snprintf(text, size, "not understood");
	else
		snprintf(text, size, "%s id %u, %u fields", format.name, format.id,
			 format.nr_fields);
}

void vmt_records_item(struct vmt_records *records, const struct vmt_item *item)
{
	static const char *const kinds[] = {
		[VMT_ITEM_SESSION] = "session", [VMT_ITEM_ATTR] = "attr",
		[VMT_ITEM_FORMAT] = "format",	[VMT_ITEM_ROUND] = "round",
		[VMT_ITEM_ANCHOR] = "anchor",	[VMT_ITEM_VCPU_TSC] = "vcpu-tsc",
		[VMT_ITEM_AUX] = "aux",		[VMT_ITEM_VCPU_LINK] = "vcpu-link",
		[VMT_ITEM_USER] = "user",	[VMT_ITEM_MARK] = "mark",
		[VMT_ITEM_LOSS] = "loss",	[VMT_ITEM_END] = "end"
	};
	char text[200] = "";
	struct line l = {
		.offset = item->offset, .length = item->len, .stream = item->stream, .text = text
	};

	if (item->type == VMT_ITEM_RECORDS) {
		write_records(records, item);
		return;
	}
	l.kind = (unsigned int)item->type < sizeof(kinds) / sizeof(kinds[0]) ? kinds[item->type]
									     : "unknown";
	if (item->type == VMT_ITEM_ATTR) {
		int index = vmt_ring_set_add(records->set, item->attr, item->ids, item->nr_ids);

		snprintf(text, sizeof(text), "%d: type %u config %llu, %zu ids", index,
			 item->attr->type, U(item->attr->config), item->nr_ids);
	} else if (item->type == VMT_ITEM_FORMAT) {
		learn_format(records, item, text, sizeof(text));
	} else if (item->type == VMT_ITEM_LOSS) {
		snprintf(text, sizeof(text), "%.60s: %llu bytes, %llu records",
			 item->loss_kind ? item->loss_kind : "?", U(item->lost_bytes),
			 U(item->lost_records));
	} else if (item->type == VMT_ITEM_AUX) {
		snprintf(text, sizeof(text), "area %u: %llu bytes of Intel PT at %llu of it",
			 item->aux_idx, U(item->aux->len), U(item->aux->aux_offset));
	} else if (item->type == VMT_ITEM_MARK) {
		snprintf(text, sizeof(text), "%.*s", (int)(item->len < 190 ? item->len : 190),
			 (const char *)item->data);
	}
	if (!text[0])
		l.text = NULL;
	write_line(records, &l);
}

void vmt_records_ledger(struct vmt_records *records, struct vmt_ledger ledger)
{
	struct vmt_json j = { .out = records->out };
	uint64_t moved =
		records->skipped < ledger.bytes_decoded ? records->skipped : ledger.bytes_decoded;

	ledger.bytes_decoded -= moved;
	ledger.bytes_skipped += moved;
	if (records->format == VMT_SCRIPT_CSV)
		return;
	if (records->format == VMT_SCRIPT_TEXT) {
		vmt_out_printf(records->out,
			       "ledger: %llu bytes = %llu decoded + %llu skipped; %llu records, "
			       "%llu lost in %llu overflows; %s\n",
			       U(ledger.bytes_total), U(ledger.bytes_decoded),
			       U(ledger.bytes_skipped), U(records->records), U(ledger.records_lost),
			       U(ledger.overflows), ledger.truncated ? "cut off" : "complete");
		return;
	}
	vmt_json_open(&j, NULL, '{');
	vmt_json_text(&j, "type", "ledger");
	vmt_json_open(&j, "ledger", '{');
	vmt_json_number(&j, "bytes_total", true, ledger.bytes_total);
	vmt_json_number(&j, "bytes_decoded", true, ledger.bytes_decoded);
	vmt_json_number(&j, "bytes_skipped", true, ledger.bytes_skipped);
	vmt_json_number(&j, "overflows", true, ledger.overflows);
	vmt_json_number(&j, "records_lost", true, ledger.records_lost);
	vmt_json_bool(&j, "truncated", true, ledger.truncated);
	vmt_json_number(&j, "records", true, records->records);
	vmt_json_close(&j, '}');
	vmt_json_close(&j, '}');
	vmt_out_char(records->out, '\n');
}
