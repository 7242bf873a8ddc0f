/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/support/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE_TID	  (UINT64_C(1) << 1)
#define SAMPLE_TIME	  (UINT64_C(1) << 2)
#define SAMPLE_CPU	  (UINT64_C(1) << 7)
#define SAMPLE_RAW	  (UINT64_C(1) << 10)
#define SAMPLE_IDENTIFIER (UINT64_C(1) << 16)

static void die(const char *what, const char *name)
{
	fprintf(stderr, "stream: %s: %s\n", what, name);
	abort();
}

void vmt_stream_free(struct vmt_stream *s)
{
	free(s->bytes);
	*s = (struct vmt_stream){ 0 };
}

void vmt_stream_append(struct vmt_stream *s, const void *bytes, size_t len)
{
	if (s->len + len > s->cap) {
		size_t cap = s->cap ? s->cap : 4096;
		uint8_t *grown;

		while (cap < s->len + len)
			cap *= 2;
		grown = realloc(s->bytes, cap);
		if (!grown)
			die("out of memory", "append");
		s->bytes = grown;
		s->cap = cap;
	}
	if (len > 0)
		memcpy(s->bytes + s->len, bytes, len);
	s->len += len;
}

static void put_u32(struct vmt_stream *s, uint32_t v)
{
	vmt_stream_append(s, &v, sizeof(v));
}

void vmt_stream_u64(struct vmt_stream *s, uint64_t v)
{
	vmt_stream_append(s, &v, sizeof(v));
}

static void put_header(struct vmt_stream *s, uint32_t type, uint16_t misc, size_t size)
{
	uint16_t size16 = (uint16_t)size;

	if (size != size16 || size % 8 != 0)
		die("record size", "not a multiple of 8 below 65536");
	put_u32(s, type);
	vmt_stream_append(s, &misc, sizeof(misc));
	vmt_stream_append(s, &size16, sizeof(size16));
}

struct vmt_ring_attr vmt_stream_attr(uint64_t tracepoint_id)
{
	return (struct vmt_ring_attr){
		.type = 2,
		.config = tracepoint_id,
		.sample_type =
			SAMPLE_IDENTIFIER | SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | SAMPLE_RAW,
		.flags = VMT_RING_FLAG_SAMPLE_ID_ALL,
	};
}

/* The sample_id trailer of every record that is no SAMPLE. */
#define TRAILER_LEN 32
static void put_trailer(struct vmt_stream *s, const struct vmt_stream_at *at)
{
	put_u32(s, at->pid);
	put_u32(s, at->tid);
	vmt_stream_u64(s, at->time_ns);
	put_u32(s, at->cpu);
	put_u32(s, 0);
	vmt_stream_u64(s, at->id);
}

static void store(uint8_t *raw, const struct vmt_format *format, const char *name, uint64_t value)
{
	const struct vmt_format_field *f = vmt_format_find(format, name);

	if (f)
		memcpy(raw + f->offset, &value, f->size < 8 ? f->size : 8);
}

void vmt_stream_tracepoint(struct vmt_stream *s, const struct vmt_format *format,
			   const struct vmt_stream_at *at, const struct vmt_stream_value *values,
			   size_t nr_values)
{
	uint8_t raw[4096] = { 0 };
	size_t raw_len = 0;

	for (unsigned int i = 0; i < format->nr_fields; i++) {
		size_t end = (size_t)format->fields[i].offset + format->fields[i].size;

		if (end > raw_len)
			raw_len = end;
	}
	if (raw_len + 4 > sizeof(raw))
		die("record too large", format->name);
	raw_len = ((raw_len + 4 + 7) & ~(size_t)7) - 4;
	store(raw, format, "common_type", format->id);
	store(raw, format, "common_pid", at->tid);
	for (size_t i = 0; i < nr_values; i++)
		store(raw, format, values[i].field, values[i].value);

	put_header(s, VMT_RING_SAMPLE, 1, 8 + 8 + 8 + 8 + 8 + 4 + raw_len);
	vmt_stream_u64(s, at->id);
	put_u32(s, at->pid);
	put_u32(s, at->tid);
	vmt_stream_u64(s, at->time_ns);
	put_u32(s, at->cpu);
	put_u32(s, 0);
	put_u32(s, (uint32_t)raw_len);
	vmt_stream_append(s, raw, raw_len);
}

void vmt_stream_switch(struct vmt_stream *s, const struct vmt_stream_at *at, int out, int preempted)
{
	unsigned int misc = 0;

	if (out)
		misc |= VMT_RING_MISC_SWITCH_OUT;
	if (out && preempted)
		misc |= VMT_RING_MISC_SWITCH_OUT_PREEMPT;
	put_header(s, VMT_RING_SWITCH, (uint16_t)misc, 8 + TRAILER_LEN);
	put_trailer(s, at);
}

void vmt_stream_lost(struct vmt_stream *s, const struct vmt_stream_at *at, uint64_t lost)
{
	put_header(s, VMT_RING_LOST, 0, 8 + 16 + TRAILER_LEN);
	vmt_stream_u64(s, at->id);
	vmt_stream_u64(s, lost);
	put_trailer(s, at);
}

void vmt_stream_lost_samples(struct vmt_stream *s, const struct vmt_stream_at *at, uint64_t lost)
{
	put_header(s, VMT_RING_LOST_SAMPLES, 0, 8 + 8 + TRAILER_LEN);
	vmt_stream_u64(s, lost);
	put_trailer(s, at);
}

static char *read_text(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	char *text = malloc(65536);

	if (!f || !text)
		die("cannot open", path);
	*len = fread(text, 1, 65535, f);
	if (ferror(f) || *len == 0)
		die("cannot read", path);
	fclose(f);
	text[*len] = '\0';
	return text;
}

char *vmt_stream_format_text(const char *kernel, const char *name, size_t *len)
{
	const char *top = getenv("VMT_TOP");
	char path[4096];

	snprintf(path, sizeof(path), "%s/tests/golden/formats/%s/%s.format", top ? top : ".",
		 kernel, name);
	return read_text(path, len);
}

struct vmt_format vmt_stream_format(const char *kernel, const char *name)
{
	struct vmt_format format;
	size_t len;
	char *text = vmt_stream_format_text(kernel, name, &len);

	if (vmt_format_parse(text, len, &format, NULL))
		die("not a format", name);
	free(text);
	return format;
}
