// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdlib.h>
#include <string.h>

#include "decode/perfdata/private.h"

#define TEXT_MAX 4096u

/* HEADER_* features of text: u32 length, bytes, NUL padded; CMDLINE: u32 number, then as many. */
static const struct {
	uint64_t feature;
	const char *name;
} texts[PERF_FEATURES] = {
	{ 3, "HOSTNAME" },
	{ 4, "OSRELEASE" },
	{ 5, "VERSION" },
	{ 6, "ARCH" },
	{ 8, "CPUDESC" },
	{ 9, "CPUID" },
	{ PERF_FEATURE_CMDLINE, "CMDLINE" },
};

/* Strings joined by blanks; NULL when they do not fit their section or memory is short. */
static char *read_strings(struct vmt_cursor *c, uint32_t nr)
{
	char *joined = calloc(1, TEXT_MAX);
	size_t at = 0;

	for (uint32_t i = 0; joined && i < nr; i++) {
		uint32_t size = vmt_cursor_u32(c);
		const char *text = (const char *)vmt_cursor_take(c, size);
		size_t len = text ? strnlen(text, size) : 0;

		if (!text || at + len + 2 > TEXT_MAX) {
			free(joined);
			return NULL;
		}
		if (i)
			joined[at++] = ' ';
		memcpy(joined + at, text, len);
		at += len;
	}
	return joined;
}

void perf_feature_take(struct vmt_perfdata *p, uint64_t feature, const uint8_t *bytes, size_t len)
{
	struct vmt_cursor c = vmt_cursor_of(bytes, len);

	for (size_t i = 0; i < PERF_FEATURES; i++) {
		if (texts[i].feature != feature || p->features[i])
			continue;
		p->features[i] =
			read_strings(&c, feature == PERF_FEATURE_CMDLINE ? vmt_cursor_u32(&c) : 1);
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

static struct vmt_ring_attr ring_attr(const uint8_t *bytes, size_t len)
{
	return (struct vmt_ring_attr){ .type = vmt_load_u32(bytes),
				       .config = vmt_load_u64(bytes + 8),
				       .sample_type = vmt_load_u64(bytes + 24),
				       .read_format = vmt_load_u64(bytes + 32),
				       .flags = vmt_load_u64(bytes + 40),
				       .branch_sample_type =
					       len >= 80 ? vmt_load_u64(bytes + 72) : 0 };
}

int perf_attr_add(struct vmt_perfdata *p, const uint8_t *bytes, size_t len, uint64_t *ids,
		  size_t nr_ids)
{
	struct perf_attr *attrs, *a;

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
	a = &p->attrs[p->nr_attrs++];
	*a = (struct perf_attr){ .attr = ring_attr(bytes, len), .ids = ids, .nr_ids = nr_ids };
	a->len = len < PERF_ATTR_LEN ? len : PERF_ATTR_LEN;
	memcpy(a->bytes, bytes, a->len);
	p->total_ids += nr_ids;
	return 0;
}
