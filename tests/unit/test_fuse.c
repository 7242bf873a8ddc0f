// SPDX-License-Identifier: LGPL-2.1-or-later
/* PT events and tracepoints of one CPU or more: every way in which they agree, differ or lack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "decode/analyze/fuse.h"

#define RIP   UINT64_C(0xffffffff81000000)
#define TID   100u
#define MOST  64u
#define SHARP 5u /* error of a PT time, ns and TSC units */

struct bench {
	struct vmt_pt_who *who;
	struct vmt_fuse *fuse;
	struct vmt_event out[MOST];
	size_t nr;
	uint64_t learnt;
};

static void on_out(void *context, const struct vmt_event *e)
{
	struct bench *b = context;

	assert_true(b->nr < MOST);
	b->out[b->nr++] = *e;
}

static void on_vmcs(void *context, uint64_t vmcs)
{
	((struct bench *)context)->learnt = vmcs;
}

static int set_up(void **state)
{
	static struct bench b;
	const struct vmt_perf_clock clock = { .mult = 1 };

	b = (struct bench){ .who = vmt_pt_who_new() };
	assert_non_null(b.who);
	b.fuse = vmt_fuse_new(2, b.who, on_out, &b);
	assert_non_null(b.fuse);
	vmt_fuse_clock(b.fuse, &clock); /* a TSC unit is a nanosecond */
	vmt_fuse_expect_kvm(b.fuse);
	vmt_fuse_on_vmcs(b.fuse, on_vmcs, &b);
	*state = &b;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *b = *state;

	vmt_fuse_free(b->fuse);
	vmt_pt_who_free(b->who);
	return 0;
}

/* ---- PT ---- */

static void pt_at(struct bench *b, size_t area, struct vmt_event e, uint64_t at, uint64_t error)
{
	const struct vmt_pt_span span = { at, at + error };

	e.source = VMT_SOURCE_PT;
	e.time.host_ns = e.host_tsc.host_tsc = e.host_tsc_low = at;
	e.host_tsc_error = error;
	e.cpu = (uint32_t)area;
	e.has |= VMT_HAS_TIME | VMT_HAS_HOST_TSC | VMT_HAS_CPU;
	vmt_fuse_pt(b->fuse, area, &e, span);
}

static struct vmt_event pt_exit_of(uint64_t rip, uint64_t vmcs)
{
	return (struct vmt_event){ .type = VMT_EVENT_EXIT,
				   .isa = VMT_ISA_VMX,
				   .guest_rip = rip,
				   .vmcs = vmcs,
				   .guest_cr3 = 0x5000,
				   .has = VMT_HAS_RIP | VMT_HAS_CR3 | (vmcs ? VMT_HAS_VMCS : 0u) };
}

static void pt_exit(struct bench *b, size_t area, uint64_t at, uint64_t rip)
{
	pt_at(b, area, pt_exit_of(rip, 0x7000), at, SHARP);
}

static void pt_entry(struct bench *b, size_t area, uint64_t at)
{
	const struct vmt_event e = { .type = VMT_EVENT_ENTRY, .vmcs = 0x7000, .has = VMT_HAS_VMCS };

	pt_at(b, area, e, at, SHARP);
}

static void pt_loss(struct bench *b, size_t area, uint64_t from, uint64_t to)
{
	const struct vmt_event e = { .type = VMT_EVENT_LOSS, .name = "overflow" };

	pt_at(b, area, e, from, to - from);
}

/* ---- tracepoints: the exit's record, then what the join makes of it at the entry ---- */

static void kvm_exit(struct bench *b, size_t area, uint64_t at, uint64_t rip, uint32_t reason)
{
	const struct vmt_fuse_exit x = { .time_ns = at,
					 .tid = TID,
					 .has_rip = true,
					 .has_reason = true,
					 .guest_rip = rip,
					 .reason = reason };

	vmt_fuse_exit(b->fuse, area, &x);
	vmt_fuse_advance(b->fuse, at);
}

static struct vmt_event kvm_exit_event(uint64_t at, uint64_t rip, uint32_t reason)
{
	return (struct vmt_event){ .type = VMT_EVENT_EXIT,
				   .isa = VMT_ISA_VMX,
				   .time = { at },
				   .tid = TID,
				   .vcpu = 3,
				   .guest_rip = rip,
				   .reason = reason,
				   .has = VMT_HAS_TIME | VMT_HAS_TID | VMT_HAS_VCPU | VMT_HAS_RIP |
					  VMT_HAS_REASON };
}

static void kvm_entry(struct bench *b, size_t area, uint64_t at)
{
	const struct vmt_event e = { .type = VMT_EVENT_ENTRY,
				     .time = { at },
				     .tid = TID,
				     .vcpu = 3,
				     .has = VMT_HAS_TIME | VMT_HAS_TID | VMT_HAS_VCPU };

	vmt_fuse_event(b->fuse, area, &e);
	vmt_fuse_settle(b->fuse);
	vmt_fuse_advance(b->fuse, at);
}

/* The join's exit of a kvm_exit, at the kvm_entry that ends it. */
static void kvm_ends(struct bench *b, size_t area, uint64_t exit_at, uint64_t rip, uint32_t reason,
		     uint64_t at)
{
	struct vmt_event x = kvm_exit_event(exit_at, rip, reason);

	x.duration_ns = at - exit_at;
	x.has |= VMT_HAS_DURATION;
	vmt_fuse_event(b->fuse, area, &x);
	kvm_entry(b, area, at);
}

static const struct vmt_event *nth(const struct bench *b, enum vmt_event_type type, size_t n)
{
	for (size_t i = 0; i < b->nr; i++)
		if (b->out[i].type == type && n-- == 0)
			return &b->out[i];
	fail_msg("no such event");
	return NULL;
}

static size_t count(const struct bench *b, enum vmt_event_type type)
{
	size_t n = 0;

	for (size_t i = 0; i < b->nr; i++)
		n += b->out[i].type == type;
	return n;
}

/* ---- cases ---- */

static void agreed(void **state)
{
	struct bench *b = *state;
	const struct vmt_event *x, *e;
	struct vmt_fuse_counts c;

	pt_exit(b, 0, 10000, RIP);
	kvm_exit(b, 0, 10400, RIP, 30);
	kvm_ends(b, 0, 10400, RIP, 30, 12000);
	pt_entry(b, 0, 12500);
	vmt_fuse_advance(b->fuse, 13000);
	assert_int_equal(b->nr, 2); /* both, and the exit first */
	x = nth(b, VMT_EVENT_EXIT, 0);
	assert_ptr_equal(x, &b->out[0]);
	assert_true(x->joined && x->source == VMT_SOURCE_PT);
	assert_int_equal(x->time.host_ns, 10000);
	assert_int_equal(x->duration_ns, 2500);
	assert_int_equal(x->duration_tsc, 2500);
	assert_int_equal(x->reason, 30);
	assert_int_equal(x->vcpu, 3);
	assert_int_equal(x->vmcs, 0x7000);
	assert_int_equal(x->guest_cr3, 0x5000);
	e = nth(b, VMT_EVENT_ENTRY, 0);
	assert_true(e->joined && e->time.host_ns == 12500);
	assert_int_equal(b->learnt, 0x7000);
	assert_int_equal(vmt_pt_who_tid_of(b->who, 0x7000), TID);
	vmt_fuse_flush(b->fuse);
	assert_int_equal(b->nr, 2);
	c = vmt_fuse_counts(b->fuse);
	assert_int_equal(c.joined, 1);
	assert_int_equal(c.only_pt + c.only_kvm + c.disagree_reason + c.disagree_rip + c.untimed,
			 0);
	assert_true(vmt_fuse_covered(b->fuse));
}

static void another_rip_and_another_reason(void **state)
{
	struct bench *b = *state;
	struct vmt_event p = pt_exit_of(RIP, 0x7000);
	const struct vmt_event *x;

	p.reason = 48;
	p.has |= VMT_HAS_REASON;
	pt_at(b, 0, p, 10000, SHARP);
	kvm_exit(b, 0, 10400, RIP + 8, 30);
	kvm_ends(b, 0, 10400, RIP + 8, 30, 12000);
	vmt_fuse_flush(b->fuse);
	assert_int_equal(vmt_fuse_counts(b->fuse).joined, 1);
	assert_int_equal(vmt_fuse_counts(b->fuse).disagree_rip, 1);
	assert_int_equal(vmt_fuse_counts(b->fuse).disagree_reason, 1);
	x = nth(b, VMT_EVENT_EXIT, 0);
	assert_int_equal(x->guest_rip, RIP);
	assert_int_equal(x->reason, 48); /* Event Trace's stays */
	assert_int_equal(count(b, VMT_EVENT_EXIT), 1);
}

/* A kvm_exit is not that of an exit whose CPU has entered a guest again since. */
static void a_missing_kvm_exit(void **state)
{
	struct bench *b = *state;
	const struct vmt_event *x;

	kvm_entry(b, 0, 9000);
	pt_entry(b, 0, 9100);
	pt_exit(b, 0, 10000, RIP);
	kvm_entry(b, 0, 11900);
	pt_entry(b, 0, 12000);
	pt_exit(b, 0, 20000, RIP + 16);
	kvm_exit(b, 0, 20300, RIP + 16, 1);
	kvm_ends(b, 0, 20300, RIP + 16, 1, 22000);
	pt_entry(b, 0, 22100);
	vmt_fuse_advance(b->fuse, 23000);
	vmt_fuse_flush(b->fuse);
	assert_int_equal(count(b, VMT_EVENT_EXIT), 2);
	assert_int_equal(count(b, VMT_EVENT_ENTRY), 3);
	assert_int_equal(vmt_fuse_counts(b->fuse).joined, 1);
	assert_int_equal(vmt_fuse_counts(b->fuse).only_pt, 1);
	x = nth(b, VMT_EVENT_EXIT, 0);
	assert_true(!x->joined && x->guest_rip == RIP && !(x->has & VMT_HAS_REASON));
	assert_int_equal(x->duration_ns, 2000);
	assert_int_equal(x->tid, TID); /* by its VMCS */
}

static void a_missing_pt_exit(void **state)
{
	struct bench *b = *state;
	const struct vmt_event *x;

	pt_entry(b, 0, 9100);
	kvm_exit(b, 0, 10400, RIP, 30);
	kvm_ends(b, 0, 10400, RIP, 30, 12000);
	pt_entry(b, 0, 12100);
	vmt_fuse_advance(b->fuse, 13000);
	vmt_fuse_flush(b->fuse);
	assert_int_equal(vmt_fuse_counts(b->fuse).only_kvm, 1);
	assert_int_equal(vmt_fuse_counts(b->fuse).joined, 0);
	x = nth(b, VMT_EVENT_EXIT, 0);
	assert_true(x->source == VMT_SOURCE_KVM && x->time.host_ns == 10400);
	assert_int_equal(x->duration_ns, 1600);
}

/* Where packets are missing PT does not say that there was no exit. */
static void a_pt_exit_that_is_lost(void **state)
{
	struct bench *b = *state;

	pt_entry(b, 0, 9100);
	pt_loss(b, 0, 9100, 11000);
	kvm_exit(b, 0, 10400, RIP, 30);
	kvm_ends(b, 0, 10400, RIP, 30, 12000);
	pt_entry(b, 0, 12100);
	vmt_fuse_advance(b->fuse, 13000);
	vmt_fuse_flush(b->fuse);
	assert_int_equal(vmt_fuse_counts(b->fuse).only_kvm, 0);
	assert_int_equal(count(b, VMT_EVENT_LOSS), 1);
	assert_int_equal(count(b, VMT_EVENT_EXIT), 1);
}

static void a_cpu_without_pt(void **state)
{
	struct bench *b = *state;

	kvm_exit(b, SIZE_MAX, 10400, RIP, 30);
	kvm_ends(b, SIZE_MAX, 10400, RIP, 30, 12000);
	vmt_fuse_flush(b->fuse);
	assert_int_equal(b->nr, 2);
	assert_false(vmt_fuse_covered(b->fuse));
	assert_int_equal(vmt_fuse_counts(b->fuse).only_kvm, 0);
}

/* An exit that ends on another CPU. */
static void a_vcpu_that_moves(void **state)
{
	struct bench *b = *state;
	const struct vmt_event *x;

	pt_exit(b, 0, 10000, RIP);
	kvm_exit(b, 0, 10400, RIP, 12);
	kvm_ends(b, 1, 10400, RIP, 12, 50000);
	pt_entry(b, 1, 50200);
	vmt_fuse_advance(b->fuse, 60000);
	x = nth(b, VMT_EVENT_EXIT, 0);
	assert_true(x->joined && x->cpu == 0);
	assert_int_equal(x->duration_ns, 40200);
	assert_int_equal(nth(b, VMT_EVENT_ENTRY, 0)->time.host_ns, 50200);
}

/* The same by PT alone; a decoder that saw its own CPU alone gave too long a duration. */
static void a_vcpu_that_moves_in_pt_alone(void **state)
{
	struct bench *b = *state;
	struct vmt_event p = pt_exit_of(RIP, 0x7000);
	const struct vmt_event *x;

	p.duration_tsc = p.duration_ns = 90000;
	p.has |= VMT_HAS_DURATION | VMT_HAS_DURATION_TSC;
	pt_at(b, 0, p, 10000, SHARP);
	pt_entry(b, 1, 50200);
	pt_exit(b, 1, 60000, RIP + 16);
	pt_entry(b, 0, 100000);
	vmt_fuse_flush(b->fuse);
	x = nth(b, VMT_EVENT_EXIT, 0);
	assert_int_equal(x->duration_ns, 40200);
	assert_int_equal(nth(b, VMT_EVENT_EXIT, 1)->duration_ns, 40000);
	assert_int_equal(vmt_fuse_counts(b->fuse).only_pt, 0); /* there are no tracepoints */
}

/* A loss where the vCPU may have run: no duration; where its thread kept its CPU: one. */
static void a_loss_on_another_cpu(void **state)
{
	struct bench *b = *state;

	vmt_pt_who_vcpu(b->who, TID, 1, 0, 3);
	vmt_pt_who_runs(b->who, 0, 30000, 1, TID);
	for (unsigned int i = 0; i < 2; i++) {
		struct vmt_event p = pt_exit_of(RIP, 0x7000);

		p.duration_tsc = p.duration_ns = 9000;
		p.has |= VMT_HAS_DURATION | VMT_HAS_DURATION_TSC;
		pt_at(b, 0, p, 20000 + i * 20000, SHARP);
		pt_loss(b, 1, 22000 + i * 20000, 24000 + i * 20000);
		pt_entry(b, 0, 29000 + i * 20000);
	}
	vmt_fuse_flush(b->fuse);
	assert_false(nth(b, VMT_EVENT_EXIT, 0)->has & VMT_HAS_DURATION);
	assert_int_equal(nth(b, VMT_EVENT_EXIT, 1)->duration_ns, 9000);
	assert_int_equal(nth(b, VMT_EVENT_EXIT, 1)->tid, TID);
}

/* PT's time to within 8 us: kvm_exit and kvm_entry know better. */
static void blurred_times(void **state)
{
	struct bench *b = *state;
	const struct vmt_event entry = { .type = VMT_EVENT_ENTRY };
	const struct vmt_event *x, *e;

	pt_at(b, 0, pt_exit_of(RIP, 0x7000), 10000, 8000);
	kvm_exit(b, 0, 15000, RIP, 30);
	kvm_ends(b, 0, 15000, RIP, 30, 19000);
	pt_at(b, 0, entry, 18000, VMT_PT_NO_BOUND - 18000);
	vmt_fuse_advance(b->fuse, 20000);
	x = nth(b, VMT_EVENT_EXIT, 0);
	assert_int_equal(x->time.host_ns, 15000);
	assert_int_equal(x->host_tsc_error, 5000);
	e = nth(b, VMT_EVENT_ENTRY, 0);
	assert_int_equal(e->time.host_ns, 19000);
	assert_int_equal(x->duration_ns, 4000);
}

/* Events of PT without a time cannot be told from those of the tracepoints. */
static void no_time(void **state)
{
	struct bench *b = *state;
	const struct vmt_pt_span nowhere = { 0, UINT64_MAX };
	const struct vmt_event p = pt_exit_of(RIP, 0x7000);

	kvm_exit(b, 0, 10400, RIP, 30);
	vmt_fuse_pt(b->fuse, 0, &p, nowhere);
	kvm_ends(b, 0, 10400, RIP, 30, 12000);
	vmt_fuse_flush(b->fuse);
	assert_int_equal(count(b, VMT_EVENT_EXIT), 1);
	assert_int_equal(vmt_fuse_counts(b->fuse).untimed, 1);
}

/* The same before the first kvm_exit; one whose exit PT did not show is not counted as such. */
static void no_time_at_the_beginning(void **state)
{
	struct bench *b = *state;
	const struct vmt_pt_span nowhere = { 0, UINT64_MAX };
	const struct vmt_event p = pt_exit_of(RIP, 0x7000);
	const struct vmt_event e = { .type = VMT_EVENT_ENTRY };

	vmt_fuse_pt(b->fuse, 0, &p, nowhere);
	vmt_fuse_pt(b->fuse, 0, &e, nowhere);
	pt_entry(b, 0, 50012100);
	vmt_fuse_advance(b->fuse, 50010000);
	assert_int_equal(b->nr, 0);
	kvm_exit(b, 0, 50010400, RIP, 30);
	kvm_ends(b, 0, 50010400, RIP, 30, 50012000);
	vmt_fuse_flush(b->fuse);
	assert_int_equal(count(b, VMT_EVENT_EXIT), 1);
	assert_int_equal(vmt_fuse_counts(b->fuse).untimed, 1);
	assert_int_equal(vmt_fuse_counts(b->fuse).only_kvm + vmt_fuse_counts(b->fuse).only_pt, 0);
}

static void a_failed_entry(void **state)
{
	struct bench *b = *state;
	struct vmt_event p = pt_exit_of(RIP, 0x7000), k;

	kvm_entry(b, 0, 9900);
	p.failed_entry = true;
	pt_at(b, 0, p, 10000, SHARP);
	vmt_fuse_advance(b->fuse, 10100);
	kvm_exit(b, 0, 10400, RIP, 0x80000021);
	k = kvm_exit_event(10400, RIP, 33);
	k.reason_flags = 0x80000000;
	k.failed_entry = true;
	vmt_fuse_event(b->fuse, 0, &k);
	vmt_fuse_settle(b->fuse);
	vmt_fuse_flush(b->fuse);
	assert_int_equal(count(b, VMT_EVENT_EXIT), 1);
	assert_true(nth(b, VMT_EVENT_EXIT, 0)->failed_entry && nth(b, VMT_EVENT_EXIT, 0)->joined);
	assert_int_equal(vmt_fuse_counts(b->fuse).only_pt, 0);
}

static void a_vmcs_of_two_threads(void **state)
{
	struct bench *b = *state;

	assert_true(vmt_pt_who_vmcs(b->who, 0x7000, TID));
	assert_false(vmt_pt_who_vmcs(b->who, 0x7000, TID));
	assert_int_equal(vmt_pt_who_contradictions(b->who), 0);
	assert_true(vmt_pt_who_vmcs(b->who, 0x7000, TID + 1));
	assert_int_equal(vmt_pt_who_contradictions(b->who), 1);
	assert_int_equal(vmt_pt_who_tid_of(b->who, 0x7000), TID + 1);
}

/* The thread of an event: where its time is between two threads, the vCPU's; of two vCPUs none. */
static void who_had_the_cpu(void **state)
{
	struct bench *b = *state;
	struct vmt_event e = { .type = VMT_EVENT_EXIT, .has = VMT_HAS_TIME }, f = e, g = e, h = e;

	vmt_pt_who_vcpu(b->who, TID, 1, 5, 2);
	vmt_pt_who_vcpu(b->who, TID + 1, 1, 5, 3);
	vmt_pt_who_runs(b->who, 0, 1000, 7, 50);
	vmt_pt_who_runs(b->who, 0, 2000, 1, TID);
	vmt_pt_who_runs(b->who, 0, 3000, 1, TID + 1);
	vmt_pt_who_fill(b->who, 0, &e, (struct vmt_pt_span){ 1900, 2100 });
	assert_true(e.has & VMT_HAS_VCPU && e.vcpu == 2 && e.domain == 5 && e.tid == TID);
	vmt_pt_who_fill(b->who, 0, &f, (struct vmt_pt_span){ 2900, 3100 });
	assert_false(f.has & (VMT_HAS_VCPU | VMT_HAS_TID));
	vmt_pt_who_fill(b->who, 0, &g, (struct vmt_pt_span){ 900, 1100 });
	assert_false(g.has & VMT_HAS_TID);
	vmt_pt_who_fill(b->who, 0, &h, (struct vmt_pt_span){ 1100, 1200 });
	assert_true(h.has & VMT_HAS_TID && h.tid == 50 && !(h.has & VMT_HAS_VCPU));
}

/* PT is asked ahead of the tracepoints: its first entry is known before the kvm_exit before it. */
static void a_trace_that_begins_in_the_host(void **state)
{
	struct bench *b = *state;

	pt_entry(b, 0, 1300);
	kvm_exit(b, 0, 1050, RIP, 10);
	kvm_ends(b, 0, 1050, RIP, 10, 1290);
	pt_exit(b, 0, 2000, RIP);
	pt_entry(b, 0, 2300);
	kvm_exit(b, 0, 2010, RIP, 10);
	kvm_ends(b, 0, 2010, RIP, 10, 2290);
	vmt_fuse_flush(b->fuse);
	assert_int_equal(vmt_fuse_counts(b->fuse).joined, 1);
	assert_int_equal(vmt_fuse_counts(b->fuse).only_kvm, 0);
	assert_int_equal(count(b, VMT_EVENT_EXIT), 2);
	assert_int_equal(count(b, VMT_EVENT_ENTRY), 2);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(agreed),
		CASE(another_rip_and_another_reason),
		CASE(a_missing_kvm_exit),
		CASE(a_missing_pt_exit),
		CASE(a_pt_exit_that_is_lost),
		CASE(a_cpu_without_pt),
		CASE(a_vcpu_that_moves),
		CASE(a_vcpu_that_moves_in_pt_alone),
		CASE(a_loss_on_another_cpu),
		CASE(blurred_times),
		CASE(a_trace_that_begins_in_the_host),
		CASE(no_time),
		CASE(no_time_at_the_beginning),
		CASE(a_failed_entry),
		CASE(a_vmcs_of_two_threads),
		CASE(who_had_the_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
