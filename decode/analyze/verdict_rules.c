// SPDX-License-Identifier: LGPL-2.1-or-later
/* The table of rules and what they share; thresholds stand in rules.h. */
#include "decode/analyze/rules.h"

#include <stdio.h>

#include "decode/base/key.h"

static const struct vmt_rule rules[] = {
	{ "failed-entry", 4, vmt_rule_failed },
	{ "rip-loop", 3, vmt_rule_loop },
	{ "clocksource", 2, vmt_rule_clock },
	{ "halt-poll", 1, vmt_rule_poll },
	{ "irq-storm", 3, vmt_rule_irq },
	{ "userspace", 1, vmt_rule_userspace },
	{ "preempted", 1, vmt_rule_preempted },
	{ "memory-faults", 1, vmt_rule_faults },
	{ "spin", 1, vmt_rule_spin },
	{ "tsc-exits", 2, vmt_rule_tsc_exits },
	{ "tsc-writes", 1, vmt_rule_tsc_writes },
	{ "no-exits", 1, vmt_rule_nothing },
	{ "not-exits", 1, vmt_rule_not_exits },
	{ "loss", 16, vmt_rule_loss },
	{ "truncated", 1, vmt_rule_truncated },
	{ "residual", 1, vmt_rule_residual },
	{ "nested", 1, vmt_rule_nested },
	{ "pt-controls", 6, vmt_rule_pt_controls },
	{ "concealed-rip", 1, vmt_rule_concealed },
};

const struct vmt_rule *vmt_rules(size_t *nr)
{
	*nr = sizeof(rules) / sizeof(rules[0]);
	return rules;
}

double vmt_rule_cores(const struct vmt_verdict_facts *f, uint64_t ns)
{
	return f->report->span_ns ? (double)ns / (double)f->report->span_ns : 0;
}

double vmt_rule_ratio(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

enum vmt_severity vmt_rule_grade(double value, double warn, double critical)
{
	if (value >= critical)
		return VMT_SEVERITY_CRITICAL;
	return value >= warn ? VMT_SEVERITY_WARN : VMT_SEVERITY_NOTE;
}

/* The largest storm of the row's exits, or NULL. */
static const struct vmt_storm *storm_of(const struct vmt_report *r, const struct vmt_row *row)
{
	for (size_t i = 0; i < r->nr_storms; i++) {
		const struct vmt_storm *s = &r->storms[i];

		if (s->isa == row->isa && s->reason == row->reason &&
		    vmt_key_equal(&s->key, &row->key))
			return s;
	}
	return NULL;
}

void vmt_rule_evidence(const struct vmt_verdict_facts *f, const struct vmt_row *row, char *buf,
		       size_t size)
{
	const struct vmt_storm *storm = storm_of(f->report, row);
	char count[28], rate[28], peak[28], when[100] = "";

	if (storm)
		snprintf(when, sizeof(when), "; %s/s from %.3f to %.3f s",
			 vmt_verdict_number(peak, sizeof(peak), (uint64_t)storm->rate),
			 (double)(storm->from_ns - f->report->base_ns) / 1e9,
			 (double)(storm->to_ns - f->report->base_ns) / 1e9);
	vmt_verdict_number(count, sizeof(count), row->count);
	vmt_verdict_number(rate, sizeof(rate), (uint64_t)vmt_verdict_rate(f, row->count));
	if (row->timed)
		snprintf(buf, size,
			 "%s exits (%s/s%s) take %.1f %% of one vCPU's time, %.1f %% of it in %s; "
			 "longest %.3f ms",
			 count, rate, when, vmt_rule_cores(f, row->total_ns) * 100,
			 vmt_rule_ratio(row->userspace_ns, row->total_ns) * 100, f->vmm_name,
			 (double)row->max_ns / 1e6);
	else
		snprintf(buf, size, "%s exits (%s/s%s); their durations are not known", count, rate,
			 when);
}
