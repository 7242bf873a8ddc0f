// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The first 24 lines at 80 columns hold all three answers: the numbers in the comments below are
 * lines, at most.
 */
#include "decode/export/report_text.h"

#include <stdio.h>
#include <string.h>

#include "decode/analyze/rows.h"
#include "decode/base/key.h"
#include "decode/export/names.h"

#define FIRST_VCPUS 3u /* vCPUs in the opening table */

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? (double)part * 100 / (double)whole : 0;
}

/* 1: what this is about. */
static void write_title(const struct vmt_page *page, const struct vmt_report *r)
{
	char text[400], exits[28], rate[28], span[32];
	const char *name = vmt_domain_label(r->facts, 0);
	const char *isa = vmt_isa_name(r->facts->isa);
	size_t n = r->facts->nr_domains;
	char more[32] = "";

	if (n > 1)
		snprintf(more, sizeof(more), " and %zu more", n - 1);
	vmt_count_text(exits, sizeof(exits), r->exits);
	vmt_count_text(rate, sizeof(rate),
		       r->span_ns ? (uint64_t)((double)r->exits * 1e9 / (double)r->span_ns) : 0);
	vmt_time_text(span, sizeof(span), r->span_ns);
	snprintf(text, sizeof(text), "%.60s%s: %zu vCPU%s, %s, %s VM exits (%s/s)%s%s",
		 name ? name : "capture", more, r->nr_bills, r->nr_bills == 1 ? "" : "s", span,
		 exits, rate, isa ? ", " : "", isa ? isa : "");
	vmt_page_line(page, VMT_STYLE_HEADING, text);
}

/* The vCPUs that the opening shows: those whose time went least into guest and idling. */
static bool is_shown(const struct vmt_report *r, size_t index)
{
	const struct vmt_bill *b = &r->bills[index];
	uint64_t mine = b->wall_ns - b->guest_ns - b->halted_ns - b->residual_ns;
	size_t before = 0;

	for (size_t i = 0; i < r->nr_bills && r->nr_bills > FIRST_VCPUS; i++) {
		const struct vmt_bill *o = &r->bills[i];
		uint64_t other = o->wall_ns - o->guest_ns - o->halted_ns - o->residual_ns;

		before += other > mine || (other == mine && i < index);
	}
	return r->nr_bills <= FIRST_VCPUS || before + 1 < FIRST_VCPUS;
}

/* 2..9: where the time went. */
static void write_time(const struct vmt_page *page, const struct vmt_report *r)
{
	struct vmt_bill all;
	char label[32];

	vmt_page_line(page, VMT_STYLE_HEADING, "WHERE THE TIME WENT (percent of the wall time)");
	if (!r->nr_bills) {
		vmt_page_line(
			page, VMT_STYLE_PLAIN,
			"No entry or exit of a vCPU with a time is there: nothing can be told.");
		return;
	}
	vmt_text_bill_header(page);
	for (size_t i = 0; i < r->nr_bills; i++) {
		if (!is_shown(r, i))
			continue;
		vmt_text_bill_label(label, sizeof(label), r, &r->bills[i]);
		vmt_text_bill_percent(page, label, &r->bills[i]);
	}
	vmt_bill_sum(r, &all);
	if (r->nr_bills > 1) {
		snprintf(label, sizeof(label), "all %zu", r->nr_bills);
		vmt_text_bill_percent(page, label, &all);
	}
	vmt_text_bill_ms(page, "ms", &all);
	vmt_text_classes(page, "exits by class: ", &all, 1);
}

/* What a row is about, by what tells the rows apart. */
static const char *subject_of(char *buf, size_t size, const struct vmt_report *r,
			      const struct vmt_row *row)
{
	if (row->has_reason)
		return vmt_text_reason(buf, size, row);
	if (row->key.kind != VMT_KEY_NONE)
		return "";
	if (r->by & VMT_ROWS_BY_RIP)
		return "one instruction";
	if (row->vcpu == UINT32_MAX)
		return "exits without key";
	snprintf(buf, size, "vcpu %u", row->vcpu);
	return buf;
}

/* 10, 11: the exits that are most in number, and the instruction behind them. */
static void write_most(const struct vmt_page *page, const struct vmt_report *r)
{
	const struct vmt_row *most = NULL;
	char reason[64], key[VMT_KEY_TEXT_MAX], count[28], text[400], rip[220] = "";
	const char *name;

	for (size_t i = 0; i < r->nr_rows; i++) {
		if (!r->rows[i].failed_entry && (!most || r->rows[i].count > most->count))
			most = &r->rows[i];
	}
	if (!most)
		return;
	name = vmt_key_name(&most->key);
	vmt_count_text(count, sizeof(count), most->count);
	snprintf(text, sizeof(text), "%s%s%s%s%s%s: %s, %.1f %%",
		 subject_of(reason, sizeof(reason), r, most),
		 most->key.kind == VMT_KEY_NONE || !most->has_reason ? "" : " ",
		 vmt_key_format(key, sizeof(key), &most->key), name ? " (" : "", name ? name : "",
		 name ? ")" : "", count, percent(most->count, r->exits));
	vmt_page_wrap(page, VMT_STYLE_PLAIN, "most exits:     ", 16, text, 1);
	if (vmt_text_rip(rip, sizeof(rip), most))
		vmt_page_wrap(page, VMT_STYLE_PLAIN, "  instruction:  ", 16, rip, 1);
}

static enum vmt_text_style style_of(enum vmt_severity severity)
{
	return severity == VMT_SEVERITY_CRITICAL ? VMT_STYLE_CRITICAL
	       : severity == VMT_SEVERITY_WARN	 ? VMT_STYLE_WARN
						 : VMT_STYLE_HEADING;
}

/* Lines for text, evidence and remedy; 0: no limit. True when something was left out. */
struct limits {
	unsigned int text, evidence, remedy;
};

static bool write_verdict(const struct vmt_page *page, const struct vmt_verdict *v,
			  const char *heading, struct limits limits)
{
	char label[80];
	bool cut;

	snprintf(label, sizeof(label), "%s[%s] %s: ", heading, vmt_severity_name(v->severity),
		 v->id);
	cut = vmt_page_wrap(page, style_of(v->severity), label, 2, v->text, limits.text);
	cut |= vmt_page_wrap(page, VMT_STYLE_PLAIN, "  Evidence: ", 12, v->evidence,
			     limits.evidence);
	cut |= vmt_page_wrap(page, VMT_STYLE_PLAIN, "  To do:    ", 12, v->remedy, limits.remedy);
	return cut;
}

/* 12..20: the top finding. */
static bool write_top(const struct vmt_page *page, const struct vmt_report *r)
{
	const struct limits limits = { 3, 2, 3 };

	vmt_out_char(page->out, '\n');
	if (r->nr_verdicts)
		return write_verdict(page, &r->verdicts[0], "TOP FINDING ", limits);
	vmt_page_line(page, VMT_STYLE_HEADING, "TOP FINDING none: nothing stands out");
	return false;
}

/* The others, and the top one again where it was cut short. */
static void write_findings(const struct vmt_page *page, const struct vmt_report *r, bool with_top)
{
	const struct limits all = { 0, 0, 0 };

	if (r->nr_verdicts < (with_top ? 1u : 2u))
		return;
	vmt_out_char(page->out, '\n');
	vmt_page_line(page, VMT_STYLE_HEADING, with_top ? "FINDINGS" : "OTHER FINDINGS");
	for (size_t i = with_top ? 0 : 1; i < r->nr_verdicts; i++)
		write_verdict(page, &r->verdicts[i], "", all);
}

void vmt_report_text(struct vmt_out *out, const struct vmt_report *report,
		     const struct vmt_report_view *view)
{
	struct vmt_page page = { .out = out, .width = view->width, .color = view->color };
	bool top_cut;

	if (page.width < VMT_TEXT_WIDTH_MIN)
		page.width = VMT_TEXT_WIDTH_MIN;
	if (page.width > VMT_TEXT_WIDTH_MAX)
		page.width = VMT_TEXT_WIDTH_MAX;
	write_title(&page, report);
	write_time(&page, report);
	write_most(&page, report);
	top_cut = write_top(&page, report);
	vmt_text_trust(&page, report);
	write_findings(&page, report, top_cut);
	if (view->bill)
		vmt_text_bill(&page, report);
	if (view->storms)
		vmt_text_storms(&page, report);
	vmt_text_rows(&page, report);
}
