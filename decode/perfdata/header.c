// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * File mode: a header of 104 bytes, attrs with their id arrays, the data section, and behind it a
 * table of feature sections (one row a bit of the header's bitmap, in ascending order).
 */
#include <stdlib.h>
#include <string.h>

#include "decode/perfdata/private.h"

#define HEADER_LEN    104u
#define ATTR_SIZE_MAX 4096u
#define SECTION_MAX   ((uint64_t)PERF_ATTRS_MAX * ATTR_SIZE_MAX)

struct section {
	uint64_t offset, size;
};

static struct section load_section(const uint8_t *p)
{
	return (struct section){ vmt_load_u64(p), vmt_load_u64(p + 8) };
}

static bool inside(const struct vmt_perfdata *p, struct section s)
{
	uint64_t size = vmt_reader_size(p->reader);

	return s.offset <= size && s.size <= size - s.offset;
}

/* A copy of a section; NULL with *status when it is not there or memory is short. */
static uint8_t *load(struct vmt_perfdata *p, struct section s, int *status, struct vmt_diag *diag)
{
	const uint8_t *bytes;
	uint8_t *copy;
	int64_t got;

	*status = VMT_E_DAMAGED;
	if (!inside(p, s) || s.size > SECTION_MAX)
		return NULL;
	*status = vmt_reader_seek(p->reader, s.offset, diag);
	if (*status)
		return NULL;
	got = vmt_reader_peek(p->reader, (size_t)s.size, &bytes, diag);
	*status = got < 0 ? (int)got : got < (int64_t)s.size ? VMT_E_TRUNCATED : VMT_E_NOMEM;
	copy = got >= (int64_t)s.size ? malloc((size_t)s.size + 1) : NULL;
	if (!copy)
		return NULL;
	memcpy(copy, bytes, (size_t)s.size);
	*status = 0;
	return copy;
}

static int read_ids(struct vmt_perfdata *p, struct section s, uint64_t **ids, size_t *nr,
		    struct vmt_diag *diag)
{
	int status = 0;

	*nr = (size_t)(s.size / 8);
	*ids = NULL;
	if (!*nr)
		return 0;
	if (*nr > PERF_IDS_MAX)
		return VMT_E_LIMIT;
	*ids = (uint64_t *)(void *)load(p, s, &status, diag);
	return status;
}

static int read_attrs(struct vmt_perfdata *p, struct section attrs, uint64_t attr_size,
		      struct vmt_diag *diag)
{
	uint8_t *table;
	int status;

	if (attr_size < 64 + 16 || attr_size > ATTR_SIZE_MAX)
		return vmt_diag_at(diag, VMT_E_DAMAGED, 16, "a perf.data without event attributes",
				   "the recorder did not finish its header");
	table = load(p, attrs, &status, diag);
	for (uint64_t at = 0; !status && at + attr_size <= attrs.size; at += attr_size) {
		uint64_t *ids;
		size_t nr;

		status = read_ids(p, load_section(table + at + attr_size - 16), &ids, &nr, diag);
		if (!status)
			status = perf_attr_add(p, table + at, (size_t)attr_size - 16, ids, nr);
	}
	free(table);
	if (status)
		return vmt_diag_at(diag, status, attrs.offset,
				   "the event attributes cannot be read",
				   "the header of this perf.data is damaged");
	return 0;
}

static unsigned int count_features(const struct vmt_perfdata *p)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < 4; i++)
		n += (unsigned int)__builtin_popcountll(p->feature_bits[i]);
	return n;
}

/* One section; what is damaged stays absent. */
static int read_feature(struct vmt_perfdata *p, unsigned int feature, struct section s,
			struct vmt_diag *diag)
{
	uint8_t *bytes;
	uint64_t used;
	int status;

	if (!inside(p, s))
		return 0;
	if (feature == PERF_FEATURE_TRACING_DATA) {
		status = vmt_reader_seek(p->reader, s.offset, diag);
		return status ? status : perf_tracing_read(p, s.size, &used, diag);
	}
	if (s.size > PERF_FEATURE_MAX)
		return 0;
	bytes = load(p, s, &status, diag);
	if (bytes)
		perf_feature_take(p, feature, bytes, (size_t)s.size);
	free(bytes);
	return status == VMT_E_TRUNCATED ? 0 : status;
}

/* The sections behind the data, as far as they are there. */
static int read_features(struct vmt_perfdata *p, uint64_t table_offset, struct vmt_diag *diag)
{
	struct section where = { table_offset, UINT64_C(16) * count_features(p) };
	int status;
	uint8_t *table = load(p, where, &status, diag);
	unsigned int row = 0;

	if (!table)
		return status == VMT_E_NOMEM || status == VMT_E_IO ? status : 0;
	for (unsigned int bit = 0; !status && bit < PERF_FEATURE_BITS; bit++) {
		struct section s;

		if (!(p->feature_bits[bit / 64] >> (bit % 64) & 1))
			continue;
		s = load_section(table + 16 * (size_t)row++);
		if (inside(p, s))
			p->sections[bit] = (struct perf_section){ s.offset, s.size };
		if (bit <= PERF_FEATURE_CMDLINE)
			status = read_feature(p, bit, s, diag);
	}
	free(table);
	return status;
}

/* Whether the table of features begins here: its first row names the byte behind the table. */
static bool is_feature_table(const struct vmt_perfdata *p, uint64_t at, const uint8_t *bytes)
{
	return vmt_load_u64(bytes) == at + UINT64_C(16) * count_features(p);
}

/* How far it is to the record behind this one, of which 16 bytes are there; 0: there is none. */
static uint64_t record_step(const uint8_t *bytes)
{
	uint64_t step = vmt_load_u16(bytes + 6);
	uint64_t trace = vmt_load_u64(bytes + 8);

	if (step < 8)
		return 0;
	if (vmt_load_u32(bytes) != PERF_USER_AUXTRACE)
		return step;
	return trace < INT64_MAX ? step + trace : 0;
}

/*
 * A recorder that was killed leaves data.size 0. The features, if there are any, follow the last
 * record: walk the records up to them, or to the end of the file.
 */
static int find_data_end(struct vmt_perfdata *p, uint64_t from, struct vmt_diag *diag)
{
	uint64_t at = from, size = vmt_reader_size(p->reader);
	int status = vmt_reader_seek(p->reader, from, diag);

	while (!status && count_features(p)) {
		const uint8_t *bytes;
		int64_t got = vmt_reader_peek(p->reader, 16, &bytes, diag);
		uint64_t step;

		if (got < 16)
			return got < 0 ? (int)got : 0;
		if (is_feature_table(p, at, bytes)) {
			p->has_data_end = true;
			p->data_end = at;
			return read_features(p, at, diag);
		}
		step = record_step(bytes);
		if (!step || step > size - at)
			return 0;
		at += step;
		status = vmt_reader_skip(p->reader, step, diag);
	}
	return status;
}

static int read_data_section(struct vmt_perfdata *p, struct section data, struct vmt_diag *diag)
{
	int status;

	if (data.offset > vmt_reader_size(p->reader))
		return vmt_diag_at(diag, VMT_E_TRUNCATED, vmt_reader_size(p->reader),
				   "a perf.data cut off before its data", "nothing was recorded");
	if (data.size) {
		p->has_data_end = true;
		p->data_end =
			data.size > UINT64_MAX - data.offset ? UINT64_MAX : data.offset + data.size;
		status = read_features(p, p->data_end, diag);
	} else {
		status = find_data_end(p, data.offset, diag);
	}
	if (status)
		return status;
	/* What lies before the data has been read; what lies behind it is counted at the end. */
	perf_count(p, data.offset, 0);
	return vmt_reader_seek(p->reader, data.offset, diag);
}

int perf_header_read(struct vmt_perfdata *p, struct vmt_diag *diag)
{
	const uint8_t *h;
	struct section attrs, data;
	uint64_t attr_size;
	int64_t got = vmt_reader_peek(p->reader, HEADER_LEN, &h, diag);
	int status;

	if (got < 0)
		return (int)got;
	if (got < HEADER_LEN)
		return vmt_diag_at(diag, VMT_E_TRUNCATED, (uint64_t)got,
				   "a perf.data cut off in its header", "nothing was recorded");
	if (!vmt_reader_can_seek(p->reader))
		return vmt_diag_set(diag, VMT_E_USAGE, "this perf.data needs a file, not a pipe",
				    "its tables stand at the end; name the file, or record with "
				    "perf record -o -");
	attr_size = vmt_load_u64(h + 16);
	attrs = load_section(h + 24);
	data = load_section(h + 40);
	for (unsigned int i = 0; i < 4; i++)
		p->feature_bits[i] = vmt_load_u64(h + 72 + 8 * i);
	status = read_attrs(p, attrs, attr_size, diag);
	return status ? status : read_data_section(p, data, diag);
}
