// SPDX-License-Identifier: LGPL-2.1-or-later
/* decode/analyze/input: a capture of either format as one stream of events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "decode/analyze/input.h"
#include "decode/store/store.h"
#include "tests/support/kvm_load.h"
#include "tests/support/memory_file.h"

#define START_NS UINT64_C(1000000000)

/* ---- what comes out ---- */

struct seen {
	struct vmt_event *events;
	size_t n, cap;
	struct vmt_input_facts facts;
	struct vmt_ledger ledger;
	struct vmt_join_counts counts;
	char host[32], domain[2][16];
};

static void take(void *context, const struct vmt_event *event)
{
	struct seen *seen = context;

	if (seen->n == seen->cap) {
		seen->cap = seen->cap ? 2 * seen->cap : 1024;
		seen->events = realloc(seen->events, seen->cap * sizeof(*seen->events));
		assert_non_null(seen->events);
	}
	seen->events[seen->n++] = *event;
}

static void keep_facts(struct seen *seen, struct vmt_input *input)
{
	seen->facts = *vmt_input_facts(input);
	seen->ledger = vmt_input_ledger(input);
	seen->counts = vmt_input_counts(input);
	snprintf(seen->host, sizeof(seen->host), "%s", seen->facts.host ? seen->facts.host : "");
	for (size_t i = 0; i < seen->facts.nr_domains && i < 2; i++)
		snprintf(seen->domain[i], sizeof(seen->domain[i]), "%s",
			 seen->facts.domains[i].name ? seen->facts.domains[i].name : "");
}

static struct seen run_fd(int fd, const struct vmt_input_options *options)
{
	static const struct vmt_input_options none;
	struct seen seen = { 0 };
	struct vmt_reader *reader;
	struct vmt_input *input;

	assert_int_equal(vmt_reader_from_fd(&reader, fd, NULL, NULL), 0);
	assert_int_equal(vmt_input_open(&input, reader, options ? options : &none, NULL), 0);
	assert_int_equal(vmt_input_run(input, take, &seen, NULL), 0);
	keep_facts(&seen, input);
	vmt_input_close(input);
	assert_true(seen.ledger.bytes_total ==
		    seen.ledger.bytes_decoded + seen.ledger.bytes_skipped);
	return seen;
}

static size_t count(const struct seen *seen, enum vmt_event_type type)
{
	size_t n = 0;

	for (size_t i = 0; i < seen->n; i++)
		n += seen->events[i].type == type;
	return n;
}

/* ---- perf.data ---- */

struct perf_sample {
	uint8_t *bytes;
	size_t len;
	uint64_t records, exits, msr_writes, halts;
};

static struct perf_sample make_perf(bool pipe, bool zstd, bool rounds)
{
	struct vmt_perfdata_file_options options = { .kernel = "6.1",
						     .events = vmt_kvm_load_events,
						     .isa = VMT_ISA_VMX,
						     .cpus = 3,
						     .pipe = pipe,
						     .zstd = zstd,
						     .fd = -1 };
	struct vmt_perfdata_file *file = vmt_perfdata_file_new(&options);
	struct vmt_kvm_load *load = vmt_kvm_load_new(file, VMT_ISA_VMX, 3, 5);
	struct perf_sample s = { 0 };

	s.records = vmt_kvm_load_fill(load, file, 4000, rounds);
	vmt_perfdata_file_finish(file);
	s.exits = vmt_kvm_load_all_exits(load);
	s.msr_writes = vmt_kvm_load_exits(load, 32);
	s.halts = vmt_kvm_load_exits(load, 12);
	s.bytes = vmt_perfdata_file_take(file, &s.len);
	vmt_kvm_load_free(load);
	vmt_perfdata_file_free(file);
	return s;
}

static uint64_t of_reason(const struct seen *seen, uint32_t reason)
{
	uint64_t n = 0;

	for (size_t i = 0; i < seen->n; i++)
		n += seen->events[i].type == VMT_EVENT_EXIT && seen->events[i].reason == reason;
	return n;
}

static void test_perfdata_counts(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		struct perf_sample s = make_perf(i & 1, i & 2, i & 4);
		struct seen seen = run_fd(vmt_memory_file(s.bytes, s.len), NULL);

		assert_int_equal(seen.counts.exits, s.exits);
		assert_int_equal(seen.counts.unmatched_exits + seen.counts.unmatched_entries, 0);
		assert_int_equal(count(&seen, VMT_EVENT_EXIT), s.exits);
		assert_int_equal(of_reason(&seen, 32), s.msr_writes);
		assert_int_equal(of_reason(&seen, 12), s.halts);
		assert_int_equal(seen.facts.late, 0);
		assert_int_equal(seen.facts.isa, VMT_ISA_VMX);
		assert_string_equal(seen.host, "host");
		assert_string_equal(seen.facts.format, "perf.data");
		assert_true(seen.facts.closed);
		assert_int_equal(seen.ledger.bytes_total, s.len);
		assert_int_equal(seen.ledger.bytes_skipped, 0);
		for (size_t e = 0; e < seen.n; e++) {
			const struct vmt_event *event = &seen.events[e];

			assert_int_equal(event->tid, VMT_KVM_LOAD_PID + 1 + event->cpu);
			assert_int_equal(event->vcpu, event->cpu);
			if (event->type == VMT_EVENT_EXIT && event->reason == 32)
				assert_int_equal(event->key.kind, VMT_KEY_MSR);
		}
		free(seen.events);
		free(s.bytes);
	}
}

/* ---- .vmt ---- */

/*
 * Two domains: web01 with vCPU 0 and 1, of which the thread numbers run the other way round, and
 * db01. Every exit lasts 2 us (port 0x3f8), every stretch in the guest 8 us.
 */
static const char session[] =
	"{\"schema\":\"vmtrace-session/1\",\"tool\":\"vmtrace "
	"0.1.0\",\"session\":\"s1\",\"backend\":"
	"\"kvm\",\"host\":{\"hostname\":\"kvm7\",\"kernel\":\"6.18\",\"isa\":\"vmx\"},\"start_ns\":"
	"1000000000,\"has_switches\":true,\"domains\":[{\"name\":\"web01\",\"uuid\":null,\"pid\":"
	"4000,"
	"\"vcpus\":[{\"id\":1,\"tid\":4001},{\"id\":0,\"tid\":4002}],\"threads\":[{\"tid\":4009,"
	"\"role\":\"iothread\",\"name\":\"IO "
	"iothread1\"}]},{\"name\":\"db01\",\"uuid\":null,\"pid\":"
	"5000,\"vcpus\":[{\"id\":0,\"tid\":5001}],\"threads\":[]}]}";

struct vmt_sample_file {
	char path[64];
	struct vmt_store_writer *writer;
	struct vmt_machine *machine;
	struct vmt_stream ring;
};

static void begin(struct vmt_sample_file *f, bool with_anchor)
{
	static unsigned int number;
	struct vmt_store_options options = { .force = true, .file_id = 1 };
	struct vmt_anchor anchor = {
		.host_ns = START_NS, .time_zero = 1000, .time_mult = 1u << 20, .time_shift = 21
	};
	struct vmt_store_chunk chunk = { .type = VMT_CHUNK_ANCHOR,
					 .cpu = -1,
					 .nr_parts = 1,
					 .parts = { { &anchor, sizeof(anchor) } } };
	const struct vmt_format *formats;
	size_t n;

	*f = (struct vmt_sample_file){ 0 };
	snprintf(f->path, sizeof(f->path), "/tmp/vmt-input-%d-%u.vmt", (int)getpid(), number++);
	assert_int_equal(vmt_store_create(&f->writer, f->path, &options, NULL), 0);
	f->machine = vmt_machine_new("6.18", &f->ring);
	assert_int_equal(vmt_store_session(f->writer, session, NULL), 0);
	if (with_anchor)
		assert_int_equal(vmt_store_append(f->writer, &chunk, NULL), 0);
	n = vmt_machine_formats(f->machine, &formats);
	for (size_t i = 0; i < n; i++) {
		struct vmt_ring_attr attr = vmt_stream_attr(formats[i].id);
		uint64_t id = i + 1;
		size_t len;
		char *text = vmt_stream_format_text("6.18", formats[i].name, &len);

		assert_int_equal(vmt_store_attr(f->writer, &attr, &id, 1, NULL), 0);
		assert_int_equal(vmt_store_format(f->writer, text, NULL), 0);
		free(text);
	}
}

static struct vmt_machine_exit exit_of(uint32_t pid, uint32_t tid, uint32_t vcpu)
{
	return (struct vmt_machine_exit){ .pid = pid,
					  .tid = tid,
					  .cpu = vcpu,
					  .vcpu = vcpu,
					  .isa = VMT_ISA_VMX,
					  .reason = 30,
					  .info1 = 0x3f80000,
					  .rip = 0x1000 + tid,
					  .gap_ns = 2000,
					  .guest_ns = 8000 };
}

static void put_exits(struct vmt_sample_file *f, struct vmt_machine_exit x, unsigned int n)
{
	struct vmt_store_chunk chunk = {
		.type = VMT_CHUNK_RECORDS, .stream = x.tid, .cpu = (int32_t)x.cpu, .nr_parts = 1
	};

	f->ring.len = 0;
	while (n--)
		vmt_machine_run(f->machine, &x);
	chunk.parts[0] = (struct vmt_store_part){ f->ring.bytes, f->ring.len };
	assert_int_equal(vmt_store_append(f->writer, &chunk, NULL), 0);
}

/* Every thread runs n exits more, ring by ring. */
static void put_round(struct vmt_sample_file *f, unsigned int n)
{
	put_exits(f, exit_of(4000, 4001, 1), n);
	put_exits(f, exit_of(4000, 4002, 0), n);
	put_exits(f, exit_of(5000, 5001, 0), n);
	assert_int_equal(vmt_store_round(f->writer, 0, NULL), 0);
}

static void put_mark(struct vmt_sample_file *f, uint64_t time_ns, uint32_t domain, const char *name)
{
	char text[160];

	snprintf(text, sizeof(text),
		 "{\"time_ns\":%llu,\"domain\":%u,\"name\":\"%s\",\"detail\":null}",
		 (unsigned long long)time_ns, domain, name);
	assert_int_equal(vmt_store_mark(f->writer, text, time_ns, NULL), 0);
}

static struct seen end(struct vmt_sample_file *f, const struct vmt_input_options *options)
{
	static const struct vmt_input_options none;
	struct seen seen = { 0 };
	struct vmt_reader *reader;
	struct vmt_input *input;

	assert_int_equal(vmt_store_finish(f->writer, NULL), 0);
	assert_int_equal(vmt_reader_open(&reader, f->path, NULL, NULL), 0);
	assert_int_equal(vmt_input_open(&input, reader, options ? options : &none, NULL), 0);
	assert_int_equal(vmt_input_run(input, take, &seen, NULL), 0);
	keep_facts(&seen, input);
	vmt_input_close(input);
	unlink(f->path);
	vmt_machine_free(f->machine);
	vmt_stream_free(&f->ring);
	return seen;
}

static void test_session_document(void **state)
{
	struct vmt_sample_file f;
	struct seen seen;
	size_t web01 = 0, db01 = 0;

	(void)state;
	begin(&f, false);
	put_round(&f, 10);
	put_round(&f, 10);
	seen = end(&f, NULL);
	assert_int_equal(seen.facts.nr_domains, 2);
	assert_string_equal(seen.domain[0], "web01");
	assert_string_equal(seen.domain[1], "db01");
	assert_string_equal(seen.host, "kvm7");
	assert_true(seen.facts.has_switches && seen.facts.closed);
	assert_int_equal(seen.facts.start_ns, START_NS);
	assert_int_equal(seen.facts.stop_ns, START_NS + 20 * 10000);
	for (size_t i = 0; i < seen.n; i++) {
		const struct vmt_event *e = &seen.events[i];

		assert_true(e->has & VMT_HAS_DOMAIN && e->has & VMT_HAS_VCPU);
		assert_int_equal(e->domain, e->pid == 5000);
		assert_int_equal(e->vcpu, e->tid == 4001);
		web01 += e->type == VMT_EVENT_EXIT && !e->domain;
		db01 += e->type == VMT_EVENT_EXIT && e->domain;
		assert_false(e->has & VMT_HAS_HOST_TSC);
	}
	assert_int_equal(web01, 40);
	assert_int_equal(db01, 20);
	assert_int_equal(seen.facts.late, 0);
	free(seen.events);
}

static void test_host_tsc(void **state)
{
	struct vmt_sample_file f;
	struct seen seen;

	(void)state;
	begin(&f, true);
	put_round(&f, 5);
	seen = end(&f, NULL);
	assert_true(seen.facts.tsc_convertible);
	for (size_t i = 0; i < seen.n; i++) {
		const struct vmt_event *e = &seen.events[i];

		/* time = zero + tsc / 2: two values map to each */
		assert_true(e->has & VMT_HAS_HOST_TSC);
		assert_int_equal(e->host_tsc.host_tsc, 2 * (e->time.host_ns - 1000));
		assert_int_equal(e->host_tsc_error, 1);
	}
	free(seen.events);
}

static void test_marks_in_order(void **state)
{
	struct vmt_sample_file f;
	struct seen seen;
	size_t marks = 0;

	(void)state;
	begin(&f, false);
	/* They stand in the file before and behind the records of their time. */
	put_mark(&f, START_NS + 55000, 0, "paused");
	put_mark(&f, START_NS + 12000, 1, "started");
	put_round(&f, 10);
	put_mark(&f, START_NS + 150001, 0, "resumed");
	put_round(&f, 10);
	put_mark(&f, START_NS + 300000, 1, "stopped");
	seen = end(&f, NULL);
	for (size_t i = 0; i < seen.n; i++) {
		const struct vmt_event *mark = &seen.events[i];

		if (mark->type != VMT_EVENT_MARK)
			continue;
		assert_string_equal(mark->name, ((const char *[]){ "started", "paused", "resumed",
								   "stopped" })[marks++]);
		for (size_t j = 0; j < seen.n; j++) {
			if (seen.events[j].type != VMT_EVENT_ENTRY)
				continue;
			if (j < i)
				assert_true(seen.events[j].time.host_ns <= mark->time.host_ns);
			else
				assert_true(seen.events[j].time.host_ns >= mark->time.host_ns);
		}
	}
	assert_int_equal(marks, 4);
	free(seen.events);
}

static struct seen windowed(struct vmt_input_options options)
{
	struct vmt_sample_file f;

	begin(&f, false);
	for (unsigned int i = 0; i < 10; i++)
		put_round(&f, 10);
	return end(&f, &options);
}

/* One millisecond of capture, exits every 10 us: 300 exits in all. */
static void test_window(void **state)
{
	static const struct {
		struct vmt_input_options options;
		uint64_t from_us, to_us;
	} cases[] = {
		{ { .has_from = true, .from = 0.0005 }, 500, 1000 },
		{ { .has_to = true, .to = 0.00025 }, 0, 250 },
		{ { .has_from = true, .has_to = true, .from = 0.0001, .to = 0.0003 }, 100, 300 },
		{ { .has_from = true, .has_to = true, .from = 20, .to = 40, .percent = true },
		  200,
		  400 },
		{ { .has_from = true, .has_to = true, .from = 2, .to = 3 }, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct seen seen = windowed(cases[i].options);
		uint64_t from = START_NS + 1000 * cases[i].from_us;
		uint64_t to = START_NS + 1000 * cases[i].to_us;
		size_t exits = count(&seen, VMT_EVENT_EXIT);

		for (size_t e = 0; e < seen.n; e++)
			assert_true(seen.events[e].time.host_ns >= from &&
				    seen.events[e].time.host_ns <= to);
		assert_true(exits >=
			    3 * (cases[i].to_us - cases[i].from_us) / 10 - (exits ? 3 : 0));
		assert_true(exits <= 3 * (cases[i].to_us - cases[i].from_us) / 10 + 3);
		assert_true(seen.facts.start_ns <= seen.facts.stop_ns);
		if (exits) {
			assert_int_equal(seen.facts.start_ns, from);
			assert_int_equal(seen.facts.stop_ns, to);
		}
		free(seen.events);
	}
}

/* Whether an exit of [before, after] us got a duration across the loss. */
static void assert_no_duration_across(const struct seen *seen, uint64_t loss_ns)
{
	for (size_t i = 0; i < seen->n; i++) {
		const struct vmt_event *e = &seen->events[i];

		if (e->type == VMT_EVENT_EXIT && e->has & VMT_HAS_DURATION)
			assert_false(e->time.host_ns < loss_ns &&
				     e->time.host_ns + e->duration_ns > loss_ns);
	}
}

static void test_ring_loss(void **state)
{
	struct vmt_sample_file f;
	struct vmt_machine_exit x = exit_of(4000, 4001, 1);
	struct vmt_store_chunk chunk = {
		.type = VMT_CHUNK_RECORDS, .stream = 4001, .cpu = 1, .nr_parts = 1
	};
	const struct vmt_stream_value lone_exit[] = { { "exit_reason", 10 },
						      { "isa", VMT_ISA_VMX },
						      { "vcpu_id", 1 } };
	struct vmt_stream_at at;
	struct seen seen;
	uint64_t loss_ns;

	(void)state;
	begin(&f, false);
	put_exits(&f, x, 5);
	f.ring.len = 0;
	loss_ns = vmt_machine_now(f.machine, 4001) + 1000;
	at = (struct vmt_stream_at){ loss_ns, 1, 4000, 4001, 1 };
	vmt_stream_lost(&f.ring, &at, 7);
	/* The next record is an exit: the entry is among the lost. */
	x.gap_ns = 50000;
	vmt_machine_event(f.machine, "kvm_exit", &x, 40000, lone_exit,
			  sizeof(lone_exit) / sizeof(lone_exit[0]));
	chunk.parts[0] = (struct vmt_store_part){ f.ring.bytes, f.ring.len };
	assert_int_equal(vmt_store_append(f.writer, &chunk, NULL), 0);
	put_exits(&f, x, 5);
	seen = end(&f, NULL);
	assert_int_equal(count(&seen, VMT_EVENT_LOSS), 1);
	assert_int_equal(count(&seen, VMT_EVENT_GAP), 1);
	assert_int_equal(count(&seen, VMT_EVENT_EXIT), 11);
	assert_int_equal(seen.ledger.records_lost, 7);
	assert_int_equal(seen.ledger.overflows, 1);
	assert_no_duration_across(&seen, loss_ns);
	free(seen.events);
}

/* A loss that the writer noted between two rounds: nothing is measured across it. */
static void test_file_loss(void **state)
{
	struct vmt_sample_file f;
	struct seen seen;
	uint64_t loss_ns;

	(void)state;
	begin(&f, false);
	put_round(&f, 5);
	loss_ns = vmt_machine_now(f.machine, 4001);
	assert_int_equal(vmt_store_loss(f.writer, 4001, "no-space", 4096, 9, loss_ns, NULL), 0);
	put_round(&f, 5);
	seen = end(&f, NULL);
	assert_int_equal(count(&seen, VMT_EVENT_LOSS), 1);
	assert_int_equal(count(&seen, VMT_EVENT_EXIT), 30);
	assert_int_equal(seen.ledger.records_lost, 9);
	assert_no_duration_across(&seen, loss_ns + 1);
	free(seen.events);
}

static void test_what_is_no_capture(void **state)
{
	static const uint8_t text[] = "neither of the two, and longer than a magic";
	static const struct vmt_input_options none;
	struct vmt_reader *reader;
	struct vmt_input *input;
	struct vmt_diag diag = { 0 };

	(void)state;
	for (size_t len = 0; len <= sizeof(text); len += sizeof(text)) {
		vmt_diag_clear(&diag);
		assert_int_equal(vmt_reader_from_fd(&reader, vmt_memory_pipe(text, len), NULL,
						    NULL),
				 0);
		assert_int_equal(vmt_input_open(&input, reader, &none, &diag),
				 len ? VMT_E_DAMAGED : VMT_E_TRUNCATED);
		assert_true(diag.what[0] && diag.cure[0]);
		vmt_reader_close(reader);
	}
}

/* A percentage needs the span, and a pipe cannot be read twice. */
static void test_percent_of_a_pipe(void **state)
{
	struct vmt_input_options options = { .has_from = true, .from = 50, .percent = true };
	struct perf_sample s = make_perf(true, false, true);
	struct vmt_reader *reader;
	struct vmt_input *input;
	struct vmt_diag diag = { 0 };

	(void)state;
	assert_int_equal(vmt_reader_from_fd(&reader, vmt_memory_pipe(s.bytes, s.len), NULL, NULL),
			 0);
	assert_int_equal(vmt_input_open(&input, reader, &options, &diag), VMT_E_USAGE);
	vmt_reader_close(reader);
	free(s.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_perfdata_counts),
		cmocka_unit_test(test_session_document),
		cmocka_unit_test(test_host_tsc),
		cmocka_unit_test(test_marks_in_order),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_ring_loss),
		cmocka_unit_test(test_file_loss),
		cmocka_unit_test(test_what_is_no_capture),
		cmocka_unit_test(test_percent_of_a_pipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
