// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tracing data (feature 1, record 66; tools/perf/util/trace-event-info.c): magic, version, byte
 * order, long size, page size, two header files, the formats of ftrace, then those of each system.
 * What stands behind is not read. It comes through the reader piece by piece: a section may hold
 * thousands of formats, and only those of the attrs are kept.
 */
#include <stdlib.h>
#include <string.h>

#include "decode/perfdata/private.h"

#define NAME_MAX_LEN 256u

/* Where the walk is: `left` bytes of the section, `used` read; `broken` ends it. */
struct walk {
	struct vmt_perfdata *p;
	struct vmt_diag *diag;
	uint64_t left, used;
	bool broken;
	int status;
	char system[PERF_SYSTEM_LEN]; /* of the formats that come, empty: none */
};

static bool fail(struct walk *w, int status)
{
	w->broken = true;
	w->status = status;
	return false;
}

/* At least n bytes of the section, NULL when they are not there. */
static const uint8_t *look(struct walk *w, size_t n, size_t *there)
{
	const uint8_t *bytes;
	int64_t got =
		w->broken || n > w->left ? 0 : vmt_reader_peek(w->p->reader, n, &bytes, w->diag);

	if (got < (int64_t)n || !got) {
		fail(w, got < 0 ? (int)got : 0);
		return NULL;
	}
	*there = (uint64_t)got < w->left ? (size_t)got : (size_t)w->left;
	return bytes;
}

static bool step(struct walk *w, uint64_t n)
{
	while (!w->broken && n) {
		size_t there;

		if (!look(w, 1, &there) || n > w->left)
			return fail(w, w->status);
		if (there > n)
			there = (size_t)n;
		if (vmt_reader_skip(w->p->reader, there, w->diag))
			return fail(w, VMT_E_IO);
		w->left -= there;
		w->used += there;
		n -= there;
	}
	return !w->broken;
}

static uint64_t number(struct walk *w, size_t size)
{
	size_t there;
	const uint8_t *bytes = look(w, size, &there);
	uint64_t v = 0;

	if (!bytes)
		return 0;
	memcpy(&v, bytes, size);
	step(w, size);
	return v;
}

/* A name with its NUL, which is kept when it is short enough. */
static bool string(struct walk *w)
{
	size_t want = w->left < NAME_MAX_LEN ? (size_t)w->left : NAME_MAX_LEN, there;
	const uint8_t *bytes = want ? look(w, want, &there) : NULL;
	const uint8_t *nul = bytes ? memchr(bytes, 0, want) : NULL;

	if (!nul)
		return fail(w, w->status);
	w->system[0] = '\0';
	if ((size_t)(nul - bytes) < sizeof(w->system))
		memcpy(w->system, bytes, (size_t)(nul - bytes) + 1);
	return step(w, (uint64_t)(nul - bytes) + 1);
}

/* The number in the line "ID: n" of a format; false when it has none. */
static bool id_of(const uint8_t *text, size_t len, uint64_t *id)
{
	const uint8_t *at = memmem(text, len, "\nID: ", 5), *last = text + len;

	*id = 0;
	if (!at)
		return false;
	for (at += 5; at < last && *at >= '0' && *at <= '9' && *id <= UINT32_MAX; at++)
		*id = *id * 10 + (uint64_t)(*at - '0');
	return true;
}

static bool is_wanted(const struct vmt_perfdata *p, const uint8_t *text, size_t len)
{
	uint64_t id;

	if (!id_of(text, len, &id))
		return false;
	for (size_t i = 0; i < p->nr_attrs; i++) {
		if (p->attrs[i].attr.type == PERF_TRACEPOINT && p->attrs[i].attr.config == id)
			return true;
	}
	return !p->nr_attrs;
}

static int keep(struct vmt_perfdata *p, const uint8_t *text, size_t len, const char *system)
{
	if (!p->texts)
		p->texts = calloc(PERF_FORMATS_MAX, sizeof(*p->texts));
	if (!p->texts)
		return VMT_E_NOMEM;
	if (p->nr_texts == PERF_FORMATS_MAX || len > PERF_FORMATS_TEXT - p->formats_len)
		return 0; /* its records will be counted as not decoded */
	if (len > p->formats_cap - p->formats_len) {
		size_t cap = p->formats_cap ? p->formats_cap : PERF_FORMAT_MAX;
		uint8_t *formats;

		while (cap - p->formats_len < len)
			cap *= 2;
		formats = realloc(p->formats, cap);
		if (!formats)
			return VMT_E_NOMEM;
		p->formats = formats;
		p->formats_cap = cap;
	}
	memcpy(p->formats + p->formats_len, text, len);
	p->texts[p->nr_texts] = (struct perf_text){ .offset = p->formats_len, .len = len };
	memcpy(p->texts[p->nr_texts++].system, system, PERF_SYSTEM_LEN);
	p->formats_len += len;
	return 0;
}

static bool format(struct walk *w)
{
	uint64_t size = number(w, 8);
	size_t there;
	const uint8_t *text;

	if (size && size <= PERF_FORMAT_MAX) {
		text = look(w, (size_t)size, &there);
		if (text && is_wanted(w->p, text, (size_t)size)) {
			int status = keep(w->p, text, (size_t)size, w->system);

			if (status)
				return fail(w, status);
		}
	}
	return step(w, size);
}

static bool formats(struct walk *w)
{
	uint64_t nr = number(w, 4);

	while (!w->broken && nr--)
		format(w);
	return !w->broken;
}

static void walk_section(struct walk *w)
{
	static const uint8_t magic[10] = { 0x17, 0x08, 0x44, 't', 'r', 'a', 'c', 'i', 'n', 'g' };
	size_t there;
	const uint8_t *head = look(w, sizeof(magic), &there);
	uint64_t systems;

	if (!head || memcmp(head, magic, sizeof(magic)))
		return;
	if (!step(w, sizeof(magic)) || !string(w) || number(w, 1) /* big endian */)
		return;
	number(w, 1); /* size of a long */
	number(w, 4); /* size of a page */
	for (unsigned int i = 0; i < 2; i++) {
		if (!string(w) || !step(w, number(w, 8)))
			return;
	}
	memcpy(w->system, "ftrace", sizeof("ftrace"));
	if (!formats(w))
		return;
	for (systems = number(w, 4); systems && !w->broken; systems--) {
		if (!string(w) || !formats(w))
			return;
	}
}

int perf_tracing_read(struct vmt_perfdata *p, uint64_t size, uint64_t *used, struct vmt_diag *diag)
{
	struct walk w = { .p = p, .diag = diag, .left = size };

	p->has_tracing = true;
	walk_section(&w);
	*used = w.used;
	if (w.status == VMT_E_NOMEM)
		vmt_diag_set(diag, VMT_E_NOMEM, "cannot read the file", "memory is short");
	return w.status;
}
