// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Any bytes as a capture, through the whole pipeline into the report: format, items, ring records,
 * merge, join, analysis. The ledger balances and counts no byte twice, events are of a known type
 * and the report counts each exit once.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decode/analyze/report.h"
#include "tests/support/memory_file.h"
#include "tests/support/store_sample.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

struct seen {
	struct vmt_report_builder *builder;
	uint64_t events, exits, failed;
};

static void take(void *context, const struct vmt_event *event)
{
	struct seen *seen = context;

	require(event->type < VMT_EVENT_TYPE_COUNT);
	if (event->type == VMT_EVENT_NOTE || event->type == VMT_EVENT_MARK ||
	    event->type == VMT_EVENT_LOSS)
		require(event->name && strlen(event->name) < 256);
	if (event->type == VMT_EVENT_EXIT) {
		seen->exits += !event->failed_entry;
		seen->failed += event->failed_entry;
	}
	seen->events++;
	if (seen->builder)
		vmt_report_event(seen->builder, event);
}

static void check_report(struct vmt_input *input, struct vmt_report_builder *builder,
			 const struct seen *seen)
{
	const struct vmt_report *report = vmt_report_finish(builder, vmt_input_facts(input),
							    vmt_input_ledger(input), NULL, NULL);
	uint64_t rows = 0;

	require(report != NULL);
	for (size_t i = 0; i < report->nr_rows; i++)
		rows += report->rows[i].count;
	require(report->exits == seen->exits && report->failed_entries == seen->failed);
	require(rows == seen->exits + seen->failed);
}

static void run(struct vmt_reader *reader, size_t size, const struct vmt_input_options *options)
{
	struct vmt_report_options how = { .by = "reason,key,rip,vcpu" };
	struct seen seen = { 0 };
	struct vmt_input *input;
	struct vmt_ledger l;
	int err;

	if (vmt_input_open(&input, reader, options, NULL) != 0) {
		vmt_reader_close(reader);
		return;
	}
	seen.builder = vmt_report_new(&how);
	require(seen.builder != NULL);
	err = vmt_input_run(input, take, &seen, NULL);
	require(err == 0 || err == VMT_E_DAMAGED);
	l = vmt_input_ledger(input);
	require(l.bytes_total == l.bytes_decoded + l.bytes_skipped);
	require(l.bytes_total <= size && l.bytes_decoded <= size);
	check_report(input, seen.builder, &seen);
	vmt_report_free(seen.builder);
	vmt_input_close(input);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct vmt_input_options options[] = {
		{ .merge_recs = 64 },
		{ .merge_recs = 4096, .has_from = true, .from = 0.000001 },
		{ .merge_recs = 4096,
		  .has_from = true,
		  .has_to = true,
		  .from = 10,
		  .to = 60,
		  .percent = true },
	};
	struct vmt_reader *reader;

	if (vmt_reader_from_fd(&reader, vmt_memory_file(data, size), NULL, NULL) != 0)
		abort();
	run(reader, size, &options[size % 3]);
	run(vmt_sample_reader(data, size), size, &options[size % 2]);
	return 0;
}
