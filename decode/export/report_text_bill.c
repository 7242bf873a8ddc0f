// SPDX-License-Identifier: LGPL-2.1-or-later
/* The bill as text, and how far it can be trusted. */
#include "decode/export/report_text.h"

#include <stdio.h>
#include <string.h>

#include "decode/export/join.h"
#include "decode/export/names.h"

#define PARTS	    8u
#define LABEL_WIDTH 10u
#define CELL_WIDTH  8u

static const char *const part_names[PARTS] = { "guest",	 "exits",     "qemu",	 "poll",
					       "halted", "preempted", "stopped", "resid" };
static const char bar_letters[PARTS] = { 'G', 'E', 'Q', 'P', '.', 'R', 'S', '?' };

static void parts_of(const struct vmt_bill *b, uint64_t *parts)
{
	const uint64_t all[PARTS] = { b->guest_ns,     b->exits_ns,   b->userspace_ns,
				      b->halt_poll_ns, b->halted_ns,  b->preempted_ns,
				      b->stopped_ns,   b->residual_ns };

	memcpy(parts, all, sizeof(all));
}

/* "web01/3", the name cut where the vCPU would not fit; "vcpu 3" when there is one domain. */
void vmt_text_bill_label(char *buf, size_t size, const struct vmt_report *r,
			 const struct vmt_bill *bill)
{
	const char *name = vmt_domain_label(r->facts, bill->domain);

	if (bill->vcpu == UINT32_MAX)
		snprintf(buf, size, "tid %u", bill->tid);
	else if (r->facts->nr_domains > 1 && name)
		snprintf(buf, size, "%.*s/%u", (int)(LABEL_WIDTH - 4), name, bill->vcpu);
	else
		snprintf(buf, size, "vcpu %u", bill->vcpu);
}

/* Columns left for the bar. */
static unsigned int bar_width(const struct vmt_page *page)
{
	unsigned int used = LABEL_WIDTH + PARTS * CELL_WIDTH + 4;
	unsigned int width = page->width > used ? page->width - used : 0;

	return width < 16 ? 0 : width < 50 ? width : 50;
}

void vmt_text_bill_header(const struct vmt_page *page)
{
	vmt_out_repeat(page->out, ' ', LABEL_WIDTH);
	for (unsigned int i = 0; i < PARTS; i++)
		vmt_page_right(page, i == 5 ? "preempt" : part_names[i], CELL_WIDTH);
	if (bar_width(page))
		vmt_out_str(page->out, "  G E Q P . R S ?");
	vmt_out_char(page->out, '\n');
}

void vmt_text_bill_percent(const struct vmt_page *page, const char *label,
			   const struct vmt_bill *bill)
{
	uint64_t parts[PARTS], tenths[PARTS];
	unsigned int bar = bar_width(page);

	parts_of(bill, parts);
	vmt_apportion(parts, PARTS, bill->wall_ns, 1000, tenths);
	vmt_page_left(page, label, LABEL_WIDTH);
	for (unsigned int i = 0; i < PARTS; i++) {
		char text[24];

		snprintf(text, sizeof(text), "%llu.%llu%%", (unsigned long long)tenths[i] / 10,
			 (unsigned long long)tenths[i] % 10);
		vmt_page_right(page, i == 5 && !bill->has_switches ? "-" : text, CELL_WIDTH);
	}
	if (bar) {
		vmt_out_str(page->out, "  ");
		vmt_apportion(parts, PARTS, bill->wall_ns, bar, tenths);
		for (unsigned int i = 0; i < PARTS; i++)
			vmt_out_repeat(page->out, bar_letters[i], (size_t)tenths[i]);
	}
	vmt_out_char(page->out, '\n');
}

void vmt_text_bill_ms(const struct vmt_page *page, const char *label, const struct vmt_bill *bill)
{
	uint64_t parts[PARTS], tenths[PARTS];
	bool wide = bill->wall_ns >= UINT64_C(10000000000000); /* no decimals, no commas */

	parts_of(bill, parts);
	vmt_apportion(parts, PARTS, bill->wall_ns, bill->wall_ns / (wide ? 1000000 : 100000),
		      tenths);
	vmt_page_left(page, label, LABEL_WIDTH);
	for (unsigned int i = 0; i < PARTS; i++) {
		char text[32];

		if (wide)
			snprintf(text, sizeof(text), "%llu", (unsigned long long)tenths[i]);
		else
			snprintf(text, sizeof(text), "%llu.%llu",
				 (unsigned long long)tenths[i] / 10,
				 (unsigned long long)tenths[i] % 10);
		vmt_page_right(page, text, CELL_WIDTH);
	}
	vmt_out_char(page->out, '\n');
}

/* Classes below 0.05 % are left out. */
void vmt_text_classes(const struct vmt_page *page, const char *label, const struct vmt_bill *bill,
		      unsigned int max_lines)
{
	bool told[VMX_CLASS_COUNT] = { false };
	char text[800];
	size_t at = 0;

	for (;;) {
		unsigned int most = VMX_CLASS_COUNT;

		for (unsigned int c = 0; c < VMX_CLASS_COUNT; c++) {
			if (!told[c] && bill->class_ns[c] >= bill->wall_ns / 2000 + 1 &&
			    (most == VMX_CLASS_COUNT || bill->class_ns[c] > bill->class_ns[most]))
				most = c;
		}
		if (most == VMX_CLASS_COUNT || at + 64 > sizeof(text))
			break;
		told[most] = true;
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s %.1f %%", at ? ", " : "",
				       vmx_class_name((enum vmx_exit_class)most),
				       (double)bill->class_ns[most] * 100 / (double)bill->wall_ns);
	}
	if (at)
		vmt_page_wrap(page, VMT_STYLE_PLAIN, label, (unsigned int)strlen(label), text,
			      max_lines);
}

void vmt_text_bill(const struct vmt_page *page, const struct vmt_report *r)
{
	char text[200], label[32];

	vmt_out_char(page->out, '\n');
	vmt_page_line(page, VMT_STYLE_HEADING, "BILL (each vCPU: percent, milliseconds, exits)");
	vmt_text_bill_header(page);
	for (size_t i = 0; i < r->nr_bills; i++) {
		const struct vmt_bill *b = &r->bills[i];

		vmt_text_bill_label(label, sizeof(label), r, b);
		vmt_text_bill_percent(page, label, b);
		vmt_text_bill_ms(page, "  ms", b);
		snprintf(text, sizeof(text), "  wall %.3f ms, tid %u, %llu entries, %llu exits",
			 (double)b->wall_ns / 1e6, b->tid, (unsigned long long)b->entries,
			 (unsigned long long)b->exits);
		vmt_page_line(page, VMT_STYLE_PLAIN, text);
		vmt_text_classes(page, "  exits: ", b, 0);
	}
}

/* ---- how far to trust it ---- */

struct text {
	char bytes[1400];
	size_t at;
};

/* Adds "before N after" with the number in commas. */
static void add(struct text *t, const char *before, uint64_t n, const char *after)
{
	char count[28];

	vmt_count_text(count, sizeof(count), n);
	if (t->at < sizeof(t->bytes) - 160)
		t->at += (size_t)snprintf(t->bytes + t->at, sizeof(t->bytes) - t->at, "%s%s%s",
					  before, count, after);
}

static void say(struct text *t, const char *sentence)
{
	if (t->at < sizeof(t->bytes) - 400)
		t->at += (size_t)snprintf(t->bytes + t->at, sizeof(t->bytes) - t->at, "%s",
					  sentence);
}

/* vCPUs of the session that no event named. */
static size_t silent_vcpus(const struct vmt_report *r)
{
	size_t told = 0;

	for (size_t i = 0; i < r->facts->nr_domains; i++)
		told += r->facts->domains[i].nr_vcpus;
	return !r->filtered && told > r->nr_bills ? told - r->nr_bills : 0;
}

/* Whether a loss is told that the ledger does not count: a trace buffer that was full, a limit. */
static bool misses_events(const struct vmt_report *r)
{
	for (size_t i = 0; i < r->facts->nr_losses; i++) {
		const struct vmt_input_loss *l = &r->facts->losses[i];

		if (l->times && strcmp(l->kind, "auxtrace") != 0)
			return true;
	}
	return false;
}

static void add_losses(struct text *t, const struct vmt_report *r)
{
	const struct vmt_ledger *l = &r->ledger;
	bool whole = !l->records_lost && !l->bytes_skipped && !l->overflows && !l->truncated;

	if (whole && misses_events(r))
		add(t, "events are missing (see the findings); all ", l->bytes_total,
		    " bytes of the capture were read.");
	else if (whole)
		add(t, "complete: no record is lost, all ", l->bytes_total, " bytes were read.");
	if (l->records_lost || l->overflows) {
		add(t, "", l->records_lost, " records are lost");
		if (l->overflows)
			add(t, " in ", l->overflows, " overflows");
		if (t->at < sizeof(t->bytes) - 160)
			t->at += (size_t)snprintf(t->bytes + t->at, sizeof(t->bytes) - t->at,
						  " (%.2f %%). ",
						  (double)l->records_lost * 100 /
							  (double)(l->records_lost + r->records +
								   1));
	}
	if (l->bytes_skipped) {
		add(t, "", l->bytes_skipped, " of ");
		add(t, "", l->bytes_total, " bytes could not be read. ");
	}
	if (l->truncated && r->recording)
		say(t, "The capture is still being recorded. ");
	else if (l->truncated)
		say(t, "The capture is cut off at its end. ");
}

static void add_join(struct text *t, const struct vmt_input_facts *f)
{
	char join[320];

	if (f->has_pt && f->has_concealed && f->concealed)
		say(t, "Intel PT shows no virtual machine though one ran: it is concealed, and "
		       "exits are known by tracepoints alone. ");
	if (f->has_join) {
		say(t, vmt_join_text(join, sizeof(join), f));
		say(t, " ");
	}
}

void vmt_text_trust(const struct vmt_page *page, const struct vmt_report *r)
{
	struct text t = { .at = 0 };
	struct vmt_bill all;

	vmt_bill_sum(r, &all);
	add_losses(&t, r);
	if (t.at && t.bytes[t.at - 1] != ' ')
		say(&t, " ");
	if (all.wall_ns && t.at < sizeof(t.bytes) - 160)
		t.at += (size_t)snprintf(t.bytes + t.at, sizeof(t.bytes) - t.at,
					 "%.1f %% of the time is unexplained (residual). ",
					 (double)all.residual_ns * 100 / (double)all.wall_ns);
	if (r->facts->has_recorder_cpu && r->span_ns && t.at < sizeof(t.bytes) - 160)
		t.at += (size_t)snprintf(t.bytes + t.at, sizeof(t.bytes) - t.at,
					 "The recorder used %.1f ms of CPU (%.1f %% of one CPU",
					 (double)r->facts->recorder_cpu_ns / 1e6,
					 (double)r->facts->recorder_cpu_ns * 100 /
						 (double)r->span_ns);
	if (r->facts->has_recorder_cpu && r->facts->recorder_exits && t.at < sizeof(t.bytes) - 160)
		t.at += (size_t)snprintf(t.bytes + t.at, sizeof(t.bytes) - t.at,
					 ", %.0f ns an exit",
					 (double)r->facts->recorder_cpu_ns /
						 (double)r->facts->recorder_exits);
	if (r->facts->has_recorder_cpu && r->span_ns)
		say(&t, "). ");
	if (r->nr_bills && !all.has_switches)
		say(&t,
		    "Without context switches in the capture, preempted is not known and halted "
		    "is the time of HLT exits. ");
	if (r->facts->late)
		add(&t, "", r->facts->late, " records came out of order. ");
	add_join(&t, r->facts);
	if (r->rows_dropped)
		add(&t, "", r->rows_dropped, " exits stand in rows without key: too many keys. ");
	if (r->events_unbilled)
		add(&t, "", r->events_unbilled, " events are of vCPUs beyond the bill's bound. ");
	if (silent_vcpus(r))
		add(&t, "", silent_vcpus(r), " vCPUs had no event. ");
	if (t.at && t.bytes[t.at - 1] == ' ')
		t.bytes[t.at - 1] = '\0';
	vmt_page_wrap(page, VMT_STYLE_HEADING, "TRUST ", 6, t.bytes, 0);
}
