// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The one pass: every event goes to the rows, the bill and the storms. Verdicts look at rows by
 * reason and key, so a report by something else keeps a second table.
 */
#include "decode/analyze/report.h"

#include <stdlib.h>
#include <string.h>

#include "decode/analyze/bill.h"
#include "decode/analyze/rows.h"
#include "decode/analyze/storms.h"
#include "decode/analyze/verdicts.h"

#define BASE_DIMS (VMT_ROWS_BY_REASON | VMT_ROWS_BY_KEY)

struct vmt_report_builder {
	bool want_storms, out_of_memory;
	struct vmt_rows *base;	  /* by reason and key */
	struct vmt_rows *shown;	  /* NULL: base */
	struct vmt_rows *returns; /* counted until the first exit */
	struct vmt_bill_set *bill;
	struct vmt_storm_set *storms;
	uint64_t injected[256];
	uint64_t injections, tsc_writes, concealed_rips, losses, switches;
	struct vmt_row *base_rows;
	size_t nr_base_rows;
	struct vmt_report report;
};

bool vmt_report_by_ok(const char *by)
{
	return vmt_rows_dims(by) != 0;
}

struct vmt_report_builder *vmt_report_new(const struct vmt_report_options *options)
{
	unsigned int dims = vmt_rows_dims(options->by);
	struct vmt_report_builder *b = dims ? calloc(1, sizeof(*b)) : NULL;

	if (!b)
		return NULL;
	b->want_storms = options->storms;
	b->report.by = dims;
	b->report.recording = options->recording;
	b->report.filtered = options->filtered;
	b->base = vmt_rows_new(BASE_DIMS);
	b->shown = dims == BASE_DIMS ? NULL : vmt_rows_new(dims);
	b->returns = vmt_rows_new(VMT_ROWS_BY_KEY);
	b->bill = vmt_bill_new();
	b->storms = vmt_storms_new();
	if (!b->base || (dims != BASE_DIMS && !b->shown) || !b->returns || !b->bill || !b->storms) {
		vmt_report_free(b);
		return NULL;
	}
	return b;
}

void vmt_report_free(struct vmt_report_builder *builder)
{
	if (!builder)
		return;
	if (builder->report.rows != builder->base_rows)
		free(builder->report.rows);
	free(builder->base_rows);
	free(builder->report.returns);
	free(builder->report.bills);
	free(builder->report.storms);
	free(builder->report.verdicts);
	vmt_rows_free(builder->base);
	vmt_rows_free(builder->shown);
	vmt_rows_free(builder->returns);
	vmt_bill_free(builder->bill);
	vmt_storms_free(builder->storms);
	free(builder);
}

static void count_exit(struct vmt_report_builder *b, const struct vmt_event *e,
		       enum vmx_exit_class *class)
{
	struct vmt_row_sum *sum = vmt_rows_add(b->base, e);

	if (e->failed_entry)
		b->report.failed_entries++;
	else
		b->report.exits++;
	b->report.nested_exits += e->nested;
	b->report.nested_known |= (e->has & VMT_HAS_NESTED) != 0;
	b->concealed_rips += e->concealed_rip;
	if (!sum) {
		b->out_of_memory = true;
		return;
	}
	*class = e->failed_entry ? VMX_CLASS_FAILURE : (enum vmx_exit_class)sum->class;
	if ((e->has & VMT_HAS_TIME) && b->want_storms &&
	    !vmt_storms_add(b->storms, sum, e->time.host_ns))
		b->out_of_memory = true;
	if (b->shown && !vmt_rows_add(b->shown, e))
		b->out_of_memory = true;
}

/* A return to the VMM or a record with a key, as a row of its key alone. */
static void count_return(struct vmt_report_builder *b, const struct vmt_event *e)
{
	struct vmt_event row = { .type = VMT_EVENT_EXIT, .key = e->key };

	if (e->type == VMT_EVENT_USERSPACE && (e->has & VMT_HAS_REASON))
		row.key = (struct vmt_key){ .kind = VMT_KEY_USERSPACE, .number = e->reason };
	if (row.key.kind != VMT_KEY_NONE && !vmt_rows_add(b->returns, &row))
		b->out_of_memory = true;
}

void vmt_report_event(struct vmt_report_builder *builder, const struct vmt_event *event)
{
	struct vmt_report_builder *b = builder;
	enum vmx_exit_class class = VMX_CLASS_OTHER;

	b->report.records++;
	switch (event->type) {
	case VMT_EVENT_EXIT:
		count_exit(b, event, &class);
		break;
	case VMT_EVENT_ENTRY:
		b->report.entries++;
		break;
	case VMT_EVENT_INJECT:
		if ((event->has & VMT_HAS_VECTOR) && event->vector < 256) {
			b->injected[event->vector]++;
			b->injections++;
		}
		break;
	case VMT_EVENT_TSC_WRITE:
		b->tsc_writes++;
		break;
	case VMT_EVENT_SWITCH:
		b->switches++;
		break;
	case VMT_EVENT_LOSS:
		b->losses++;
		break;
	case VMT_EVENT_USERSPACE:
	case VMT_EVENT_NOTE:
		if (!b->report.exits)
			count_return(b, event);
		break;
	default:
		break;
	}
	if (!vmt_bill_event(b->bill, event, class))
		b->out_of_memory = true;
}

/* ---- the end ---- */

static void set_span(struct vmt_report_builder *b, const struct vmt_input_facts *facts)
{
	struct vmt_report *r = &b->report;
	uint64_t first, last, last_end;
	bool seen = vmt_bill_span(b->bill, &first, &last, &last_end);

	if (!facts->has_stop)
		last = last_end;
	if (seen) {
		r->start_ns = first;
		r->stop_ns = last;
	}
	if (facts->has_start && (!seen || facts->start_ns < first))
		r->start_ns = facts->start_ns;
	if (facts->has_stop && (!seen || facts->stop_ns > last))
		r->stop_ns = facts->stop_ns;
	if (!seen && !facts->has_start)
		r->start_ns = r->stop_ns;
	if (r->stop_ns < r->start_ns)
		r->stop_ns = r->start_ns;
	r->span_ns = r->stop_ns - r->start_ns;
	r->base_ns = facts->has_base && facts->base_ns < r->start_ns ? facts->base_ns : r->start_ns;
}

static bool finish_rows(struct vmt_report_builder *b)
{
	struct vmt_report *r = &b->report;

	b->base_rows = vmt_rows_finish(b->base, &b->nr_base_rows);
	r->rows = b->base_rows;
	r->nr_rows = b->nr_base_rows;
	r->rows_dropped = vmt_rows_dropped(b->base);
	if (b->shown && b->base_rows) {
		r->rows = vmt_rows_finish(b->shown, &r->nr_rows);
		r->rows_dropped = vmt_rows_dropped(b->shown);
	}
	if (r->exits + r->failed_entries == 0) {
		r->returns = vmt_rows_finish(b->returns, &r->nr_returns);
		if (!r->returns)
			return false;
	}
	return r->rows != NULL;
}

static void name_rows(struct vmt_row *rows, size_t nr, vmt_symbol_fn *symbol, void *context)
{
	for (size_t i = 0; symbol && i < nr; i++) {
		if (rows[i].has_rip)
			rows[i].rip_symbol =
				symbol(context, rows[i].guest_rip, &rows[i].rip_symbol_offset);
	}
}

static void add_bill(struct vmt_bill *to, const struct vmt_bill *b)
{
	to->wall_ns += b->wall_ns;
	to->guest_ns += b->guest_ns;
	to->exits_ns += b->exits_ns;
	to->userspace_ns += b->userspace_ns;
	to->halt_poll_ns += b->halt_poll_ns;
	to->halted_ns += b->halted_ns;
	to->preempted_ns += b->preempted_ns;
	to->stopped_ns += b->stopped_ns;
	to->residual_ns += b->residual_ns;
	to->entries += b->entries;
	to->exits += b->exits;
	for (unsigned int c = 0; c < VMX_CLASS_COUNT; c++)
		to->class_ns[c] += b->class_ns[c];
}

void vmt_bill_sum(const struct vmt_report *report, struct vmt_bill *out)
{
	*out = (struct vmt_bill){ .domain = UINT32_MAX, .vcpu = UINT32_MAX };
	for (size_t i = 0; i < report->nr_bills; i++)
		add_bill(out, &report->bills[i]);
	out->has_switches = report->nr_bills > 0 && report->bills[0].has_switches;
}

static bool judge(struct vmt_report_builder *b)
{
	struct vmt_report *r = &b->report;
	struct vmt_verdict_facts facts = { .report = r,
					   .rows = b->base_rows,
					   .nr_rows = b->nr_base_rows,
					   .seconds = (double)r->span_ns / 1e9,
					   .nr_vcpus = r->nr_bills ? r->nr_bills : 1,
					   .injected = b->injected,
					   .injections = b->injections,
					   .tsc_writes = b->tsc_writes,
					   .concealed_rips = b->concealed_rips,
					   .losses = b->losses,
					   .vmm_name = "QEMU" };

	vmt_bill_sum(r, &facts.all);
	r->verdicts = vmt_verdicts_find(&facts, &r->nr_verdicts);
	return r->verdicts != NULL;
}

/* One domain: its storms are known to be its own. */
static void name_storms(struct vmt_report *r)
{
	uint32_t domain = r->facts->nr_domains == 1 ? 0 : UINT32_MAX;

	for (size_t i = 0; i < r->nr_storms; i++)
		r->storms[i].domain = domain;
}

const struct vmt_report *vmt_report_finish(struct vmt_report_builder *builder,
					   const struct vmt_input_facts *facts,
					   struct vmt_ledger ledger, vmt_symbol_fn *symbol,
					   void *symbol_context)
{
	struct vmt_report_builder *b = builder;
	struct vmt_report *r = &b->report;
	bool complete = !ledger.truncated && (facts->closed || !facts->has_stop);

	r->facts = facts;
	r->ledger = ledger;
	r->records += facts->unsent;
	set_span(b, facts);
	if (b->out_of_memory || !finish_rows(b))
		return NULL;
	name_rows(b->base_rows, b->nr_base_rows, symbol, symbol_context);
	if (r->rows != b->base_rows)
		name_rows(r->rows, r->nr_rows, symbol, symbol_context);
	r->bills = vmt_bill_finish(b->bill, r->start_ns, r->stop_ns,
				   facts->has_switches || b->switches > 0, complete, &r->nr_bills);
	r->events_unbilled = vmt_bill_unbilled(b->bill);
	r->storms = vmt_storms_finish(b->storms, r->stop_ns, &r->nr_storms);
	if (!r->bills || !r->storms)
		return NULL;
	name_storms(r);
	r->concealed_known = facts->has_concealed || r->exits + r->entries + r->failed_entries > 0;
	r->concealed = facts->concealed;
	return judge(b) ? r : NULL;
}
