// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Features behind the data (tools/perf/util/header.c): what was told, and TRACING_DATA, EVENT_DESC,
 * PMU_MAPPINGS and the index of AUXTRACE, which are made of what was written.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/kvm/format.h"
#include "decode/perfdata/private.h"
#include "decode/perfdata/writer_private.h"

#define EVENT_NAME_MAX 128u

/* ---- what is told ---- */

static bool is_elsewhere(unsigned int feature)
{
	return feature == VMT_PERFDATA_AUXTRACE || feature == VMT_PERFDATA_DIR_FORMAT ||
	       feature == VMT_PERFDATA_COMPRESSED || feature >= VMT_PERFDATA_FEATURES;
}

int vmt_perfdata_feature_bytes(struct vmt_perfdata_writer *w, unsigned int feature,
			       const uint8_t *bytes, size_t len, struct vmt_diag *diag)
{
	if (is_elsewhere(feature))
		return 0;
	w->features[feature].len = 0;
	if (!writer_add(&w->features[feature], bytes, len))
		return writer_no_memory(diag);
	w->has_feature[feature] = true;
	return 0;
}

int vmt_perfdata_feature_text(struct vmt_perfdata_writer *w, unsigned int feature, const char *text,
			      struct vmt_diag *diag)
{
	if (w->has_feature[feature])
		return 0;
	if (!writer_add_string(&w->features[feature], text))
		return writer_no_memory(diag);
	w->has_feature[feature] = true;
	return 0;
}

/* The system of a tracepoint that vmtrace records. */
static const char *system_of(const char *name)
{
	static const struct {
		const char *begin, *system;
	} rows[] = {
		{ "kvm_", "kvm" },
		{ "vcpu_", "kvm" },
		{ "sched_", "sched" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!strncmp(name, rows[i].begin, strlen(rows[i].begin)))
			return rows[i].system;
	}
	return "unknown";
}

static struct writer_format *new_format(struct vmt_perfdata_writer *w)
{
	if (w->nr_formats == w->cap_formats) {
		size_t cap = w->cap_formats ? w->cap_formats * 2 : 32;
		struct writer_format *formats = realloc(w->formats, cap * sizeof(*formats));

		if (!formats)
			return NULL;
		w->formats = formats;
		w->cap_formats = cap;
	}
	memset(&w->formats[w->nr_formats], 0, sizeof(w->formats[0]));
	return &w->formats[w->nr_formats++];
}

int vmt_perfdata_format(struct vmt_perfdata_writer *w, const char *system, const char *text,
			size_t len, struct vmt_diag *diag)
{
	struct vmt_format format;
	struct writer_format *f;

	/* perf would stop at one that it cannot parse. */
	if (vmt_format_parse(text, len, &format, NULL))
		return 0;
	f = new_format(w);
	if (!f)
		return writer_no_memory(diag);
	f->system = strdup(system ? system : system_of(format.name));
	f->name = strdup(format.name);
	f->text = malloc(len + 1);
	if (!f->system || !f->name || !f->text)
		return writer_no_memory(diag);
	memcpy(f->text, text, len);
	f->len = len;
	f->id = format.id;
	return 0;
}

/* ---- TRACING_DATA ---- */

static bool begins_system(const struct vmt_perfdata_writer *w, size_t i)
{
	for (size_t k = 0; k < i; k++) {
		if (!strcmp(w->formats[k].system, w->formats[i].system))
			return false;
	}
	return true;
}

static bool add_system(const struct vmt_perfdata_writer *w, struct writer_bytes *b,
		       const char *system)
{
	uint32_t nr = 0;
	bool good;

	for (size_t i = 0; i < w->nr_formats; i++)
		nr += !strcmp(w->formats[i].system, system);
	good = writer_add(b, system, strlen(system) + 1) && writer_add_u32(b, nr);
	for (size_t i = 0; good && i < w->nr_formats; i++) {
		const struct writer_format *f = &w->formats[i];

		if (!strcmp(f->system, system))
			good = writer_add_u64(b, f->len) && writer_add(b, f->text, f->len);
	}
	return good;
}

/* Magic, version, byte order, size of a long and of a page; perf wants to see a page's layout. */
static bool add_tracing_head(struct writer_bytes *b)
{
	static const uint8_t head[] = "\x17\x08\x44tracing0.6\0\0\x08";
	static const char page[] = "header_page", event[] = "header_event";
	static const char layout[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				     "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				     "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				     "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

	return writer_add(b, head, sizeof(head) - 1) && writer_add_u32(b, 4096) &&
	       writer_add(b, page, sizeof(page)) && writer_add_u64(b, sizeof(layout) - 1) &&
	       writer_add(b, layout, sizeof(layout) - 1) && writer_add(b, event, sizeof(event)) &&
	       writer_add_u64(b, 0) && writer_add_u32(b, 0);
}

static bool make_tracing(const struct vmt_perfdata_writer *w, struct writer_bytes *b)
{
	uint32_t systems = 0;
	bool good;

	for (size_t i = 0; i < w->nr_formats; i++)
		systems += begins_system(w, i);
	good = add_tracing_head(b) && writer_add_u32(b, systems);
	for (size_t i = 0; good && i < w->nr_formats; i++) {
		if (begins_system(w, i))
			good = add_system(w, b, w->formats[i].system);
	}
	/* No kallsyms, no formats of printk, no saved command lines. */
	return good && writer_add_u32(b, 0) && writer_add_u32(b, 0) && writer_add_u64(b, 0);
}

/* ---- EVENT_DESC and PMU_MAPPINGS ---- */

static const struct {
	uint32_t type;
	uint64_t config;
	const char *name;
} known_events[] = {
	{ 0, 0, "cycles" },	{ 0, 1, "instructions" },     { 1, 0, "cpu-clock" },
	{ 1, 1, "task-clock" }, { 1, 3, "context-switches" }, { 1, 9, "dummy:u" },
};

static void event_name(const struct vmt_perfdata_writer *w, const struct vmt_ring_attr *attr,
		       char name[EVENT_NAME_MAX])
{
	snprintf(name, EVENT_NAME_MAX, "%u:0x%llx", attr->type, (unsigned long long)attr->config);
	if (w->has_pt && attr->type == w->pt_type)
		snprintf(name, EVENT_NAME_MAX, "intel_pt//");
	for (size_t i = 0; i < sizeof(known_events) / sizeof(known_events[0]); i++) {
		if (known_events[i].type == attr->type && known_events[i].config == attr->config)
			snprintf(name, EVENT_NAME_MAX, "%s", known_events[i].name);
	}
	for (size_t i = 0; attr->type == PERF_TRACEPOINT && i < w->nr_formats; i++) {
		if (w->formats[i].id == attr->config)
			snprintf(name, EVENT_NAME_MAX, "%s:%s", w->formats[i].system,
				 w->formats[i].name);
	}
}

static bool make_event_desc(const struct vmt_perfdata_writer *w, struct writer_bytes *b)
{
	bool good = writer_add_u32(b, (uint32_t)w->nr_events) && writer_add_u32(b, WRITER_ATTR_LEN);

	for (size_t i = 0; good && i < w->nr_events; i++) {
		const struct writer_event *e = &w->events[i];
		char name[EVENT_NAME_MAX];

		event_name(w, &e->ring, name);
		good = writer_add(b, e->attr, WRITER_ATTR_LEN) &&
		       writer_add_u32(b, (uint32_t)e->nr_ids) && writer_add_string(b, name) &&
		       writer_add(b, e->ids, 8 * e->nr_ids);
	}
	return good;
}

static bool make_pmus(const struct vmt_perfdata_writer *w, struct writer_bytes *b)
{
	const struct {
		uint32_t type;
		const char *name;
	} pmus[] = {
		{ 1, "software" },
		{ 2, "tracepoint" },
		{ 4, "cpu" },
		{ w->pt_type, "intel_pt" },
	};
	const uint32_t nr = w->has_pt ? 4 : 3;
	bool good = writer_add_u32(b, nr);

	for (uint32_t i = 0; good && i < nr; i++)
		good = writer_add_u32(b, pmus[i].type) && writer_add_string(b, pmus[i].name);
	return good;
}

/* ---- AUXTRACE ---- */

static bool make_aux_index(const struct vmt_perfdata_writer *w, struct writer_bytes *b)
{
	const size_t rows = w->aux_rows.len / 16;
	bool good = writer_add_u64(b, rows);

	return good && writer_add(b, w->aux_rows.bytes, w->aux_rows.len);
}

int writer_make_features(struct vmt_perfdata_writer *w, struct vmt_diag *diag)
{
	const struct {
		unsigned int feature;
		bool wanted;
		bool (*make)(const struct vmt_perfdata_writer *w, struct writer_bytes *b);
	} rows[] = {
		{ VMT_PERFDATA_TRACING_DATA, w->nr_formats > 0, make_tracing },
		{ VMT_PERFDATA_EVENT_DESC, w->nr_events > 0, make_event_desc },
		{ VMT_PERFDATA_PMU_MAPPINGS, w->nr_events > 0, make_pmus },
		{ VMT_PERFDATA_AUXTRACE, w->aux_rows.len > 0, make_aux_index },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!rows[i].wanted || w->has_feature[rows[i].feature])
			continue;
		if (!rows[i].make(w, &w->features[rows[i].feature]))
			return writer_no_memory(diag);
		w->has_feature[rows[i].feature] = true;
	}
	return 0;
}
