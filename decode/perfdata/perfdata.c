// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: ledger.bytes_total = bytes_decoded + bytes_skipped at each return; what an item covers
 * in the reader's buffer is stepped over by the next call.
 */
#include "decode/perfdata/perfdata.h"

#include <stdlib.h>
#include <string.h>

#include "decode/perfdata/private.h"

#define PIPE_HEADER_LEN 16
#define RUN_MAX		(256u << 10)
#define PLAIN_MAX	(16u << 20)

enum {
	USER_HEADER_ATTR = 64,
	USER_TRACING_DATA = 66,
	USER_FINISHED_ROUND = 68,
	USER_AUXTRACE = 71,
	USER_HEADER_FEATURE = 80,
	USER_COMPRESSED = 81,
};

int vmt_perfdata_open(struct vmt_perfdata **out, struct vmt_reader *reader, struct vmt_diag *diag)
{
	const uint8_t *head;
	int64_t got = vmt_reader_peek(reader, PIPE_HEADER_LEN, &head, diag);
	struct vmt_perfdata *p;
	int status = 0;

	if (got < 0)
		return (int)got;
	if (got >= 8 && !memcmp(head, "2ELIFREP", 8))
		return vmt_diag_at(diag, VMT_E_UNSUPPORTED, 0,
				   "a perf.data of a big-endian machine",
				   "KVM on x86 is little endian; was this recorded elsewhere?");
	if (got < PIPE_HEADER_LEN || memcmp(head, "PERFILE2", 8))
		return vmt_diag_at(diag, VMT_E_DAMAGED, 0, "this is no perf.data",
				   "it does not begin with PERFILE2");
	p = calloc(1, sizeof(*p));
	if (!p)
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot read the file", "memory is short");
	p->reader = reader;
	p->is_pipe = vmt_load_u64(head + 8) == PIPE_HEADER_LEN;
	if (p->is_pipe) {
		status = vmt_reader_skip(reader, PIPE_HEADER_LEN, diag);
		p->ledger.bytes_total = p->ledger.bytes_decoded = PIPE_HEADER_LEN;
	} else {
		status = perf_header_read(p, diag);
		if (!status && p->nr_attrs && !p->nr_texts) {
			bool tracepoints = false;

			for (size_t i = 0; i < p->nr_attrs; i++)
				tracepoints = tracepoints || p->attrs[i].attr.type == 2;
			if (tracepoints)
				status = vmt_diag_set(diag, VMT_E_DAMAGED,
						      "the formats of the tracepoints are missing: "
						      "the file was cut off",
						      "perf writes them at the end; perf record -o "
						      "- >FILE, or vmtrace record, loses nothing");
		}
	}
	if (status) {
		vmt_perfdata_release(p);
		return status;
	}
	*out = p;
	return 0;
}

struct vmt_reader *vmt_perfdata_release(struct vmt_perfdata *p)
{
	struct vmt_reader *reader = p->reader;

	for (size_t i = 0; i < p->nr_attrs; i++)
		free(p->attrs[i].ids);
	free(p->attrs);
	free(p->tracing);
	free(p->texts);
	for (size_t i = 0; i < PERF_FEATURES; i++)
		free(p->features[i]);
	ZSTD_freeDCtx(p->zstd);
	free(p->plain);
	free(p);
	return reader;
}

void vmt_perfdata_close(struct vmt_perfdata *p)
{
	if (p)
		vmt_reader_close(vmt_perfdata_release(p));
}

struct vmt_ledger vmt_perfdata_ledger(const struct vmt_perfdata *p)
{
	return p->ledger;
}

static void count(struct vmt_perfdata *p, uint64_t decoded, uint64_t skipped)
{
	p->ledger.bytes_total += decoded + skipped;
	p->ledger.bytes_decoded += decoded;
	p->ledger.bytes_skipped += skipped;
}

int perf_decompress(struct vmt_perfdata *p, const uint8_t *bytes, size_t len)
{
	ZSTD_inBuffer in = { bytes, len, 0 };

	if (!p->zstd)
		p->zstd = ZSTD_createDCtx();
	if (!p->zstd)
		return VMT_E_NOMEM;
	if (p->plain_pos)
		memmove(p->plain, p->plain + p->plain_pos, p->plain_len - p->plain_pos);
	p->plain_len -= p->plain_pos;
	p->plain_pos = 0;
	for (;;) {
		ZSTD_outBuffer o;
		size_t left;

		if (p->plain_cap - p->plain_len < (64u << 10)) {
			size_t cap = p->plain_cap ? 2 * p->plain_cap : 1u << 20;
			uint8_t *grown = cap > PLAIN_MAX ? NULL : realloc(p->plain, cap);

			if (!grown)
				return cap > PLAIN_MAX ? VMT_E_LIMIT : VMT_E_NOMEM;
			p->plain = grown;
			p->plain_cap = cap;
		}
		o = (ZSTD_outBuffer){ p->plain + p->plain_len, p->plain_cap - p->plain_len, 0 };
		left = ZSTD_decompressStream(p->zstd, &o, &in);
		if (ZSTD_isError(left))
			return VMT_E_DAMAGED;
		p->plain_len += o.pos;
		if (in.pos == in.size && o.pos < o.size)
			return 0;
	}
}

static void loss_item(struct vmt_perfdata *p, struct vmt_item *item, const char *kind,
		      uint64_t bytes)
{
	*item = (struct vmt_item){ .type = VMT_ITEM_LOSS,
				   .offset = vmt_reader_offset(p->reader),
				   .lost_bytes = bytes,
				   .loss_kind = kind };
}

/* How much is left of the data section; a pipe's end is not known. */
static uint64_t data_left(const struct vmt_perfdata *p)
{
	uint64_t at = vmt_reader_offset(p->reader);

	if (!p->has_data_end)
		return UINT64_MAX;
	return p->data_end > at ? p->data_end - at : 0;
}

/* Nothing comes behind this. The tables behind the data were read at the beginning. */
static void finish(struct vmt_perfdata *p)
{
	uint64_t size = vmt_reader_size(p->reader);

	if (!p->ended && p->has_data_end && size > p->data_end)
		count(p, size - p->data_end, 0);
	p->ended = true;
}

/* Steps over up to n bytes of the data and returns how many there were, or a negative error. */
static int64_t drain(struct vmt_perfdata *p, uint64_t n, struct vmt_diag *diag)
{
	uint64_t done = 0;

	while (done < n) {
		uint64_t left = data_left(p), step = n - done;
		const uint8_t *bytes;
		int64_t got = left ? vmt_reader_peek(p->reader, 1, &bytes, diag) : 0;
		int status;

		if (got < 0)
			return got;
		if (!got)
			break;
		step = step > left ? left : step;
		step = step > (uint64_t)got ? (uint64_t)got : step;
		status = vmt_reader_skip(p->reader, step, diag);
		if (status)
			return status;
		done += step;
	}
	return (int64_t)done;
}

/* The rest of the data cannot be read: sizes chain the records, and the chain is broken. */
static int skip_rest(struct vmt_perfdata *p, struct vmt_item *item, const char *kind,
		     struct vmt_diag *diag)
{
	int64_t lost;

	loss_item(p, item, kind, 0);
	lost = drain(p, INT64_MAX, diag);
	if (lost < 0)
		return (int)lost;
	count(p, 0, (uint64_t)lost);
	item->lost_bytes = (uint64_t)lost;
	p->ledger.truncated = p->ledger.truncated || !strcmp(kind, "truncated");
	finish(p);
	return 1;
}

/* How many bytes of whole kernel records stand at the beginning. */
static size_t kernel_run(const uint8_t *bytes, size_t len)
{
	size_t at = 0;

	while (len - at >= 8 && at < RUN_MAX) {
		uint32_t type = vmt_load_u32(bytes + at);
		uint16_t size = vmt_load_u16(bytes + at + 6);

		if (type >= VMT_RING_USER_FIRST || size < 8 || size % 8 || size > len - at)
			break;
		at += size;
	}
	return at;
}

static void records_item(struct vmt_perfdata *p, struct vmt_item *item, const uint8_t *bytes,
			 size_t len)
{
	*item = (struct vmt_item){ .type = VMT_ITEM_RECORDS,
				   .offset = vmt_reader_offset(p->reader),
				   .data = bytes,
				   .len = len };
}

/* ---- perf's own records: 1 an item, 0 nothing to tell, negative ---- */

static int user_attr(struct vmt_perfdata *p, const uint8_t *body, size_t len)
{
	struct vmt_ring_attr attr;
	uint64_t *ids = NULL;
	uint32_t stored;
	size_t nr;

	if (len < 64)
		return 0;
	stored = vmt_load_u32(body + 4);
	if (!stored)
		stored = 64;
	if (stored > len || !perf_attr_read(body, stored, &attr))
		return 0;
	nr = (len - stored) / 8;
	if (nr) {
		ids = malloc(nr * 8);
		if (!ids)
			return VMT_E_NOMEM;
		memcpy(ids, body + stored, nr * 8);
	}
	return perf_attr_add(p, &attr, ids, nr) == VMT_E_NOMEM ? VMT_E_NOMEM : 0;
}

/* The section follows the record. The reader stands at the record. */
static int user_tracing(struct vmt_perfdata *p, size_t record_len, struct vmt_item *item,
			struct vmt_diag *diag)
{
	const uint8_t *bytes;
	int64_t got = vmt_reader_peek(p->reader, record_len, &bytes, diag);
	uint32_t size = got >= 12 ? vmt_load_u32(bytes + 8) : 0;
	size_t whole = record_len + (((size_t)size + 7) & ~(size_t)7);
	uint8_t *copy;
	int status;

	if (got < 0)
		return (int)got;
	if (size > PERF_SECTION_MAX)
		return skip_rest(p, item, "damaged", diag);
	got = vmt_reader_peek(p->reader, whole, &bytes, diag);
	if (got < 0)
		return (int)got;
	if (got < (int64_t)whole || whole > data_left(p))
		return skip_rest(p, item, "truncated", diag);
	copy = malloc((size_t)size + 1);
	if (!copy)
		return VMT_E_NOMEM;
	memcpy(copy, bytes + record_len, size);
	status = perf_tracing_take(p, copy, size);
	count(p, whole, 0);
	p->pending_skip = whole;
	return status == VMT_E_NOMEM ? status : 0;
}

static int user_auxtrace(struct vmt_perfdata *p, const uint8_t *record, size_t record_len,
			 struct vmt_item *item, struct vmt_diag *diag)
{
	uint64_t size = record_len >= 16 ? vmt_load_u64(record + 8) : 0;
	int64_t skipped;
	int status;

	if (size > INT64_MAX)
		return skip_rest(p, item, "damaged", diag);
	loss_item(p, item, "auxtrace", 0);
	status = vmt_reader_skip(p->reader, record_len, diag);
	if (status)
		return status;
	skipped = drain(p, size, diag);
	if (skipped < 0)
		return (int)skipped;
	count(p, record_len, (uint64_t)skipped);
	item->lost_bytes = (uint64_t)skipped;
	if ((uint64_t)skipped < size) {
		item->loss_kind = "truncated";
		p->ledger.truncated = true;
		finish(p);
	}
	return 1;
}

static int user_compressed(struct vmt_perfdata *p, const uint8_t *body, size_t len,
			   struct vmt_item *item, struct vmt_diag *diag)
{
	int status = perf_decompress(p, body, len);

	if (status == VMT_E_NOMEM)
		return vmt_diag_set(diag, status, "cannot read the file", "memory is short");
	if (status)
		return skip_rest(p, item, "damaged", diag);
	return 0;
}

/* A record of perf itself at the reader's position, whole in the buffer. */
static int user_record(struct vmt_perfdata *p, const uint8_t *record, size_t len,
		       struct vmt_item *item, struct vmt_diag *diag)
{
	int status = 0;

	switch (vmt_load_u32(record)) {
	case USER_TRACING_DATA:
		return user_tracing(p, len, item, diag);
	case USER_AUXTRACE:
		return user_auxtrace(p, record, len, item, diag);
	case USER_COMPRESSED:
		status = user_compressed(p, record + 8, len - 8, item, diag);
		break;
	case USER_HEADER_ATTR:
		status = user_attr(p, record + 8, len - 8);
		break;
	case USER_HEADER_FEATURE:
		if (len >= 16)
			perf_feature_take(p, vmt_load_u64(record + 8), record + 16, len - 16);
		break;
	case USER_FINISHED_ROUND:
		*item = (struct vmt_item){ .type = VMT_ITEM_ROUND,
					   .offset = vmt_reader_offset(p->reader) };
		status = 1;
		break;
	default:
		break;
	}
	if (p->ended) /* the rest was skipped, this record with it */
		return status;
	count(p, len, 0);
	p->pending_skip = len;
	return status;
}

/* Decompressed records: 1 an item, 0 none left that is whole. */
static int plain_item(struct vmt_perfdata *p, struct vmt_item *item)
{
	while (p->plain_len - p->plain_pos >= 8) {
		const uint8_t *at = p->plain + p->plain_pos;
		size_t run = kernel_run(at, p->plain_len - p->plain_pos);
		uint16_t size = vmt_load_u16(at + 6);

		if (run) {
			records_item(p, item, at, run);
			p->plain_pos += run;
			return 1;
		}
		if (size < 8 || size % 8) { /* the chain is broken inside: drop what is left */
			loss_item(p, item, "damaged", 0);
			p->plain_pos = p->plain_len;
			return 1;
		}
		if (size > p->plain_len - p->plain_pos)
			return 0;
		p->plain_pos += size;
		if (vmt_load_u32(at) == USER_FINISHED_ROUND) {
			*item = (struct vmt_item){ .type = VMT_ITEM_ROUND,
						   .offset = vmt_reader_offset(p->reader) };
			return 1;
		}
	}
	return 0;
}

/* Metadata first: attrs, then formats. */
static int waiting_item(struct vmt_perfdata *p, struct vmt_item *item)
{
	if (p->next_attr < p->nr_attrs) {
		const struct perf_attr *a = &p->attrs[p->next_attr++];

		*item = (struct vmt_item){
			.type = VMT_ITEM_ATTR, .attr = &a->attr, .ids = a->ids, .nr_ids = a->nr_ids
		};
		return 1;
	}
	if (p->next_text < p->nr_texts) {
		const struct perf_text *t = &p->texts[p->next_text++];

		*item = (struct vmt_item){ .type = VMT_ITEM_FORMAT,
					   .data = p->tracing + t->offset,
					   .len = t->len };
		return 1;
	}
	return plain_item(p, item);
}

/* The end of the data section: in order, or in the middle. */
static int end_item(struct vmt_perfdata *p, struct vmt_item *item, bool in_order)
{
	if (p->plain_pos < p->plain_len) /* half a record */
		in_order = false;
	finish(p);
	*item = (struct vmt_item){ .type = VMT_ITEM_END, .offset = vmt_reader_offset(p->reader) };
	if (!in_order) {
		p->ledger.truncated = true;
		loss_item(p, item, "truncated", 0);
	}
	return 1;
}

/* The next record or run of records in the file: 1, 0 nothing to tell yet, negative. */
static int file_item(struct vmt_perfdata *p, struct vmt_item *item, struct vmt_diag *diag)
{
	uint64_t left = data_left(p);
	const uint8_t *bytes;
	int64_t got = left ? vmt_reader_peek(p->reader, 8, &bytes, diag) : 0;
	size_t run, size;

	if (got < 0)
		return (int)got;
	if (!got)
		return end_item(p, item, p->is_pipe || !left);
	if ((uint64_t)got > left)
		got = (int64_t)left;
	if (got < 8)
		return skip_rest(p, item, "truncated", diag);
	run = kernel_run(bytes, (size_t)got);
	if (run) {
		records_item(p, item, bytes, run);
		count(p, run, 0);
		p->pending_skip = run;
		return 1;
	}
	size = vmt_load_u16(bytes + 6);
	if (size < 8 || (vmt_load_u32(bytes) < VMT_RING_USER_FIRST && size % 8))
		return skip_rest(p, item, "damaged", diag);
	if (size > left)
		return skip_rest(p, item, "truncated", diag);
	got = vmt_reader_peek(p->reader, size, &bytes, diag);
	if (got < 0)
		return (int)got;
	if (got < (int64_t)size)
		return skip_rest(p, item, "truncated", diag);
	if (vmt_load_u32(bytes) >= VMT_RING_USER_FIRST)
		return user_record(p, bytes, size, item, diag);
	return 0; /* whole now: the next round takes it as a run */
}

int vmt_perfdata_next(struct vmt_perfdata *p, struct vmt_item *item, struct vmt_diag *diag)
{
	for (;;) {
		int status;

		if (waiting_item(p, item))
			return 1;
		if (p->pending_skip) {
			status = vmt_reader_skip(p->reader, p->pending_skip, diag);
			p->pending_skip = 0;
			if (status)
				return status;
		}
		if (p->ended)
			return 0;
		status = file_item(p, item, diag);
		if (status)
			return status;
	}
}
