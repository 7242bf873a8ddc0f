// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Triggers: their texts, and when they fire on records out of a kernel's ring, in the records' own
 * time. Rings are emptied every 25 ms of that time, as a recorder with a trigger does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "host/capture/capture.h"
#include "host/capture/ring.h"
#include "tests/support/stream.h"

#define MS	   UINT64_C(1000000)
#define DRAIN_NS   (25 * MS)
#define RING_BYTES (8u << 20)
#define TID	   4711u

/* ---- texts ---- */

static const struct {
	const char *text;
	enum vmt_trigger_kind kind;
	uint32_t vmx_reason, svm_reason;
	unsigned int percentile;
	uint64_t limit, for_ms;
} good[] = {
	{ "exits>50k/s for 200ms", VMT_TRIGGER_EXITS, -1u, -1u, 0, 50000, 200 },
	{ "exits>0/s", VMT_TRIGGER_EXITS, -1u, -1u, 0, 0, 100 },
	{ " exits > 1.5M/s  for  1.5s ", VMT_TRIGGER_EXITS, -1u, -1u, 0, 1500000, 1500 },
	{ "reason=EPT_MISCONFIG>5k/s", VMT_TRIGGER_REASON, 49, -1u, 0, 5000, 100 },
	{ "reason=npf>5k/s", VMT_TRIGGER_REASON, -1u, 0x400, 0, 5000, 100 },
	{ "reason=0x31>2G/s", VMT_TRIGGER_REASON, 49, 49, 0, 2000000000, 100 },
	{ "p99(HLT)>1ms", VMT_TRIGGER_PERCENTILE, 12, 0x78, 99, 1000000, 1000 },
	{ "p5(hlt)>2.5us for 4ms", VMT_TRIGGER_PERCENTILE, 12, 0x78, 5, 2500, 4 },
	{ "steal>20%", VMT_TRIGGER_STEAL, -1u, -1u, 0, 20000, 200 },
	{ "steal>0.5% for 1m", VMT_TRIGGER_STEAL, -1u, -1u, 0, 500, 60000 },
};

static const struct {
	const char *text;
	size_t offset;
	const char *expected;
} bad[] = {
	{ "", 0, "exits, reason=NAME, p99(NAME) or steal" },
	{ "exit>5/s", 0, "exits, reason=NAME, p99(NAME) or steal" },
	{ "exits 5/s", 6, ">" },
	{ "exits>/s", 6, "a number" },
	{ "exits>-1/s", 6, "a number" },
	{ "exits>5", 7, "k, M, G or /s" },
	{ "exits>5k", 8, "/s" },
	{ "exits>5T/s", 7, "k, M, G or /s" },
	{ "exits>5k/s for", 14, "a number" },
	{ "exits>5k/s for 200", 18, "ns, us, ms, s or m" },
	{ "exits>5k/s for 3ms", 14, "a time from 4ms to 60s" },
	{ "exits>5k/s for 2m", 14, "a time from 4ms to 60s" },
	{ "exits>5k/s or steal>1%", 11, "`for TIME` or the end" },
	{ "exits>1234567890123/s", 18, "a number of at most 12 digits, and 3 behind the point" },
	{ "exits>999999999999G/s", 19, "a smaller rate" },
	{ "reason=EPT>5/s", 7, "the name or number of an exit reason, as EPT_MISCONFIG" },
	{ "reason=0xffffffff>5/s", 7, "the number of an exit reason" },
	{ "reason HLT>5/s", 7, "=" },
	{ "p0(HLT)>1ms", 2, "a percentile from 1 to 99" },
	{ "p100(HLT)>1ms", 3, "a percentile from 1 to 99" },
	{ "p99 HLT>1ms", 4, "(" },
	{ "p99(HLT>1ms", 7, ")" },
	{ "p99(HLT)>1", 10, "ns, us, ms, s or m" },
	{ "steal>101%", 9, "at most 100 %" },
	{ "steal>20", 8, "%" },
};

static void test_texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct vmt_trigger t;

		assert_int_equal(vmt_trigger_parse(good[i].text, &t, NULL), 0);
		assert_int_equal(t.kind, good[i].kind);
		assert_int_equal(t.vmx_reason, good[i].vmx_reason);
		assert_int_equal(t.svm_reason, good[i].svm_reason);
		assert_int_equal(t.percentile, good[i].percentile);
		assert_int_equal(t.limit, good[i].limit);
		assert_int_equal(t.for_ns, good[i].for_ms * MS);
		assert_string_equal(t.text, good[i].text);
	}
}

static void test_errors(void **state)
{
	char text[VMT_TRIGGER_TEXT_MAX + 2];
	struct vmt_trigger t;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct vmt_diag diag = { 0 };

		assert_int_equal(vmt_trigger_parse(bad[i].text, &t, &diag), VMT_E_USAGE);
		if (!diag.has_offset || diag.offset != bad[i].offset ||
		    !strstr(diag.cure, bad[i].expected))
			fail_msg("'%s': %s (%s)", bad[i].text, diag.what, diag.cure);
	}
	memset(text, ' ', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	memcpy(text, "steal>1%", 8);
	assert_int_equal(vmt_trigger_parse(text, &t, NULL), VMT_E_USAGE);
	text[sizeof(text) - 2] = '\0';
	assert_int_equal(vmt_trigger_parse(text, &t, NULL), 0);
}

/* ---- records ---- */

struct bed {
	struct vmt_trigger_watch *watch;
	struct vmt_machine *machine;
	struct vmt_stream stream;
	struct perf_event_mmap_page page;
	uint8_t *ring_bytes;
	uint64_t drained_ns;
	unsigned int hits;
	struct vmt_trigger_hit hit; /* the first */
	uint64_t seen_ns;	    /* when the recorder saw it */
};

static void bed_open(struct bed *b, const char *text)
{
	struct vmt_trigger trigger;

	memset(b, 0, sizeof(*b));
	assert_int_equal(vmt_trigger_parse(text, &trigger, NULL), 0);
	assert_int_equal(vmt_trigger_watch_new(&b->watch, &trigger, 1, NULL), 0);
	b->machine = vmt_machine_new("6.18", &b->stream);
	b->ring_bytes = aligned_alloc(8, RING_BYTES);
	for (int i = 0; i < 2; i++) {
		size_t len;
		char *format = vmt_stream_format_text("6.18", i ? "kvm_entry" : "kvm_exit", &len);

		vmt_trigger_watch_format(b->watch, format, len);
		free(format);
	}
}

static void bed_close(struct bed *b)
{
	vmt_trigger_watch_free(b->watch);
	vmt_machine_free(b->machine);
	vmt_stream_free(&b->stream);
	free(b->ring_bytes);
}

static int sink(void *context, const struct vmt_store_chunk *chunk, struct vmt_diag *diag)
{
	(void)context;
	(void)chunk;
	(void)diag;
	return 0;
}

/* What the machine wrote goes through the ring, and the recorder decides. */
static void drain(struct bed *b, uint64_t now_ns)
{
	struct vmt_capture_ring ring = {
		.page = &b->page, .data = b->ring_bytes, .data_bytes = RING_BYTES, .watch = b->watch
	};
	struct vmt_capture_counts counts = { 0 };
	struct vmt_trigger_hit hit;

	for (size_t i = 0; i < b->stream.len; i++)
		b->ring_bytes[(b->page.data_head + i) % RING_BYTES] = b->stream.bytes[i];
	b->page.data_head += b->stream.len;
	b->stream.len = 0;
	assert_int_equal(vmt_capture_ring_drain(&ring, 0, sink, NULL, &counts, NULL), 0);
	vmt_trigger_watch_check(b->watch, now_ns);
	b->drained_ns = now_ns;
	if (!vmt_trigger_watch_take(b->watch, &hit))
		return;
	if (!b->hits++) {
		b->hit = hit;
		b->seen_ns = now_ns;
	}
}

/* Exits of a reason at a rate for a while; half of each turn is spent in the guest. */
static void run(struct bed *b, uint32_t reason, uint64_t rate, uint64_t for_ns)
{
	uint64_t each_ns = UINT64_C(1000000000) / rate;
	uint64_t end_ns = vmt_machine_now(b->machine, TID) + for_ns;
	const struct vmt_machine_exit exit = { .pid = 4700,
					       .tid = TID,
					       .isa = 1,
					       .reason = reason,
					       .gap_ns = each_ns / 2,
					       .guest_ns = each_ns - each_ns / 2 };

	while (vmt_machine_now(b->machine, TID) < end_ns) {
		vmt_machine_run(b->machine, &exit);
		if (vmt_machine_now(b->machine, TID) - b->drained_ns >= DRAIN_NS)
			drain(b, vmt_machine_now(b->machine, TID));
	}
	drain(b, vmt_machine_now(b->machine, TID));
}

/* Ten times the limit from any moment on is seen within 200 ms, and nothing before it fires. */
static void check_rate(const char *text, uint32_t quiet_reason, uint64_t quiet, uint32_t reason,
		       uint64_t storm)
{
	for (uint64_t shift = 0; shift < 50; shift += 7) {
		struct bed b;
		uint64_t start_ns;

		bed_open(&b, text);
		run(&b, quiet_reason, quiet, 400 * MS + shift * MS);
		assert_int_equal(b.hits, 0);
		start_ns = vmt_machine_now(b.machine, TID);
		run(&b, reason, storm, 300 * MS);
		assert_int_equal(b.hits, 1);
		assert_in_range(b.hit.time_ns, start_ns, start_ns + 175 * MS);
		assert_in_range(b.seen_ns, b.hit.time_ns, start_ns + 200 * MS);
		bed_close(&b);
	}
}

static void test_rates(void **state)
{
	(void)state;
	check_rate("exits>50k/s for 200ms", 12, 40000, 12, 500000);
	check_rate("reason=EPT_MISCONFIG>5k/s", 12, 40000, 49, 50000);
}

/* A limit that is not reached, a burst that does not last, and a storm that comes again. */
static void test_no_rates(void **state)
{
	struct bed b;

	(void)state;
	bed_open(&b, "exits>50k/s for 200ms");
	run(&b, 12, 49000, 1000 * MS);
	for (int i = 0; i < 5; i++) {
		run(&b, 12, 500000, 90 * MS);
		run(&b, 12, 1000, 200 * MS);
	}
	assert_int_equal(b.hits, 0);
	run(&b, 12, 60000, 2000 * MS);
	assert_int_equal(b.hits, 1);
	assert_non_null(strstr(b.hit.detail, "exits>50k/s for 200ms: 6"));
	run(&b, 12, 1000, 200 * MS);
	run(&b, 12, 60000, 400 * MS);
	assert_int_equal(b.hits, 2);
	bed_close(&b);
}

/* One exit in 300 may take longer, five may not. */
static void test_percentile(void **state)
{
	for (unsigned int slow = 1; slow <= 5; slow += 4) {
		struct bed b;

		(void)state;
		bed_open(&b, "p99(HLT)>1ms");
		for (unsigned int turn = 0; turn < 20; turn++) {
			for (unsigned int i = 0; i < 300; i++) {
				const struct vmt_machine_exit exit = {
					.pid = 4700,
					.tid = TID,
					.isa = 1,
					.reason = 12,
					/* the time since the exit before */
					.gap_ns = i % 60 == 30 && i / 60 < slow ? 2 * MS : MS / 20,
					.guest_ns = 1000,
				};

				vmt_machine_run(b.machine, &exit);
			}
			run(&b, 1, 1000, 45 * MS);
		}
		assert_int_equal(b.hits, slow > 1);
		bed_close(&b);
	}
}

/* The entry is on another CPU, whose ring is read before that of the exit. */
static void test_entry_before_exit(void **state)
{
	struct bed b;
	const uint64_t start_ns = 1000 * MS;

	(void)state;
	bed_open(&b, "p50(HLT)>1ms for 40ms");
	for (uint64_t i = 0; i < 20; i++) {
		const struct vmt_format exit = vmt_stream_format("6.18", "kvm_exit");
		const struct vmt_format entry = vmt_stream_format("6.18", "kvm_entry");
		const struct vmt_stream_value values[] = { { "exit_reason", 12 }, { "isa", 1 } };
		struct vmt_stream_at at = { .pid = 4700,
					    .tid = TID,
					    .time_ns = start_ns + i * 5 * MS + 4 * MS };

		if (i) /* the thread is known */
			vmt_stream_tracepoint(&b.stream, &entry, &at, NULL, 0);
		at.time_ns = start_ns + i * 5 * MS;
		vmt_stream_tracepoint(&b.stream, &exit, &at, values, 2);
		drain(&b, start_ns + i * 5 * MS + 4 * MS);
	}
	assert_int_equal(b.hits, 1);
	bed_close(&b);
}

/* A vCPU that is put off its CPU, and one that goes by itself. */
static void test_steal(void **state)
{
	const struct vmt_machine_exit who = { .pid = 4700, .tid = TID, .isa = 1, .reason = 12 };

	(void)state;
	for (int preempted = 0; preempted < 2; preempted++) {
		struct bed b;

		bed_open(&b, "steal>20%");
		run(&b, 12, 1000, 300 * MS);
		for (int i = 0; i < 100; i++) {
			vmt_machine_switch(b.machine, &who, 7 * MS, 1, preempted);
			vmt_machine_switch(b.machine, &who, 3 * MS, 0, 0);
			drain(&b, vmt_machine_now(b.machine, TID));
		}
		assert_int_equal(b.hits, (unsigned int)preempted);
		if (preempted)
			assert_non_null(strstr(b.hit.detail, "steal>20%: 30.0%"));
		bed_close(&b);
	}
}

/* It does not come back at all: no record tells, but time goes on. */
static void test_steal_without_end(void **state)
{
	const struct vmt_machine_exit who = { .pid = 4700, .tid = TID, .isa = 1, .reason = 12 };
	struct bed b;
	uint64_t start_ns;

	(void)state;
	bed_open(&b, "steal>10% for 100ms");
	run(&b, 12, 1000, 300 * MS);
	vmt_machine_switch(b.machine, &who, 1, 1, 1);
	start_ns = vmt_machine_now(b.machine, TID);
	for (uint64_t i = 1; i < 40; i++)
		drain(&b, start_ns + i * DRAIN_NS);
	assert_int_equal(b.hits, 1);
	assert_in_range(b.seen_ns, start_ns, start_ns + 200 * MS);
	bed_close(&b);
}

/* More threads than are followed: each counts in rates. */
static void test_many_threads(void **state)
{
	struct vmt_trigger triggers[VMT_TRIGGERS_MAX + 1];
	struct vmt_trigger_watch *w;
	struct vmt_trigger_hit hit;
	uint8_t raw[32] = { 0 };
	struct vmt_format exit = vmt_stream_format("6.18", "kvm_exit");
	size_t len;
	char *text = vmt_stream_format_text("6.18", "kvm_exit", &len);

	(void)state;
	for (size_t i = 0; i < VMT_TRIGGERS_MAX + 1; i++)
		assert_int_equal(vmt_trigger_parse(i ? "exits>10k/s for 40ms" : "steal>1%",
						   &triggers[i], NULL),
				 0);
	assert_int_equal(vmt_trigger_watch_new(&w, triggers, VMT_TRIGGERS_MAX + 1, NULL),
			 VMT_E_USAGE);
	assert_int_equal(vmt_trigger_watch_new(&w, triggers, 2, NULL), 0);
	vmt_trigger_watch_format(w, text, len);
	raw[0] = (uint8_t)exit.id;
	raw[1] = (uint8_t)(exit.id >> 8);
	for (uint32_t i = 1; i <= 4000; i++)
		vmt_trigger_watch_sample(w, i * 7, 1000 * MS + i * 10000, raw, sizeof(raw));
	vmt_trigger_watch_check(w, 1040 * MS);
	assert_true(vmt_trigger_watch_take(w, &hit));
	assert_false(vmt_trigger_watch_take(w, &hit));
	assert_non_null(strstr(hit.detail, "exits>10k/s for 40ms: 9"));
	vmt_trigger_watch_free(w);
	free(text);
}

/* What a trigger looks at must be recorded. */
static void test_backend(void **state)
{
	static const struct {
		const char *backend, *text, *needs;
	} refused[] = {
		{ "kvm", "steal>5%", "needs exits and context switches" },
		{ "sched", "steal>5%", "needs exits and context switches" },
		{ "pt", "exits>5/s", "needs exits" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct vmt_trigger trigger;
		struct vmt_capture_options options = { .backend = refused[i].backend,
						       .triggers = &trigger,
						       .nr_triggers = 1 };
		struct vmt_domains none = { 0 };
		struct vmt_diag diag = { 0 };
		struct vmt_capture *c;

		assert_int_equal(vmt_trigger_parse(refused[i].text, &trigger, NULL), 0);
		assert_int_equal(vmt_capture_open(&c, &options, &none, NULL, &diag), VMT_E_USAGE);
		assert_non_null(strstr(diag.what, refused[i].needs));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),	     cmocka_unit_test(test_errors),
		cmocka_unit_test(test_rates),	     cmocka_unit_test(test_no_rates),
		cmocka_unit_test(test_percentile),   cmocka_unit_test(test_entry_before_exit),
		cmocka_unit_test(test_steal),	     cmocka_unit_test(test_steal_without_end),
		cmocka_unit_test(test_many_threads), cmocka_unit_test(test_backend),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
