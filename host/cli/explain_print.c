// SPDX-License-Identifier: LGPL-2.1-or-later
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "host/cli/explain.h"
#include "host/cli/text.h"

#define COLUMNS	     80
#define LABEL_COLUMN 2
#define VALUE_COLUMN 15
#define NAME_END     46 /* where a title begins in a list */

static struct vmt_answer_field *add_field(struct vmt_answer *a, const char *key, int type)
{
	struct vmt_answer_field *f = &a->fields[a->nr_fields];

	if (a->nr_fields == VMT_ANSWER_FIELDS_MAX)
		return NULL;
	a->nr_fields++;
	memset(f, 0, sizeof(*f));
	f->key = key;
	if (type == VMT_FIELD_NUMBER)
		f->type = VMT_FIELD_NUMBER;
	else if (type == VMT_FIELD_HEX)
		f->type = VMT_FIELD_HEX;
	f->json_only = type != VMT_FIELD_TEXT;
	return f;
}

void vmt_answer_text(struct vmt_answer *a, const char *key, const char *text)
{
	struct vmt_answer_field *f = add_field(a, key, VMT_FIELD_TEXT);

	if (f)
		snprintf(f->text, sizeof(f->text), "%s", text);
}

void vmt_answer_fixed(struct vmt_answer *a, const char *key, const char *text)
{
	struct vmt_answer_field *f = text ? add_field(a, key, VMT_FIELD_TEXT) : NULL;

	if (f)
		f->fixed = text;
}

void vmt_answer_number(struct vmt_answer *a, const char *key, uint64_t number)
{
	struct vmt_answer_field *f = add_field(a, key, VMT_FIELD_NUMBER);

	if (f)
		f->number = number;
}

void vmt_answer_hex(struct vmt_answer *a, const char *key, uint64_t number)
{
	struct vmt_answer_field *f = add_field(a, key, VMT_FIELD_HEX);

	if (f)
		f->number = number;
}

/* ---- text ---- */

/* Writes words from the present column `column` on, broken before COLUMNS, indented by `indent`. */
static void put_wrapped(const char *text, size_t column, size_t indent)
{
	while (*text) {
		size_t len = strcspn(text, " ");

		if (column > indent && column + 1 + len > COLUMNS - 1) {
			printf("\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			putchar(' ');
			column++;
		}
		printf("%.*s", (int)len, text);
		column += len;
		text += len;
		text += strspn(text, " ");
	}
	putchar('\n');
}

static void print_text(const struct vmt_answer *a)
{
	const char *name = a->name[0] ? a->name : a->known ? "" : "unknown";

	printf("%s%s%s\n", a->what, *name ? "  " : "", name);
	if (a->title[0]) {
		printf("%*s", LABEL_COLUMN, "");
		put_wrapped(a->title, LABEL_COLUMN, LABEL_COLUMN);
	}
	for (size_t i = 0; i < a->nr_fields; i++) {
		const struct vmt_answer_field *f = &a->fields[i];

		if (f->json_only)
			continue;
		printf("%*s%-*s", LABEL_COLUMN, "", VALUE_COLUMN - LABEL_COLUMN, f->key);
		put_wrapped(f->fixed ? f->fixed : f->text, VALUE_COLUMN, VALUE_COLUMN);
	}
}

/* Of a title what goes into `left` columns: whole words, nothing from a bracket on. */
static void print_title_part(const char *title, int blanks, size_t left)
{
	const char *bracket = strstr(title, " (");
	size_t len = bracket ? (size_t)(bracket - title) : strlen(title);
	bool cut = len > left;

	if (cut) {
		for (len = left > 3 ? left - 3 : 0; len && title[len] != ' '; len--)
			;
	}
	if (len)
		printf("%*s%.*s%s", blanks, "", (int)len, title, cut ? "..." : "");
}

static void print_line(const struct vmt_answer *a)
{
	static const char *const kinds[] = { "exit", "vec", "cr", "dr" };
	int used = printf("  %-16s  %s", a->what, a->name);
	int column = used < NAME_END ? NAME_END : used + 2;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(a->kind, kinds[i]) != 0 || column >= COLUMNS)
			continue;
		print_title_part(a->title, column - used, (size_t)(COLUMNS - column));
	}
	putchar('\n');
}

/* ---- JSON ---- */

static json_t *text_json(const char *text)
{
	return text[0] ? json_string(text) : json_null();
}

static json_t *field_json(const struct vmt_answer_field *f)
{
	char text[24];

	switch (f->type) {
	case VMT_FIELD_NUMBER:
		return json_integer((json_int_t)f->number);
	case VMT_FIELD_HEX:
		snprintf(text, sizeof(text), "0x%" PRIx64, f->number);
		return json_string(text);
	case VMT_FIELD_TEXT:
		break;
	}
	return text_json(f->fixed ? f->fixed : f->text);
}

static void copy_ascii(char *dst, size_t size, const char *src)
{
	size_t n = 0;

	for (; *src && n + 1 < size; src++)
		dst[n++] = (char)(*src < ' ' || *src > '~' ? '?' : *src);
	dst[n] = '\0';
}

static void add_json(struct vmt_explain *e, const char *query, const struct vmt_answer *a)
{
	char safe[120];
	json_t *o = json_object();

	copy_ascii(safe, sizeof(safe), query);
	json_object_set_new(o, "query", json_string(safe));
	json_object_set_new(o, "what", json_string(a->what));
	json_object_set_new(o, "kind", json_string(a->kind));
	json_object_set_new(o, "known", json_boolean(a->known));
	json_object_set_new(o, "name", text_json(a->name));
	json_object_set_new(o, "title", text_json(a->title));
	for (size_t i = 0; i < a->nr_fields; i++)
		json_object_set_new(o, a->fields[i].key, field_json(&a->fields[i]));
	json_array_append_new(e->results, o);
}

/* ---- both ---- */

void vmt_explain_begin(struct vmt_explain *e, const struct vmt_cli *cli)
{
	memset(e, 0, sizeof(*e));
	e->cli = cli;
	if (cli->format != VMT_FORMAT_TEXT)
		e->results = json_array();
}

static void write_answer(struct vmt_explain *e, const char *query, const struct vmt_answer *a,
			 bool line)
{
	e->unknown |= !a->known;
	if (e->results) {
		add_json(e, query, a);
	} else if (line) {
		print_line(a);
	} else {
		if (e->answers)
			putchar('\n');
		print_text(a);
	}
	e->answers++;
}

void vmt_explain_answer(struct vmt_explain *e, const char *query, const struct vmt_answer *a)
{
	write_answer(e, query, a, false);
}

void vmt_explain_line(struct vmt_explain *e, const char *query, const struct vmt_answer *a)
{
	write_answer(e, query, a, true);
}

/* ---- csv: a row an answer, what is particular to its kind in one cell ---- */

static const char *const csv_columns[] = { "query", "what", "kind", "known", "name", "title" };

#define NR_CSV_COLUMNS (sizeof(csv_columns) / sizeof(csv_columns[0]))

static bool is_csv_column(const char *key)
{
	for (size_t i = 0; i < NR_CSV_COLUMNS; i++) {
		if (!strcmp(csv_columns[i], key))
			return true;
	}
	return false;
}

/* A value without quotes around it: text, number, true or false; nothing for null. */
static void put_value(const json_t *value)
{
	const char *text = json_string_value(value);

	if (json_is_integer(value))
		printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_boolean(value))
		fputs(json_is_true(value) ? "true" : "false", stdout);
	for (; text && *text; text++) {
		if (*text == '"')
			putchar('"');
		putchar(*text);
	}
}

static void put_csv_row(json_t *answer)
{
	const char *key, *gap = "";
	json_t *value;

	for (size_t i = 0; i < NR_CSV_COLUMNS; i++) {
		putchar('"');
		put_value(json_object_get(answer, csv_columns[i]));
		fputs("\",", stdout);
	}
	putchar('"');
	json_object_foreach(answer, key, value)
	{
		if (is_csv_column(key) || json_is_null(value))
			continue;
		printf("%s%s=", gap, key);
		put_value(value);
		gap = "; ";
	}
	fputs("\"\n", stdout);
}

static void print_csv(const json_t *results)
{
	size_t i;

	for (i = 0; i < NR_CSV_COLUMNS; i++)
		printf("%s,", csv_columns[i]);
	puts("details");
	for (i = 0; i < json_array_size(results); i++)
		put_csv_row(json_array_get(results, i));
}

void vmt_explain_end(struct vmt_explain *e, bool print)
{
	json_t *doc;

	if (!e->results)
		return;
	if (e->cli->format == VMT_FORMAT_CSV) {
		if (print)
			print_csv(e->results);
		json_decref(e->results);
		e->results = NULL;
		return;
	}
	doc = json_pack("{s:s,s:o}", "schema", "vmtrace-explain/1", "results", e->results);
	if (print)
		vmt_text_put_json(stdout, doc, JSON_INDENT(2));
	else
		json_decref(doc);
	e->results = NULL;
}
