// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/analyze/input.h"

#include <stdlib.h>
#include <string.h>

#include "decode/analyze/input_private.h"

/* 256 Ki recs are 22 MiB: with the reader's buffer and the tables well below 64 MiB. */
#define MERGE_RECS	    (256u << 10)
#define SLACK_NS	    1000000
#define FLAG_CONTEXT_SWITCH (UINT64_C(1) << 26)
#define NS_PER_S	    1000000000.0

static const char perf_magic[8] = { 'P', 'E', 'R', 'F', 'I', 'L', 'E', '2' };

/* ---- events on their way out ---- */

static void add_host_tsc(const struct vmt_input *in, struct vmt_event *event)
{
	event->host_tsc = vmt_perf_clock_to_tsc(&in->clock, event->time, &event->host_tsc_error);
	event->has |= VMT_HAS_HOST_TSC;
	if (event->type == VMT_EVENT_EXIT && (event->has & VMT_HAS_DURATION)) {
		struct vmt_host_ns end = { event->time.host_ns + event->duration_ns };
		uint64_t error;

		event->duration_tsc = vmt_perf_clock_to_tsc(&in->clock, end, &error).host_tsc -
				      event->host_tsc.host_tsc;
		event->has |= VMT_HAS_DURATION_TSC;
	}
}

static uint64_t window_ns(uint64_t start_ns, double seconds)
{
	double ns = seconds * NS_PER_S;

	if (ns >= 1e19 || (uint64_t)ns > UINT64_MAX - start_ns)
		return UINT64_MAX;
	return start_ns + (uint64_t)ns;
}

/* The window is known with the first event: then the first records of all rings have been read. */
static void settle_window(struct vmt_input *in)
{
	uint64_t start;

	in->window_settled = true;
	start = in->facts.start_ns;
	if (!in->facts.has_start || in->front_dropped || (in->has_first && in->first_ns < start))
		start = in->first_ns;
	in->facts.has_base = true;
	in->facts.base_ns = start;
	if (in->options.has_from) {
		in->has_window_start = true;
		in->window_start = window_ns(start, in->options.from);
	}
	if (in->options.has_to) {
		in->has_window_end = true;
		in->window_end = window_ns(start, in->options.to);
	}
}

void input_event(void *context, const struct vmt_event *event)
{
	struct vmt_input *in = context;
	struct vmt_event copy;

	if (!in->window_settled && (in->has_first || in->facts.has_start))
		settle_window(in);
	if (event->has & VMT_HAS_TIME) {
		if (in->has_window_start && event->time.host_ns < in->window_start)
			return;
		if (in->has_window_end && event->time.host_ns > in->window_end)
			return;
	}
	if (event->type == VMT_EVENT_EXIT && in->facts.isa == VMT_ISA_UNKNOWN)
		in->facts.isa = event->isa;
	if (in->has_clock && event->has & VMT_HAS_TIME && !(event->has & VMT_HAS_HOST_TSC)) {
		copy = *event;
		add_host_tsc(in, &copy);
		event = &copy;
	}
	in->emit(in->context, event);
}

/* ---- the source ---- */

int input_next_item(struct vmt_input *in, struct vmt_item *item, struct vmt_diag *diag)
{
	return in->store ? vmt_store_next(in->store, item, diag)
			 : vmt_perfdata_next(in->perf, item, diag);
}

static struct vmt_ledger source_ledger(const struct vmt_input *in)
{
	if (in->pt)
		return vmt_pt_decoder_ledger(in->pt);
	return in->store ? vmt_store_ledger(in->store) : vmt_perfdata_ledger(in->perf);
}

static int open_source(struct vmt_input *in, struct vmt_reader *reader, struct vmt_diag *diag)
{
	const uint8_t *head;
	int64_t got;
	int known;

	if (in->options.pt && in->options.pt->is_bare)
		return input_pt_open(in, reader, diag);
	got = vmt_reader_peek(reader, sizeof(perf_magic), &head, diag);
	if (got < 0)
		return (int)got;
	if (got >= (int64_t)sizeof(perf_magic) &&
	    (!memcmp(head, perf_magic, sizeof(perf_magic)) || !memcmp(head, "2ELIFREP", 8))) {
		in->facts.format = "perf.data";
		return vmt_perfdata_open(&in->perf, reader, diag);
	}
	known = vmt_store_recognise(reader, diag);
	if (known < 0)
		return known;
	if (got && !known)
		return vmt_diag_at(diag, VMT_E_DAMAGED, 0,
				   "the input is neither .vmt nor perf.data",
				   "vmtrace record, perf record and perf kvm stat record write "
				   "such files; a bare "
				   "Intel PT stream needs --pt-raw");
	in->facts.format = "vmt";
	return vmt_store_open(&in->store, reader, diag);
}

/* Ends the source and gives its reader back. */
static struct vmt_reader *release_source(struct vmt_input *in)
{
	struct vmt_reader *reader = NULL;

	if (in->store)
		reader = vmt_store_give_back(in->store);
	else if (in->perf)
		reader = vmt_perfdata_release(in->perf);
	else
		reader = in->raw;
	in->raw = NULL;
	in->store = NULL;
	in->perf = NULL;
	return reader;
}

/* ---- items ---- */

static void has_switches(struct vmt_input *in)
{
	in->facts.has_switches = true;
	vmt_join_has_switches(in->join);
}

static int take_attr(struct vmt_input *in, const struct vmt_item *item, struct vmt_diag *diag)
{
	int status = vmt_ring_set_add(in->ring, item->attr, item->ids, item->nr_ids);

	if (status == VMT_E_NOMEM)
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot read the capture",
				    "memory is short");
	if (item->attr->flags & FLAG_CONTEXT_SWITCH)
		has_switches(in);
	return 0;
}

static int take_format(struct vmt_input *in, const struct vmt_item *item, struct vmt_diag *diag)
{
	struct vmt_format format;

	if (vmt_format_parse((const char *)item->data, item->len, &format, NULL))
		return 0; /* its records will be counted as not decoded */
	if (!strcmp(format.name, "sched_switch"))
		has_switches(in);
	in->has_tsc_writes = in->has_tsc_writes || !strcmp(format.name, "kvm_write_tsc_offset");
	in->has_kvm_exit = in->has_kvm_exit || !strcmp(format.name, "kvm_exit");
	if (vmt_catalog_add(in->catalog, &format) == VMT_E_NOMEM)
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot read the capture",
				    "memory is short");
	return 0;
}

static void take_anchors(struct vmt_input *in, const struct vmt_item *item)
{
	struct vmt_anchor anchor;

	for (size_t at = 0; at + sizeof(anchor) <= item->len; at += sizeof(anchor)) {
		memcpy(&anchor, item->data + at, sizeof(anchor));
		if (vmt_perf_clock_from_anchor(&anchor, &in->clock))
			in->has_clock = true;
	}
	in->facts.tsc_convertible = in->has_clock;
}

/* The writer dropped the front of a flight recorder on purpose; nothing is missing behind it. */
static bool is_loss(const struct vmt_item *item)
{
	return strcmp(item->loss_kind, "keep") && strcmp(item->loss_kind, "auxtrace") &&
	       strcmp(item->loss_kind, "after-end");
}

/*
 * Bytes of the file are missing here: what is before goes out first, then every state is unknown,
 * so that nothing is measured across.
 */
static void take_loss(struct vmt_input *in, const struct vmt_item *item)
{
	struct vmt_rec rec = { .kind = VMT_REC_LOST, .catalog = UINT16_MAX, .cpu = UINT32_MAX };

	const char *kind = input_loss_kind(item->loss_kind);

	if (!strcmp(item->loss_kind, "keep"))
		in->front_dropped = true;
	else
		input_loss_count(in, kind, item->has_lost_records ? item->lost_records : 0,
				 item->lost_bytes);
	if (!is_loss(item) || (!strcmp(item->loss_kind, "truncated") && !item->lost_bytes))
		return;
	vmt_merge_flush(in->merge, input_on_rec, in);
	rec.time_ns = in->last_ns;
	rec.flags = in->has_first ? VMT_REC_HAS_TIME : 0;
	rec.u.lost.count = item->has_lost_records ? item->lost_records : 0;
	rec.u.lost.kind = kind;
	rec.u.lost.file_bytes = item->lost_bytes;
	vmt_join_push(in->join, &rec);
}

static int take_item(struct vmt_input *in, const struct vmt_item *item, struct vmt_diag *diag)
{
	switch (item->type) {
	case VMT_ITEM_SESSION:
		input_session(in, item->data, item->len);
		return 0;
	case VMT_ITEM_ATTR:
		return take_attr(in, item, diag);
	case VMT_ITEM_FORMAT:
		return take_format(in, item, diag);
	case VMT_ITEM_RECORDS:
		input_records(in, item->stream, item->data, item->len);
		return 0;
	case VMT_ITEM_ROUND:
		/* A mark concerns all threads of its domain. */
		vmt_merge_relax(in->merge,
				in->options.by_thread && !in->nr_marks && !input_aux_is_on(in)
					? SLACK_NS
					: 0);
		vmt_merge_round(in->merge, input_on_rec, in);
		return 0;
	case VMT_ITEM_ANCHOR:
		take_anchors(in, item);
		return 0;
	case VMT_ITEM_MARK:
		input_mark(in, item->data, item->len);
		return 0;
	case VMT_ITEM_LOSS:
		take_loss(in, item);
		return 0;
	case VMT_ITEM_END:
		in->facts.closed = true;
		return 0;
	case VMT_ITEM_VCPU_LINK:
		input_aux_links(in, item);
		return 0;
	case VMT_ITEM_VCPU_TSC:
		input_aux_tsc(in, item);
		return 0;
	case VMT_ITEM_AUX: /* read through the index */
	case VMT_ITEM_USER:
		return 0;
	}
	return 0;
}

/* ---- span and window ---- */

static void settle_span(struct vmt_input *in)
{
	struct vmt_input_facts *f = &in->facts;

	if (in->has_first && (!f->has_start || in->front_dropped || f->start_ns > in->first_ns)) {
		f->has_start = true;
		f->start_ns = in->first_ns;
	}
	if (in->has_first && (!f->has_stop || f->stop_ns < in->last_ns)) {
		f->has_stop = true;
		f->stop_ns = in->last_ns;
	}
	if (in->has_window_start && f->has_start && in->window_start > f->start_ns)
		f->start_ns = in->window_start;
	if (in->has_window_end && f->has_stop && in->window_end < f->stop_ns)
		f->stop_ns = in->window_end;
	if (f->has_start && f->has_stop && f->start_ns > f->stop_ns) /* a window behind the end */
		f->start_ns = f->stop_ns;
}

static void drop_event(void *context, const struct vmt_event *event)
{
	(void)context;
	(void)event;
}

/* One pass for the span that a percentage refers to; then the input stands at its start again. */
static int measure_span(struct vmt_reader **reader, const struct vmt_input_pt *pt, double *seconds,
			struct vmt_diag *diag)
{
	struct vmt_input_options all = { .pt = pt };
	struct vmt_input *in = NULL;
	int status;

	if (!vmt_reader_can_seek(*reader))
		return vmt_diag_set(diag, VMT_E_USAGE, "--time in percent needs a file, not a pipe",
				    "give seconds, or store the input in a file first");
	status = vmt_input_open(&in, *reader, &all, diag);
	if (!in)
		return status;
	status = vmt_input_run(in, drop_event, NULL, diag);
	if (in->facts.has_start && in->facts.has_stop)
		*seconds = (double)(in->facts.stop_ns - in->facts.start_ns) / NS_PER_S;
	*reader = release_source(in);
	vmt_input_close(in);
	return status ? status : vmt_reader_seek(*reader, 0, diag);
}

/* One pass more, in a file with Intel PT, for what the reading of a guest's TSC depends on ahead of
 * time; then the reader stands at its start again. */
static int find_tsc_writes(struct vmt_input *in, struct vmt_reader **reader, struct vmt_diag *diag)
{
	int status;

	if ((in->options.pt && in->options.pt->is_bare) || !vmt_reader_can_seek(*reader))
		return 0;
	status = open_source(in, *reader, diag);
	if (status)
		return status;
	status = input_find_tsc_writes(in, diag);
	*reader = release_source(in);
	in->writes_found = !status;
	return status ? status : vmt_reader_seek(*reader, 0, diag);
}

/* ---- open, run, close ---- */

int vmt_input_open(struct vmt_input **out, struct vmt_reader *reader,
		   const struct vmt_input_options *options, struct vmt_diag *diag)
{
	struct vmt_input *in;
	double seconds = 0;
	int status;

	if (options->percent) {
		status = measure_span(&reader, options->pt, &seconds, diag);
		if (status)
			return status;
	}
	in = calloc(1, sizeof(*in));
	if (!in)
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot read the capture",
				    "memory is short");
	in->options = *options;
	if (options->percent) {
		in->options.from *= seconds / 100;
		in->options.to *= seconds / 100;
	}
	in->facts.domains = in->domains;
	status = find_tsc_writes(in, &reader, diag);
	if (status) {
		vmt_input_close(in);
		return status;
	}
	in->ring = vmt_ring_set_new();
	in->catalog = vmt_catalog_new();
	in->merge = vmt_merge_new(options->merge_recs ? options->merge_recs : MERGE_RECS);
	in->join = in->catalog ? vmt_join_new(in->catalog, input_on_joined, in) : NULL;
	if (in->join && options->types)
		vmt_join_want(in->join, options->types);
	if (!in->ring || !in->catalog || !in->merge || !in->join || input_aux_open(in))
		status = vmt_diag_set(diag, VMT_E_NOMEM, "cannot read the capture",
				      "memory is short");
	else
		status = open_source(in, reader, diag);
	if (status) {
		vmt_input_close(in);
		return status;
	}
	*out = in;
	return 0;
}

void vmt_input_close(struct vmt_input *in)
{
	if (!in)
		return;
	vmt_store_close(in->store);
	vmt_perfdata_close(in->perf);
	if (in->raw)
		vmt_reader_close(in->raw);
	vmt_pt_decoder_free(in->pt);
	input_aux_close(in);
	vmt_tsc_writes_free(&in->writes);
	vmt_join_free(in->join);
	vmt_merge_free(in->merge);
	vmt_catalog_free(in->catalog);
	vmt_ring_set_free(in->ring);
	for (size_t i = 0; i < in->facts.nr_domains; i++) {
		for (size_t k = 0; k < 3; k++)
			free(in->domain_texts[i][k]);
	}
	free(in->session_json);
	free(in->host);
	free(in->kernel);
	free(in->tool);
	free(in);
}

int vmt_input_run(struct vmt_input *in, vmt_event_fn *emit, void *context, struct vmt_diag *diag)
{
	struct vmt_item item;
	int status;

	in->emit = emit;
	in->context = context;
	if (in->pt) {
		status = input_pt_run(in, diag);
		settle_span(in);
		return status;
	}
	while ((status = input_next_item(in, &item, diag)) == 1) {
		status = take_item(in, &item, diag);
		if (status)
			return status;
	}
	if (status)
		return status;
	vmt_merge_flush(in->merge, input_on_rec, in);
	input_marks_until(in, UINT64_MAX);
	vmt_join_flush(in->join);
	status = input_aux_finish(in, diag);
	if (status)
		return status;
	in->facts.late = vmt_merge_late(in->merge);
	in->facts.unsent = vmt_join_counts(in->join).unsent;
	settle_span(in);
	if (in->perf)
		input_perf_facts(in);
	return 0;
}

const struct vmt_input_facts *vmt_input_facts(const struct vmt_input *in)
{
	return &in->facts;
}

/* The file's share of records that could not be decoded: less than their bytes when compressed. */
static uint64_t undecoded_share(const struct vmt_input *in, const struct vmt_ledger *ledger)
{
	double part;

	if (in->record_bytes <= ledger->bytes_decoded)
		return in->undecoded_bytes;
	part = (double)in->undecoded_bytes / (double)in->record_bytes;
	return (uint64_t)(part * (double)ledger->bytes_decoded);
}

struct vmt_ledger vmt_input_ledger(const struct vmt_input *in)
{
	struct vmt_ledger ledger = source_ledger(in);
	uint64_t undecoded = undecoded_share(in, &ledger);

	ledger.bytes_decoded -= undecoded;
	ledger.bytes_skipped += undecoded;
	ledger.records_lost += in->records_lost;
	ledger.overflows += in->overflows;
	input_aux_ledger(in, &ledger);
	return ledger;
}

struct vmt_join_counts vmt_input_counts(const struct vmt_input *in)
{
	return in->pt ? input_pt_counts(in) : vmt_join_counts(in->join);
}
