// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdio.h>

#include "decode/base/key.h"
#include "decode/export/join.h"
#include "decode/export/json.h"
#include "decode/export/names.h"
#include "decode/export/report_export.h"

static void write_key(struct vmt_json *j, const struct vmt_key *key)
{
	char text[VMT_KEY_TEXT_MAX];

	vmt_json_text(j, "key",
		      key->kind == VMT_KEY_NONE ? NULL : vmt_key_format(text, sizeof(text), key));
}

static void write_loss(struct vmt_json *j, const struct vmt_ledger *l)
{
	vmt_json_open(j, "loss", '{');
	vmt_json_number(j, "bytes_total", true, l->bytes_total);
	vmt_json_number(j, "bytes_decoded", true, l->bytes_decoded);
	vmt_json_number(j, "bytes_skipped", true, l->bytes_skipped);
	vmt_json_number(j, "overflows", true, l->overflows);
	vmt_json_number(j, "records_lost", true, l->records_lost);
	vmt_json_bool(j, "truncated", true, l->truncated);
	vmt_json_close(j, '}');
}

static void write_vms(struct vmt_json *j, const struct vmt_input_facts *f)
{
	vmt_json_open(j, "vms", '[');
	for (size_t i = 0; i < f->nr_domains; i++) {
		const struct vmt_domain_info *d = &f->domains[i];

		vmt_json_open(j, NULL, '{');
		vmt_json_text(j, "name", d->name);
		vmt_json_text(j, "uuid", d->uuid);
		vmt_json_number(j, "pid", d->pid != 0, d->pid);
		vmt_json_number(j, "vcpus", d->nr_vcpus != 0, d->nr_vcpus);
		vmt_json_close(j, '}');
	}
	vmt_json_close(j, ']');
}

static void write_symbol(struct vmt_json *j, const struct vmt_row *row)
{
	char text[200];

	if (row->rip_symbol)
		snprintf(text, sizeof(text), "%.150s+0x%llx", row->rip_symbol,
			 (unsigned long long)row->rip_symbol_offset);
	vmt_json_text(j, "guest_symbol", row->rip_symbol ? text : NULL);
}

static void write_row(struct vmt_json *j, const struct vmt_report *r, const struct vmt_row *row)
{
	bool timed = row->timed > 0, ranked = timed && row->has_percentiles;
	char name[32];

	vmt_json_open(j, NULL, '{');
	vmt_json_text(j, "isa", vmt_isa_name(row->isa));
	vmt_json_number(j, "reason", row->has_reason, row->reason);
	vmt_json_hex(j, "reason_flags", row->has_reason, row->reason_flags);
	vmt_json_text(j, "reason_name",
		      row->has_reason ? vmx_reason_text(name, sizeof(name), row->isa == VMT_ISA_SVM,
							row->reason)
				      : NULL);
	write_key(j, &row->key);
	vmt_json_hex(j, "guest_rip", row->has_rip, row->guest_rip);
	write_symbol(j, row);
	vmt_json_number(j, "guest_rip_count", row->has_rip, row->rip_count);
	vmt_json_number(j, "count", true, row->count);
	vmt_json_number(j, "total_ns", timed, row->total_ns);
	vmt_json_number(j, "min_ns", timed, row->min_ns);
	vmt_json_number(j, "p50_ns", ranked, row->p50_ns);
	vmt_json_number(j, "p95_ns", ranked, row->p95_ns);
	vmt_json_number(j, "p99_ns", ranked, row->p99_ns);
	vmt_json_number(j, "max_ns", timed, row->max_ns);
	vmt_json_bool(j, "nested", r->nested_known, row->nested);
	vmt_json_bool(j, "failed_entry", true, row->failed_entry);
	vmt_json_text(j, "domain", vmt_domain_label(r->facts, row->domain));
	vmt_json_number(j, "vcpu", row->vcpu != UINT32_MAX, row->vcpu);
	vmt_json_close(j, '}');
}

static void write_bill(struct vmt_json *j, const struct vmt_report *r, const struct vmt_bill *b)
{
	vmt_json_open(j, NULL, '{');
	vmt_json_text(j, "domain", vmt_domain_label(r->facts, b->domain));
	vmt_json_number(j, "vcpu", b->vcpu != UINT32_MAX, b->vcpu);
	vmt_json_number(j, "tid", b->tid != 0, b->tid);
	vmt_json_number(j, "wall_ns", true, b->wall_ns);
	vmt_json_number(j, "guest_ns", true, b->guest_ns);
	vmt_json_number(j, "exits_ns", true, b->exits_ns);
	vmt_json_number(j, "userspace_ns", true, b->userspace_ns);
	vmt_json_number(j, "halt_poll_ns", true, b->halt_poll_ns);
	vmt_json_number(j, "halted_ns", true, b->halted_ns);
	vmt_json_number(j, "preempted_ns", b->has_switches, b->preempted_ns);
	vmt_json_number(j, "stopped_ns", true, b->stopped_ns);
	vmt_json_number(j, "residual_ns", true, b->residual_ns);
	vmt_json_open(j, "exits_by_class", '{');
	for (unsigned int c = 0; c < VMX_CLASS_COUNT; c++) {
		if (b->class_ns[c])
			vmt_json_number(j, vmx_class_name((enum vmx_exit_class)c), true,
					b->class_ns[c]);
	}
	vmt_json_close(j, '}');
	vmt_json_number(j, "entries", true, b->entries);
	vmt_json_number(j, "exits", true, b->exits);
	vmt_json_close(j, '}');
}

static void write_storm(struct vmt_json *j, const struct vmt_storm *s)
{
	char name[32];

	vmt_json_open(j, NULL, '{');
	vmt_json_number(j, "from_ns", true, s->from_ns);
	vmt_json_number(j, "to_ns", true, s->to_ns);
	vmt_json_text(j, "isa", vmt_isa_name(s->isa));
	vmt_json_number(j, "reason", true, s->reason);
	vmt_json_text(j, "reason_name",
		      vmx_reason_text(name, sizeof(name), s->isa == VMT_ISA_SVM, s->reason));
	write_key(j, &s->key);
	vmt_json_real(j, "rate", s->rate);
	vmt_json_real(j, "rate_before", s->rate_before);
	vmt_json_number(j, "count", true, s->count);
	vmt_json_close(j, '}');
}

static void write_verdict(struct vmt_json *j, const struct vmt_verdict *v)
{
	vmt_json_open(j, NULL, '{');
	vmt_json_text(j, "id", v->id);
	vmt_json_text(j, "severity", vmt_severity_name(v->severity));
	vmt_json_text(j, "text", v->text);
	vmt_json_text(j, "evidence", v->evidence);
	vmt_json_text(j, "remedy", v->remedy);
	vmt_json_close(j, '}');
}

static void write_pt(struct vmt_json *j, const struct vmt_input_facts *f)
{
	const struct vmt_pt_controls *c = &f->pt_controls;

	if (!c->known)
		return;
	vmt_json_open(j, "pt", '{');
	vmt_json_text(j, "mode", vmx_pt_mode_name(c->mode));
	vmt_json_bool(j, "conceal", true, c->conceal);
	vmt_json_text(j, "means", c->means);
	vmt_json_number(j, "vcpus_with_controls", true, c->nr_vcpus);
	vmt_json_number(j, "entries_with_controls", c->nr_vcpus, c->entries);
	vmt_json_number(j, "entries_untraced", c->nr_vcpus, c->untraced);
	vmt_json_number(j, "entries_left_to_kvm", c->nr_vcpus, c->left);
	vmt_json_number(j, "entries_rewritten", c->nr_vcpus, c->rewritten);
	vmt_json_close(j, '}');
}

static void write_join(struct vmt_json *j, const struct vmt_input_facts *f)
{
	if (!f->has_join) {
		vmt_json_text(j, "join", NULL);
		return;
	}
	vmt_json_open(j, "join", '{');
	vmt_json_join(j, f);
	vmt_json_close(j, '}');
}

static void write_head(struct vmt_json *j, const struct vmt_report *r)
{
	const struct vmt_input_facts *f = r->facts;

	vmt_json_text(j, "schema", "vmtrace-report/1");
	vmt_json_text(j, "tool", f->tool);
	vmt_json_text(j, "format", f->format);
	vmt_json_text(j, "host", f->host);
	vmt_json_text(j, "kernel", f->kernel);
	vmt_json_text(j, "isa", vmt_isa_name(f->isa));
	vmt_json_number(j, "base_ns", true, r->base_ns);
	vmt_json_number(j, "start_ns", true, r->start_ns);
	vmt_json_number(j, "stop_ns", true, r->stop_ns);
	vmt_json_number(j, "exits", true, r->exits);
	vmt_json_number(j, "entries", true, r->entries);
	vmt_json_number(j, "failed_entries", true, r->failed_entries);
	vmt_json_number(j, "nested_exits", r->nested_known, r->nested_exits);
	vmt_json_bool(j, "concealed", r->concealed_known, r->concealed);
	vmt_json_bool(j, "has_switches", true, f->has_switches);
	vmt_json_number(j, "late_records", true, f->late);
	write_join(j, f);
	write_pt(j, f);
	vmt_json_number(j, "recorder_cpu_ns", f->has_recorder_cpu, f->recorder_cpu_ns);
	vmt_json_number(j, "rows_dropped", true, r->rows_dropped);
	vmt_json_number(j, "events_unbilled", true, r->events_unbilled);
	vmt_json_bool(j, "recording", true, r->recording);
	write_loss(j, &r->ledger);
	write_vms(j, f);
}

void vmt_report_json(struct vmt_out *out, const struct vmt_report *report)
{
	struct vmt_json j = { .out = out, .pretty = true };
	const struct vmt_report *r = report;

	vmt_json_open(&j, NULL, '{');
	write_head(&j, r);
	vmt_json_open(&j, "rows", '[');
	for (size_t i = 0; i < r->nr_rows; i++)
		write_row(&j, r, &r->rows[i]);
	vmt_json_close(&j, ']');
	vmt_json_open(&j, "returns", '[');
	for (size_t i = 0; i < r->nr_returns; i++)
		write_row(&j, r, &r->returns[i]);
	vmt_json_close(&j, ']');
	vmt_json_open(&j, "bill", '[');
	for (size_t i = 0; i < r->nr_bills; i++)
		write_bill(&j, r, &r->bills[i]);
	vmt_json_close(&j, ']');
	vmt_json_open(&j, "storms", '[');
	for (size_t i = 0; i < r->nr_storms; i++)
		write_storm(&j, &r->storms[i]);
	vmt_json_close(&j, ']');
	vmt_json_open(&j, "verdicts", '[');
	for (size_t i = 0; i < r->nr_verdicts; i++)
		write_verdict(&j, &r->verdicts[i]);
	vmt_json_close(&j, ']');
	vmt_json_close(&j, '}');
	vmt_out_char(out, '\n');
}
