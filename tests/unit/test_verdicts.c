// SPDX-License-Identifier: LGPL-2.1-or-later
/* Each finding on a stream that has it, and on a near one that does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decode/analyze/verdicts.h"
#include "tests/support/events.h"

#define SEC UINT64_C(1000000000)
#define RIP UINT64_C(0xffffffff81012345)

/* A stream of one second by default: exits evenly spread, guest time between them. */
struct plan {
	uint64_t rate; /* exits a second */
	uint64_t seconds;
	uint64_t duration_ns;
	uint32_t reason;
	struct vmt_key key;
	unsigned int rips; /* different instructions */
	uint64_t user_ns, poll_ns, blocked_ns, preempted_ns;
	bool failed;
};

struct run {
	struct vmt_report_builder *b;
	struct vmt_input_facts facts;
	struct vmt_ledger ledger;
	const struct vmt_report *report;
};

static struct run begin(void)
{
	struct vmt_report_options o = vmt_make_options();
	struct run r = { .b = vmt_report_new(&o),
			 .facts = vmt_make_facts(0, SEC, 1),
			 .ledger = vmt_make_ledger(1000) };

	assert_non_null(r.b);
	return r;
}

static void feed(struct run *r, const struct plan *p)
{
	uint64_t stop = (p->seconds ? p->seconds : 1) * SEC;
	struct vmt_event first = vmt_make_entry(0, 0);

	vmt_report_event(r->b, &first);
	for (uint64_t t = 0, i = 0; t + p->duration_ns < stop; t += SEC / p->rate, i++) {
		struct vmt_event e = vmt_make_exit(0, t, p->duration_ns, p->reason,
						   RIP + i % (p->rips ? p->rips : 1));

		e.key = p->key;
		e.userspace_part_ns = p->user_ns;
		e.halt_poll_part_ns = p->poll_ns;
		e.blocked_part_ns = p->blocked_ns;
		e.preempted_part_ns = p->preempted_ns;
		e.failed_entry = p->failed;
		vmt_feed_exit(r->b, e);
	}
	r->facts.stop_ns = stop;
}

static const char *symbol(void *context, uint64_t rip, uint64_t *offset)
{
	(void)context;
	*offset = rip & 0xf;
	return "acpi_pm_read";
}

static void finish(struct run *r)
{
	r->report = vmt_report_finish(r->b, &r->facts, r->ledger, symbol, NULL);
	assert_non_null(r->report);
}

static struct run run_of(const struct plan *p)
{
	struct run r = begin();

	feed(&r, p);
	finish(&r);
	return r;
}

static void expect(const struct plan *p, const char *id, bool there, enum vmt_severity severity)
{
	struct run r = run_of(p);
	const struct vmt_verdict *v = vmt_verdict_of(r.report, id);

	if (there) {
		assert_non_null(v);
		assert_int_equal(v->severity, severity);
		assert_true(v->text[0] && v->evidence[0] && v->remedy[0]);
	} else {
		assert_null(v);
	}
	vmt_report_free(r.b);
}

static void rip_loop(void **state)
{
	struct plan p = { .rate = 50000,
			  .duration_ns = 8000,
			  .reason = 30,
			  .key = vmt_make_key(VMT_KEY_PORT, 0x608, VMT_ACCESS_READ) };
	struct run r = run_of(&p);
	const struct vmt_verdict *v = vmt_verdict_of(r.report, "rip-loop");

	(void)state;
	assert_non_null(v);
	assert_ptr_equal(v, &r.report->verdicts[0]);
	assert_int_equal(v->severity, VMT_SEVERITY_CRITICAL);
	assert_non_null(strstr(v->text, "acpi_pm_read+0x5 (0xffffffff81012345)"));
	assert_non_null(strstr(v->text, "port:0x608:in (ACPI PM timer)"));
	assert_non_null(strstr(v->remedy, "clocksource"));
	assert_null(vmt_verdict_of(r.report, "clocksource")); /* told once */
	assert_null(vmt_verdict_of(r.report, "not-exits"));
	vmt_report_free(r.b);

	p.rate = 3000; /* as many, but they cost nothing */
	p.duration_ns = 800;
	expect(&p, "rip-loop", false, 0);
	p.duration_ns = 8000;
	p.rate = 900; /* too slow to matter */
	expect(&p, "rip-loop", false, 0);
	p.rate = 50000;
	p.rips = 16; /* no single instruction */
	expect(&p, "rip-loop", false, 0);
	p.rips = 1;
	p.reason = 12; /* the idle loop is always the same instruction */
	p.key = (struct vmt_key){ 0 };
	expect(&p, "rip-loop", false, 0);
}

static void clocksource(void **state)
{
	struct plan p = { .rate = 20000,
			  .duration_ns = 8000,
			  .reason = 48,
			  .rips = 16,
			  .key = vmt_make_key(VMT_KEY_GPA, 0xfed000f0, VMT_ACCESS_READ) };

	(void)state;
	expect(&p, "clocksource", true, VMT_SEVERITY_WARN);
	p.key.access = VMT_ACCESS_WRITE;
	expect(&p, "clocksource", false, 0);
	p.key.access = VMT_ACCESS_READ;
	p.rate = 100;
	expect(&p, "clocksource", false, 0);
}

static void halt_poll(void **state)
{
	struct plan p = { .rate = 2000,
			  .duration_ns = 400000,
			  .reason = 12,
			  .poll_ns = 200000,
			  .blocked_ns = 190000 };

	(void)state;
	expect(&p, "halt-poll", true, VMT_SEVERITY_CRITICAL);
	p.poll_ns = 60000;
	p.blocked_ns = 330000;
	expect(&p, "halt-poll", true, VMT_SEVERITY_WARN);
	p.poll_ns = 10000;
	expect(&p, "halt-poll", false, 0);
}

static void irq_storm_of_the_host(void **state)
{
	struct plan p = { .rate = 8000,
			  .duration_ns = 2000,
			  .reason = 1,
			  .rips = 1000,
			  .key = vmt_make_key(VMT_KEY_VECTOR, 236, VMT_ACCESS_NONE) };

	(void)state;
	expect(&p, "irq-storm", true, VMT_SEVERITY_WARN);
	p.rate = 40000;
	expect(&p, "irq-storm", true, VMT_SEVERITY_CRITICAL);
	p.rate = 1000; /* a tick */
	expect(&p, "irq-storm", false, 0);
}

static void irq_storm_in_the_guest(void **state)
{
	(void)state;
	for (unsigned int rate = 1000; rate <= 10000; rate += 9000) {
		struct run r = begin();
		const struct vmt_verdict *v;

		for (unsigned int i = 0; i < rate; i++) {
			struct vmt_event e = vmt_make_entry(0, i * (SEC / rate));

			e.type = VMT_EVENT_INJECT;
			e.has |= VMT_HAS_VECTOR;
			e.vector = 41;
			vmt_report_event(r.b, &e);
		}
		finish(&r);
		v = vmt_verdict_of(r.report, "irq-storm");
		assert_int_equal(v != NULL, rate > 5000);
		if (v)
			assert_non_null(strstr(v->text, "Vector 41 (0x29)"));
		vmt_report_free(r.b);
	}
}

static void not_exits(void **state)
{
	struct plan p = { .rate = 1000, .duration_ns = 3000, .reason = 32 };
	struct run r = run_of(&p);
	const struct vmt_verdict *v = vmt_verdict_of(r.report, "not-exits");

	(void)state;
	assert_non_null(v);
	assert_non_null(strstr(v->text, "runs in the guest"));
	vmt_report_free(r.b);
	p.duration_ns = 100000; /* 10 % in exits */
	expect(&p, "not-exits", false, 0);
	p.blocked_ns = 99000;
	p.duration_ns = 100000;
	p.rate = 9000;
	r = run_of(&p);
	v = vmt_verdict_of(r.report, "not-exits");
	assert_non_null(v);
	assert_non_null(strstr(v->text, "halted"));
	vmt_report_free(r.b);
}

static void preempted(void **state)
{
	struct plan p = {
		.rate = 100, .duration_ns = 4000000, .reason = 1, .preempted_ns = 3500000
	};

	(void)state;
	expect(&p, "preempted", true, VMT_SEVERITY_CRITICAL);
	p.preempted_ns = 1000000;
	expect(&p, "preempted", true, VMT_SEVERITY_WARN);
	p.preempted_ns = 100000;
	expect(&p, "preempted", false, 0);
}

static void userspace(void **state)
{
	struct plan p = { .rate = 10000,
			  .duration_ns = 50000,
			  .reason = 30,
			  .rips = 16,
			  .user_ns = 45000,
			  .key = vmt_make_key(VMT_KEY_PORT, 0x3f8, VMT_ACCESS_WRITE) };
	struct run r = run_of(&p);
	const struct vmt_verdict *v = vmt_verdict_of(r.report, "userspace");

	(void)state;
	assert_non_null(v);
	assert_int_equal(v->severity, VMT_SEVERITY_CRITICAL);
	assert_non_null(strstr(v->text, "port:0x3f8:out (COM1)"));
	assert_non_null(strstr(v->remedy, "virtio console"));
	vmt_report_free(r.b);
	p.user_ns = 1000;
	expect(&p, "userspace", false, 0);
}

static void memory_faults(void **state)
{
	struct plan p = { .rate = 20000, .duration_ns = 10000, .reason = 48, .rips = 64 };

	(void)state;
	expect(&p, "memory-faults", true, VMT_SEVERITY_WARN);
	p.rate = 1000;
	expect(&p, "memory-faults", false, 0);
}

static void spin(void **state)
{
	struct plan p = { .rate = 9000, .duration_ns = 2000, .reason = 40, .rips = 8 };

	(void)state;
	expect(&p, "spin", true, VMT_SEVERITY_WARN);
	p.rate = 1000;
	expect(&p, "spin", false, 0);
}

static void tsc(void **state)
{
	struct plan p = { .rate = 9000, .duration_ns = 2000, .reason = 16, .rips = 8 };
	struct run r;

	(void)state;
	expect(&p, "tsc-exits", true, VMT_SEVERITY_WARN);
	p.reason = 10;
	expect(&p, "tsc-exits", false, 0);
	expect(&p, "tsc-writes", false, 0);
	for (unsigned int n = 1; n <= 100; n += 99) {
		r = begin();
		for (unsigned int i = 0; i < n; i++) {
			struct vmt_event e = vmt_make_entry(0, SEC / 100 * i);

			e.type = VMT_EVENT_TSC_WRITE;
			vmt_report_event(r.b, &e);
		}
		finish(&r);
		assert_non_null(vmt_verdict_of(r.report, "tsc-writes"));
		assert_int_equal(vmt_verdict_of(r.report, "tsc-writes")->severity,
				 n == 1 ? VMT_SEVERITY_NOTE : VMT_SEVERITY_WARN);
		vmt_report_free(r.b);
	}
}

static void failed_entry(void **state)
{
	struct plan p = { .rate = 10, .duration_ns = 2000, .reason = 33, .failed = true };
	struct run r = run_of(&p);
	const struct vmt_verdict *v = vmt_verdict_of(r.report, "failed-entry");

	(void)state;
	assert_non_null(v);
	assert_int_equal(v->severity, VMT_SEVERITY_CRITICAL);
	assert_int_equal(r.report->exits, 0);
	assert_int_equal(r.report->failed_entries, 10);
	vmt_report_free(r.b);
	p.failed = false;
	expect(&p, "failed-entry", false, 0);
}

static void trust(void **state)
{
	struct plan p = { .rate = 1000, .duration_ns = 3000, .reason = 32 };
	struct run r = begin();

	(void)state;
	feed(&r, &p);
	r.ledger.truncated = true;
	r.ledger.records_lost = 500;
	r.ledger.overflows = 2;
	finish(&r);
	assert_non_null(vmt_verdict_of(r.report, "truncated"));
	assert_non_null(vmt_verdict_of(r.report, "loss"));
	assert_int_equal(vmt_verdict_of(r.report, "loss")->severity, VMT_SEVERITY_CRITICAL);
	vmt_report_free(r.b);
	expect(&p, "truncated", false, 0);
	expect(&p, "loss", false, 0);
	expect(&p, "residual", false, 0);
	expect(&p, "no-exits", false, 0);

	r = begin(); /* half of the time is before the first event */
	r.facts.stop_ns = 2 * SEC;
	{
		struct vmt_event e = vmt_make_entry(0, SEC);

		vmt_report_event(r.b, &e);
	}
	finish(&r);
	assert_non_null(vmt_verdict_of(r.report, "residual"));
	assert_non_null(vmt_verdict_of(r.report, "no-exits"));
	vmt_report_free(r.b);
}

/* What is missing is told by its reason, and the end of a file that grows is not cut off. */
static void loss_by_kind(void **state)
{
	static const struct {
		const char *kind, *remedy;
		uint64_t records, bytes;
		enum vmt_severity severity;
	} rows[] = {
		{ "ring", "--buffer", 500, 0, VMT_SEVERITY_CRITICAL },
		{ "ring-full", "--buffer", 500, 0, VMT_SEVERITY_CRITICAL },
		{ "size-limit", "--limit", 500, 900, VMT_SEVERITY_WARN },
		{ "no-space", "Free some space", 500, 0, VMT_SEVERITY_WARN },
		{ "free-space", "Free some space", 500, 0, VMT_SEVERITY_WARN },
		{ "io-error", "kernel log", 500, 0, VMT_SEVERITY_WARN },
		{ "damaged", "Copy the file again", 0, 900, VMT_SEVERITY_CRITICAL },
		{ "auxtrace", "tracepoints", 0, 900, VMT_SEVERITY_NOTE },
		{ NULL, "Copy the file again", 0, 900, VMT_SEVERITY_CRITICAL },
	};
	struct plan p = { .rate = 1000, .duration_ns = 3000, .reason = 32 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct run r = begin();
		const struct vmt_verdict *v;

		feed(&r, &p);
		r.ledger.records_lost = rows[i].records;
		r.ledger.bytes_skipped = rows[i].bytes;
		if (rows[i].kind) {
			r.facts.nr_losses = 1;
			r.facts.losses[0] =
				(struct vmt_input_loss){ rows[i].kind, 1, rows[i].records,
							 rows[i].bytes };
		}
		finish(&r);
		v = vmt_verdict_of(r.report, "loss");
		assert_non_null(v);
		assert_int_equal(v->severity, rows[i].severity);
		assert_non_null(strstr(v->remedy, rows[i].remedy));
		if (rows[i].kind)
			assert_non_null(strstr(v->evidence, rows[i].kind));
		vmt_report_free(r.b);
	}
}

static void end_of_the_file(void **state)
{
	struct plan p = { .rate = 1000, .duration_ns = 3000, .reason = 32 };

	(void)state;
	for (int recording = 0; recording < 2; recording++) {
		struct vmt_report_options o = vmt_make_options();
		struct run r = begin();

		vmt_report_free(r.b);
		o.recording = recording;
		r.b = vmt_report_new(&o);
		feed(&r, &p);
		r.ledger.truncated = true;
		r.ledger.bytes_skipped = 10;
		r.facts.nr_losses = 1;
		r.facts.losses[0] = (struct vmt_input_loss){ "truncated", 1, 0, 10 };
		finish(&r);
		assert_null(vmt_verdict_of(r.report, "loss")); /* told once */
		assert_int_equal(vmt_verdict_of(r.report, "truncated")->severity,
				 recording ? VMT_SEVERITY_NOTE : VMT_SEVERITY_WARN);
		vmt_report_free(r.b);
	}
}

static void nested_and_concealed(void **state)
{
	struct run r = begin();

	(void)state;
	for (unsigned int i = 0; i < 100; i++) {
		struct vmt_event e = vmt_make_exit(0, i * UINT64_C(1000), 100, 10, RIP);

		e.nested = i % 2;
		e.concealed_rip = i == 7;
		vmt_feed_exit(r.b, e);
	}
	finish(&r);
	assert_non_null(vmt_verdict_of(r.report, "nested"));
	assert_non_null(vmt_verdict_of(r.report, "concealed-rip"));
	assert_int_equal(r.report->nested_exits, 50);
	vmt_report_free(r.b);
}

/* One write in a short capture is not "all the time". */
static void one_tsc_write(void **state)
{
	struct run r = begin();
	struct vmt_event e = vmt_make_entry(0, 0);

	(void)state;
	e.type = VMT_EVENT_TSC_WRITE;
	vmt_report_event(r.b, &e);
	r.facts.stop_ns = SEC / 100;
	finish(&r);
	assert_int_equal(vmt_verdict_of(r.report, "tsc-writes")->severity, VMT_SEVERITY_NOTE);
	vmt_report_free(r.b);
}

/* A KVM that raises no kvm_exit: what it tells is counted by key. */
static void only_returns(void **state)
{
	struct run r = begin();

	(void)state;
	for (unsigned int i = 0; i < 30; i++) {
		struct vmt_event e = vmt_make_entry(0, i * UINT64_C(1000));

		e.type = i % 3 ? VMT_EVENT_USERSPACE : VMT_EVENT_NOTE;
		e.reason = 2;
		e.has |= VMT_HAS_REASON;
		if (e.type == VMT_EVENT_NOTE)
			e.key = vmt_make_key(VMT_KEY_PORT, 0x3f8, VMT_ACCESS_WRITE);
		vmt_report_event(r.b, &e);
	}
	finish(&r);
	assert_int_equal(r.report->nr_rows, 0);
	assert_int_equal(r.report->nr_returns, 2);
	assert_int_equal(r.report->returns[0].key.kind, VMT_KEY_USERSPACE);
	assert_int_equal(r.report->returns[0].count, 20);
	assert_int_equal(r.report->returns[1].count, 10);
	assert_non_null(strstr(vmt_verdict_of(r.report, "no-exits")->text, "never fired"));
	vmt_report_free(r.b);
}

/* Nothing at all: no division by nothing, and it says so. */
static void empty(void **state)
{
	struct run r = begin();

	(void)state;
	r.facts = (struct vmt_input_facts){ 0 };
	r.ledger = (struct vmt_ledger){ 0 };
	finish(&r);
	assert_int_equal(r.report->nr_rows, 0);
	assert_int_equal(r.report->nr_bills, 0);
	assert_int_equal(r.report->span_ns, 0);
	assert_false(r.report->concealed_known);
	assert_non_null(vmt_verdict_of(r.report, "no-exits"));
	vmt_report_free(r.b);
}

/* explain has words for each finding and for no others. */
static void every_rule_has_words(void **state)
{
	size_t nr_rules, nr_words;
	const struct vmt_rule *rules = vmt_rules(&nr_rules);
	const struct vmt_verdict_words *words = vmt_verdict_words(&nr_words);

	(void)state;
	for (size_t i = 0; i < nr_rules; i++) {
		if (!vmt_verdict_words_find(rules[i].id))
			fail_msg("no words for %s", rules[i].id);
	}
	assert_int_equal(nr_words, nr_rules);
	for (size_t i = 0; i < nr_words; i++)
		assert_true(strlen(words[i].brief) < 60 && strlen(words[i].meaning) < 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rip_loop),
		cmocka_unit_test(clocksource),
		cmocka_unit_test(halt_poll),
		cmocka_unit_test(irq_storm_of_the_host),
		cmocka_unit_test(irq_storm_in_the_guest),
		cmocka_unit_test(not_exits),
		cmocka_unit_test(preempted),
		cmocka_unit_test(userspace),
		cmocka_unit_test(memory_faults),
		cmocka_unit_test(spin),
		cmocka_unit_test(tsc),
		cmocka_unit_test(failed_entry),
		cmocka_unit_test(trust),
		cmocka_unit_test(loss_by_kind),
		cmocka_unit_test(end_of_the_file),
		cmocka_unit_test(one_tsc_write),
		cmocka_unit_test(only_returns),
		cmocka_unit_test(nested_and_concealed),
		cmocka_unit_test(empty),
		cmocka_unit_test(every_rule_has_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
