// SPDX-License-Identifier: LGPL-2.1-or-later
/* The tables of rows and storms. A line of a table is never wider than the page. */
#include "decode/export/report_text.h"

#include <stdio.h>
#include <string.h>

#include "decode/analyze/rows.h"
#include "decode/base/key.h"
#include "decode/export/names.h"

#define WIDE	  120u /* from here on: minimum, 95 %, maximum */
#define VERY_WIDE 160u /* and the instruction beside the row */

char *vmt_text_reason(char *buf, size_t size, const struct vmt_row *row)
{
	char name[32] = "any reason", flags[96] = "";

	if (row->has_reason)
		vmx_reason_text(name, sizeof(name), row->isa == VMT_ISA_SVM, row->reason);
	if (row->reason_flags && !row->failed_entry && row->isa != VMT_ISA_SVM)
		vmx_reason_flags_text(flags, sizeof(flags), row->reason_flags);
	snprintf(buf, size, "%s%s%s%.24s%s", row->nested ? "L2 " : "", name, flags[0] ? "|" : "",
		 flags, row->failed_entry ? " (failed)" : "");
	return buf;
}

bool vmt_text_rip(char *buf, size_t size, const struct vmt_row *row)
{
	char symbol[100] = "";

	if (!row->has_rip)
		return false;
	if (row->rip_symbol)
		snprintf(symbol, sizeof(symbol), " %.60s+0x%llx", row->rip_symbol,
			 (unsigned long long)row->rip_symbol_offset);
	snprintf(buf, size, "0x%llx%s (%s%.1f %% of them)", (unsigned long long)row->guest_rip,
		 symbol, row->rip_is_bound ? ">= " : "",
		 (double)row->rip_count * 100 / (double)(row->count ? row->count : 1));
	return true;
}

struct columns {
	unsigned int vcpu, reason, key, count;
	bool wide, very_wide;
};

static struct columns columns_of(const struct vmt_page *page, const struct vmt_report *r)
{
	struct columns c = { .wide = page->width >= WIDE, .very_wide = page->width >= VERY_WIDE };

	c.vcpu = r->by & VMT_ROWS_BY_VCPU ? 10 : 0;
	c.reason = c.wide ? 20 : c.vcpu ? 14 : 18;
	c.key = c.wide ? 20 : c.vcpu ? 12 : 18;
	c.count = c.wide ? 12 : 10;
	return c;
}

static void write_header(const struct vmt_page *page, struct columns c)
{
	if (c.vcpu)
		vmt_page_left(page, "vcpu", c.vcpu);
	vmt_page_left(page, "reason", c.reason);
	vmt_out_char(page->out, ' ');
	vmt_page_left(page, "key", c.key);
	vmt_page_right(page, "count", c.count);
	vmt_page_right(page, "time", 6);
	vmt_page_right(page, "total", 9);
	if (c.wide)
		vmt_page_right(page, "min", 9);
	vmt_page_right(page, "p50", 9);
	if (c.wide)
		vmt_page_right(page, "p95", 9);
	vmt_page_right(page, "p99", 9);
	if (c.wide)
		vmt_page_right(page, "max", 9);
	vmt_out_str(page->out, c.very_wide ? "  instruction\n" : "\n");
}

static void write_time(const struct vmt_page *page, bool known, uint64_t ns)
{
	char text[32];

	vmt_page_right(page, known ? vmt_time_text(text, sizeof(text), ns) : "-", 9);
}

static void write_times(const struct vmt_page *page, const struct vmt_row *row, struct columns c,
			uint64_t wall_ns)
{
	bool timed = row->timed > 0, ranked = timed && row->has_percentiles;
	char share[24] = "-";

	if (timed && wall_ns)
		snprintf(share, sizeof(share), "%.1f%%",
			 (double)row->total_ns * 100 / (double)wall_ns);
	vmt_page_right(page, share, 6);
	write_time(page, timed, row->total_ns);
	if (c.wide)
		write_time(page, timed, row->min_ns);
	write_time(page, ranked, row->p50_ns);
	if (c.wide)
		write_time(page, ranked, row->p95_ns);
	write_time(page, ranked, row->p99_ns);
	if (c.wide)
		write_time(page, timed, row->max_ns);
}

/* What is behind a row: the name of the key, and an instruction that has a tenth of it. */
static bool origin_of(char *buf, size_t size, const struct vmt_row *row)
{
	const char *name = vmt_key_name(&row->key);
	char rip[220];
	bool has_rip = row->rip_count >= row->count / 10 && vmt_text_rip(rip, sizeof(rip), row);

	snprintf(buf, size, "%s%s%s%s", name ? name : "", name && has_rip ? ", " : "",
		 has_rip ? "at " : "", has_rip ? rip : "");
	return name || has_rip;
}

static void write_row(const struct vmt_page *page, const struct vmt_report *r,
		      const struct vmt_row *row, struct columns c, uint64_t wall_ns)
{
	char text[300];

	if (c.vcpu) {
		struct vmt_bill of = { .domain = row->domain, .vcpu = row->vcpu };

		if (row->vcpu == UINT32_MAX)
			snprintf(text, sizeof(text), "?");
		else
			vmt_text_bill_label(text, sizeof(text), r, &of);
		vmt_page_left(page, text, c.vcpu);
	}
	vmt_page_left(page, vmt_text_reason(text, sizeof(text), row), c.reason);
	vmt_out_char(page->out, ' ');
	vmt_page_left(page, vmt_key_format(text, sizeof(text), &row->key), c.key);
	vmt_page_right(page, vmt_count_text(text, sizeof(text), row->count), c.count);
	write_times(page, row, c, wall_ns);
	if (!origin_of(text, sizeof(text), row)) {
		vmt_out_char(page->out, '\n');
	} else if (c.very_wide) {
		unsigned int used = c.vcpu + c.reason + 1 + c.key + c.count + 6 + 6 * 9;

		vmt_page_wrap(&(struct vmt_page){ .out = page->out, .width = page->width - used },
			      VMT_STYLE_PLAIN, "  ", 2, text, 1);
	} else {
		vmt_out_char(page->out, '\n');
		vmt_page_wrap(page, VMT_STYLE_DIM, "    ", 4, text, 1);
	}
}

void vmt_text_rows(const struct vmt_page *page, const struct vmt_report *r)
{
	struct columns c = columns_of(page, r);
	size_t shown = r->nr_rows < VMT_TEXT_ROWS ? r->nr_rows : VMT_TEXT_ROWS;
	struct vmt_bill all;
	char text[120];

	vmt_bill_sum(r, &all);
	vmt_out_char(page->out, '\n');
	vmt_page_line(page, VMT_STYLE_HEADING,
		      "EXITS (exit to the next entry; time: percent of all vCPUs' wall time)");
	if (!r->nr_rows) {
		vmt_page_line(page, VMT_STYLE_PLAIN, "none");
		return;
	}
	write_header(page, c);
	for (size_t i = 0; i < shown; i++)
		write_row(page, r, &r->rows[i], c, all.wall_ns);
	if (shown < r->nr_rows) {
		snprintf(text, sizeof(text), "... and %zu rows more (--format json or csv has all)",
			 r->nr_rows - shown);
		vmt_page_line(page, VMT_STYLE_PLAIN, text);
	}
}

static void write_storm(const struct vmt_page *page, const struct vmt_report *r,
			const struct vmt_storm *s)
{
	struct vmt_row row = { .isa = s->isa, .has_reason = true, .reason = s->reason };
	char text[100];

	snprintf(text, sizeof(text), "%.3f s", (double)(s->from_ns - r->base_ns) / 1e9);
	vmt_page_right(page, text, 12);
	snprintf(text, sizeof(text), "%.3f s", (double)(s->to_ns - r->base_ns) / 1e9);
	vmt_page_right(page, text, 12);
	vmt_page_right(page, vmt_count_text(text, sizeof(text), (uint64_t)s->rate), 10);
	vmt_page_right(page, vmt_count_text(text, sizeof(text), (uint64_t)s->rate_before), 9);
	vmt_out_char(page->out, ' ');
	vmt_page_left(page, vmt_text_reason(text, sizeof(text), &row), 18);
	vmt_out_char(page->out, ' ');
	vmt_page_left(page, vmt_key_format(text, sizeof(text), &s->key), 16);
	vmt_out_char(page->out, '\n');
}

void vmt_text_storms(const struct vmt_page *page, const struct vmt_report *r)
{
	vmt_out_char(page->out, '\n');
	vmt_page_line(page, VMT_STYLE_HEADING,
		      "STORMS (where the rate of an exit jumps; times from the capture's start)");
	if (!r->nr_storms) {
		vmt_page_line(page, VMT_STYLE_PLAIN, "none");
		return;
	}
	vmt_page_right(page, "from", 12);
	vmt_page_right(page, "to", 12);
	vmt_page_right(page, "rate/s", 10);
	vmt_page_right(page, "before", 9);
	vmt_out_str(page->out, " reason             key\n");
	for (size_t i = 0; i < r->nr_storms; i++)
		write_storm(page, r, &r->storms[i]);
}
