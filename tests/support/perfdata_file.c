// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/support/perfdata_file.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "tests/support/stream.h"

#define HEADER_LEN	 104u
#define PIPE_HEADER_LEN	 16u
#define ATTR_LEN	 128u
#define SAMPLE_TYPE	 UINT64_C(0x10587)
#define COMPRESSED_MAX	 65000u
#define COMPRESSED_INPUT 32768u
#define MMAP_LEN	 528384u

enum {
	FEATURE_TRACING_DATA = 1,
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE = 4,
	FEATURE_ARCH = 6,
	FEATURE_CPUID = 9,
	FEATURE_COMPRESSED = 27,
	FEATURE_COUNT,
	USER_HEADER_ATTR = 64,
	USER_TRACING_DATA = 66,
	USER_FINISHED_ROUND = 68,
	USER_HEADER_FEATURE = 80,
	USER_COMPRESSED = 81,
};

struct vmt_perf_file {
	struct vmt_perf_file_options o;
	const struct vmt_format *formats;
	size_t nr_formats;
	uint64_t data_bytes;
	uint64_t attrs_offset;
	struct vmt_stream converted;
	ZSTD_CStream *zstd;
};

static void die(const char *what)
{
	fprintf(stderr, "perfdata_file: %s\n", what);
	abort();
}

static void out(struct vmt_perf_file *f, const void *bytes, size_t len)
{
	if (len && fwrite(bytes, 1, len, f->o.out) != len)
		die("write failed");
}

static void data(struct vmt_perf_file *f, const void *bytes, size_t len)
{
	out(f, bytes, len);
	f->data_bytes += len;
}

static void add(struct vmt_stream *s, const void *bytes, size_t len)
{
	vmt_stream_append(s, bytes, len);
}

static void add_u32(struct vmt_stream *s, uint32_t v)
{
	add(s, &v, sizeof(v));
}

static void add_u64(struct vmt_stream *s, uint64_t v)
{
	add(s, &v, sizeof(v));
}

static void add_header(struct vmt_stream *s, uint32_t type, uint16_t misc, size_t size)
{
	uint16_t size16 = (uint16_t)size;

	add_u32(s, type);
	add(s, &misc, sizeof(misc));
	add(s, &size16, sizeof(size16));
}

/* ---- metadata ---- */

static void add_attr(struct vmt_stream *s, const struct vmt_format *format)
{
	uint8_t attr[ATTR_LEN] = { 0 };
	uint32_t type = 2, len = ATTR_LEN;
	uint64_t config = format->id, period = 1, sample_type = SAMPLE_TYPE;
	uint64_t flags = VMT_RING_FLAG_SAMPLE_ID_ALL | 1 /* disabled */;

	memcpy(attr, &type, sizeof(type));
	memcpy(attr + 4, &len, sizeof(len));
	memcpy(attr + 8, &config, sizeof(config));
	memcpy(attr + 16, &period, sizeof(period));
	memcpy(attr + 24, &sample_type, sizeof(sample_type));
	memcpy(attr + 40, &flags, sizeof(flags));
	add(s, attr, sizeof(attr));
}

static bool in_system(const struct vmt_format *format, const char *system)
{
	return !strcmp(strncmp(format->name, "sched_", 6) ? "kvm" : "sched", system);
}

static void add_system(const struct vmt_perf_file *f, struct vmt_stream *s, const char *system)
{
	uint32_t nr = 0;

	for (size_t i = 0; i < f->nr_formats; i++)
		nr += in_system(&f->formats[i], system);
	add(s, system, strlen(system) + 1);
	add_u32(s, nr);
	for (size_t i = 0; i < f->nr_formats; i++) {
		size_t len;
		char *text;

		if (!in_system(&f->formats[i], system))
			continue;
		text = vmt_stream_format_text(f->o.kernel, f->formats[i].name, &len);
		add_u64(s, len);
		add(s, text, len);
		free(text);
	}
}

static void add_tracing_data(const struct vmt_perf_file *f, struct vmt_stream *s)
{
	static const uint8_t head[] = { 0x17, 0x08, 0x44, 't', 'r', 'a', 'c', 'i',
					'n',  'g',  '0',  '.', '6', 0,	 0,   8 };
	/* What tells a parser of the ring where a page's data begins; the fields are never used. */
	static const char page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				   "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				   "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				   "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

	add(s, head, sizeof(head));
	add_u32(s, 4096);
	add(s, "header_page", 12);
	add_u64(s, sizeof(page) - 1);
	add(s, page, sizeof(page) - 1);
	add(s, "header_event", 13);
	add_u64(s, 0);
	add_u32(s, 0); /* formats of ftrace itself */
	add_u32(s, 2);
	add_system(f, s, "kvm");
	add_system(f, s, "sched");
	add_u32(s, 0); /* kallsyms */
	add_u32(s, 0); /* printk formats */
	add_u64(s, 0); /* command lines */
}

static void add_string(struct vmt_stream *s, const char *text)
{
	char padded[64] = { 0 };

	snprintf(padded, sizeof(padded), "%s", text);
	add_u32(s, sizeof(padded));
	add(s, padded, sizeof(padded));
}

/* The payload of a feature; false when the file has none. */
static bool add_feature(const struct vmt_perf_file *f, unsigned int feature, struct vmt_stream *s)
{
	switch (feature) {
	case FEATURE_TRACING_DATA:
		add_tracing_data(f, s);
		return true;
	case FEATURE_HOSTNAME:
		add_string(s, "host01");
		return true;
	case FEATURE_OSRELEASE:
		add_string(s, f->o.kernel);
		return true;
	case FEATURE_ARCH:
		add_string(s, "x86_64");
		return true;
	case FEATURE_CPUID:
		if (f->o.cpuid)
			add_string(s, f->o.cpuid);
		return f->o.cpuid != NULL;
	case FEATURE_COMPRESSED:
		if (!f->o.compress)
			return false;
		add_u32(s, 0); /* version */
		add_u32(s, 1); /* zstd */
		add_u32(s, 1); /* level */
		add_u32(s, 5); /* ratio */
		add_u32(s, MMAP_LEN);
		return true;
	default:
		return false;
	}
}

static void write_file_head(struct vmt_perf_file *f)
{
	static const uint8_t empty[HEADER_LEN];
	struct vmt_stream s = { 0 };

	add(&s, empty, sizeof(empty));
	for (size_t i = 0; i < f->nr_formats; i++)
		add_u64(&s, i + 1);
	f->attrs_offset = s.len;
	for (size_t i = 0; i < f->nr_formats; i++) {
		add_attr(&s, &f->formats[i]);
		add_u64(&s, HEADER_LEN + 8 * i);
		add_u64(&s, 8);
	}
	out(f, s.bytes, s.len);
	vmt_stream_free(&s);
}

static void write_pipe_head(struct vmt_perf_file *f)
{
	struct vmt_stream s = { 0 };

	add(&s, "PERFILE2", 8);
	add_u64(&s, PIPE_HEADER_LEN);
	for (size_t i = 0; i < f->nr_formats; i++) {
		add_header(&s, USER_HEADER_ATTR, 0, 8 + ATTR_LEN + 8);
		add_attr(&s, &f->formats[i]);
		add_u64(&s, i + 1);
	}
	for (unsigned int feature = 0; feature < FEATURE_COUNT; feature++) {
		struct vmt_stream payload = { 0 };
		uint8_t padding[8] = { 0 };

		if (add_feature(f, feature, &payload)) {
			add(&payload, padding, -payload.len % 8);
			if (feature == FEATURE_TRACING_DATA) {
				add_header(&s, USER_TRACING_DATA, 0, 16);
				add_u32(&s, (uint32_t)payload.len);
				add_u32(&s, 0);
			} else {
				add_header(&s, USER_HEADER_FEATURE, 0, 16 + payload.len);
				add_u64(&s, feature);
			}
			add(&s, payload.bytes, payload.len);
		}
		vmt_stream_free(&payload);
	}
	out(f, s.bytes, s.len);
	vmt_stream_free(&s);
}

struct vmt_perf_file *vmt_perf_file_new(const struct vmt_perf_file_options *options,
					const struct vmt_format *formats, size_t nr_formats)
{
	struct vmt_perf_file *f = calloc(1, sizeof(*f));

	if (!f)
		die("out of memory");
	f->o = *options;
	f->formats = formats;
	f->nr_formats = nr_formats;
	if (f->o.compress) {
		f->zstd = ZSTD_createCStream();
		if (!f->zstd || ZSTD_isError(ZSTD_initCStream(f->zstd, 1)))
			die("zstd");
	}
	if (f->o.pipe)
		write_pipe_head(f);
	else
		write_file_head(f);
	return f;
}

/* ---- data ---- */

/* A SAMPLE of vmt_stream_attr with IP and PERIOD put in. */
static void convert_sample(struct vmt_stream *s, const uint8_t *record, uint16_t size)
{
	const size_t id = 8, tid = 16, cpu = 32, raw = 40;
	uint16_t misc;

	memcpy(&misc, record + 4, sizeof(misc));
	add_header(s, VMT_RING_SAMPLE, misc, size + 16u);
	add(s, record + id, tid - id);
	add_u64(s, UINT64_C(0xffffffffc0a00000));
	add(s, record + tid, cpu - tid); /* TID, TIME */
	add(s, record + cpu, raw - cpu);
	add_u64(s, 1);
	add(s, record + raw, size - raw);
}

/* One piece of the stream, flushed, cut into records; perf pads none of them. */
static void compress(struct vmt_perf_file *f, const uint8_t *bytes, size_t len)
{
	uint8_t packed[COMPRESSED_MAX];
	ZSTD_inBuffer in = { bytes, len, 0 };
	size_t left;

	do {
		ZSTD_outBuffer o = { packed, sizeof(packed), 0 };
		struct vmt_stream s = { 0 };

		left = ZSTD_compressStream2(f->zstd, &o, &in, ZSTD_e_flush);
		if (ZSTD_isError(left))
			die("zstd");
		if (!o.pos)
			continue;
		add_header(&s, USER_COMPRESSED, 0, 8 + o.pos);
		data(f, s.bytes, s.len);
		data(f, packed, o.pos);
		vmt_stream_free(&s);
	} while (left || in.pos < in.size);
}

void vmt_perf_file_records(struct vmt_perf_file *f, const uint8_t *bytes, size_t len)
{
	f->converted.len = 0;
	for (size_t at = 0; at < len;) {
		uint32_t type;
		uint16_t size;

		memcpy(&type, bytes + at, sizeof(type));
		memcpy(&size, bytes + at + 6, sizeof(size));
		if (type == VMT_RING_SAMPLE)
			convert_sample(&f->converted, bytes + at, size);
		else
			add(&f->converted, bytes + at, size);
		at += size;
	}
	if (!f->zstd) {
		data(f, f->converted.bytes, f->converted.len);
		return;
	}
	/* Pieces end where they end: in the middle of records. */
	for (size_t at = 0; at < f->converted.len; at += COMPRESSED_INPUT)
		compress(f, f->converted.bytes + at,
			 f->converted.len - at < COMPRESSED_INPUT ? f->converted.len - at
								  : COMPRESSED_INPUT);
}

void vmt_perf_file_raw(struct vmt_perf_file *f, const void *bytes, size_t len)
{
	data(f, bytes, len);
}

void vmt_perf_file_round(struct vmt_perf_file *f)
{
	struct vmt_stream s = { 0 };

	add_header(&s, USER_FINISHED_ROUND, 0, 8);
	data(f, s.bytes, s.len);
	vmt_stream_free(&s);
}

/* The table of sections and the sections; returns the bitmap. */
static uint64_t write_features(struct vmt_perf_file *f, uint64_t table_offset)
{
	struct vmt_stream payloads[FEATURE_COUNT] = { { 0 } }, table = { 0 };
	uint64_t bits = 0, offset;

	for (unsigned int i = 0; i < FEATURE_COUNT; i++) {
		if (add_feature(f, i, &payloads[i]))
			bits |= UINT64_C(1) << i;
	}
	offset = table_offset + 16u * (unsigned int)__builtin_popcountll(bits);
	for (unsigned int i = 0; i < FEATURE_COUNT; i++) {
		if (!(bits >> i & 1))
			continue;
		add_u64(&table, offset);
		add_u64(&table, payloads[i].len);
		offset += payloads[i].len;
	}
	out(f, table.bytes, table.len);
	for (unsigned int i = 0; i < FEATURE_COUNT; i++) {
		out(f, payloads[i].bytes, payloads[i].len);
		vmt_stream_free(&payloads[i]);
	}
	vmt_stream_free(&table);
	return bits;
}

static void finish_file(struct vmt_perf_file *f)
{
	uint64_t data_offset = f->attrs_offset + (ATTR_LEN + 16) * f->nr_formats;
	uint64_t bits = f->o.no_features ? 0 : write_features(f, data_offset + f->data_bytes);
	struct vmt_stream h = { 0 };

	add(&h, "PERFILE2", 8);
	add_u64(&h, HEADER_LEN);
	add_u64(&h, ATTR_LEN + 16);
	add_u64(&h, f->attrs_offset);
	add_u64(&h, (ATTR_LEN + 16) * f->nr_formats);
	add_u64(&h, data_offset);
	add_u64(&h, f->o.no_data_size ? 0 : f->data_bytes);
	add_u64(&h, 0);
	add_u64(&h, 0);
	add_u64(&h, bits);
	for (unsigned int i = 0; i < 3; i++)
		add_u64(&h, 0);
	if (fseek(f->o.out, 0, SEEK_SET))
		die("seek failed");
	out(f, h.bytes, h.len);
	if (fseek(f->o.out, 0, SEEK_END))
		die("seek failed");
	vmt_stream_free(&h);
}

void vmt_perf_file_finish(struct vmt_perf_file *f)
{
	if (!f->o.pipe)
		finish_file(f);
	if (fflush(f->o.out))
		die("write failed");
	ZSTD_freeCStream(f->zstd);
	vmt_stream_free(&f->converted);
	free(f);
}
