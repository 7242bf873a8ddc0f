// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The file: header, records, the table of features and their payloads, ids, attrs. Invariant:
 * buffer[0..buffered) are the file's bytes in front of offset `at`; all before them are written.
 */
#include "decode/perfdata/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/io/diagf.h"
#include "decode/perfdata/private.h"
#include "decode/perfdata/writer_private.h"

#define SAMPLE_TID	  (UINT64_C(1) << 1)
#define SAMPLE_TIME	  (UINT64_C(1) << 2)
#define SAMPLE_ID	  (UINT64_C(1) << 6)
#define SAMPLE_CPU	  (UINT64_C(1) << 7)
#define SAMPLE_STREAM_ID  (UINT64_C(1) << 9)
#define SAMPLE_IDENTIFIER (UINT64_C(1) << 16)
#define TRAILER_MAX	  6u

int writer_no_memory(struct vmt_diag *diag)
{
	return vmt_diag_set(diag, VMT_E_NOMEM, "cannot write the file", "memory is short");
}

/* ---- bytes that grow ---- */

bool writer_add(struct writer_bytes *b, const void *bytes, size_t len)
{
	if (len > b->cap - b->len) {
		size_t cap = b->cap ? b->cap : 256;
		uint8_t *larger;

		while (cap - b->len < len)
			cap *= 2;
		larger = realloc(b->bytes, cap);
		if (!larger)
			return false;
		b->bytes = larger;
		b->cap = cap;
	}
	if (len)
		memcpy(b->bytes + b->len, bytes, len);
	b->len += len;
	return true;
}

bool writer_add_u32(struct writer_bytes *b, uint32_t v)
{
	return writer_add(b, &v, sizeof(v));
}

bool writer_add_u64(struct writer_bytes *b, uint64_t v)
{
	return writer_add(b, &v, sizeof(v));
}

bool writer_add_string(struct writer_bytes *b, const char *text)
{
	static const uint8_t zeros[64];
	size_t len = strlen(text);
	size_t padded = (len + 1 + 63) & ~(size_t)63;

	if (!writer_add_u32(b, (uint32_t)padded) || !writer_add(b, text, len))
		return false;
	return writer_add(b, zeros, padded - len);
}

/* ---- the output ---- */

static int write_out(struct vmt_perfdata_writer *w, const void *bytes, size_t len,
		     struct vmt_diag *diag)
{
	struct iovec parts[2] = { { .iov_base = w->buffer, .iov_len = w->buffered } };

	/* writev only reads. */
	memcpy(&parts[1].iov_base, &bytes, sizeof(bytes));
	parts[1].iov_len = len;
	w->buffered = 0;
	return vmt_output_writev(&w->file, parts, 2, NULL, diag);
}

int writer_flush(struct vmt_perfdata_writer *w, struct vmt_diag *diag)
{
	return w->buffered ? write_out(w, NULL, 0, diag) : 0;
}

int writer_put(struct vmt_perfdata_writer *w, const void *bytes, size_t len, struct vmt_diag *diag)
{
	w->at += len;
	if (len > WRITER_BUFFER - w->buffered)
		return write_out(w, bytes, len, diag);
	if (len)
		memcpy(w->buffer + w->buffered, bytes, len);
	w->buffered += len;
	return 0;
}

int writer_pad(struct vmt_perfdata_writer *w, struct vmt_diag *diag)
{
	static const uint8_t zeros[8];

	return writer_put(w, zeros, (size_t)(-w->at & 7), diag);
}

static int seek(struct vmt_perfdata_writer *w, uint64_t offset, struct vmt_diag *diag)
{
	if (w->file.ops->lseek(w->file.fd, (off_t)offset, SEEK_SET) < 0)
		return vmt_diag_printf(diag, VMT_E_IO, errno, NULL, "cannot seek in %s",
				       w->file.path);
	return 0;
}

int writer_patch(struct vmt_perfdata_writer *w, uint64_t offset, const void *bytes, size_t len,
		 struct vmt_diag *diag)
{
	int err = writer_flush(w, diag);

	if (!err)
		err = seek(w, offset, diag);
	if (!err)
		err = write_out(w, bytes, len, diag);
	return err ? err : seek(w, w->at, diag);
}

static void free_writer(struct vmt_perfdata_writer *w)
{
	for (size_t i = 0; i < w->nr_events; i++)
		free(w->events[i].ids);
	for (size_t i = 0; i < w->nr_formats; i++) {
		free(w->formats[i].system);
		free(w->formats[i].name);
		free(w->formats[i].text);
	}
	for (size_t i = 0; i < VMT_PERFDATA_FEATURES; i++)
		free(w->features[i].bytes);
	free(w->aux_rows.bytes);
	free(w->events);
	free(w->formats);
	free(w->buffer);
	free(w);
}

static int refuse_pipe(struct vmt_diag *diag, const char *path)
{
	return vmt_diag_printf(diag, VMT_E_USAGE, 0,
			       "the header of a perf.data is written last: name a file",
			       "cannot write a perf.data to %s: it is a pipe or a terminal", path);
}

int vmt_perfdata_create(struct vmt_perfdata_writer **out, struct vmt_output *file,
			struct vmt_diag *diag)
{
	static const uint8_t header[WRITER_HEADER_LEN];
	struct vmt_perfdata_writer *w = calloc(1, sizeof(*w));
	int err;

	if (w)
		w->buffer = malloc(WRITER_BUFFER);
	if (!w || !w->buffer) {
		free(w);
		vmt_output_discard(file);
		return writer_no_memory(diag);
	}
	w->file = *file;
	*file = (struct vmt_output){ .fd = -1 };
	err = w->file.ops->lseek(w->file.fd, 0, SEEK_SET) < 0
		      ? refuse_pipe(diag, w->file.path)
		      : writer_put(w, header, sizeof(header), diag);
	if (err) {
		vmt_perfdata_discard(w);
		return err;
	}
	*out = w;
	return 0;
}

void vmt_perfdata_discard(struct vmt_perfdata_writer *w)
{
	if (!w)
		return;
	vmt_output_discard(&w->file);
	free_writer(w);
}

/* ---- events ---- */

static void make_attr(uint8_t attr[WRITER_ATTR_LEN], const struct vmt_ring_attr *ring)
{
	const uint32_t len = WRITER_ATTR_LEN;
	const uint64_t period = 1;

	memset(attr, 0, WRITER_ATTR_LEN);
	memcpy(attr, &ring->type, 4);
	memcpy(attr + 4, &len, 4);
	memcpy(attr + 8, &ring->config, 8);
	memcpy(attr + 16, &period, 8);
	memcpy(attr + 24, &ring->sample_type, 8);
	memcpy(attr + 32, &ring->read_format, 8);
	memcpy(attr + 40, &ring->flags, 8);
	memcpy(attr + 72, &ring->branch_sample_type, 8);
}

static void copy_attr(uint8_t attr[WRITER_ATTR_LEN], const uint8_t *bytes, size_t len)
{
	const uint32_t size = WRITER_ATTR_LEN;

	memset(attr, 0, WRITER_ATTR_LEN);
	memcpy(attr, bytes, len < WRITER_ATTR_LEN ? len : WRITER_ATTR_LEN);
	memcpy(attr + 4, &size, 4);
}

static bool add_ids(struct writer_event *e, const uint64_t *ids, size_t nr)
{
	if (nr > e->cap_ids - e->nr_ids) {
		size_t cap = e->cap_ids ? e->cap_ids : 8;
		uint64_t *larger;

		while (cap - e->nr_ids < nr)
			cap *= 2;
		larger = realloc(e->ids, cap * sizeof(*larger));
		if (!larger)
			return false;
		e->ids = larger;
		e->cap_ids = cap;
	}
	if (nr)
		memcpy(e->ids + e->nr_ids, ids, nr * sizeof(*ids));
	e->nr_ids += nr;
	return true;
}

static struct writer_event *equal_event(struct vmt_perfdata_writer *w,
					const uint8_t attr[WRITER_ATTR_LEN])
{
	for (size_t i = 0; i < w->nr_events; i++) {
		if (w->events[i].made && !memcmp(w->events[i].attr, attr, WRITER_ATTR_LEN))
			return &w->events[i];
	}
	return NULL;
}

static struct writer_event *new_event(struct vmt_perfdata_writer *w)
{
	if (w->nr_events == w->cap_events) {
		size_t cap = w->cap_events ? w->cap_events * 2 : 16;
		struct writer_event *events = realloc(w->events, cap * sizeof(*events));

		if (!events)
			return NULL;
		w->events = events;
		w->cap_events = cap;
	}
	memset(&w->events[w->nr_events], 0, sizeof(w->events[0]));
	return &w->events[w->nr_events++];
}

int vmt_perfdata_attr(struct vmt_perfdata_writer *w, const struct vmt_perfdata_event *event,
		      struct vmt_diag *diag)
{
	uint8_t attr[WRITER_ATTR_LEN];
	struct writer_event *e = NULL;

	if (event->bytes) {
		copy_attr(attr, event->bytes, event->len);
	} else {
		make_attr(attr, event->attr);
		e = equal_event(w, attr);
	}
	if (!e) {
		if (w->nr_events == WRITER_ATTRS_MAX)
			return vmt_diag_set(diag, VMT_E_LIMIT, "more than 4096 events in a file",
					    "no recorder makes that many: is the input damaged?");
		e = new_event(w);
		if (!e)
			return writer_no_memory(diag);
		memcpy(e->attr, attr, sizeof(attr));
		e->ring = *event->attr;
		e->made = !event->bytes;
	}
	return add_ids(e, event->ids, event->nr_ids) ? 0 : writer_no_memory(diag);
}

/* ---- records ---- */

int vmt_perfdata_records(struct vmt_perfdata_writer *w, const uint8_t *bytes, size_t len,
			 struct vmt_diag *diag)
{
	return writer_put(w, bytes, len, diag);
}

int vmt_perfdata_round(struct vmt_perfdata_writer *w, struct vmt_diag *diag)
{
	const uint64_t record = PERF_USER_FINISHED_ROUND | UINT64_C(8) << 48;

	return writer_put(w, &record, sizeof(record), diag);
}

/* Whose record it is. */
struct owner {
	uint32_t pid, tid;
	uint64_t time_ns;
};

/* The trailer of a record that is no sample (sample_id_all), in the order of the kernel. */
static size_t trailer(const struct writer_event *e, const struct owner *who, uint64_t *words)
{
	const uint64_t id = e->nr_ids ? e->ids[0] : 0;
	const struct {
		uint64_t bit, value;
	} members[] = {
		{ SAMPLE_TID, who->pid | (uint64_t)who->tid << 32 },
		{ SAMPLE_TIME, who->time_ns },
		{ SAMPLE_ID, id },
		{ SAMPLE_STREAM_ID, id },
		{ SAMPLE_CPU, UINT32_MAX },
		{ SAMPLE_IDENTIFIER, id },
	};
	size_t n = 0;

	if (!(e->ring.flags & VMT_RING_FLAG_SAMPLE_ID_ALL))
		return 0;
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		if (e->ring.sample_type & members[i].bit)
			words[n++] = members[i].value;
	}
	return n;
}

int vmt_perfdata_lost(struct vmt_perfdata_writer *w, uint64_t lost, uint64_t time_ns,
		      struct vmt_diag *diag)
{
	const struct owner who = { .time_ns = time_ns };
	uint64_t record[3 + TRAILER_MAX];
	size_t words;

	if (!w->nr_events)
		return 0;
	words = 3 + trailer(&w->events[0], &who, record + 3);
	record[0] = VMT_RING_LOST | (uint64_t)(8 * words) << 48;
	record[1] = w->events[0].nr_ids ? w->events[0].ids[0] : 0;
	record[2] = lost;
	return writer_put(w, record, 8 * words, diag);
}

int vmt_perfdata_comm(struct vmt_perfdata_writer *w, uint32_t pid, uint32_t tid, const char *name,
		      struct vmt_diag *diag)
{
	const struct owner who = { .pid = pid, .tid = tid };
	uint64_t record[4 + TRAILER_MAX] = { 0 };
	size_t words;

	if (!w->nr_events)
		return 0;
	words = 4 + trailer(&w->events[0], &who, record + 4);
	record[0] = VMT_RING_COMM | (uint64_t)(8 * words) << 48;
	record[1] = pid | (uint64_t)tid << 32;
	memcpy(record + 2, name, strnlen(name, 15));
	return writer_put(w, record, 8 * words, diag);
}

/* ---- the end ---- */

static int put_features(struct vmt_perfdata_writer *w, uint64_t bits[4], struct vmt_diag *diag)
{
	uint64_t offset = w->at;
	int err = 0;

	for (unsigned int i = 0; i < VMT_PERFDATA_FEATURES; i++) {
		if (!w->has_feature[i])
			continue;
		bits[i / 64] |= UINT64_C(1) << (i % 64);
		offset += 16;
	}
	for (unsigned int i = 0; !err && i < VMT_PERFDATA_FEATURES; i++) {
		const uint64_t row[2] = { offset, w->features[i].len };

		if (!w->has_feature[i])
			continue;
		err = writer_put(w, row, sizeof(row), diag);
		offset += w->features[i].len;
	}
	for (unsigned int i = 0; !err && i < VMT_PERFDATA_FEATURES; i++) {
		if (w->has_feature[i])
			err = writer_put(w, w->features[i].bytes, w->features[i].len, diag);
	}
	return err;
}

/* Ids, then attrs; *offset: where the attrs begin. */
static int put_events(struct vmt_perfdata_writer *w, uint64_t *offset, struct vmt_diag *diag)
{
	int err = writer_pad(w, diag);
	uint64_t ids = w->at;

	for (size_t i = 0; !err && i < w->nr_events; i++)
		err = writer_put(w, w->events[i].ids, 8 * w->events[i].nr_ids, diag);
	*offset = w->at;
	for (size_t i = 0; !err && i < w->nr_events; i++) {
		const uint64_t section[2] = { ids, 8 * w->events[i].nr_ids };

		err = writer_put(w, w->events[i].attr, WRITER_ATTR_LEN, diag);
		if (!err)
			err = writer_put(w, section, sizeof(section), diag);
		ids += section[1];
	}
	return err;
}

static int put_all(struct vmt_perfdata_writer *w, struct vmt_diag *diag)
{
	const uint64_t entry = WRITER_ATTR_LEN + 16;
	uint64_t header[WRITER_HEADER_LEN / 8] = { 0 };
	uint64_t data_end = w->at, attrs;
	int err = writer_make_features(w, diag);

	if (!err)
		err = put_features(w, header + 9, diag);
	if (!err)
		err = put_events(w, &attrs, diag);
	if (err)
		return err;
	memcpy(header, "PERFILE2", 8);
	header[1] = WRITER_HEADER_LEN;
	header[2] = entry;
	header[3] = attrs;
	header[4] = entry * w->nr_events;
	header[5] = WRITER_HEADER_LEN;
	header[6] = data_end - WRITER_HEADER_LEN;
	return writer_patch(w, 0, header, sizeof(header), diag);
}

int vmt_perfdata_finish(struct vmt_perfdata_writer *w, struct vmt_diag *diag)
{
	int err = put_all(w, diag);

	if (err) {
		vmt_perfdata_discard(w);
		return err;
	}
	err = vmt_output_finish(&w->file, diag);
	free_writer(w);
	return err;
}
