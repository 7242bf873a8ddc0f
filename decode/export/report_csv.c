// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdio.h>

#include "decode/base/key.h"
#include "decode/export/csv.h"
#include "decode/export/names.h"
#include "decode/export/report_export.h"

static void put_key(struct vmt_csv *csv, const struct vmt_key *key)
{
	char text[VMT_KEY_TEXT_MAX];

	vmt_csv_text(csv,
		     key->kind == VMT_KEY_NONE ? NULL : vmt_key_format(text, sizeof(text), key));
}

static void put_reason(struct vmt_csv *csv, bool known, enum vmt_isa isa, uint32_t reason,
		       uint32_t flags)
{
	char name[32];

	vmt_csv_text(csv, vmt_isa_name(isa));
	vmt_csv_number(csv, known, reason);
	vmt_csv_hex(csv, known, flags);
	vmt_csv_text(csv, known ? vmx_reason_text(name, sizeof(name), isa == VMT_ISA_SVM, reason)
				: NULL);
}

static void write_rows(struct vmt_csv *csv, const struct vmt_report *r)
{
	vmt_out_str(csv->out, "isa,reason,reason_flags,reason_name,key,guest_rip,guest_symbol,"
			      "guest_rip_count,count,total_ns,min_ns,p50_ns,p95_ns,p99_ns,max_ns,"
			      "nested,failed_entry,domain,vcpu\n");
	for (size_t i = 0; i < r->nr_rows; i++) {
		const struct vmt_row *row = &r->rows[i];
		bool timed = row->timed > 0, ranked = timed && row->has_percentiles;
		char symbol[200];

		put_reason(csv, row->has_reason, row->isa, row->reason, row->reason_flags);
		put_key(csv, &row->key);
		vmt_csv_hex(csv, row->has_rip, row->guest_rip);
		if (row->rip_symbol)
			snprintf(symbol, sizeof(symbol), "%.150s+0x%llx", row->rip_symbol,
				 (unsigned long long)row->rip_symbol_offset);
		vmt_csv_text(csv, row->rip_symbol ? symbol : NULL);
		vmt_csv_number(csv, row->has_rip, row->rip_count);
		vmt_csv_number(csv, true, row->count);
		vmt_csv_number(csv, timed, row->total_ns);
		vmt_csv_number(csv, timed, row->min_ns);
		vmt_csv_number(csv, ranked, row->p50_ns);
		vmt_csv_number(csv, ranked, row->p95_ns);
		vmt_csv_number(csv, ranked, row->p99_ns);
		vmt_csv_number(csv, timed, row->max_ns);
		vmt_csv_number(csv, r->nested_known, row->nested);
		vmt_csv_number(csv, true, row->failed_entry);
		vmt_csv_text(csv, vmt_domain_label(r->facts, row->domain));
		vmt_csv_number(csv, row->vcpu != UINT32_MAX, row->vcpu);
		vmt_csv_end(csv);
	}
}

static void write_bill(struct vmt_csv *csv, const struct vmt_report *r)
{
	vmt_out_str(csv->out, "domain,vcpu,tid,wall_ns,guest_ns,exits_ns,userspace_ns,halt_poll_ns,"
			      "halted_ns,preempted_ns,stopped_ns,residual_ns,entries,exits\n");
	for (size_t i = 0; i < r->nr_bills; i++) {
		const struct vmt_bill *b = &r->bills[i];

		vmt_csv_text(csv, vmt_domain_label(r->facts, b->domain));
		vmt_csv_number(csv, b->vcpu != UINT32_MAX, b->vcpu);
		vmt_csv_number(csv, b->tid != 0, b->tid);
		vmt_csv_number(csv, true, b->wall_ns);
		vmt_csv_number(csv, true, b->guest_ns);
		vmt_csv_number(csv, true, b->exits_ns);
		vmt_csv_number(csv, true, b->userspace_ns);
		vmt_csv_number(csv, true, b->halt_poll_ns);
		vmt_csv_number(csv, true, b->halted_ns);
		vmt_csv_number(csv, b->has_switches, b->preempted_ns);
		vmt_csv_number(csv, true, b->stopped_ns);
		vmt_csv_number(csv, true, b->residual_ns);
		vmt_csv_number(csv, true, b->entries);
		vmt_csv_number(csv, true, b->exits);
		vmt_csv_end(csv);
	}
}

static void write_storms(struct vmt_csv *csv, const struct vmt_report *r)
{
	vmt_out_str(csv->out, "from_ns,to_ns,isa,reason,reason_flags,reason_name,key,rate,"
			      "rate_before,count\n");
	for (size_t i = 0; i < r->nr_storms; i++) {
		const struct vmt_storm *s = &r->storms[i];
		char rate[40];

		vmt_csv_number(csv, true, s->from_ns);
		vmt_csv_number(csv, true, s->to_ns);
		put_reason(csv, true, s->isa, s->reason, 0);
		put_key(csv, &s->key);
		snprintf(rate, sizeof(rate), "%.3f", s->rate);
		vmt_csv_text(csv, rate);
		snprintf(rate, sizeof(rate), "%.3f", s->rate_before);
		vmt_csv_text(csv, rate);
		vmt_csv_number(csv, true, s->count);
		vmt_csv_end(csv);
	}
}

void vmt_report_csv(struct vmt_out *out, const struct vmt_report *report,
		    const struct vmt_report_view *view)
{
	struct vmt_csv csv = { .out = out };

	if (view->bill)
		write_bill(&csv, report);
	if (view->bill && view->storms)
		vmt_out_char(out, '\n');
	if (view->storms)
		write_storms(&csv, report);
	if (!view->bill && !view->storms)
		write_rows(&csv, report);
}
