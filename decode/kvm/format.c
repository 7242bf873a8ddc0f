/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "decode/kvm/format.h"

#include <string.h>

/*
 * The parser walks the text once, line by line. Invariant: pos <= end; a line is [pos, line end)
 * without its newline. Only the lines in front of "print fmt:" count.
 */
struct text {
	const char *start, *pos, *end;
};

struct span {
	const char *at;
	size_t len;
};

static bool next_line(struct text *t, struct span *line)
{
	size_t left = (size_t)(t->end - t->pos);
	const char *newline;

	if (left == 0)
		return false;
	newline = memchr(t->pos, '\n', left);
	line->at = t->pos;
	line->len = newline ? (size_t)(newline - t->pos) : left;
	t->pos = newline ? newline + 1 : t->end;
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct span trim(struct span s)
{
	while (s.len > 0 && is_blank(s.at[0])) {
		s.at++;
		s.len--;
	}
	while (s.len > 0 && is_blank(s.at[s.len - 1]))
		s.len--;
	return s;
}

/* Cuts a leading word off; false and nothing cut when it is another one. */
static bool cut(struct span *s, const char *word)
{
	size_t n = strlen(word);

	if (s->len < n || memcmp(s->at, word, n) != 0)
		return false;
	s->at += n;
	s->len -= n;
	return true;
}

/* The text up to ';', which is cut off with it. */
static bool cut_to_semicolon(struct span *s, struct span *out)
{
	const char *semicolon = s->len ? memchr(s->at, ';', s->len) : NULL;

	if (!semicolon)
		return false;
	out->at = s->at;
	out->len = (size_t)(semicolon - s->at);
	s->len -= out->len + 1;
	s->at = semicolon + 1;
	*out = trim(*out);
	*s = trim(*s);
	return true;
}

static bool to_number(struct span s, uint32_t max, uint32_t *out)
{
	uint64_t v = 0;

	s = trim(s);
	if (s.len == 0 || s.len > 10)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (s.at[i] < '0' || s.at[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(s.at[i] - '0');
	}
	if (v > max)
		return false;
	*out = (uint32_t)v;
	return true;
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static int copy_name(char out[VMT_FORMAT_NAME_MAX], struct span s)
{
	if (s.len == 0)
		return VMT_E_DAMAGED;
	if (s.len >= VMT_FORMAT_NAME_MAX)
		return VMT_E_LIMIT;
	for (size_t i = 0; i < s.len; i++)
		if (!is_word(s.at[i]))
			return VMT_E_DAMAGED;
	memset(out, 0, VMT_FORMAT_NAME_MAX);
	memcpy(out, s.at, s.len);
	return VMT_OK;
}

/* The declared name: the last word in front of an array bound. */
static struct span declared_name(struct span declaration)
{
	const char *bracket;
	size_t first;

	if (declaration.len > 0 && declaration.at[declaration.len - 1] == ']') {
		bracket = declaration.at + declaration.len - 1;
		while (bracket > declaration.at && *bracket != '[')
			bracket--;
		declaration.len = (size_t)(bracket - declaration.at);
		declaration = trim(declaration);
	}
	first = declaration.len;
	while (first > 0 && is_word(declaration.at[first - 1]))
		first--;
	declaration.at += first;
	declaration.len -= first;
	return declaration;
}

/* "field:TYPE NAME; offset:N; size:N; signed:N;" with "field:" cut off. */
static int parse_field(struct span line, struct vmt_format_field *out)
{
	struct span declaration, part;
	uint32_t offset, size, sign = 0;
	int r;

	if (!cut_to_semicolon(&line, &declaration))
		return VMT_E_DAMAGED;
	if (!cut(&line, "offset:") || !cut_to_semicolon(&line, &part) ||
	    !to_number(part, UINT16_MAX, &offset))
		return VMT_E_DAMAGED;
	if (!cut(&line, "size:") || !cut_to_semicolon(&line, &part) ||
	    !to_number(part, UINT16_MAX, &size))
		return VMT_E_DAMAGED;
	if (cut(&line, "signed:") &&
	    (!cut_to_semicolon(&line, &part) || !to_number(part, 1, &sign)))
		return VMT_E_DAMAGED;
	r = copy_name(out->name, declared_name(declaration));
	if (r)
		return r;
	out->offset = (uint16_t)offset;
	out->size = (uint16_t)size;
	out->is_signed = sign != 0;
	out->is_dynamic = cut(&declaration, "__data_loc ");
	return VMT_OK;
}

/* One line in front of "print fmt:"; lines that are none of the known ones are passed over. */
static int parse_line(struct span line, struct vmt_format *out, bool *has_id)
{
	struct vmt_format_field field;
	int r;

	if (cut(&line, "name:"))
		return copy_name(out->name, trim(line));
	if (cut(&line, "ID:")) {
		*has_id = to_number(line, UINT32_MAX, &out->id);
		return *has_id ? VMT_OK : VMT_E_DAMAGED;
	}
	if (!cut(&line, "field:"))
		return VMT_OK;
	r = parse_field(line, &field);
	if (r)
		return r;
	if (out->nr_fields == VMT_FORMAT_FIELDS_MAX)
		return VMT_E_LIMIT;
	out->fields[out->nr_fields++] = field;
	return VMT_OK;
}

static int refuse(struct vmt_diag *diag, int code, uint64_t offset)
{
	if (code == VMT_E_LIMIT)
		return vmt_diag_at(diag, VMT_E_LIMIT, offset,
				   "a tracepoint format is larger than any known one",
				   "more than 48 fields, or a name of more than 47 characters");
	return vmt_diag_at(diag, VMT_E_DAMAGED, offset, "a tracepoint format cannot be read",
			   "expected the text of tracefs events/SYS/NAME/format");
}

int vmt_format_parse(const char *text, size_t len, struct vmt_format *out, struct vmt_diag *diag)
{
	struct text t = { .start = text, .pos = text, .end = text + len };
	struct span line;
	bool has_id = false;

	memset(out, 0, sizeof(*out));
	while (next_line(&t, &line)) {
		uint64_t offset = (uint64_t)(line.at - t.start);
		struct span print;
		int r;

		line = trim(line);
		print = line;
		if (cut(&print, "print fmt:"))
			break;
		r = parse_line(line, out, &has_id);
		if (r)
			return refuse(diag, r, offset);
	}
	if (!has_id || out->name[0] == '\0' || out->nr_fields == 0)
		return refuse(diag, VMT_E_DAMAGED, len);
	return VMT_OK;
}

const struct vmt_format_field *vmt_format_find(const struct vmt_format *format, const char *name)
{
	for (unsigned int i = 0; i < format->nr_fields; i++)
		if (strcmp(format->fields[i].name, name) == 0)
			return &format->fields[i];
	return NULL;
}
