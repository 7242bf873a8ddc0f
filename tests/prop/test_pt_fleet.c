/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Several CPUs with vCPUs that move (tests/support/pt_fleet.h), written as a perf.data with Intel
 * PT and tracepoints, and read back: every exit comes out once, with what PT and kvm_exit tell of
 * it, its time inside the bound that is stated, its duration to the next entry on whatever CPU; and
 * the counts of the join are right.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "decode/analyze/input.h"
#include "decode/analyze/report.h"
#include "tests/support/memory_file.h"
#include "tests/support/pt_fleet.h"

#define KERNEL "6.1"
#define SEEDS  6u

struct run {
	struct vmt_ptfleet_options options;
	struct vmt_ptfleet fleet;
	unsigned int *seen; /* events of each exit */
	uint64_t exits, timed, durations, moved, entries, named;
	bool unmapped;	   /* nothing tells the time in the guests */
	uint64_t timeless; /* exits that only kvm_exit tells, and PT without a time */
	struct vmt_fuse_counts want;
	struct vmt_input_facts facts;
	struct vmt_ledger ledger;
	struct vmt_report_builder *report;
};

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static void check_duration(struct run *r, const struct vmt_event *e,
			   const struct vmt_ptfleet_exit *x, size_t n)
{
	const bool by_kvm = x->has_kvm;

	if (!(e->has & VMT_HAS_DURATION)) {
		/* The two ends must be known to one source, with nothing lost in between. */
		if (x->has_end && (by_kvm || (x->end_has_pt && x->has_pt && !r->options.overflow)))
			fail_msg("seed %" PRIu64 ": exit %zu has no duration", r->options.seed, n);
		return;
	}
	r->durations++;
	assert_true(x->has_end);
	r->moved += x->end_cpu != x->cpu;
	if (e->has & VMT_HAS_DURATION_TSC && e->source == VMT_SOURCE_PT && x->end_has_pt) {
		if (distance(e->duration_tsc, x->end_tsc - x->tsc) >
		    e->host_tsc_error + (r->options.guest_tsc && !r->unmapped ? 64 : 44000))
			fail_msg("seed %" PRIu64 ": exit %zu on %u to %u: duration %" PRIu64
				 ", not %" PRIu64 " error %" PRIu64,
				 r->options.seed, n, x->cpu, x->end_cpu, e->duration_tsc,
				 x->end_tsc - x->tsc, e->host_tsc_error);
	} else if (distance(2 * e->duration_ns, x->end_tsc - x->tsc) >
		   e->host_tsc_error + (r->options.guest_tsc && !r->unmapped ? 8000 : 44000)) {
		fail_msg("seed %" PRIu64 ": exit %zu: duration %" PRIu64 " ns, not %" PRIu64,
			 r->options.seed, n, e->duration_ns, (x->end_tsc - x->tsc) / 2);
	}
}

static void check_exit(struct run *r, const struct vmt_event *e)
{
	const size_t n = (size_t)((e->guest_rip - VMT_PTFLEET_RIP) / 16);
	const struct vmt_ptfleet_exit *x = &r->fleet.exits[n];
	const bool timeless = r->unmapped && x->has_pt && e->source == VMT_SOURCE_KVM;
	const bool has_pt = x->has_pt && !timeless;
	const bool joined = has_pt && x->has_kvm;

	assert_true(e->has & VMT_HAS_RIP && n < r->fleet.nr_exits);
	if (r->seen[n]++)
		fail_msg("seed %" PRIu64 ": exit %zu comes twice", r->options.seed, n);
	if (e->source != (has_pt ? VMT_SOURCE_PT : VMT_SOURCE_KVM))
		fail_msg("seed %" PRIu64 ": exit %zu of source %u", r->options.seed, n, e->source);
	assert_int_equal(e->joined, joined);
	assert_int_equal(e->guest_rip % 16, has_pt || !x->wrong_rip ? 0 : 8);
	assert_int_equal(e->cpu, x->cpu);
	r->timeless += timeless;
	if (has_pt) {
		assert_true(e->has & VMT_HAS_HOST_TSC && e->has & VMT_HAS_TIME);
		r->timed++;
		if (e->host_tsc_error != VMT_PT_NO_BOUND &&
		    distance(e->host_tsc.host_tsc, x->tsc) > e->host_tsc_error)
			fail_msg("seed %" PRIu64 ": exit %zu lies outside its bound",
				 r->options.seed, n);
		assert_true(e->has & VMT_HAS_VMCS);
		assert_int_equal(e->vmcs, VMT_PTFLEET_VMCS(x->vcpu));
	}
	if (has_pt && r->options.event_trace)
		assert_int_equal(e->reason, x->reason);
	else if (x->has_kvm)
		assert_int_equal(e->reason, x->wrong_reason ? 28 : x->reason);
	else
		assert_false(e->has & VMT_HAS_REASON);
	if (e->has & VMT_HAS_VCPU) {
		r->named++;
		assert_int_equal(e->vcpu, x->vcpu);
	}
	if (e->has & VMT_HAS_TID)
		assert_int_equal(e->tid, VMT_PTFLEET_TID + x->vcpu);
	if (x->has_kvm)
		assert_true(e->has & VMT_HAS_VCPU);
	check_duration(r, e, x, n);
}

static void on_event(void *context, const struct vmt_event *e)
{
	struct run *r = context;

	vmt_report_event(r->report, e);
	if (e->type == VMT_EVENT_EXIT) {
		r->exits++;
		check_exit(r, e);
	}
	r->entries += e->type == VMT_EVENT_ENTRY;
}

static void expect(struct run *r)
{
	memset(&r->want, 0, sizeof(r->want));
	for (size_t i = 0; i < r->fleet.nr_exits; i++) {
		const struct vmt_ptfleet_exit *x = &r->fleet.exits[i];

		r->want.joined += x->has_pt && x->has_kvm;
		r->want.only_pt += x->has_pt && !x->has_kvm && r->options.tracepoints;
		r->want.disagree_rip += x->has_pt && x->wrong_rip;
		r->want.disagree_reason += x->has_pt && x->wrong_reason && r->options.event_trace;
		if ((x->has_pt || x->has_kvm) != r->seen[i])
			fail_msg("seed %" PRIu64 ": exit %zu came %u times", r->options.seed, i,
				 r->seen[i]);
	}
}

static void read_back(struct run *r, const uint8_t *bytes, size_t len, bool pipe)
{
	struct vmt_pt_vm vms[VMT_PTFLEET_VCPUS_MAX];
	const struct vmt_input_pt pt = { .vms = vms, .nr_vms = r->unmapped ? 0 : r->options.vcpus };
	const struct vmt_input_options options = { .pt = &pt };
	static const struct vmt_report_options how = { 0 };
	const struct vmt_report *report;
	struct vmt_reader *reader;
	struct vmt_input *input;
	const int fd = pipe ? vmt_memory_pipe(bytes, len) : vmt_memory_file(bytes, len);

	for (unsigned int i = 0; i < r->options.vcpus; i++)
		vms[i] = (struct vmt_pt_vm){
			.vmcs = VMT_PTFLEET_VMCS(i),
			.map = { UINT64_C(1) << 48, VMT_PTFLEET_OFFSET, 48 },
			.has_map = r->options.guest_tsc,
		};
	r->report = vmt_report_new(&how);
	assert_non_null(r->report);
	assert_int_equal(vmt_reader_from_fd(&reader, fd, NULL, NULL), 0);
	assert_int_equal(vmt_input_open(&input, reader, &options, NULL), 0);
	assert_int_equal(vmt_input_run(input, on_event, r, NULL), 0);
	r->facts = *vmt_input_facts(input);
	r->ledger = vmt_input_ledger(input);
	report = vmt_report_finish(r->report, vmt_input_facts(input), r->ledger, NULL, NULL);
	assert_non_null(report);
	assert_int_equal(report->exits, r->exits);
	for (size_t i = 0; i < report->nr_bills; i++) {
		const struct vmt_bill *b = &report->bills[i];

		assert_int_equal(b->guest_ns + b->exits_ns + b->userspace_ns + b->halt_poll_ns +
					 b->halted_ns + b->preempted_ns + b->stopped_ns +
					 b->residual_ns,
				 b->wall_ns);
		assert_true(b->residual_ns <= b->wall_ns);
	}
	vmt_report_free(r->report);
	vmt_input_close(input);
	assert_int_equal(r->ledger.bytes_total, r->ledger.bytes_decoded + r->ledger.bytes_skipped);
	assert_int_equal(r->ledger.bytes_total, len);
	assert_int_equal(r->ledger.bytes_skipped, 0);
}

/* Runs a setting with some seeds; sums stay in the run. */
static struct run run_setting_with(struct vmt_ptfleet_options options, bool unmapped)
{
	struct vmt_stream none = { 0 };
	struct vmt_machine *machine = vmt_machine_new(KERNEL, &none);
	struct run r = { .options = options, .unmapped = unmapped };

	for (unsigned int i = 0; i < SEEDS; i++) {
		uint8_t *bytes;
		size_t len;

		r.options.seed = options.seed * 100 + i;
		vmt_ptfleet_run(&r.fleet, &r.options, machine);
		bytes = vmt_ptfleet_perfdata(&r.fleet, &r.options, machine, KERNEL, i % 2, &len);
		r.seen = calloc(r.fleet.nr_exits + 1, sizeof(*r.seen));
		assert_non_null(r.seen);
		r.exits = r.timeless = 0;
		read_back(&r, bytes, len, i % 2);
		expect(&r);
		if (options.tracepoints && !options.conceal) {
			assert_true(r.facts.has_join);
			assert_int_equal(r.facts.join.joined, r.want.joined - r.timeless);
			assert_int_equal(r.facts.join.only_pt, r.want.only_pt);
			assert_int_equal(r.facts.join.only_kvm, 0);
			assert_int_equal(r.facts.join.disagree_rip, r.want.disagree_rip);
			assert_int_equal(r.facts.join.disagree_reason, r.want.disagree_reason);
			assert_int_equal(r.facts.join.untimed, r.timeless);
			assert_true(!options.inside || !unmapped || r.timeless);
		}
		assert_int_equal(r.facts.vmcs_moved, 0);
		free(r.seen);
		free(bytes);
		vmt_ptfleet_free(&r.fleet);
	}
	vmt_machine_free(machine);
	vmt_stream_free(&none);
	return r;
}

static struct run run_setting(struct vmt_ptfleet_options options)
{
	return run_setting_with(options, false);
}

static const struct vmt_ptfleet_options base = {
	.seed = 1,
	.cpus = 4,
	.vcpus = 6,
	.steps = 3000,
	.tracepoints = true,
	.switches = true,
	.event_trace = true,
	.guest_tsc = true,
};

static void joined_with_tracepoints(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		struct vmt_ptfleet_options o = base;
		struct run r;

		o.seed += 50 + i;
		o.event_trace = i & 1;
		o.switches = i & 2;
		o.guest_tsc = i & 4;
		r = run_setting(o);
		assert_true(r.moved > 100 && r.timed > 1000);
		assert_true(r.facts.has_concealed && !r.facts.concealed);
	}
}

static void sources_that_disagree(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		struct vmt_ptfleet_options o = base;

		o.guest_tsc = i & 4;
		o.seed += 10 + i;
		o.event_trace = i & 1;
		o.lose_kvm = i & 2 ? 200 : 0;
		o.wrong_rip = 50;
		o.wrong_reason = 50;
		run_setting(o);
	}
}

static void packets_that_are_lost(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		struct vmt_ptfleet_options o = base;

		o.guest_tsc = i & 4;
		o.seed += 20 + i;
		o.tracepoints = i & 1;
		o.event_trace = i & 2;
		o.overflow = 20;
		run_setting(o);
	}
}

/* What PT tells before it knows the time is not told beside the tracepoints once more. */
static void streams_that_begin_in_a_guest(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 16; i++) {
		struct vmt_ptfleet_options o = base;

		o.seed += 60 + i;
		o.inside = true;
		o.event_trace = i & 1;
		o.switches = i & 2;
		o.guest_tsc = i & 4;
		run_setting_with(o, i & 8 || !o.guest_tsc);
	}
}

static void processor_trace_alone(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct vmt_ptfleet_options o = base;
		struct run r;

		o.seed += 30 + i;
		o.tracepoints = false;
		o.event_trace = i & 1;
		o.switches = i & 2;
		r = run_setting(o);
		assert_true(r.moved > 100 && r.durations > 1000);
		assert_false(r.facts.has_join);
	}
}

static void concealed_guests(void **state)
{
	struct vmt_ptfleet_options o = base;
	struct run r;

	(void)state;
	o.seed += 40;
	o.conceal = true;
	r = run_setting(o);
	assert_true(r.facts.has_concealed && r.facts.concealed);
	assert_int_equal(r.facts.join.joined + r.facts.join.only_pt, 0);
	assert_int_equal(r.timed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(joined_with_tracepoints),
		cmocka_unit_test(sources_that_disagree),
		cmocka_unit_test(packets_that_are_lost),
		cmocka_unit_test(processor_trace_alone),
		cmocka_unit_test(concealed_guests),
		cmocka_unit_test(streams_that_begin_in_a_guest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
