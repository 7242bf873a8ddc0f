/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The recorded machine of the tests (tests/support/machine.c) in every kernel's formats, through
 * ring, rec, merge and join: what was put in is what comes out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "decode/kvm/join.h"
#include "decode/kvm/merge.h"
#include "tests/support/stream.h"

#define EXITS  200
#define VCPUS  3
#define GAP_NS 700

struct totals {
	uint64_t exits, with_msr, with_duration, duration_ns, switches, userspace_ns;
	uint64_t entered[VCPUS]; /* time of the last entry */
};

static void on_event(void *context, const struct vmt_event *e)
{
	struct totals *t = context;

	assert_true(e->has & VMT_HAS_TIME);
	if (e->type == VMT_EVENT_ENTRY) {
		assert_true(e->vcpu < VCPUS);
		t->entered[e->vcpu] = e->time.host_ns;
	}
	t->switches += e->type == VMT_EVENT_SWITCH;
	if (e->type != VMT_EVENT_EXIT)
		return;
	assert_true(e->has & VMT_HAS_RIP);
	assert_int_equal(e->guest_rip, 0x1000 + e->vcpu);
	t->exits++;
	t->with_msr += e->key.kind == VMT_KEY_MSR && e->key.number == 0x6e0;
	t->with_duration += (e->has & VMT_HAS_DURATION) != 0;
	t->duration_ns += e->duration_ns;
	t->userspace_ns += e->userspace_part_ns;
}

static void on_rec(void *context, const struct vmt_rec *rec)
{
	vmt_join_push(context, rec);
}

static void write_life(struct vmt_machine *m, unsigned int vcpu)
{
	const struct vmt_stream_value msr[] = { { "write", 1 }, { "ecx", 0x6e0 } };
	const struct vmt_stream_value user[] = { { "reason", 2 } };
	struct vmt_machine_exit x = { .pid = 40,
				      .tid = 41 + vcpu,
				      .cpu = vcpu,
				      .vcpu = vcpu,
				      .isa = 1,
				      .rip = 0x1000 + vcpu,
				      .gap_ns = GAP_NS,
				      .guest_ns = 1000 };

	for (unsigned int n = 0; n < EXITS; n++) {
		x.reason = n % 2 ? 32 : 30;
		vmt_machine_run(m, &x);
		if (n % 2) {
			vmt_machine_event(m, "kvm_msr", &x, 50, msr, 2);
			vmt_machine_switch(m, &x, 20, 1, 1);
			vmt_machine_switch(m, &x, 30, 0, 0);
		} else {
			vmt_machine_event(m, "kvm_userspace_exit", &x, 100, user, 1);
		}
	}
}

static void run(const char *kernel)
{
	struct vmt_stream out = { 0 };
	struct vmt_machine *m = vmt_machine_new(kernel, &out);
	struct vmt_ring_set *set = vmt_ring_set_new();
	struct vmt_catalog *catalog = vmt_catalog_new();
	struct vmt_merge *merge = vmt_merge_new(1u << 14);
	struct totals totals = { 0 };
	struct vmt_join *join = vmt_join_new(catalog, on_event, &totals);
	const struct vmt_format *formats;
	size_t n = vmt_machine_formats(m, &formats), at = 0;

	assert_true(set && catalog && merge && join);
	for (size_t i = 0; i < n; i++) {
		struct vmt_ring_attr attr = vmt_stream_attr(formats[i].id);
		const uint64_t id = i + 1;

		assert_int_equal(vmt_ring_set_add(set, &attr, &id, 1), i);
		assert_int_equal(vmt_catalog_add(catalog, &formats[i]), i);
	}
	for (unsigned int vcpu = 0; vcpu < VCPUS; vcpu++)
		write_life(m, vcpu);
	while (at < out.len) {
		struct vmt_ring_record record;
		struct vmt_rec rec;
		int index,
			size = vmt_ring_parse(set, out.bytes + at, out.len - at, &record, &index);

		assert_true(size > 0 && index >= 0);
		assert_int_equal(vmt_rec_decode(catalog, &record, &rec), 1);
		vmt_merge_push(merge, &rec, on_rec, join);
		at += (size_t)size;
	}
	vmt_merge_flush(merge, on_rec, join);
	vmt_join_flush(join);
	assert_int_equal(totals.exits, EXITS * VCPUS);
	assert_int_equal(totals.with_msr, EXITS / 2 * VCPUS);
	assert_int_equal(totals.with_duration, (EXITS - 1) * VCPUS);
	/* each exit but the last lasts 100 ns of records and the gap to the entry */
	assert_int_equal(totals.duration_ns, VCPUS * (EXITS - 1) * (GAP_NS + 100));
	assert_int_equal(totals.userspace_ns, VCPUS * EXITS / 2 * GAP_NS);
	assert_int_equal(totals.switches, EXITS * VCPUS);
	assert_int_equal(vmt_machine_now(m, 41), vmt_machine_now(m, 42));
	vmt_join_free(join);
	vmt_merge_free(merge);
	vmt_catalog_free(catalog);
	vmt_ring_set_free(set);
	vmt_machine_free(m);
	vmt_stream_free(&out);
}

static void in_every_kernel(void **state)
{
	static const char *const kernels[] = { "4.18", "5.4", "5.10", "5.15", "6.1", "6.18" };

	(void)state;
	for (size_t k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++)
		run(kernels[k]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_every_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
