// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Streams of the emulated CPU with Intel PT (virt-fixtures/ptcpu), decoded and compared with the
 * truth that the emulator logged: VM entries and exits with RIP, CR3, VMCS, reason, qualification
 * and host TSC, interrupts with vector and fault address, and guest TSCs turned into host TSCs.
 * Each stream is decoded in one piece and in small ones. The packs of tests/golden/ptcpu, or those
 * that are named as arguments.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/pt/decoder.h"
#include "tests/support/ptcpu_pack.h"
#include "tests/support/ptcpu_truth.h"

enum { MAX_TRANSITIONS = 20000, MAX_INTERRUPTS = 200000, MAX_TSCS = 400000, MAX_TESTS = 64 };

#define CTL_TRACE_EN (1ULL << 0)
#define CTL_OS	     (1ULL << 2)
#define CTL_BRANCH   (1ULL << 13)
#define CTL_EVENTS   (1ULL << 31)
#define CTL_RANGES   (0xffULL << 32)
#define MTC_FREQ(c)  ((uint8_t)((c) >> 14 & 15))

struct transition {
	bool exit;
	uint64_t host_tsc, vmcs, rip, cr3, reason, qualification;
	uint64_t tsc_error, vector;
	bool has_vector, has_rip, has_cr3, has_reason, has_vmcs, has_tsc;
};

struct tsc_packet {
	uint64_t offset, host, seen;
	struct vmx_tsc_map map; /* of the guest, when it is a guest's */
	bool nr;
};

struct interrupt {
	uint64_t vector, from, cr2;
	bool nr;
};

struct recording {
	struct ptcpu_member truth, stream;
	uint64_t ctl; /* the last one with TraceEn; bit 0 as it is now */
	struct vmx_tsc_map map;
	bool has_map, maps_differ, lost;
	struct transition entry; /* that may turn out to begin the trace */
	bool has_entry;
	struct transition wanted[MAX_TRANSITIONS], got[MAX_TRANSITIONS];
	size_t wanted_count, got_count;
	struct tsc_packet tscs[MAX_TSCS];
	struct interrupt interrupts[MAX_INTERRUPTS];
	size_t interrupt_count, interrupt_seen, interrupt_wrong;
	size_t tsc_count, tsc_seen, tsc_wrong;
};

/* ---- the truth ---- */
/* While packets are lost no transition is in the stream; neither is one before TraceEn. */
static void add_wanted(struct recording *r, const struct transition *t, bool traced)
{
	if (!traced || r->lost)
		return;
	assert_true(r->wanted_count < MAX_TRANSITIONS);
	r->wanted[r->wanted_count++] = *t;
}

/* The decoder is told the map of the VM's TSC where the whole recording has one. */
static void take_map(struct recording *r, const struct vmx_tsc_map *map)
{
	r->maps_differ |= r->has_map &&
			  (r->map.offset != map->offset || r->map.multiplier != map->multiplier);
	r->map = *map;
	r->has_map = true;
}

static void take_truth(struct recording *r, const struct ptcpu_record *t)
{
	const uint64_t *v = t->values;
	const bool traced = r->ctl & CTL_TRACE_EN;

	if (t->type == TRUTH_CONTROL) {
		if (r->has_entry && (v[0] & CTL_TRACE_EN))
			add_wanted(r, &r->entry, true);
		r->has_entry = false;
		r->ctl = v[0] & CTL_TRACE_EN ? v[0] : r->ctl & ~CTL_TRACE_EN;
	} else if (t->type == TRUTH_LOST) {
		r->lost = v[0] != TRUTH_LOST_OVERFLOW_END;
	} else if (t->type == TRUTH_ENTRY) {
		const struct transition e = {
			.host_tsc = v[0], .vmcs = v[2], .rip = v[4], .cr3 = v[5]
		};

		take_map(r, &(struct vmx_tsc_map){ v[8], v[7], VMX_TSC_FRAC_BITS_VMX });
		add_wanted(r, &e, traced);
		r->entry = e;
		r->has_entry = !traced;
	} else if (t->type == TRUTH_EXIT) {
		const struct transition e = { .exit = true,
					      .host_tsc = v[0],
					      .vmcs = v[2],
					      .reason = v[3],
					      .qualification = v[4],
					      .vector = v[5] & 0xff,
					      .has_vector = (v[3] & 0xffff) <= 1 && v[5] >> 31 & 1,
					      .rip = v[6],
					      .cr3 = v[7] };

		add_wanted(r, &e, traced);
	} else if (t->type == TRUTH_EVENT && traced && !r->lost && (r->ctl & CTL_EVENTS)) {
		assert_true(r->interrupt_count < MAX_INTERRUPTS);
		r->interrupts[r->interrupt_count++] =
			(struct interrupt){ v[0], v[1], v[3], v[5] != 0 };
	} else if (t->type == TRUTH_TSC) {
		assert_true(r->tsc_count < MAX_TSCS);
		r->tscs[r->tsc_count++] =
			(struct tsc_packet){ v[0], v[1], v[2], r->map, v[3] != 0 };
	}
}

static void read_truth(struct recording *r)
{
	struct ptcpu_truth *t = ptcpu_truth_open(r->truth.bytes, r->truth.size);
	struct ptcpu_record record = { .type = 0 };
	uint64_t bytes = 0;
	int more;

	assert_non_null(t);
	while ((more = ptcpu_truth_next(t, &record)) > 0) {
		take_truth(r, &record);
		bytes = record.values[1];
	}
	assert_int_equal(more, 0);
	assert_int_equal(bytes, r->stream.size); /* of TRUTH_END */
	ptcpu_truth_close(t);
}

/* ---- the decoder ---- */
/* CFE INTR with its vector, of a page fault with its address, in a guest with its RIP. */
static void take_interrupt(struct recording *r, const struct vmt_event *e)
{
	enum { VECTOR_PF = 14 };
	const struct interrupt *w = &r->interrupts[r->interrupt_seen++];

	if (r->interrupt_seen > r->interrupt_count) {
		r->interrupt_wrong++;
		return;
	}
	r->interrupt_wrong += w->vector != e->vector ||
			      (w->vector == VECTOR_PF &&
			       (!(e->has & VMT_HAS_VALUE) || (uint64_t)e->value != w->cr2)) ||
			      ((e->has & VMT_HAS_RIP) && (!w->nr || e->guest_rip != w->from));
}

static void on_event(void *context, const struct vmt_event *e)
{
	struct recording *r = context;
	struct transition *t;

	if (e->type == VMT_EVENT_NOTE && (e->has & VMT_HAS_VECTOR))
		take_interrupt(r, e);
	if (e->type != VMT_EVENT_ENTRY && e->type != VMT_EVENT_EXIT)
		return;
	assert_true(r->got_count < MAX_TRANSITIONS);
	t = &r->got[r->got_count++];
	*t = (struct transition){ .exit = e->type == VMT_EVENT_EXIT,
				  .host_tsc = e->host_tsc.host_tsc,
				  .tsc_error = e->host_tsc_error,
				  .vmcs = e->vmcs,
				  .rip = e->guest_rip,
				  .cr3 = e->guest_cr3,
				  .reason = e->reason | e->reason_flags,
				  .qualification = e->qualification,
				  .vector = e->vector,
				  .has_vector = e->has & VMT_HAS_VECTOR,
				  .has_rip = e->has & VMT_HAS_RIP,
				  .has_cr3 = e->has & VMT_HAS_CR3,
				  .has_reason = e->has & VMT_HAS_REASON,
				  .has_vmcs = e->has & VMT_HAS_VMCS,
				  .has_tsc = e->has & VMT_HAS_HOST_TSC };
}

static void on_packet(void *context, uint64_t offset, const uint8_t *bytes,
		      const struct vmt_pt_packet *packet)
{
	struct recording *r = context;
	const struct tsc_packet *t = &r->tscs[r->tsc_seen];
	uint64_t first, last;

	(void)bytes;
	if (packet->type != VMT_PT_TSC)
		return;
	assert_true(r->tsc_seen < r->tsc_count);
	r->tsc_seen++;
	r->tsc_wrong += offset != t->offset || packet->payload != (t->seen & ((1ULL << 56) - 1));
	if (t->nr && (!vmx_tsc_to_host(&t->map, t->seen, &first, &last) || t->host < first ||
		      t->host > last))
		r->tsc_wrong++;
}

static void decode(struct recording *r, size_t piece)
{
	const struct vmt_pt_vm vm = { .vmcs = VMT_PT_ANY_VMCS,
				      .map = r->map,
				      .has_map = r->has_map && !r->maps_differ };
	const struct vmt_pt_decoder_options options = {
		.clock = { .mtc_freq = MTC_FREQ(r->ctl),
			   .tsc_num = 292,
			   .art_den = 2,
			   .nom_ratio = 35 },
		.vms = &vm,
		.nr_vms = 1,
		.host_cpu = UINT32_MAX,
		.emit = on_event,
		.packet = on_packet,
		.context = r,
	};
	struct vmt_pt_decoder *d = vmt_pt_decoder_new(&options);
	struct vmt_ledger ledger;

	assert_non_null(d);
	r->got_count = r->tsc_seen = r->tsc_wrong = 0;
	r->interrupt_seen = r->interrupt_wrong = 0;
	for (size_t at = 0; at < r->stream.size; at += piece)
		vmt_pt_decoder_feed(d, r->stream.bytes + at,
				    piece < r->stream.size - at ? piece : r->stream.size - at);
	vmt_pt_decoder_end(d);
	ledger = vmt_pt_decoder_ledger(d);
	vmt_pt_decoder_free(d);
	assert_int_equal(ledger.bytes_total, r->stream.size);
	assert_int_equal(ledger.bytes_skipped, 0);
}

/* ---- both ---- */
#define DIFFERS(got, want, member) ((got)->member != (want)->member ? #member : NULL)

/* The first member that is wrong or missing although the stream has it; NULL when there is none. */
static const char *compare(const struct recording *r, const struct transition *g,
			   const struct transition *w)
{
	const bool ips = (r->ctl & CTL_EVENTS) || ((r->ctl & CTL_BRANCH) && !(r->ctl & CTL_RANGES));

	if (g->exit != w->exit)
		return "kind";
	if (g->has_rip ? g->rip != w->rip : ips && w->exit)
		return "rip";
	if (g->has_cr3 && g->cr3 != w->cr3)
		return "cr3";
	if (g->has_vmcs ? g->vmcs != w->vmcs : !(r->ctl & CTL_TRACE_EN))
		return "vmcs";
	if (w->exit && (r->ctl & CTL_EVENTS)) {
		if (!g->has_reason)
			return "no reason";
		if (g->reason != w->reason || g->qualification != w->qualification)
			return "reason";
		if (w->has_vector && (!g->has_vector || g->vector != w->vector))
			return "vector";
	}
	if (g->has_tsc && g->tsc_error != VMT_PT_NO_BOUND &&
	    (g->host_tsc > w->host_tsc + g->tsc_error || g->host_tsc + g->tsc_error < w->host_tsc))
		return "host_tsc";
	return NULL;
}

static void compare_all(struct recording *r, bool concealed)
{
	size_t wrong = 0;

	if (concealed || !(r->ctl & CTL_OS))
		r->wanted_count = 0;
	if (r->got_count != r->wanted_count)
		print_error("%s: %zu transitions, the truth has %zu\n", r->truth.name, r->got_count,
			    r->wanted_count);
	for (size_t i = 0; i < r->got_count && i < r->wanted_count; i++) {
		const struct transition *g = &r->got[i], *w = &r->wanted[i];
		const char *what = compare(r, g, w);

		if (what && wrong++ < 5)
			print_error("%s: transition %zu (%s): %s: rip %llx/%llx cr3 %llx/%llx vmcs "
				    "%llx/%llx reason %llx/%llx tsc %llx+-%llx/%llx\n",
				    r->truth.name, i, w->exit ? "exit" : "entry", what,
				    (unsigned long long)g->rip, (unsigned long long)w->rip,
				    (unsigned long long)g->cr3, (unsigned long long)w->cr3,
				    (unsigned long long)g->vmcs, (unsigned long long)w->vmcs,
				    (unsigned long long)g->reason, (unsigned long long)w->reason,
				    (unsigned long long)g->host_tsc,
				    (unsigned long long)g->tsc_error,
				    (unsigned long long)w->host_tsc);
	}
	assert_int_equal(wrong, 0);
	assert_int_equal(r->got_count, r->wanted_count);
	if (r->ctl & CTL_OS) { /* else only what user code comes to */
		assert_int_equal(r->interrupt_wrong, 0);
		assert_int_equal(r->interrupt_seen, r->interrupt_count);
	}
	assert_int_equal(r->tsc_wrong, 0);
	assert_int_equal(r->tsc_seen, r->tsc_count);
}

struct test {
	char name[160];
	const char *pack;
	char member[101];
};

static void test_recording(void **state)
{
	static const size_t pieces[] = { 0, 7 }; /* 0: the whole */
	const struct test *test = *state;
	struct recording *r = calloc(1, sizeof(*r));
	struct ptcpu_pack pack;

	assert_non_null(r);
	assert_true(ptcpu_pack_open(&pack, test->pack));
	while (ptcpu_pack_next(&pack, &r->truth, ".truth") && strcmp(r->truth.name, test->member))
		;
	assert_true(ptcpu_pack_beside(&pack, &r->truth, ".pt", &r->stream));
	read_truth(r);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		decode(r, pieces[i] ? pieces[i] : r->stream.size + 1);
		compare_all(r, strstr(test->member, "conceal") != NULL);
	}
	ptcpu_pack_close(&pack);
	free(r);
}

static size_t list_tests(const char *path, struct test *tests, struct CMUnitTest *rows,
			 size_t count)
{
	struct ptcpu_member m = { .next = 0 };
	struct ptcpu_pack pack;

	if (!ptcpu_pack_open(&pack, path))
		exit(1);
	while (ptcpu_pack_next(&pack, &m, ".truth") && count < MAX_TESTS) {
		struct test *t = &tests[count];

		t->pack = path;
		memcpy(t->member, m.name, sizeof(m.name));
		snprintf(t->name, sizeof(t->name), "%s", m.name);
		rows[count++] = (struct CMUnitTest){ .name = t->name,
						     .test_func = test_recording,
						     .initial_state = t };
	}
	ptcpu_pack_close(&pack);
	return count;
}

int main(int argc, char **argv)
{
	static struct test tests[MAX_TESTS];
	static struct CMUnitTest rows[MAX_TESTS];
	const char *top = getenv("VMT_TOP");
	glob_t packs = { .gl_pathc = 0 };
	size_t count = 0;
	char pattern[1024];
	int status;

	snprintf(pattern, sizeof(pattern), "%s/tests/golden/ptcpu/*.tar.zst", top ? top : ".");
	if (argc < 2 && glob(pattern, 0, NULL, &packs))
		return 1;
	for (size_t i = 0; i < packs.gl_pathc; i++)
		count = list_tests(packs.gl_pathv[i], tests, rows, count);
	for (int i = 1; i < argc; i++)
		count = list_tests(argv[i], tests, rows, count);
	status = _cmocka_run_group_tests("ptcpu", rows, count, NULL, NULL);
	globfree(&packs);
	return status;
}
