// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdlib.h>
#include <string.h>

#include "decode/perfdata/private.h"

#define TEXT_MAX 4096

/* HEADER_* features whose payload is one string: u32 length, bytes, NUL padded. */
static const struct {
	uint64_t feature;
	const char *name;
} texts[PERF_FEATURES] = {
	{ 3, "HOSTNAME" }, { 4, "OSRELEASE" }, { 5, "VERSION" },
	{ 6, "ARCH" },	   { 8, "CPUDESC" },   { 9, "CPUID" },
};

void perf_feature_take(struct vmt_perfdata *p, uint64_t feature, const uint8_t *bytes, size_t len)
{
	struct vmt_cursor c = vmt_cursor_of(bytes, len);
	uint32_t size = vmt_cursor_u32(&c);
	const uint8_t *text = vmt_cursor_take(&c, size);

	for (size_t i = 0; i < PERF_FEATURES; i++) {
		if (texts[i].feature != feature || p->features[i] || !text || size > TEXT_MAX)
			continue;
		p->features[i] = strndup((const char *)text, size);
	}
}

const char *vmt_perfdata_feature(const struct vmt_perfdata *p, const char *name)
{
	for (size_t i = 0; i < PERF_FEATURES; i++) {
		if (!strcmp(texts[i].name, name))
			return p->features[i];
	}
	return NULL;
}

bool perf_attr_read(const uint8_t *bytes, size_t len, struct vmt_ring_attr *out)
{
	if (len < 64)
		return false;
	*out = (struct vmt_ring_attr){ .type = vmt_load_u32(bytes),
				       .config = vmt_load_u64(bytes + 8),
				       .sample_type = vmt_load_u64(bytes + 24),
				       .read_format = vmt_load_u64(bytes + 32),
				       .flags = vmt_load_u64(bytes + 40) };
	if (len >= 80)
		out->branch_sample_type = vmt_load_u64(bytes + 72);
	return true;
}

int perf_attr_add(struct vmt_perfdata *p, const struct vmt_ring_attr *attr, uint64_t *ids,
		  size_t nr_ids)
{
	struct perf_attr *attrs;

	if (p->nr_attrs == PERF_ATTRS_MAX || nr_ids > PERF_IDS_MAX - p->total_ids) {
		free(ids);
		return VMT_E_LIMIT;
	}
	attrs = realloc(p->attrs, (p->nr_attrs + 1) * sizeof(*attrs));
	if (!attrs) {
		free(ids);
		return VMT_E_NOMEM;
	}
	p->attrs = attrs;
	p->attrs[p->nr_attrs++] = (struct perf_attr){ *attr, ids, nr_ids };
	p->total_ids += nr_ids;
	return 0;
}

/* ---- tracing data: trace-cmd's header with the formats of the events ---- */

static bool skip_sized(struct vmt_cursor *c)
{
	uint64_t size = vmt_cursor_u64(c);

	return size <= vmt_cursor_left(c) && vmt_cursor_take(c, (size_t)size);
}

static bool skip_string(struct vmt_cursor *c)
{
	const uint8_t *nul = memchr(c->pos, 0, vmt_cursor_left(c));

	return nul && vmt_cursor_take(c, (size_t)(nul - c->pos) + 1);
}

/* The formats of one system, or of ftrace itself. */
static bool take_formats(struct vmt_perfdata *p, struct vmt_cursor *c)
{
	uint32_t nr = vmt_cursor_u32(c);

	for (uint32_t i = 0; i < nr; i++) {
		uint64_t size = vmt_cursor_u64(c);
		const uint8_t *text;

		if (c->short_read || size > vmt_cursor_left(c) || p->nr_texts == PERF_FORMATS_MAX)
			return false;
		text = vmt_cursor_take(c, (size_t)size);
		p->texts[p->nr_texts++] =
			(struct perf_text){ (size_t)(text - p->tracing), (size_t)size };
	}
	return !c->short_read;
}

int perf_tracing_take(struct vmt_perfdata *p, uint8_t *bytes, size_t len)
{
	static const uint8_t magic[10] = { 0x17, 0x08, 0x44, 't', 'r', 'a', 'c', 'i', 'n', 'g' };
	struct vmt_cursor c = vmt_cursor_of(bytes, len);
	const uint8_t *head;
	uint32_t systems;

	if (p->tracing) { /* a second one: the first is in use */
		free(bytes);
		return 0;
	}
	p->tracing = bytes;
	p->texts = calloc(PERF_FORMATS_MAX, sizeof(*p->texts));
	if (!p->texts)
		return VMT_E_NOMEM;
	head = vmt_cursor_take(&c, sizeof(magic));
	if (!head || memcmp(head, magic, sizeof(magic)) || !skip_string(&c))
		return VMT_E_DAMAGED;
	if (vmt_cursor_u8(&c)) /* big endian */
		return VMT_E_DAMAGED;
	vmt_cursor_u8(&c);
	vmt_cursor_u32(&c);
	if (!skip_string(&c) || !skip_sized(&c) || !skip_string(&c) || !skip_sized(&c))
		return VMT_E_DAMAGED;
	if (!take_formats(p, &c))
		return VMT_E_DAMAGED;
	systems = vmt_cursor_u32(&c);
	for (uint32_t i = 0; i < systems; i++) {
		if (!skip_string(&c) || !take_formats(p, &c))
			return VMT_E_DAMAGED;
	}
	return 0;
}
