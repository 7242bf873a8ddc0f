/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Generated streams rewritten for one side: every IP, CR3 and VMCS pointer that is left is of that
 * side, and the decoder tells the same entries and exits of the rewritten stream, with the same
 * members and within the same bounds of time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "decode/pt/packet.h"
#include "decode/rewrite/privacy.h"
#include "tests/support/pt_generate_check.h"
#include "tests/support/stream.h"

#define KEY   UINT64_C(0x1234567890abcdef)
#define SEEDS 4

/* Not 3dH: its erratum BDM64 invents the address of a branch. */
static const uint8_t models[] = { 0x5e, 0x55, 0x8f, 0x7e, 0x97, 0x5c, 0x7a };

static void append(void *context, const uint8_t *bytes, size_t len)
{
	vmt_stream_append(context, bytes, len);
}

/* In pieces of any size. */
static struct vmt_stream rewrite(const struct vmt_ptgen *gen, enum vmt_privacy keep,
				 const struct vmt_pt_cpu *cpu, size_t pieces)
{
	struct vmt_stream out = { 0 };
	const struct vmt_rewrite_options options = {
		.keep = keep,
		.cpu = *cpu,
		.key = KEY,
		.write = append,
		.context = &out,
	};
	struct vmt_rewrite *r = vmt_rewrite_new(&options);
	struct vmt_rewrite_counts counts;
	uint64_t seed = pieces;

	assert_non_null(r);
	for (size_t at = 0, n; at < gen->stream.len; at += n) {
		n = 1 + (size_t)(seed >> 33) % pieces;
		n = n < gen->stream.len - at ? n : gen->stream.len - at;
		seed = seed * 6364136223846793005 + 1442695040888963407;
		vmt_rewrite_feed(r, gen->stream.bytes + at, n);
	}
	vmt_rewrite_end(r);
	counts = vmt_rewrite_counts(r);
	assert_int_equal(counts.bytes_in, gen->stream.len);
	assert_int_equal(counts.bytes_out, out.len);
	vmt_rewrite_free(r);
	return out;
}

/* ---- addresses ---- */

/* The generator's guests run here and its host never does; 0: a guest that has not run yet. */
static bool is_guest_ip(uint64_t ip)
{
	return !ip || (ip >= 0x400000 && ip < 0x600000) ||
	       (ip >= 0xffffffff81000000 && ip < 0xffffffff82200000);
}

static bool is_vmcs_of(const struct vmt_ptgen *gen, unsigned int nr_vms, uint64_t pointer)
{
	for (unsigned int i = 0; i < nr_vms; i++)
		if (vmt_privacy_vmcs(gen->vms[i].vmcs, KEY) == pointer)
			return true;
	/* The monitor of SMIs has one, too. */
	return vmt_privacy_vmcs(0x7b010000, KEY) == pointer;
}

static void check_addresses(const struct vmt_ptgen *gen, const struct vmt_ptgen_options *o,
			    const struct vmt_stream *b, bool guest)
{
	struct vmt_pt_reader reader = vmt_pt_reader_of(b->bytes, b->len);
	struct vmt_pt_packet p;
	uint8_t group = 0;
	int status;

	while ((status = vmt_pt_next(&reader, &p, NULL)) == 1) {
		const bool basic = p.type == VMT_PT_BIP && group == 4 && p.kind == 0;

		if (p.type == VMT_PT_BBP)
			group = p.kind;
		if (p.has_ip && (p.ip_unsure || is_guest_ip(p.ip) != guest))
			fail_msg("seed %" PRIu64 " places %zu %zu %zu: %s 0x%" PRIx64 " at 0x%zx",
				 o->seed, o->overflow_at, o->psb_at, o->damage_at,
				 vmt_pt_type_name(p.type), p.ip,
				 (size_t)(reader.pos - b->bytes) - p.len);
		if (basic && is_guest_ip(p.payload) != guest)
			fail_msg("seed %" PRIu64 ": PEBS 0x%" PRIx64, o->seed, p.payload);
		if (p.type == VMT_PT_PIP && p.nr != guest)
			fail_msg("seed %" PRIu64 ": CR3 0x%" PRIx64, o->seed, p.address);
		if (guest && p.type == VMT_PT_VMCS && !is_vmcs_of(gen, o->nr_vms, p.address))
			fail_msg("seed %" PRIu64 ": VMCS 0x%" PRIx64, o->seed, p.address);
		if (!guest && p.type == VMT_PT_EVD)
			assert_int_not_equal(p.kind, VMT_PT_EVD_VMXQ);
	}
	assert_int_equal(status, 0);
}

/* ---- events ---- */

/* The truth as the guests' stream tells it: nothing of the host's own events. */
static void truth_of_guest(struct vmt_ptgen *gen, unsigned int nr_vms)
{
	for (unsigned int i = 0; i < nr_vms; i++)
		gen->vms[i].vmcs = vmt_privacy_vmcs(gen->vms[i].vmcs, KEY);
	for (size_t i = 0; i < gen->nr_truth; i++) {
		struct vmt_ptgen_truth *t = &gen->truth[i];

		t->vmcs = vmt_privacy_vmcs(t->vmcs, KEY);
		t->begin = t->end = 0;
		if (t->kind == VMT_PTGEN_FAILED || t->kind == VMT_PTGEN_NOTE)
			t->certain = false;
		t->at_tsc = false;
	}
}

static void truth_of_host(struct vmt_ptgen *gen)
{
	for (size_t i = 0; i < gen->nr_truth; i++) {
		struct vmt_ptgen_truth *t = &gen->truth[i];

		t->begin = t->end = 0;
		t->has_rip = t->has_cr3 = t->has_reason = t->has_vector = false;
		t->has_rip = t->has_cr3 = false;
		t->rip_unclear = false;
		t->at_tsc = false;
		t->certain = t->kind == VMT_PTGEN_ENTRY || t->kind == VMT_PTGEN_EXIT ? t->certain
										     : false;
	}
}

/* A processor that has the errata of these settings. */
static struct vmt_pt_cpu cpu_of(const struct vmt_ptgen_options *o)
{
	for (size_t i = 0; o->errata && i < sizeof(models); i++) {
		const struct vmt_pt_cpu cpu = { true, 6, models[i], 1 };

		if (vmt_pt_errata_of(&cpu) == o->errata)
			return cpu;
	}
	return (struct vmt_pt_cpu){ 0 };
}

static struct vmt_ptgen_check check;
static size_t bytes_in, bytes_out;

static void run_one(const struct vmt_ptgen_options *options, enum vmt_privacy keep)
{
	const struct vmt_pt_cpu cpu = cpu_of(options);
	struct vmt_ptgen gen;
	struct vmt_stream out, again;

	vmt_ptgen_run(&gen, options);
	out = rewrite(&gen, keep, &cpu, 1 + options->seed % 4096);
	again = rewrite(&gen, keep, &cpu, 100000);
	assert_int_equal(out.len, again.len);
	assert_memory_equal(out.bytes, again.bytes, out.len);
	free(again.bytes);
	bytes_in += gen.stream.len;
	bytes_out += out.len;
	check_addresses(&gen, options, &out, keep == VMT_PRIVACY_GUEST);
	free(gen.stream.bytes);
	gen.stream.bytes = out.bytes;
	gen.stream.len = out.len;
	if (keep == VMT_PRIVACY_GUEST)
		truth_of_guest(&gen, options->nr_vms);
	else
		truth_of_host(&gen);
	/* Inside a transition a PSB+ leaves open what the packets around it are of. */
	if (!options->psb_at && !vmt_ptgen_check(&check, &gen, gen.stream.len))
		fail_msg("%s", check.why);
	vmt_ptgen_free(&gen);
}

static const struct vmt_ptgen_check *run_setting(struct vmt_ptgen_options options,
						 enum vmt_privacy keep)
{
	const uint64_t first = 1000 * options.seed;
	const char *wanted = getenv("VMT_TEST_LONG");
	const unsigned int seeds = wanted && *wanted && *wanted != '0' ? 50 * SEEDS : SEEDS;

	vmt_ptgen_check_begin(&check, &options);
	for (unsigned int i = 0; i < seeds; i++) {
		options.seed = first + i;
		run_one(&options, keep);
	}
	check.options = NULL;
	return &check;
}

static void whole_streams(enum vmt_privacy keep)
{
	for (unsigned int i = 0; i < 16; i++) {
		struct vmt_ptgen_options o = vmt_ptgen_usual;
		const struct vmt_ptgen_check *r;

		o.seed += i;
		o.event_trace = i & 1;
		o.branch = i & 2;
		o.scaling = i & 4;
		o.filter = i & 8 ? 40 : 0;
		o.late_failure = 100;
		o.smm = 30;
		r = run_setting(o, keep);
		assert_true(r->kinds[VMT_PTGEN_ENTRY] > 200 && r->kinds[VMT_PTGEN_EXIT] > 200);
		assert_true(r->timed > r->events / 2 && r->bounded > r->events / 2);
	}
}

static void the_guests_of_whole_streams(void **state)
{
	(void)state;
	whole_streams(VMT_PRIVACY_GUEST);
}

static void the_host_of_whole_streams(void **state)
{
	(void)state;
	whole_streams(VMT_PRIVACY_HOST);
}

static void time_from_each_mix_of_packets(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 16; i++) {
		struct vmt_ptgen_options o = vmt_ptgen_usual;

		o.seed += 100 + i;
		o.mtc = i & 1;
		o.cyc = i & 2;
		o.mtc_freq = i & 4 ? 9 : 0;
		run_setting(o, i & 8 ? VMT_PRIVACY_GUEST : VMT_PRIVACY_HOST);
	}
}

static void across_losses(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 32; i++) {
		struct vmt_ptgen_options o = vmt_ptgen_usual;

		o.seed += 300 + i;
		o.event_trace = i & 1;
		o.branch = i & 2;
		o.overflow = 100;
		o.damage = i & 4 ? 60 : 0;
		o.filter = i & 8 ? 30 : 0;
		run_setting(o, i & 16 ? VMT_PRIVACY_GUEST : VMT_PRIVACY_HOST);
	}
}

static void errata_of_each_processor(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 8 * sizeof(models); i++) {
		const struct vmt_pt_cpu cpu = { true, 6, models[i / 8], 1 };
		struct vmt_ptgen_options o = vmt_ptgen_usual;

		o.seed += 700 + i;
		o.errata = vmt_pt_errata_of(&cpu);
		o.event_trace = i & 1;
		o.branch = i & 2;
		o.overflow = 60;
		run_setting(o, i & 4 ? VMT_PRIVACY_GUEST : VMT_PRIVACY_HOST);
	}
}

static void run_at(const struct vmt_ptgen_options *options, size_t *place, size_t at,
		   enum vmt_privacy keep)
{
	*place = at;
	run_one(options, keep);
	*place = 0;
}

static void losses_and_status_at_every_place(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 16; i++) {
		const enum vmt_privacy keep = i & 8 ? VMT_PRIVACY_GUEST : VMT_PRIVACY_HOST;
		struct vmt_ptgen_options o = vmt_ptgen_usual;
		struct vmt_ptgen gen;
		size_t packets;

		o.seed = 1000 * (o.seed + 800 + i);
		o.rounds = 3;
		o.event_trace = i & 1;
		o.branch = i & 2;
		o.late_failure = 150;
		o.smm = 100;
		o.filter = i & 4 ? 30 : 0;
		vmt_ptgen_check_begin(&check, &o);
		vmt_ptgen_run(&gen, &o);
		packets = gen.nr_packets;
		vmt_ptgen_free(&gen);
		for (size_t at = 1; at <= packets; at++) {
			run_at(&o, &o.overflow_at, at, keep);
			run_at(&o, &o.psb_at, at, keep);
			run_at(&o, &o.damage_at, at, keep);
		}
		check.options = NULL;
	}
}

/* Nothing shows that there is a guest: nothing is kept of it. */
static void nothing_of_a_guest_that_is_concealed(void **state)
{
	struct vmt_ptgen_options o = vmt_ptgen_usual;

	(void)state;
	o.seed += 500;
	memset(o.conceal, VMT_PTGEN_CONCEAL_ALL, sizeof(o.conceal));
	for (unsigned int i = 0; i < SEEDS; i++) {
		struct vmt_ptgen gen;
		struct vmt_stream out;

		o.seed++;
		vmt_ptgen_run(&gen, &o);
		out = rewrite(&gen, VMT_PRIVACY_GUEST, &(struct vmt_pt_cpu){ 0 }, 1000);
		for (struct vmt_pt_reader r = vmt_pt_reader_of(out.bytes, out.len);;) {
			struct vmt_pt_packet p;
			int status = vmt_pt_next(&r, &p, NULL);

			assert_true(status >= 0);
			if (!status)
				break;
			assert_false(p.has_ip || p.type == VMT_PT_PIP || p.type == VMT_PT_VMCS);
		}
		free(out.bytes);
		vmt_ptgen_free(&gen);
	}
}

/* From a PSB on the output is the same, whether the input begins there or long before. */
static void from_any_psb(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 16; i++) {
		struct vmt_ptgen_options o = vmt_ptgen_usual;
		struct vmt_rewrite_options options = {
			.keep = i & 4 ? VMT_PRIVACY_HOST : VMT_PRIVACY_GUEST,
			.from_any_psb = true,
			.write = append,
		};
		struct vmt_rewrite *r[2];
		struct vmt_stream out[2] = { 0 };
		struct vmt_pt_reader reader;
		struct vmt_ptgen gen;

		o.seed += 5000 + i;
		options.event_trace = o.event_trace = i & 1;
		o.branch = i & 2;
		vmt_ptgen_run(&gen, &o);
		reader = vmt_pt_reader_of(gen.stream.bytes, gen.stream.len);
		reader.pos += gen.stream.len / 3;
		vmt_pt_sync(&reader);
		for (unsigned int k = 0; k < 2; k++) {
			const uint8_t *from = k ? reader.pos : gen.stream.bytes;

			options.context = &out[k];
			r[k] = vmt_rewrite_new(&options);
			assert_non_null(r[k]);
			vmt_rewrite_feed(r[k], from, (size_t)(reader.end - from));
			vmt_rewrite_end(r[k]);
			vmt_rewrite_free(r[k]);
		}
		assert_true(out[1].len > 500 && out[0].len > out[1].len);
		assert_memory_equal(out[0].bytes + out[0].len - out[1].len, out[1].bytes,
				    out[1].len);
		free(out[0].bytes);
		free(out[1].bytes);
		vmt_ptgen_free(&gen);
	}
}

static void a_vmcs_has_one_other(void **state)
{
	const uint64_t none = UINT64_C(0xffffffffff) << 12;

	(void)state;
	assert_int_equal(vmt_privacy_vmcs(none, KEY), none);
	for (uint64_t i = 0; i < 100; i++)
		for (uint64_t j = 0; j < 100; j++)
			assert_true((vmt_privacy_vmcs(i << 12, KEY) ==
				     vmt_privacy_vmcs(j << 12, KEY)) == (i == j));
	assert_int_not_equal(vmt_privacy_vmcs(0x1000, KEY), vmt_privacy_vmcs(0x1000, KEY + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_guests_of_whole_streams),
		cmocka_unit_test(the_host_of_whole_streams),
		cmocka_unit_test(time_from_each_mix_of_packets),
		cmocka_unit_test(across_losses),
		cmocka_unit_test(errata_of_each_processor),
		cmocka_unit_test(losses_and_status_at_every_place),
		cmocka_unit_test(nothing_of_a_guest_that_is_concealed),
		cmocka_unit_test(from_any_psb),
		cmocka_unit_test(a_vmcs_has_one_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
