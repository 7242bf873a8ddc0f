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

/* Widths of the columns; 0: the rows are not told apart by it. */
struct columns {
	unsigned int vcpu, reason, key, rip, count;
	bool p50, p99; /* left out where a long key needs the room */
	bool wide, very_wide;
};

static unsigned int total_width(struct columns c)
{
	return c.vcpu + c.reason + 1 + c.key + c.rip + c.count + 6 + 9 + (c.p50 ? 9 : 0) +
	       (c.p99 ? 9 : 0) + (c.wide ? 3 * 9 : 0);
}

/* Room for the longest key of the rows: a key is never cut. */
static unsigned int key_width(const struct vmt_row *rows, size_t shown)
{
	char text[VMT_KEY_TEXT_MAX];
	size_t most = 4;

	for (size_t i = 0; i < shown; i++) {
		size_t n = strlen(vmt_key_format(text, sizeof(text), &rows[i].key));

		most = n > most ? n : most;
	}
	return (unsigned int)most + 1;
}

static struct columns columns_of(const struct vmt_page *page, unsigned int by,
				 const struct vmt_row *rows, size_t shown)
{
	struct columns c = { .wide = page->width >= WIDE,
			     .very_wide = page->width >= VERY_WIDE,
			     .p50 = true,
			     .p99 = true };
	unsigned int usual;

	c.vcpu = by & VMT_ROWS_BY_VCPU ? 10 : 0;
	if (by & VMT_ROWS_BY_REASON)
		c.reason = c.wide ? 20 : c.vcpu ? 14 : 18;
	if (by & VMT_ROWS_BY_KEY) {
		usual = c.wide ? 20 : c.vcpu ? 12 : 18;
		c.key = key_width(rows, shown);
		c.key = c.key < usual ? usual : c.key;
	}
	if ((by & VMT_ROWS_BY_RIP) && !c.reason && !c.key)
		c.rip = c.vcpu ? 22 : 32;
	c.count = c.wide ? 12 : 10;
	c.p50 = total_width(c) <= page->width;
	c.p99 = total_width(c) <= page->width;
	return c;
}

static void write_header(const struct vmt_page *page, struct columns c)
{
	if (c.vcpu)
		vmt_page_left(page, "vcpu", c.vcpu);
	if (c.reason) {
		vmt_page_left(page, "reason", c.reason);
		vmt_out_char(page->out, ' ');
	}
	if (c.key)
		vmt_page_left(page, "key", c.key);
	if (c.rip)
		vmt_page_left(page, "instruction", c.rip);
	vmt_page_right(page, "count", c.count);
	vmt_page_right(page, "time", 6);
	vmt_page_right(page, "total", 9);
	if (c.wide)
		vmt_page_right(page, "min", 9);
	if (c.p50)
		vmt_page_right(page, "p50", 9);
	if (c.wide)
		vmt_page_right(page, "p95", 9);
	if (c.p99)
		vmt_page_right(page, "p99", 9);
	if (c.wide)
		vmt_page_right(page, "max", 9);
	vmt_out_str(page->out, c.very_wide && !c.rip ? "  instruction\n" : "\n");
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
	if (c.p50)
		write_time(page, ranked, row->p50_ns);
	if (c.wide)
		write_time(page, ranked, row->p95_ns);
	if (c.p99)
		write_time(page, ranked, row->p99_ns);
	if (c.wide)
		write_time(page, timed, row->max_ns);
}

/* The instruction of a row by instruction: it has all of the row's exits. */
static bool own_rip(char *buf, size_t size, const struct vmt_row *row)
{
	if (!row->has_rip)
		return false;
	if (row->rip_symbol)
		snprintf(buf, size, "0x%llx %.60s+0x%llx", (unsigned long long)row->guest_rip,
			 row->rip_symbol, (unsigned long long)row->rip_symbol_offset);
	else
		snprintf(buf, size, "0x%llx", (unsigned long long)row->guest_rip);
	return true;
}

/* What is behind a row: the name of the key, and an instruction that has a tenth of it. */
static bool origin_of(char *buf, size_t size, const struct vmt_report *r, const struct vmt_row *row)
{
	const char *name = vmt_key_name(&row->key);
	char rip[220];
	bool has_rip = row->rip_count >= row->count / 10 &&
		       (r->by & VMT_ROWS_BY_RIP ? own_rip(rip, sizeof(rip), row)
						: vmt_text_rip(rip, sizeof(rip), row));

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
	if (c.reason) {
		vmt_page_left(page, vmt_text_reason(text, sizeof(text), row), c.reason);
		vmt_out_char(page->out, ' ');
	}
	if (c.key) {
		vmt_key_format(text, sizeof(text), &row->key);
		vmt_page_left(page, text[0] || c.reason ? text : "none", c.key);
	}
	if (c.rip)
		vmt_page_left(page, own_rip(text, sizeof(text), row) ? text : "?", c.rip);
	vmt_page_right(page, vmt_count_text(text, sizeof(text), row->count), c.count);
	write_times(page, row, c, wall_ns);
	if (c.rip || !origin_of(text, sizeof(text), r, row)) {
		vmt_out_char(page->out, '\n');
	} else if (c.very_wide) {
		unsigned int used = total_width(c);

		vmt_page_wrap(&(struct vmt_page){ .out = page->out, .width = page->width - used },
			      VMT_STYLE_PLAIN, "  ", 2, text, 1);
	} else {
		vmt_out_char(page->out, '\n');
		vmt_page_wrap(page, VMT_STYLE_DIM, "    ", 4, text, 1);
	}
}

/* What there is of a KVM that raises no kvm_exit. */
static void write_returns(const struct vmt_page *page, const struct vmt_report *r)
{
	size_t shown = r->nr_returns < VMT_TEXT_ROWS ? r->nr_returns : VMT_TEXT_ROWS;
	unsigned int width = key_width(r->returns, shown);

	vmt_out_char(page->out, '\n');
	vmt_page_line(page, VMT_STYLE_HEADING,
		      "RETURNS TO QEMU (user:N) AND RECORDS OF KVM, BY KEY (no VM exit is told)");
	for (size_t i = 0; i < shown; i++) {
		const char *name = vmt_key_name(&r->returns[i].key);
		char text[VMT_KEY_TEXT_MAX], count[28];

		vmt_page_left(page, vmt_key_format(text, sizeof(text), &r->returns[i].key), width);
		vmt_page_right(page, vmt_count_text(count, sizeof(count), r->returns[i].count), 12);
		vmt_out_str(page->out, name ? "  " : "");
		vmt_out_safe(page->out, name ? name : "");
		vmt_out_char(page->out, '\n');
	}
	if (shown < r->nr_returns)
		vmt_page_line(page, VMT_STYLE_PLAIN, "... (--format json has all)");
}

void vmt_text_rows(const struct vmt_page *page, const struct vmt_report *r)
{
	size_t shown = r->nr_rows < VMT_TEXT_ROWS ? r->nr_rows : VMT_TEXT_ROWS;
	struct columns c = columns_of(page, r->by, r->rows, shown);
	struct vmt_bill all;
	char text[120];

	if (r->nr_returns) {
		write_returns(page, r);
		return;
	}
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
