// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Capture of Intel PT from a stand-in for the kernel: how the event is set up and refused, and that
 * every byte that the kernel passed on is in the file, at its place, with each cut marked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "decode/analyze/input.h"
#include "host/capture/capture_with.h"
#include "tests/support/pt_generate.h"
#include "tests/support/pt_machine.h"
#include "tests/support/pt_read_trace.h"
#include "tests/support/remove_all.h"

#define TID 1000001

static char top[] = "/tmp/vmt-capture-pt-XXXXXX";
static char path[64];
static struct vmt_hostfs fs;

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(top))
		return -1;
	snprintf(path, sizeof(path), "%s/out.vmt", top);
	fs = vmt_ptm_files(top, false);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return vmt_remove_all(top);
}

#define DEFAULTS (UINT64_C(1) | 1u << 10 | 1u << 13 | 1u << 9 | 3u << 14 | 3u << 24 | 1u << 31)

/* ---- capture ---- */

static struct vmt_vcpu vcpus[2];
static struct vmt_domain domain;
static struct vmt_domains domains;

static pid_t domain_pid; /* 0: it has no process */

static void make_domain(void)
{
	static char name[] = "web01";

	vcpus[0] = (struct vmt_vcpu){ .id = 0, .tid = TID, .tid_source = "thread name" };
	vcpus[1] = (struct vmt_vcpu){ .id = 1, .tid = TID + 1, .tid_source = "thread name" };
	domain = (struct vmt_domain){
		.name = name, .nr_vcpus = 1, .vcpus = vcpus, .pid = domain_pid
	};
	domains = (struct vmt_domains){ 1, &domain };
}

struct session {
	struct vmt_store_writer *store;
	struct vmt_capture *capture;
};

static int try_open(struct session *s, const struct vmt_capture_options *options,
		    struct vmt_diag *diag)
{
	struct vmt_store_options store = { .force = true };
	int err;

	vmt_ptm_reset();
	make_domain();
	assert_int_equal(vmt_store_create(&s->store, path, &store, NULL), 0);
	err = vmt_capture_open_with(&s->capture, options, &domains, s->store, &vmt_ptm_ops, NULL,
				    &fs, diag);
	if (err)
		vmt_store_discard(s->store);
	return err;
}

static struct session begin(struct vmt_capture_options options)
{
	struct vmt_diag diag = { 0 };
	struct session s;

	options.backend = "pt";
	if (try_open(&s, &options, &diag))
		fail_msg("%s (%s)", diag.what, diag.cure);
	return s;
}

static void end(struct session *s)
{
	assert_int_equal(vmt_capture_close(s->capture, NULL), 0);
	assert_int_equal(vmt_store_finish(s->store, NULL), 0);
	vmt_ptm_reset();
}

static void drain(const struct session *s)
{
	struct vmt_diag diag = { 0 };

	if (vmt_capture_drain(s->capture, &diag) != 0)
		fail_msg("%s (%s)", diag.what, diag.cure);
}

static struct vmt_ptgen generate(uint64_t seed, unsigned int rounds)
{
	struct vmt_ptgen gen;

	vmt_ptgen_run(&gen, &(struct vmt_ptgen_options){ .seed = seed,
							 .rounds = rounds,
							 .nr_vms = 1,
							 .event_trace = true,
							 .branch = true,
							 .tsc = true,
							 .psb = 20 });
	return gen;
}

static uint64_t random_state;

static size_t random_below(size_t n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (size_t)(random_state >> 33) % n;
}

/*
 * The CPU writes and the recorder drains, both by chance; a full area cuts the trace off, and what
 * comes next begins with a whole packet of the stream, further on.
 */
static void run_schedule(const struct vmt_ptgen *gen, unsigned int laziness)
{
	struct session s = begin((struct vmt_capture_options){ .pt_buffer_bytes = 64u << 10 });
	size_t event = vmt_ptm_event(TID, -1), at = 0, truth = 0, nr = 0, len, nr_cuts = 0;
	uint8_t *want = malloc(gen->stream.len), *cut = calloc(1, gen->stream.len + 1), *got;
	struct vmt_pt_info info;
	uint8_t *marks;

	while (at < gen->stream.len) {
		size_t piece = 1 + random_below(random_below(8) ? 4000 : 60000), n;

		if (piece > gen->stream.len - at)
			piece = gen->stream.len - at;
		n = vmt_ptm_write(event, gen->stream.bytes + at, piece, 0);
		memcpy(want + nr, gen->stream.bytes + at, n);
		nr += n;
		at += n;
		if (n < piece) { /* the rest of it and more is never recorded */
			while (truth < gen->nr_truth && gen->truth[truth].begin < at)
				truth++;
			at = truth < gen->nr_truth ? gen->truth[truth].begin : gen->stream.len;
			nr_cuts += !cut[nr];
			cut[nr] = 1;
		}
		if (n < piece || random_below(laziness) == 0)
			drain(&s);
		assert_true(vmt_ptm_is_enabled(event));
	}
	assert_int_equal(vmt_capture_stats(s.capture).pt_areas, 1);
	assert_true(vmt_capture_stats(s.capture).pt_truncated >= nr_cuts);
	end(&s);
	got = vmt_read_trace(path, TID, &len, &marks, &info);
	assert_int_equal(len, nr);
	assert_memory_equal(got, want, nr);
	for (size_t i = 0; i < nr; i++)
		assert_true(!marks[i] == !cut[i]);
	assert_true(laziness < 50 || nr_cuts);
	assert_int_equal(info.config, DEFAULTS);
	assert_true(info.event_trace && info.tsc_num == 292 && info.art_den == 2 &&
		    info.nom_ratio == 35 && info.model == 154 && !info.per_cpu);
	free(got);
	free(marks);
	free(want);
	free(cut);
}

static void test_schedules(void **state)
{
	struct vmt_ptgen gen = generate(7, 4000);

	(void)state;
	assert_true(gen.stream.len > 400000);
	for (unsigned int i = 0; i < 40; i++) {
		random_state = i;
		run_schedule(&gen, i % 2 ? 3 : 60);
	}
	vmt_ptgen_free(&gen);
}

/* ---- a CPU beside the recorder ---- */

struct cpu {
	const struct vmt_ptgen *gen;
	size_t event;
	bool done;
};

static void *run_cpu(void *context)
{
	struct cpu *cpu = context;
	const struct vmt_ptenc *stream = &cpu->gen->stream;

	for (size_t at = 0; at < stream->len;) {
		size_t piece = 1 + at % 5000;

		if (piece > stream->len - at)
			piece = stream->len - at;
		if (vmt_ptm_room(cpu->event) < piece) { /* it waits: nothing is lost */
			usleep(100);
			continue;
		}
		at += vmt_ptm_write(cpu->event, stream->bytes + at, piece, 0);
	}
	__atomic_store_n(&cpu->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void count_exits(void *context, const struct vmt_event *event)
{
	*(size_t *)context += event->type == VMT_EVENT_EXIT && event->has & VMT_HAS_REASON;
}

/* Every exit of the generator's truth is told by the file, as report and script read it. */
static void test_beside_a_cpu(void **state)
{
	struct session s = begin((struct vmt_capture_options){ .pt_buffer_bytes = 64u << 10 });
	struct vmt_ptgen gen = generate(11, 6000);
	struct cpu cpu = { .gen = &gen, .event = vmt_ptm_event(TID, -1) };
	size_t exits = 0, want = 0, len;
	struct vmt_reader *reader;
	struct vmt_input *input;
	struct vmt_pt_info info;
	uint8_t *got, *marks;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, run_cpu, &cpu), 0);
	while (!__atomic_load_n(&cpu.done, __ATOMIC_ACQUIRE))
		drain(&s);
	pthread_join(thread, NULL);
	assert_int_equal(vmt_capture_stats(s.capture).pt_truncated, 0);
	end(&s);
	got = vmt_read_trace(path, TID, &len, &marks, &info);
	assert_int_equal(len, gen.stream.len);
	assert_memory_equal(got, gen.stream.bytes, len);
	for (size_t i = 0; i < gen.nr_truth; i++)
		want += gen.truth[i].kind == VMT_PTGEN_EXIT;
	assert_int_equal(vmt_reader_open(&reader, path, NULL, NULL), 0);
	assert_int_equal(vmt_input_open(&input, reader, &(struct vmt_input_options){ 0 }, NULL), 0);
	assert_int_equal(vmt_input_run(input, count_exits, &exits, NULL), 0);
	assert_int_equal(vmt_input_ledger(input).bytes_skipped, 0);
	vmt_input_close(input);
	assert_true(want > 1000);
	assert_int_equal(exits, want);
	free(got);
	free(marks);
	vmt_ptgen_free(&gen);
}

/* ---- a store that fails ---- */

static int full_from; /* the how manieth write finds no space; 0: none */
static int nr_writes;

static ssize_t faulty_writev(int fd, const struct iovec *iov, int n)
{
	if (full_from && ++nr_writes >= full_from) {
		errno = ENOSPC;
		return -1;
	}
	return vmt_io_system.writev(fd, iov, n);
}

struct found {
	uint64_t trace, lost, truncated;
};

/* What of the stream is in the file, each byte at its place, and what is told as lost. */
static struct found check_file(const struct vmt_ptgen *gen)
{
	const struct vmt_aux_index *index;
	struct found found = { 0 };
	struct vmt_store_reader *store;
	struct vmt_reader *reader;
	struct vmt_item item;

	assert_int_equal(vmt_reader_open(&reader, path, NULL, NULL), 0);
	assert_int_equal(vmt_store_open(&store, reader, NULL), 0);
	while (vmt_store_next(store, &item, NULL) == 1) {
		if (item.type != VMT_ITEM_LOSS)
			continue;
		found.truncated += !strcmp(item.loss_kind, "truncated");
		found.lost += !strcmp(item.loss_kind, "no-space") ? item.lost_bytes : 0;
	}
	index = vmt_store_aux_index(store);
	for (size_t i = 0; index->nr_areas && i < index->areas[0].nr_extents; i++) {
		const struct vmt_aux_extent *e = &index->areas[0].extents[i];
		uint8_t *bytes = malloc(e->len);
		size_t done;

		assert_int_equal(index->read(index->source, e, 0, bytes, e->len, &done, NULL), 0);
		assert_memory_equal(bytes, gen->stream.bytes + e->aux_offset, e->len);
		found.trace += e->len;
		free(bytes);
	}
	vmt_store_close(store);
	return found;
}

/* The disk is full for a while. */
static void run_full(const struct vmt_ptgen *gen, int fail_at)
{
	struct vmt_io_ops io = vmt_io_system;
	struct vmt_store_options store = { .force = true, .ops = &io };
	struct vmt_capture_options options = { .backend = "pt", .pt_buffer_bytes = 64u << 10 };
	struct found found;
	struct session s;
	size_t event, at = 0;
	int rounds = 0;

	io.writev = faulty_writev;
	full_from = 0;
	vmt_ptm_reset();
	make_domain();
	assert_int_equal(vmt_store_create(&s.store, path, &store, NULL), 0);
	assert_int_equal(vmt_capture_open_with(&s.capture, &options, &domains, s.store,
					       &vmt_ptm_ops, NULL, &fs, NULL),
			 0);
	event = vmt_ptm_event(TID, -1);
	full_from = fail_at;
	nr_writes = 0;
	while (at < gen->stream.len) {
		size_t n = gen->stream.len - at < 50000 ? gen->stream.len - at : 50000;
		int err;

		assert_int_equal(vmt_ptm_write(event, gen->stream.bytes + at, n, 0), n);
		at += n;
		err = vmt_capture_drain(s.capture, NULL);
		assert_true(err == 0 || err == VMT_E_FULL);
		full_from = ++rounds == fail_at / 2 + 4 ? 0 : full_from;
	}
	assert_int_equal(vmt_capture_stats(s.capture).pt_truncated, 0);
	vmt_capture_close(s.capture, NULL);
	vmt_store_finish(s.store, NULL);
	vmt_ptm_reset();
	found = check_file(gen);
	assert_true(found.trace < at || full_from == 0);
	/* a chunk that was refused is told with its head of 32 bytes, beside records */
	assert_true(found.trace == at || found.lost >= at - found.trace);
	assert_int_equal(found.truncated, 0);
}

/* What was drained before the recorder was killed is there to the last byte. */
static void test_killed(void **state)
{
	struct vmt_ptgen gen = generate(5, 2000);

	(void)state;
	for (size_t rounds = 1; rounds < 6; rounds++) {
		size_t at = rounds * 20000;
		struct found found;
		pid_t child;
		int status;

		assert_true(at < gen.stream.len);
		child = fork();
		if (!child) {
			struct session s =
				begin((struct vmt_capture_options){ .pt_buffer_bytes = 64u << 10 });

			for (size_t i = 0; i < rounds; i++) {
				vmt_ptm_write(vmt_ptm_event(TID, -1), gen.stream.bytes + i * 20000,
					      20000, 0);
				drain(&s);
			}
			vmt_ptm_write(vmt_ptm_event(TID, -1), gen.stream.bytes + at, 1000, 0);
			kill(getpid(), SIGKILL);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		found = check_file(&gen);
		assert_int_equal(found.truncated, 1);
		assert_int_equal(found.trace, at);
	}
	vmt_ptgen_free(&gen);
}

static void test_full_store(void **state)
{
	struct vmt_ptgen gen = generate(3, 4000);

	(void)state;
	for (int at = 1; at < 14; at++)
		run_full(&gen, at);
	vmt_ptgen_free(&gen);
}

/* ---- overwritten areas ---- */

/* A flush and the end each give the newest of the stream, at most as much as the area holds. */
static void test_overwrite(void **state)
{
	static const size_t lens[] = { 3000, 65536, 65537, 150000, 300000 };
	struct vmt_ptgen gen = generate(13, 4000);

	(void)state;
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct session s = begin((struct vmt_capture_options){ .pt_buffer_bytes = 64u << 10,
								       .pt_overwrite = true });
		size_t event = vmt_ptm_event(TID, -1), len, held, more = 1000;
		struct vmt_pt_info info;
		uint8_t *got, *marks;

		assert_true(lens[i] + more <= gen.stream.len);
		vmt_ptm_overwrite(event, gen.stream.bytes, lens[i]);
		drain(&s);
		assert_int_equal(vmt_capture_stats(s.capture).pt_bytes, 0);
		assert_int_equal(vmt_capture_flush(s.capture, NULL), 0);
		held = lens[i] < 65536 ? lens[i] : 65536;
		assert_int_equal(vmt_capture_stats(s.capture).pt_bytes, held);
		vmt_ptm_overwrite(event, gen.stream.bytes + lens[i], more);
		end(&s);
		got = vmt_read_trace(path, TID, &len, &marks, &info);
		assert_true(info.snapshot);
		assert_memory_equal(got, gen.stream.bytes + lens[i] - held, held);
		len -= held;
		assert_int_equal(len, lens[i] + more < 65536 ? lens[i] + more : 65536);
		assert_memory_equal(got + held, gen.stream.bytes + lens[i] + more - len, len);
		free(got);
		free(marks);
	}
	vmt_ptgen_free(&gen);
}

/* ---- what is opened, and what is not ---- */

static void test_threads_and_cpus(void **state)
{
	size_t cpus = (size_t)sysconf(_SC_NPROCESSORS_ONLN);
	struct vmt_capture_options wide = { .system_wide = true };
	struct session s = begin((struct vmt_capture_options){ .vm_events_only = true });
	const struct perf_event_attr *attr = vmt_ptm_attr(vmt_ptm_event(TID, -1));

	(void)state;
	assert_int_equal(vmt_ptm_count(), 1);
	assert_true(!(attr->config & 1u << 13) && attr->mmap2 && !attr->exclude_kernel);
	domain.nr_vcpus = 2; /* one is plugged in */
	assert_int_equal(vmt_capture_mark(s.capture, 0, "hotplug", NULL, NULL), 0);
	assert_int_equal(vmt_ptm_count(), 2);
	assert_true(vmt_ptm_is_enabled(vmt_ptm_event(TID + 1, -1)));
	end(&s);
	s = begin(wide);
	assert_int_equal(vmt_ptm_count(), cpus);
	assert_int_equal(vmt_capture_stats(s.capture).pt_areas, cpus);
	vmt_ptm_event(-1, 0);
	end(&s);
}

static void test_refusals(void **state)
{
	static const struct {
		int open_errno, map_errno, want;
		const char *cure;
	} rows[] = {
		{ EBUSY, 0, VMT_E_CAPABILITY, "another program uses Intel PT" },
		{ EACCES, 0, VMT_E_PERMISSION, "CAP_PERFMON" },
		{ EMFILE, 0, VMT_E_LIMIT, "RLIMIT_NOFILE" },
		{ EINVAL, 0, VMT_E_CAPABILITY, "refuses" },
		{ 0, EPERM, VMT_E_LIMIT, "--pt-buffer" },
		{ 0, ENOMEM, VMT_E_LIMIT, "perf_event_mlock_kb" },
	};
	struct vmt_capture_options options = { .backend = "pt" };
	struct vmt_diag diag = { 0 };
	struct session s;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vmt_store_options store = { .force = true };

		vmt_ptm_reset();
		vmt_ptm_fail(rows[i].open_errno, rows[i].map_errno);
		make_domain();
		vmt_diag_clear(&diag);
		assert_int_equal(vmt_store_create(&s.store, path, &store, NULL), 0);
		assert_int_equal(vmt_capture_open_with(&s.capture, &options, &domains, s.store,
						       &vmt_ptm_ops, NULL, &fs, &diag),
				 rows[i].want);
		if (!strstr(diag.cure, rows[i].cure))
			fail_msg("%s (%s)", diag.what, diag.cure);
		vmt_store_discard(s.store);
	}
	vmt_ptm_reset();
	options = (struct vmt_capture_options){ .backend = "kvm", .vm_events_only = true };
	vmt_diag_clear(&diag);
	assert_int_equal(try_open(&s, &options, &diag), VMT_E_USAGE);
}

static void test_filter(void **state)
{
	static const struct {
		const char *text;
		bool system_wide;
		enum vmt_err err;
		const char *says; /* of an error; else what the kernel is given */
	} rows[] = {
		{ "filter 0xffffffff81000000/0x200000", false, 0,
		  "filter 0xffffffff81000000/0x200000" },
		{ " filter 4096/010,tracestop 0x10/1@/usr/bin/qemu ", false, 0,
		  "filter 0x1000/0x8,stop 0x10/0x1@/usr/bin/qemu" },
		{ "stop 0/0xffffffffffffffff filter 1/1", true, 0,
		  "stop 0x0/0xffffffffffffffff,filter 0x1/0x1" },
		{ "stop 0x10/1@/usr/bin/qemu", true, VMT_E_CAPABILITY, "--system-wide" },
		{ "start 0x10/1", false, VMT_E_CAPABILITY, "no address filter `start`" },
		{ "filter 1/1,filter 2/1,filter 3/1", false, VMT_E_CAPABILITY,
		  "has 2 address ranges, 3 are named" },
		{ "", false, VMT_E_USAGE, "at offset 0" },
		{ "filters 1/1", false, VMT_E_USAGE, "filter, stop or tracestop" },
		{ "filter main", false, VMT_E_USAGE, "an address in C syntax" },
		{ "filter 0x10", false, VMT_E_USAGE, "at offset 11" },
		{ "filter 0x10/0", false, VMT_E_USAGE, "a size above 0" },
		{ "filter 0x10/0xfffffffffffffff8", false, VMT_E_USAGE, "a size above 0" },
		{ "filter 0x10/8x", false, VMT_E_USAGE, "@FILE, a comma or the end" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vmt_capture_options options = { .backend = "pt",
						       .pt_filter = rows[i].text,
						       .system_wide = rows[i].system_wide };
		struct vmt_diag diag = { 0 };
		struct session s;

		assert_int_equal(try_open(&s, &options, &diag), rows[i].err);
		if (rows[i].err && !strstr(diag.what, rows[i].says) &&
		    !strstr(diag.cure, rows[i].says))
			fail_msg("%s: %s (%s)", rows[i].text, diag.what, diag.cure);
		if (rows[i].err)
			continue;
		assert_string_equal(vmt_ptm_filter(rows[i].system_wide ? vmt_ptm_event(-1, 0)
								       : vmt_ptm_event(TID, -1)),
				    rows[i].says);
		end(&s);
	}
	vmt_ptm_reset();
}

/* Names and mappings of the domain's process stand in the file, here those of this test. */
static void test_existing(void **state)
{
	struct session s;
	static uint8_t bytes[1u << 20];
	FILE *f;
	size_t len;

	(void)state;
	domain_pid = getpid();
	s = begin((struct vmt_capture_options){ 0 });
	domain_pid = domain.pid = 0;
	end(&s);
	f = fopen(path, "rb");
	assert_non_null(f);
	len = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	assert_non_null(memmem(bytes, len, "test_capture_pt", 16)); /* COMM, with its NUL */
	assert_non_null(memmem(bytes, len, "/test_capture_pt", 17));
}

int main(void)
{
	const struct CMUnitTest tests[] = {

		cmocka_unit_test(test_schedules),	 cmocka_unit_test(test_beside_a_cpu),
		cmocka_unit_test(test_threads_and_cpus), cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_full_store),	 cmocka_unit_test(test_killed),
		cmocka_unit_test(test_overwrite),	 cmocka_unit_test(test_filter),
		cmocka_unit_test(test_existing),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
