/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/support/perfdata_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#define HEADER_LEN   104
#define ATTR_LEN     128
#define SAMPLE_TYPE  0x10587
#define PT_SAMPLE    0x10087
#define MMAP_LEN     (528u << 10)
#define FLUSH_LEN    (1u << 20)
#define PAYLOAD_MAX  65000u /* of a COMPRESSED record */
#define PLAIN_PIECE  (48u << 10)
#define FEATURES_MAX 8

enum {
	HEADER_ATTR = 64,
	TRACING_DATA = 66,
	FINISHED_ROUND = 68,
	HEADER_FEATURE = 80,
	COMPRESSED = 81,
};

struct feature {
	unsigned int bit;
	struct vmt_stream body;
};

struct vmt_perfdata_file {
	struct vmt_perfdata_file_options options;
	struct vmt_stream out; /* not yet written to the descriptor */
	struct vmt_stream ring;
	uint64_t flushed;
	struct vmt_format *formats;
	char **texts;
	size_t *text_lens;
	size_t nr_formats;
	uint64_t data_offset;
	struct feature features[FEATURES_MAX];
	size_t nr_features;
	ZSTD_CCtx *zstd;
};

static void die(const char *what)
{
	perror(what);
	abort();
}

static void put_u32(struct vmt_stream *s, uint32_t v)
{
	vmt_stream_append(s, &v, sizeof(v));
}

static void pad(struct vmt_stream *s, size_t to)
{
	static const uint8_t zero[64];

	if (s->len % to)
		vmt_stream_append(s, zero, to - s->len % to);
}

static uint64_t offset(const struct vmt_perfdata_file *f)
{
	return f->flushed + f->out.len;
}

static void write_all(int fd, const uint8_t *bytes, size_t len)
{
	while (len) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0)
			die("perfdata_file: write");
		bytes += n;
		len -= (size_t)n;
	}
}

static void flush(struct vmt_perfdata_file *f, size_t from_len)
{
	if (f->options.fd < 0 || f->out.len < from_len)
		return;
	write_all(f->options.fd, f->out.bytes, f->out.len);
	f->flushed += f->out.len;
	f->out.len = 0;
}

/* ---- features ---- */

static struct vmt_stream *feature(struct vmt_perfdata_file *f, unsigned int bit)
{
	if (f->nr_features == FEATURES_MAX)
		abort();
	f->features[f->nr_features].bit = bit;
	return &f->features[f->nr_features++].body;
}

static void put_string(struct vmt_stream *s, const char *text)
{
	size_t len = (strlen(text) + 1 + 63) & ~(size_t)63;
	char padded[256] = { 0 };

	if (len > sizeof(padded))
		abort();
	memcpy(padded, text, strlen(text));
	put_u32(s, (uint32_t)len);
	vmt_stream_append(s, padded, len);
}

static bool is_kvm(const struct vmt_format *format)
{
	return !strncmp(format->name, "kvm", 3);
}

static void put_system(const struct vmt_perfdata_file *f, struct vmt_stream *s, const char *name,
		       bool kvm)
{
	uint32_t n = 0;

	vmt_stream_append(s, name, strlen(name) + 1);
	for (size_t i = 0; i < f->nr_formats; i++)
		n += is_kvm(&f->formats[i]) == kvm;
	put_u32(s, n);
	for (size_t i = 0; i < f->nr_formats; i++) {
		if (is_kvm(&f->formats[i]) != kvm)
			continue;
		vmt_stream_u64(s, f->text_lens[i]);
		vmt_stream_append(s, f->texts[i], f->text_lens[i]);
	}
}

/* perf 6.1 refuses an empty one. */
static const char header_page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				  "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

static void put_tracing_data(const struct vmt_perfdata_file *f, struct vmt_stream *s)
{
	vmt_stream_append(s, "\x17\x08\x44tracing0.6", 14);
	vmt_stream_append(s, "\0\x08", 2); /* little endian, size of long */
	put_u32(s, 4096);
	vmt_stream_append(s, "header_page", 12);
	vmt_stream_u64(s, sizeof(header_page) - 1);
	vmt_stream_append(s, header_page, sizeof(header_page) - 1);
	vmt_stream_append(s, "header_event", 13);
	vmt_stream_u64(s, 0);
	put_u32(s, 0); /* events of ftrace itself */
	put_u32(s, 2);
	put_system(f, s, "kvm", true);
	put_system(f, s, "sched", false);
	put_u32(s, 0);	      /* kallsyms */
	put_u32(s, 0);	      /* printk formats */
	vmt_stream_u64(s, 0); /* saved command lines */
}

static void make_features(struct vmt_perfdata_file *f)
{
	struct vmt_stream *s;

	put_tracing_data(f, feature(f, 1));
	put_string(feature(f, 3), "host");
	put_string(feature(f, 4), f->options.kernel);
	put_string(feature(f, 6), "x86_64");
	if (f->options.isa == VMT_ISA_VMX)
		put_string(feature(f, 9), "GenuineIntel,6,143,8");
	else if (f->options.isa == VMT_ISA_SVM)
		put_string(feature(f, 9), "AuthenticAMD,25,17,1");
	if (f->options.zstd) {
		s = feature(f, 27);
		put_u32(s, 0);
		put_u32(s, 1);
		put_u32(s, 1);
		put_u32(s, 5);
		put_u32(s, MMAP_LEN);
	}
}

/* ---- attrs ---- */

static size_t nr_attrs(const struct vmt_perfdata_file *f)
{
	return f->nr_formats + (f->options.pt ? 1 : 0);
}

static void put_pt_attr(struct vmt_stream *s)
{
	uint64_t attr[ATTR_LEN / 8] = { 0 };

	attr[0] = VMT_PERFDATA_FILE_PT | (uint64_t)ATTR_LEN << 32;
	attr[1] = VMT_PERFDATA_FILE_PT_CONFIG;
	attr[3] = PT_SAMPLE;
	attr[4] = 4;
	attr[5] = VMT_RING_FLAG_SAMPLE_ID_ALL;
	vmt_stream_append(s, attr, sizeof(attr));
}

static void put_attr(const struct vmt_perfdata_file *f, struct vmt_stream *s, size_t i)
{
	uint64_t attr[ATTR_LEN / 8] = { 0 };

	if (i == f->nr_formats) {
		put_pt_attr(s);
		return;
	}
	attr[0] = 2 | (uint64_t)ATTR_LEN << 32;
	attr[1] = f->formats[i].id;
	attr[2] = 1; /* each one */
	attr[3] = SAMPLE_TYPE;
	attr[4] = 4; /* read_format ID */
	attr[5] = VMT_RING_FLAG_SAMPLE_ID_ALL;
	vmt_stream_append(s, attr, sizeof(attr));
}

uint64_t vmt_perfdata_file_pt_id(const struct vmt_perfdata_file *f, uint32_t cpu)
{
	return f->nr_formats * f->options.cpus + 1 + cpu;
}

static void put_ids(const struct vmt_perfdata_file *f, struct vmt_stream *s, size_t i)
{
	for (unsigned int cpu = 0; cpu < f->options.cpus; cpu++)
		vmt_stream_u64(s, i == f->nr_formats ? vmt_perfdata_file_pt_id(f, cpu)
						     : i + 1 + cpu * f->nr_formats);
}

static void put_header(struct vmt_perfdata_file *f)
{
	uint64_t ids_len = 8ull * f->options.cpus * nr_attrs(f);
	uint64_t attrs = HEADER_LEN + ids_len;
	uint64_t bits[4] = { 0 };

	for (size_t i = 0; i < f->nr_features && !f->options.no_features; i++)
		bits[f->features[i].bit / 64] |= UINT64_C(1) << (f->features[i].bit % 64);
	f->data_offset = attrs + nr_attrs(f) * (ATTR_LEN + 16);
	vmt_stream_append(&f->out, "PERFILE2", 8);
	vmt_stream_u64(&f->out, HEADER_LEN);
	vmt_stream_u64(&f->out, ATTR_LEN + 16);
	vmt_stream_u64(&f->out, attrs);
	vmt_stream_u64(&f->out, nr_attrs(f) * (ATTR_LEN + 16));
	vmt_stream_u64(&f->out, f->data_offset);
	vmt_stream_u64(&f->out, 0);
	vmt_stream_u64(&f->out, 0);
	vmt_stream_u64(&f->out, 0);
	vmt_stream_append(&f->out, bits, sizeof(bits));
	for (size_t i = 0; i < nr_attrs(f); i++)
		put_ids(f, &f->out, i);
	for (size_t i = 0; i < nr_attrs(f); i++) {
		put_attr(f, &f->out, i);
		vmt_stream_u64(&f->out, HEADER_LEN + 8ull * f->options.cpus * i);
		vmt_stream_u64(&f->out, 8ull * f->options.cpus);
	}
}

static void put_pipe_feature(struct vmt_perfdata_file *f, const struct feature *feature)
{
	struct vmt_stream body = { 0 };

	if (feature->bit == 1) {
		put_u32(&body, (uint32_t)((feature->body.len + 7) & ~(size_t)7));
		put_u32(&body, 0);
		vmt_perfdata_file_user(f, TRACING_DATA, body.bytes, body.len);
		vmt_stream_append(&f->out, feature->body.bytes, feature->body.len);
		pad(&f->out, 8);
	} else {
		vmt_stream_u64(&body, feature->bit);
		vmt_stream_append(&body, feature->body.bytes, feature->body.len);
		pad(&body, 8);
		vmt_perfdata_file_user(f, HEADER_FEATURE, body.bytes, body.len);
	}
	vmt_stream_free(&body);
}

static void put_pipe_header(struct vmt_perfdata_file *f)
{
	vmt_stream_append(&f->out, "PERFILE2", 8);
	vmt_stream_u64(&f->out, 16);
	f->data_offset = 16;
	for (size_t i = 0; i < nr_attrs(f); i++) {
		struct vmt_stream body = { 0 };

		put_attr(f, &body, i);
		put_ids(f, &body, i);
		vmt_perfdata_file_user(f, HEADER_ATTR, body.bytes, body.len);
		vmt_stream_free(&body);
	}
	for (size_t i = 0; i < f->nr_features; i++)
		put_pipe_feature(f, &f->features[i]);
}

/* ---- the file ---- */

static void add_format(struct vmt_perfdata_file *f, const struct vmt_format *format)
{
	size_t n = f->nr_formats;

	f->formats = realloc(f->formats, (n + 1) * sizeof(*f->formats));
	f->texts = realloc(f->texts, (n + 1) * sizeof(*f->texts));
	f->text_lens = realloc(f->text_lens, (n + 1) * sizeof(*f->text_lens));
	if (!f->formats || !f->texts || !f->text_lens)
		abort();
	f->formats[n] = *format;
	f->texts[n] = vmt_stream_format_text(f->options.kernel, format->name, &f->text_lens[n]);
	f->nr_formats++;
}

static void load_formats(struct vmt_perfdata_file *f)
{
	const char *const *name = f->options.events;
	struct vmt_stream none = { 0 };
	struct vmt_machine *machine;
	const struct vmt_format *all;
	size_t n;

	for (; name && *name; name++) {
		struct vmt_format format = vmt_stream_format(f->options.kernel, *name);

		add_format(f, &format);
	}
	if (f->options.events)
		return;
	machine = vmt_machine_new(f->options.kernel, &none);
	n = vmt_machine_formats(machine, &all);
	for (size_t i = 0; i < n; i++)
		add_format(f, &all[i]);
	vmt_machine_free(machine);
}

struct vmt_perfdata_file *vmt_perfdata_file_new(const struct vmt_perfdata_file_options *options)
{
	struct vmt_perfdata_file *f = calloc(1, sizeof(*f));

	if (!f)
		abort();
	f->options = *options;
	if (!f->options.cpus)
		f->options.cpus = 1;
	load_formats(f);
	make_features(f);
	if (f->options.zstd) {
		f->zstd = ZSTD_createCCtx();
		if (!f->zstd)
			abort();
		ZSTD_CCtx_setParameter(f->zstd, ZSTD_c_compressionLevel, 1);
	}
	if (f->options.pipe)
		put_pipe_header(f);
	else
		put_header(f);
	return f;
}

void vmt_perfdata_file_free(struct vmt_perfdata_file *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->nr_formats; i++)
		free(f->texts[i]);
	for (size_t i = 0; i < f->nr_features; i++)
		vmt_stream_free(&f->features[i].body);
	free(f->formats);
	free(f->texts);
	free(f->text_lens);
	vmt_stream_free(&f->out);
	vmt_stream_free(&f->ring);
	ZSTD_freeCCtx(f->zstd);
	free(f);
}

size_t vmt_perfdata_file_formats(const struct vmt_perfdata_file *f,
				 const struct vmt_format **formats)
{
	*formats = f->formats;
	return f->nr_formats;
}

uint64_t vmt_perfdata_file_data_offset(const struct vmt_perfdata_file *f)
{
	return f->data_offset;
}

/* ---- records ---- */

void vmt_perfdata_file_user(struct vmt_perfdata_file *f, uint32_t type, const void *body,
			    size_t len)
{
	uint16_t misc = 0, size = (uint16_t)(8 + len);

	if (size != 8 + len || len % 8)
		abort();
	put_u32(&f->out, type);
	vmt_stream_append(&f->out, &misc, 2);
	vmt_stream_append(&f->out, &size, 2);
	vmt_stream_append(&f->out, body, len);
	flush(f, FLUSH_LEN);
}

void vmt_perfdata_file_bytes(struct vmt_perfdata_file *f, const uint8_t *bytes, size_t len)
{
	vmt_stream_append(&f->out, bytes, len);
	flush(f, FLUSH_LEN);
}

void vmt_perfdata_file_round(struct vmt_perfdata_file *f)
{
	vmt_perfdata_file_user(f, FINISHED_ROUND, NULL, 0);
}

/* One stream over all records; a piece may end inside a record, as a ring that wraps does. */
static void put_compressed(struct vmt_perfdata_file *f, const uint8_t *bytes, size_t len)
{
	while (len) {
		static uint8_t packed[PAYLOAD_MAX];
		size_t piece = len < PLAIN_PIECE ? len : PLAIN_PIECE;
		ZSTD_inBuffer in = { bytes, piece, 0 };
		size_t left;

		do {
			ZSTD_outBuffer o = { packed, sizeof(packed), 0 };
			uint16_t misc = 0, size;

			left = ZSTD_compressStream2(f->zstd, &o, &in, ZSTD_e_flush);
			if (ZSTD_isError(left))
				abort();
			size = (uint16_t)(8 + o.pos);
			put_u32(&f->out, COMPRESSED);
			vmt_stream_append(&f->out, &misc, 2);
			vmt_stream_append(&f->out, &size, 2);
			vmt_stream_append(&f->out, packed, o.pos);
		} while (left);
		bytes += piece;
		len -= piece;
	}
	flush(f, FLUSH_LEN);
}

void vmt_perfdata_file_records(struct vmt_perfdata_file *f, const uint8_t *bytes, size_t len)
{
	if (f->zstd) {
		put_compressed(f, bytes, len);
		return;
	}
	if (f->options.fd >= 0 && len >= FLUSH_LEN / 16) {
		flush(f, 1);
		write_all(f->options.fd, bytes, len);
		f->flushed += len;
		return;
	}
	vmt_stream_append(&f->out, bytes, len);
	flush(f, FLUSH_LEN);
}

static uint64_t load_u64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

/* The number of the machine's format in the file, or -1. */
static long file_format(const struct vmt_perfdata_file *f, const struct vmt_machine *machine,
			uint64_t id)
{
	const struct vmt_format *formats;
	size_t n = vmt_machine_formats(machine, &formats);

	for (size_t i = 0; id && id <= n && i < f->nr_formats; i++) {
		if (f->formats[i].id == formats[id - 1].id)
			return (long)i;
	}
	return -1;
}

/* id, pid/tid, time, cpu, raw of the machine; id, ip, pid/tid, time, cpu, period, raw of perf. */
static void put_sample(struct vmt_perfdata_file *f, const uint8_t *r, uint16_t size, long format)
{
	uint64_t cpu = load_u64(r + 32);
	uint16_t new_size = (uint16_t)(size + 16);

	vmt_stream_append(&f->ring, r, 6);
	vmt_stream_append(&f->ring, &new_size, 2);
	vmt_stream_u64(&f->ring, (uint64_t)format + 1 + (cpu & UINT32_MAX) * f->nr_formats);
	vmt_stream_u64(&f->ring, UINT64_C(0xffffffffc0001000));
	vmt_stream_append(&f->ring, r + 16, 16);
	vmt_stream_u64(&f->ring, cpu);
	vmt_stream_u64(&f->ring, 1);
	vmt_stream_append(&f->ring, r + 40, size - 40u);
}

/* The trailer ends with the id. */
static void put_other(struct vmt_perfdata_file *f, const uint8_t *r, uint16_t size, long format)
{
	uint64_t cpu = load_u64(r + size - 16) & UINT32_MAX;

	vmt_stream_append(&f->ring, r, size - 8u);
	vmt_stream_u64(&f->ring, (uint64_t)(format < 0 ? 0 : format) + 1 + cpu * f->nr_formats);
}

void vmt_perfdata_file_machine(struct vmt_perfdata_file *f, const struct vmt_machine *machine,
			       const struct vmt_stream *records)
{
	f->ring.len = 0;
	for (size_t at = 0; at < records->len;) {
		const uint8_t *r = records->bytes + at;
		uint32_t type;
		uint16_t size;
		long format;

		memcpy(&type, r, 4);
		memcpy(&size, r + 6, 2);
		at += size;
		format = file_format(f, machine,
				     load_u64(type == VMT_RING_SAMPLE ? r + 8 : r + size - 8));
		if (type != VMT_RING_SAMPLE)
			put_other(f, r, size, format);
		else if (format >= 0)
			put_sample(f, r, size, format);
	}
	vmt_perfdata_file_records(f, f->ring.bytes, f->ring.len);
}

/* ---- the end ---- */

static void put_feature_table(struct vmt_perfdata_file *f)
{
	uint64_t at = offset(f) + 16 * f->nr_features;

	for (size_t i = 0; i < f->nr_features; i++) {
		vmt_stream_u64(&f->out, at);
		vmt_stream_u64(&f->out, f->features[i].body.len);
		at += f->features[i].body.len;
	}
	for (size_t i = 0; i < f->nr_features; i++)
		vmt_stream_append(&f->out, f->features[i].body.bytes, f->features[i].body.len);
}

void vmt_perfdata_file_finish(struct vmt_perfdata_file *f)
{
	uint64_t size = offset(f) - f->data_offset;

	if (f->options.pipe) {
		flush(f, 1);
		return;
	}
	if (!f->options.no_features)
		put_feature_table(f);
	flush(f, 1);
	if (f->options.no_data_size)
		return;
	if (f->options.fd < 0)
		memcpy(f->out.bytes + 48, &size, 8);
	else if (pwrite(f->options.fd, &size, 8, 48) != 8)
		die("perfdata_file: pwrite");
}

uint8_t *vmt_perfdata_file_take(struct vmt_perfdata_file *f, size_t *len)
{
	uint8_t *bytes = f->out.bytes;

	*len = f->out.len;
	f->out = (struct vmt_stream){ 0 };
	return bytes;
}
