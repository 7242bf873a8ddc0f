// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: ledger.bytes_total = bytes_decoded + bytes_skipped at each return; what an item covers
 * in the reader's buffer is stepped over by the next call.
 */
#include "decode/perfdata/perfdata.h"

#include <stdlib.h>
#include <string.h>

#include "decode/perfdata/private.h"

#define PIPE_HEADER_LEN 16u
#define RUN_MAX		(256u << 10) /* small enough to stay in the cache until it is parsed */

static int recognise(const uint8_t *head, int64_t len, struct vmt_diag *diag)
{
	if (len >= 8 && !memcmp(head, "2ELIFREP", 8))
		return vmt_diag_at(diag, VMT_E_UNSUPPORTED, 0,
				   "a perf.data of a big-endian machine",
				   "KVM on x86 is little endian; was this recorded elsewhere?");
	if (len < (int64_t)PIPE_HEADER_LEN || memcmp(head, "PERFILE2", 8))
		return vmt_diag_at(diag, VMT_E_DAMAGED, 0, "this is no perf.data",
				   "it does not begin with PERFILE2");
	return 0;
}

int vmt_perfdata_open(struct vmt_perfdata **out, struct vmt_reader *reader, struct vmt_diag *diag)
{
	const uint8_t *head;
	int64_t got = vmt_reader_peek(reader, PIPE_HEADER_LEN, &head, diag);
	struct vmt_perfdata *p;
	int status;

	status = got < 0 ? (int)got : recognise(head, got, diag);
	if (status)
		return status;
	p = calloc(1, sizeof(*p));
	if (!p)
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot read the file", "memory is short");
	p->reader = reader;
	p->is_pipe = vmt_load_u64(head + 8) == PIPE_HEADER_LEN;
	if (p->is_pipe) {
		status = vmt_reader_skip(reader, PIPE_HEADER_LEN, diag);
		perf_count(p, PIPE_HEADER_LEN, 0);
	} else {
		status = perf_header_read(p, diag);
		if (!status)
			status = vmt_perfdata_need_formats(p, diag);
		if (!status && perf_has_pmu_events(p))
			status = perf_aux_walk(p, diag);
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
	free(p->formats);
	free(p->texts);
	for (size_t i = 0; i < PERF_FEATURES; i++)
		free(p->features[i]);
	ZSTD_freeDCtx(p->zstd);
	free(p->plain);
	perf_aux_free(p);
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
	return p->at.ledger;
}

int vmt_perfdata_need_formats(const struct vmt_perfdata *p, struct vmt_diag *diag)
{
	bool tracepoints = false;

	for (size_t i = 0; i < p->nr_attrs; i++)
		tracepoints = tracepoints || p->attrs[i].attr.type == PERF_TRACEPOINT;
	if (!tracepoints || p->nr_texts)
		return 0;
	return vmt_diag_set(
		diag, VMT_E_DAMAGED,
		p->has_tracing || p->is_pipe
			? "the formats of the tracepoints are missing"
			: "the formats of the tracepoints are missing: the file was cut "
			  "off",
		"perf record writes them behind the data, when it ends in order; vmtrace "
		"record, or perf record -o - >FILE, puts them in front");
}

void vmt_perfdata_want_user(struct vmt_perfdata *p)
{
	p->wants_user = true;
}

bool vmt_perfdata_section(const struct vmt_perfdata *p, unsigned int feature, uint64_t *offset,
			  uint64_t *size)
{
	if (feature >= PERF_FEATURE_BITS || !p->sections[feature].size)
		return false;
	*offset = p->sections[feature].offset;
	*size = p->sections[feature].size;
	return true;
}

/* ---- counting and stepping ---- */

void perf_count(struct vmt_perfdata *p, uint64_t decoded, uint64_t skipped)
{
	p->at.ledger.bytes_total += decoded + skipped;
	p->at.ledger.bytes_decoded += decoded;
	p->at.ledger.bytes_skipped += skipped;
}

void perf_loss_item(struct vmt_perfdata *p, struct vmt_item *item, const char *kind, uint64_t bytes)
{
	*item = (struct vmt_item){ .type = VMT_ITEM_LOSS,
				   .offset = vmt_reader_offset(p->reader),
				   .lost_bytes = bytes,
				   .loss_kind = kind };
}

/* Bytes of the data section from the reader's position on, as the header says. */
static uint64_t data_left(const struct vmt_perfdata *p)
{
	uint64_t at = vmt_reader_offset(p->reader);

	if (!p->has_data_end)
		return UINT64_MAX;
	return at < p->data_end ? p->data_end - at : 0;
}

int perf_skip_some(struct vmt_perfdata *p, uint64_t n, uint64_t *done, struct vmt_diag *diag)
{
	uint64_t left = data_left(p);
	int status = 0;

	*done = 0;
	if (n > left)
		n = left;
	while (*done < n) {
		const uint8_t *bytes;
		int64_t got = vmt_reader_peek(p->reader, 1, &bytes, diag);
		uint64_t step = n - *done;

		if (got <= 0) {
			status = (int)got;
			break;
		}
		if (step > (uint64_t)got)
			step = (uint64_t)got;
		status = vmt_reader_skip(p->reader, step, diag);
		if (status)
			break;
		*done += step;
	}
	perf_count(p, 0, *done);
	return status;
}

static void end(struct vmt_perfdata *p)
{
	uint64_t size = vmt_reader_size(p->reader);

	p->at.ended = true;
	/* Extents that the index does not hold were stepped over as if they could be read. */
	p->at.ledger.bytes_decoded -= p->walking ? 0 : p->aux.lost_bytes;
	p->at.ledger.bytes_skipped += p->walking ? 0 : p->aux.lost_bytes;
	/* The features behind the data have been read when the file was opened. */
	if (p->has_data_end && size > p->data_end)
		perf_count(p, size - p->data_end, 0);
}

int perf_skip_rest(struct vmt_perfdata *p, struct vmt_item *item, const char *kind,
		   struct vmt_diag *diag)
{
	uint64_t done;
	int status;

	perf_loss_item(p, item, kind, 0);
	status = perf_skip_some(p, UINT64_MAX, &done, diag);
	item->lost_bytes = done;
	if (!strcmp(kind, "truncated"))
		p->at.ledger.truncated = true;
	end(p);
	return status < 0 ? status : 1;
}

int perf_end_truncated(struct vmt_perfdata *p, struct vmt_item *item, uint64_t lost)
{
	perf_loss_item(p, item, "truncated", lost);
	p->at.ledger.truncated = true;
	end(p);
	return 1;
}

static int end_item(struct vmt_perfdata *p, struct vmt_item *item, bool in_order)
{
	if (!in_order || p->at.cut_off || p->at.plain_pos < p->at.plain_len /* half a record */)
		return perf_end_truncated(p, item, 0);
	*item = (struct vmt_item){ .type = VMT_ITEM_END, .offset = vmt_reader_offset(p->reader) };
	end(p);
	return 1;
}

/* ---- records ---- */

/* How many bytes of whole kernel records stand at the beginning. */
static size_t kernel_run(const uint8_t *bytes, size_t len)
{
	size_t at = 0;

	while (len - at >= 8 && at < RUN_MAX) {
		uint64_t header = vmt_load_u64(bytes + at);
		size_t size = (size_t)(header >> 48);

		if ((uint32_t)header >= VMT_RING_USER_FIRST || size < 8 || size % 8 ||
		    size > len - at)
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

/* A record's size can be one: perf's own have any length, as compressed ones show. */
static bool size_fits(const uint8_t *header)
{
	uint16_t size = vmt_load_u16(header + 6);

	return size >= 8 && (vmt_load_u32(header) >= VMT_RING_USER_FIRST || size % 8 == 0);
}

/* Unpacked records: 1 an item; 0 none that is whole; VMT_E_DAMAGED when the chain is broken. */
static int plain_item(struct vmt_perfdata *p, struct vmt_item *item)
{
	while (p->at.plain_len - p->at.plain_pos >= 8) {
		const uint8_t *at = p->plain + p->at.plain_pos;
		size_t run = kernel_run(at, p->at.plain_len - p->at.plain_pos);
		size_t size = vmt_load_u16(at + 6);

		if (run) {
			records_item(p, item, at, run);
			p->at.plain_pos += run;
			return 1;
		}
		if (!size_fits(at))
			return VMT_E_DAMAGED;
		if (size > p->at.plain_len - p->at.plain_pos)
			return 0;
		p->at.plain_pos += size;
		if (vmt_load_u32(at) == PERF_USER_FINISHED_ROUND) {
			*item = (struct vmt_item){ .type = VMT_ITEM_ROUND,
						   .offset = vmt_reader_offset(p->reader) };
			return 1;
		}
	}
	return 0;
}

/*
 * What the compressed record that was read last still gives: 1 an item, 0 nothing. A damaged one
 * counts as skipped, and so does every later one, for the stream is one.
 */
static int packed_item(struct vmt_perfdata *p, struct vmt_item *item)
{
	int status;

	for (;;) {
		status = plain_item(p, item);
		if (status)
			break;
		status = perf_packed_more(p);
		if (status <= 0)
			break;
	}
	if (status >= 0)
		return status;
	p->at.packed_broken = true;
	p->at.packed_more = false;
	p->at.plain_pos = p->at.plain_len = 0;
	p->at.ledger.bytes_decoded -= p->at.pending_skip;
	p->at.ledger.bytes_skipped += p->at.pending_skip;
	perf_loss_item(p, item, "damaged", p->at.pending_skip);
	return 1;
}

/* Metadata first: attrs, then formats. */
static int waiting_item(struct vmt_perfdata *p, struct vmt_item *item)
{
	if (p->at.next_attr < p->nr_attrs) {
		const struct perf_attr *a = &p->attrs[p->at.next_attr++];

		*item = (struct vmt_item){ .type = VMT_ITEM_ATTR,
					   .attr = &a->attr,
					   .ids = a->ids,
					   .nr_ids = a->nr_ids,
					   .attr_bytes = a->bytes,
					   .attr_len = a->len };
		return 1;
	}
	if (p->at.next_text < p->nr_texts) {
		const struct perf_text *t = &p->texts[p->at.next_text++];

		*item = (struct vmt_item){ .type = VMT_ITEM_FORMAT,
					   .data = p->formats + t->offset,
					   .len = t->len,
					   .system = t->system[0] ? t->system : NULL };
		return 1;
	}
	return packed_item(p, item);
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
		return perf_skip_rest(p, item, "truncated", diag);
	run = kernel_run(bytes, (size_t)got);
	if (run) {
		records_item(p, item, bytes, run);
		perf_count(p, run, 0);
		p->at.pending_skip = run;
		return 1;
	}
	size = vmt_load_u16(bytes + 6);
	if (!size_fits(bytes))
		return perf_skip_rest(p, item, "damaged", diag);
	if (size <= left)
		got = vmt_reader_peek(p->reader, size, &bytes, diag);
	if (got < 0)
		return (int)got;
	if (size > left || got < (int64_t)size)
		return perf_skip_rest(p, item, "truncated", diag);
	if (vmt_load_u32(bytes) >= VMT_RING_USER_FIRST)
		return perf_user_record(p, bytes, size, item, diag);
	return 0; /* whole now: the next round takes it as a run */
}

int vmt_perfdata_next(struct vmt_perfdata *p, struct vmt_item *item, struct vmt_diag *diag)
{
	while (!p->at.ended) {
		int status = waiting_item(p, item);

		if (status)
			return status;
		if (p->at.pending_skip) {
			status = vmt_reader_skip(p->reader, p->at.pending_skip, diag);
			p->at.pending_skip = 0;
			if (status)
				return status;
		}
		if (p->walk_due && !p->walked) {
			status = perf_aux_walk(p, diag);
			if (status)
				return status;
		}
		status = perf_aux_losses(p, item);
		if (status)
			return status;
		status = file_item(p, item, diag);
		if (status)
			return status;
	}
	return 0;
}
