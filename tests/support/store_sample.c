// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/support/store_sample.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "decode/store/layout.h"

static void *need(void *p)
{
	if (!p)
		abort();
	return p;
}

void vmt_sample_records(uint8_t *bytes, size_t n, uint32_t number)
{
	uint64_t x = number * UINT64_C(0x9e3779b97f4a7c15) + 1;

	for (size_t i = 0; i < n; i++, bytes += VMT_SAMPLE_RECORD) {
		memset(bytes, 0, VMT_SAMPLE_RECORD);
		bytes[0] = 9;
		bytes[6] = VMT_SAMPLE_RECORD;
		memcpy(bytes + 8, &number, sizeof(number));
		for (size_t j = 16; j < 48; j += 8) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			memcpy(bytes + j, &x, sizeof(x));
		}
	}
}

static int append_metadata(struct vmt_store_writer *w, bool ignore)
{
	struct vmt_ring_attr attr = { .type = 2, .config = 1, .sample_type = 0x10486 };
	struct vmt_anchor anchor = { .host_tsc_before = 1000, .host_ns = 500, .cpu = 1 };
	struct vmt_store_chunk chunk = { .type = VMT_CHUNK_ANCHOR,
					 .cpu = -1,
					 .nr_parts = 1,
					 .parts = { { &anchor, sizeof(anchor) } } };
	char text[700];
	int err = vmt_store_session(w, "{\"schema\":\"vmtrace-session/1\",\"domains\":[]}", NULL);

	for (unsigned int i = 0; i < 3 && (!err || ignore); i++) {
		uint64_t ids[2] = { i * 2 + 1, i * 2 + 2 };

		attr.config = i;
		snprintf(text, sizeof(text), "name: event%u\nID: %u\nformat:\n%0600u\n", i, i, i);
		err = vmt_store_attr(w, &attr, ids, 2, NULL);
		if (!err || ignore)
			err = vmt_store_format(w, text, NULL);
	}
	if (!err || ignore)
		err = vmt_store_append(w, &chunk, NULL);
	return err;
}

static int append_tsc(struct vmt_store_writer *w, uint32_t i)
{
	struct vmt_vcpu_tsc tsc = { .host_ns = i, .vcpu = i % 4, .offset = -(int64_t)i };
	struct vmt_store_chunk chunk = { .type = VMT_CHUNK_VCPU_TSC,
					 .cpu = -1,
					 .nr_parts = 1,
					 .parts = { { &tsc, sizeof(tsc) } } };

	return vmt_store_append(w, &chunk, NULL);
}

int vmt_sample_append(struct vmt_store_writer *w, const struct vmt_sample_options *o)
{
	size_t len = o->nr_records * VMT_SAMPLE_RECORD;
	uint8_t *records = need(malloc(len + 1));
	int err = append_metadata(w, o->ignore_errors);

	for (uint32_t i = 1; i <= o->chunks && (!err || o->ignore_errors); i++) {
		uint64_t time_ns = i * UINT64_C(1000000);
		struct vmt_store_chunk chunk = {
			.type = VMT_CHUNK_RECORDS,
			.stream = i % 2,
			.cpu = (int32_t)(i % 2),
			.time_first_ns = time_ns,
			.time_last_ns = time_ns,
			.nr_parts = 2,
			.parts = { { records, len / 2 }, { records + len / 2, len - len / 2 } }
		};

		vmt_sample_records(records, o->nr_records, i);
		err = vmt_store_append(w, &chunk, NULL);
		if ((!err || o->ignore_errors) && i % 4 == 0)
			err = vmt_store_round(w, time_ns, NULL);
		if ((!err || o->ignore_errors) && i % 16 == 0)
			err = vmt_store_mark(w, "{\"name\":\"paused\"}", time_ns, NULL);
		if ((!err || o->ignore_errors) && i % 16 == 8)
			err = append_tsc(w, i);
	}
	free(records);
	return o->ignore_errors ? 0 : err;
}

static enum vmt_item_type item_of(uint16_t type)
{
	return type >= VMT_CHUNK_FILE || type == VMT_CHUNK_INDEX ? (enum vmt_item_type)0
	       : type == VMT_CHUNK_END				 ? VMT_ITEM_END
								 : (enum vmt_item_type)type;
}

static void note_chunk(struct vmt_sample *s, const struct vmt_store_header *h, uint64_t offset)
{
	struct vmt_sample_chunk *c;
	const uint8_t *stored = s->bytes + offset + h->header_len;

	s->chunks = need(realloc(s->chunks, (s->nr_chunks + 1) * sizeof(*s->chunks)));
	c = &s->chunks[s->nr_chunks];
	*c = (struct vmt_sample_chunk){ offset, item_of(h->type), need(malloc(h->raw_len + 1)),
					h->raw_len, false };
	if (h->flags & VMT_STORE_FLAG_ZSTD) {
		if (ZSTD_decompress(c->payload, c->len, stored, h->stored_len) != c->len)
			abort();
	} else {
		memcpy(c->payload, stored, c->len);
	}
	for (size_t i = 0; i < s->nr_chunks && !c->repeated; i++)
		c->repeated = (c->type == VMT_ITEM_ATTR || c->type == VMT_ITEM_FORMAT) &&
			      s->chunks[i].type == c->type && s->chunks[i].len == c->len &&
			      !memcmp(s->chunks[i].payload, c->payload, c->len);
	s->nr_delivered += c->type && !c->repeated;
	s->nr_chunks++;
}

struct vmt_sample vmt_sample_make(const char *path, const struct vmt_store_options *store,
				  const struct vmt_sample_options *options)
{
	struct vmt_sample s = { 0 };
	struct vmt_store_writer *w;
	struct stat st;
	int fd;

	if (vmt_store_create(&w, path, store, NULL) != 0 || vmt_sample_append(w, options) != 0 ||
	    vmt_store_finish(w, NULL) != 0)
		abort();
	fd = open(path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st) < 0)
		abort();
	s.len = (size_t)st.st_size;
	s.bytes = need(malloc(s.len));
	if (read(fd, s.bytes, s.len) != (ssize_t)s.len)
		abort();
	close(fd);
	unlink(path);
	for (uint64_t at = 0; at < s.len;) {
		struct vmt_store_header h;

		if (!vmt_store_header_decode(s.bytes + at, &h))
			abort();
		note_chunk(&s, &h, at);
		at += vmt_store_chunk_len(&h);
	}
	return s;
}

void vmt_sample_free(struct vmt_sample *s)
{
	for (size_t i = 0; i < s->nr_chunks; i++)
		free(s->chunks[i].payload);
	free(s->chunks);
	free(s->bytes);
	memset(s, 0, sizeof(*s));
}

struct vmt_store_writer *vmt_sample_create(const char *path,
					   const struct vmt_store_options *options)
{
	struct vmt_store_writer *w;

	if (vmt_store_create(&w, path, options, NULL) != 0)
		abort();
	return w;
}

struct vmt_store_reader *vmt_sample_open(const char *path)
{
	struct vmt_reader *reader;
	struct vmt_store_reader *store;

	if (vmt_reader_open(&reader, path, NULL, NULL) != 0 ||
	    vmt_store_open(&store, reader, NULL) != 0)
		abort();
	return store;
}

static struct {
	int fd; /* stands for the bytes; any other one is the system's, as a spool */
	const uint8_t *bytes;
	size_t left;
} memory;

static ssize_t read_memory(int fd, void *buf, size_t len)
{
	if (fd != memory.fd)
		return read(fd, buf, len);
	if (len > memory.left)
		len = memory.left;
	if (len)
		memcpy(buf, memory.bytes, len);
	memory.bytes += len;
	memory.left -= len;
	return (ssize_t)len;
}

static int close_memory(int fd)
{
	return fd == memory.fd ? 0 : close(fd);
}

struct vmt_reader *vmt_sample_reader(const uint8_t *bytes, size_t len)
{
	static struct vmt_io_ops ops;
	struct vmt_reader *reader;

	if (memory.fd <= 0) {
		memory.fd = open("/dev/null", O_RDONLY);
		ops = vmt_io_system;
		ops.read = read_memory;
		ops.close = close_memory;
	}
	memory.bytes = bytes;
	memory.left = len;
	if (memory.fd < 0 || vmt_reader_from_fd(&reader, memory.fd, &ops, NULL) != 0)
		abort();
	return reader;
}

static bool same(const struct vmt_sample_chunk *c, const struct vmt_item *item)
{
	return c->type == item->type && c->len == item->len &&
	       (!item->len || !memcmp(c->payload, item->data, item->len));
}

/*
 * Whether the item is a chunk of the sample, *from or later, which moves behind it: the one at its
 * offset, or in a file whose pieces were moved another one.
 */
static bool was_written(const struct vmt_sample *s, const struct vmt_item *item, size_t *from)
{
	size_t i = *from;

	while (i < s->nr_chunks && s->chunks[i].offset < item->offset)
		i++;
	if (i == s->nr_chunks || s->chunks[i].offset != item->offset || !same(&s->chunks[i], item))
		for (i = *from; i < s->nr_chunks && !same(&s->chunks[i], item);)
			i++;
	*from = i + 1;
	return i < s->nr_chunks;
}

const char *vmt_sample_check(const struct vmt_sample *sample, const uint8_t *bytes, size_t len)
{
	struct vmt_reader *reader = vmt_sample_reader(bytes, len);
	struct vmt_store_reader *store;
	struct vmt_item item;
	struct vmt_ledger l;
	size_t from = 0, delivered = 0, told = 0, ends = 0;
	const char *wrong = NULL;
	int more;

	if (vmt_store_open(&store, reader, NULL) != 0) {
		vmt_reader_close(reader);
		return len < 8 ? NULL : "it is refused";
	}
	while ((more = vmt_store_next(store, &item, NULL)) == 1 && !wrong) {
		if (item.type == VMT_ITEM_LOSS && !item.data) {
			told++;
			continue;
		}
		delivered++;
		ends += item.type == VMT_ITEM_END;
		if (!was_written(sample, &item, &from))
			wrong = "an item is delivered that was not written";
	}
	l = vmt_store_ledger(store);
	if (!wrong && more < 0)
		wrong = "the reader fails";
	if (!wrong && (l.bytes_total != l.bytes_decoded + l.bytes_skipped || l.bytes_total != len))
		wrong = "the ledger does not balance";
	if (!wrong && delivered < sample->nr_delivered && !told)
		wrong = "something is missing and nothing says so";
	if (!wrong && l.truncated == (ends != 0))
		wrong = "the end is not told right";
	vmt_store_close(store);
	return wrong;
}
