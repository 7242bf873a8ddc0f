// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant after the load: symbols are sorted by address, one an address; a symbol that is not
 * text has no name and only ends the one before it. While loading, a line is collected in a fixed
 * buffer (the rest of a longer one is dropped), so that memory depends on the symbols alone.
 */
#include "decode/symbols/kallsyms.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "decode/io/reader.h"
#include "decode/symbols/limits.h"

#define NO_NAME UINT32_MAX

struct symbol {
	uint64_t address;
	uint32_t name;	/* offset into names, NO_NAME when it is not text */
	uint32_t order; /* preference at one address, least first: rank, then place in the file */
};

#define ORDER_RANK_SHIFT 24 /* above VMT_KALLSYMS_SYMBOLS_MAX */
#define RANK_NOT_TEXT	 15u

struct vmt_kallsyms {
	struct symbol *symbols;
	size_t count, capacity;
	size_t text_count;
	char *names;
	size_t names_len, names_capacity;
	bool has_address; /* one is not zero */
	/* the line being read */
	char line[VMT_KALLSYMS_NAME_MAX * 2 + 64];
	size_t line_len;
	uint64_t bytes;
};

/* The array with room for `needed` items (moved when it must grow), or NULL when memory is short.
 */
static void *grown(void *array, size_t *capacity, size_t needed, size_t item)
{
	size_t n = *capacity ? *capacity : 1024;
	void *p;

	if (needed <= *capacity)
		return array;
	while (n < needed)
		n *= 2;
	p = realloc(array, n * item);
	if (p)
		*capacity = n;
	return p;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static size_t word_length(const char *s)
{
	size_t n = 0;

	while (s[n] && !is_blank(s[n]))
		n++;
	return n;
}

static const char *skip_blanks(const char *s)
{
	while (is_blank(*s))
		s++;
	return s;
}

/* Copies a word with its unprintable characters replaced; returns its end in dst. */
static char *copy_word(char *dst, char *end, const char *word, size_t len)
{
	for (size_t i = 0; i < len && dst < end; i++)
		*dst++ = word[i] > ' ' && word[i] <= '~' ? word[i] : '?';
	return dst;
}

static int keep_name(struct vmt_kallsyms *k, const char *name, size_t len, const char *module,
		     uint32_t *offset)
{
	char text[VMT_KALLSYMS_NAME_MAX + 1];
	char *limit = text + VMT_KALLSYMS_NAME_MAX;
	char *end = copy_word(text, limit, name, len);
	size_t size;
	char *names;

	if (*module == '[' && end < limit) {
		*end++ = ' ';
		end = copy_word(end, limit, module, word_length(module));
	}
	*end++ = '\0';
	size = (size_t)(end - text);
	names = grown(k->names, &k->names_capacity, k->names_len + size, 1);
	if (!names)
		return VMT_E_NOMEM;
	k->names = names;
	memcpy(k->names + k->names_len, text, size);
	*offset = (uint32_t)k->names_len;
	k->names_len += size;
	return 0;
}

/* 0 for the symbol to prefer; type is the letter of nm(1). */
static uint32_t rank_of(char type, const char *name)
{
	uint32_t rank = type == 'T' ? 0 : type == 'W' || type == 'w' ? 4 : 8;
	uint32_t underscores = 0;

	while (underscores < 3 && name[underscores] == '_')
		underscores++;
	return rank + underscores;
}

static bool is_text(char type)
{
	return type == 'T' || type == 't' || type == 'W' || type == 'w';
}

/* Adds a symbol; name is a word of the line, what follows it may be a module. */
static int add_symbol(struct vmt_kallsyms *k, uint64_t address, char type, const char *name)
{
	struct symbol symbol = { .address = address, .name = NO_NAME };
	uint32_t rank = RANK_NOT_TEXT;
	size_t len = word_length(name);
	struct symbol *symbols;

	if (k->count == VMT_KALLSYMS_SYMBOLS_MAX)
		return VMT_E_LIMIT;
	symbols = grown(k->symbols, &k->capacity, k->count + 1, sizeof(symbol));
	if (!symbols)
		return VMT_E_NOMEM;
	k->symbols = symbols;
	if (is_text(type)) {
		rank = rank_of(type, name);
		if (keep_name(k, name, len, skip_blanks(name + len), &symbol.name))
			return VMT_E_NOMEM;
		k->text_count++;
	}
	symbol.order = rank << ORDER_RANK_SHIFT | (uint32_t)k->count;
	k->has_address |= address != 0;
	k->symbols[k->count++] = symbol;
	return 0;
}

/* Takes one line; one that is not of kallsyms is passed over. */
static int take_line(struct vmt_kallsyms *k, const char *s)
{
	unsigned int digits = 0;
	uint64_t address = 0;
	char type;

	for (s = skip_blanks(s); hex_digit(*s) >= 0 && digits < 17; s++, digits++)
		address = address << 4 | (uint64_t)hex_digit(*s);
	if (!digits || digits > 16 || !is_blank(*s))
		return 0;
	s = skip_blanks(s);
	type = *s;
	if (!type || !is_blank(s[1]))
		return 0;
	s = skip_blanks(s + 1);
	return *s ? add_symbol(k, address, type, s) : 0;
}

static int end_line(struct vmt_kallsyms *k)
{
	k->line[k->line_len] = '\0';
	k->line_len = 0;
	return take_line(k, k->line);
}

static int take_bytes(struct vmt_kallsyms *k, const char *bytes, size_t len)
{
	int err = 0;

	k->bytes += len;
	if (k->bytes > VMT_KALLSYMS_BYTES_MAX)
		return VMT_E_LIMIT;
	for (size_t i = 0; i < len && !err; i++) {
		if (bytes[i] == '\n')
			err = end_line(k);
		else if (k->line_len < sizeof(k->line) - 1)
			k->line[k->line_len++] = bytes[i] ? bytes[i] : '?';
	}
	return err;
}

static int compare_symbols(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Keeps the preferred symbol of each address. */
static void drop_aliases(struct vmt_kallsyms *k)
{
	size_t kept = 1;

	for (size_t i = 1; i < k->count; i++) {
		if (k->symbols[i].address != k->symbols[kept - 1].address)
			k->symbols[kept++] = k->symbols[i];
	}
	k->count = kept;
}

/* Ends the load: the checks of the whole, and the order. */
static int finish(struct vmt_kallsyms *k, struct vmt_diag *diag)
{
	int err = end_line(k);

	if (err)
		return err;
	if (!k->text_count)
		return vmt_diag_set(diag, VMT_E_DAMAGED, "no line of kallsyms in it",
				    "give a copy of the guest's /proc/kallsyms, taken as root");
	if (!k->has_address)
		return vmt_diag_set(diag, VMT_E_PERMISSION, "all addresses are zero",
				    "copy /proc/kallsyms of the guest as root with "
				    "kernel.kptr_restrict at 0 or 1");
	qsort(k->symbols, k->count, sizeof(k->symbols[0]), compare_symbols);
	drop_aliases(k);
	return 0;
}

static int fill_diag(int err, struct vmt_diag *diag)
{
	if (err == VMT_E_LIMIT)
		return vmt_diag_set(diag, VMT_E_LIMIT, "too large for a kallsyms file",
				    "64 MiB and 4194304 symbols are read at most");
	if (err == VMT_E_NOMEM)
		return vmt_diag_set(diag, VMT_E_NOMEM, "no memory for the symbols", "");
	return err;
}

static int hand_over(struct vmt_kallsyms **out, struct vmt_kallsyms *k, int err,
		     struct vmt_diag *diag)
{
	if (!err)
		err = finish(k, diag);
	if (err) {
		vmt_kallsyms_free(k);
		return fill_diag(err, diag);
	}
	*out = k;
	return 0;
}

int vmt_kallsyms_from_text(struct vmt_kallsyms **out, const void *text, size_t len,
			   struct vmt_diag *diag)
{
	struct vmt_kallsyms *k = calloc(1, sizeof(*k));

	*out = NULL;
	if (!k)
		return fill_diag(VMT_E_NOMEM, diag);
	return hand_over(out, k, take_bytes(k, text, len), diag);
}

static int read_all(struct vmt_kallsyms *k, struct vmt_reader *reader, struct vmt_diag *diag)
{
	const uint8_t *bytes;
	int64_t n;
	int err;

	while ((n = vmt_reader_peek(reader, 1, &bytes, diag)) > 0) {
		err = take_bytes(k, (const char *)bytes, (size_t)n);
		if (err)
			return err;
		err = vmt_reader_skip(reader, (uint64_t)n, diag);
		if (err)
			return err;
	}
	return (int)n;
}

int vmt_kallsyms_read(struct vmt_kallsyms **out, const char *path, struct vmt_diag *diag)
{
	struct vmt_kallsyms *k;
	struct vmt_reader *reader;
	int err = vmt_reader_open(&reader, path, NULL, diag);

	*out = NULL;
	if (err)
		return err;
	k = calloc(1, sizeof(*k));
	if (!k) {
		vmt_reader_close(reader);
		return fill_diag(VMT_E_NOMEM, diag);
	}
	err = read_all(k, reader, diag);
	vmt_reader_close(reader);
	return hand_over(out, k, err, diag);
}

void vmt_kallsyms_free(struct vmt_kallsyms *symbols)
{
	if (!symbols)
		return;
	free(symbols->symbols);
	free(symbols->names);
	free(symbols);
}

size_t vmt_kallsyms_count(const struct vmt_kallsyms *symbols)
{
	return symbols->text_count;
}

const char *vmt_kallsyms_find(const struct vmt_kallsyms *symbols, uint64_t addr, uint64_t *offset)
{
	const struct symbol *s = symbols->symbols;
	size_t low = 0, high = symbols->count;

	/* first symbol beyond addr */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s[middle].address <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	s += low - 1;
	if (s->name == NO_NAME || addr - s->address >= VMT_KALLSYMS_REACH_MAX)
		return NULL;
	if (offset)
		*offset = addr - s->address;
	return symbols->names + s->name;
}
