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
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/analyze/input.h"
#include "host/capture/capture_with.h"
#include "host/capture/pt_config.h"
#include "tests/support/pt_generate.h"
#include "tests/support/pt_machine.h"

#define TID 1000001

static char top[] = "/tmp/vmt-capture-pt-XXXXXX";
static char path[64];
static struct vmt_hostfs fs;

static int remove_one(const char *name, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(name);
}

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
	return nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- configuration ---- */

#define DEFAULTS (UINT64_C(1) | 1u << 10 | 1u << 13 | 1u << 9 | 3u << 14 | 3u << 24 | 1u << 31)

static struct vmt_pt_config make(const char *terms, bool vm_events_only, int want)
{
	struct vmt_diag diag = { 0 };
	struct vmt_pt_config config;
	struct vmt_pt_pmu pmu;
	int err;

	assert_int_equal(vmt_pt_pmu_read(&pmu, &fs, &diag), 0);
	assert_int_equal(pmu.type, VMT_PTM_TYPE);
	err = vmt_pt_config_make(&config, &pmu, terms, vm_events_only, &diag);
	if (err != want)
		fail_msg("%s: %d: %s (%s)", terms ? terms : "", err, diag.what, diag.cure);
	assert_int_equal(diag.code, err);
	assert_true(!err || diag.cure[0]);
	return config;
}

static void test_config(void **state)
{
	static const struct {
		const char *terms;
		int want;
		uint64_t set, clear;
	} rows[] = {
		{ "", 0, 0, 0 },
		{ "mtc=0,event=0", 0, 0, 1u << 9 | 1u << 31 },
		{ "cyc", 0, 1u << 1, 0 },
		{ "cyc,cyc_thresh=4", 0, 1u << 1 | 4u << 19, 0 },
		{ "cyc_thresh=15", VMT_E_CAPABILITY, 0, 0 },
		{ "mtc_period=6", 0, 6u << 14, 1u << 14 },
		{ "mtc_period=1", VMT_E_CAPABILITY, 0, 0 },
		{ "mtc=0,mtc_period=1", 0, 1u << 14, 1u << 9 },
		{ "psb_period=5", 0, 5u << 24, 0 },
		{ "psb_period=6", VMT_E_CAPABILITY, 0, 0 },
		{ "psb_period=16", VMT_E_USAGE, 0, 0 },
		{ "notnt,noretcomp", 0, UINT64_C(1) << 55 | 1u << 11, 0 },
		{ "ptw", VMT_E_CAPABILITY, 0, 0 },
		{ "pwr_evt", VMT_E_CAPABILITY, 0, 0 },
		{ "pt=0", VMT_E_CAPABILITY, 0, 0 },
		{ "pt=0,branch=0", 0, 0, 1u << 0 | 1u << 13 },
		{ "branch=0", 0, 0, 1u << 13 },
		{ "branches=0", VMT_E_USAGE, 0, 0 },
		{ "mtc=", VMT_E_USAGE, 0, 0 },
		{ "mtc=0x1;", VMT_E_USAGE, 0, 0 },
		{ ",", VMT_E_USAGE, 0, 0 },
	};
	struct vmt_pt_config config;

	(void)state;
	config = make(NULL, false, 0);
	assert_int_equal(config.config, DEFAULTS);
	assert_true(config.mtc && config.event && !config.note);
	assert_int_equal(config.mtc_freq, 3);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		config = make(rows[i].terms, false, rows[i].want);
		if (!rows[i].want)
			assert_true((config.config & rows[i].set) == rows[i].set &&
				    !(config.config & rows[i].clear));
	}
	assert_true(!(make(NULL, true, 0).config & 1u << 13));
	make("branch", true, VMT_E_USAGE);
}

static void test_other_cpus(void **state)
{
	struct vmt_pt_config config;
	struct vmt_pt_pmu pmu;
	struct vmt_diag diag = { 0 };

	(void)state;
	fs = vmt_ptm_files(top, true);
	config = make(NULL, false, 0);
	assert_true(!config.mtc && config.note && strstr(config.note, "SKZ84"));
	assert_true(make("mtc", false, 0).note == NULL);
	fs = vmt_ptm_files(top, false);
	vmt_ptm_file(top, "caps/event_trace", NULL); /* an older kernel */
	vmt_ptm_file(top, "caps/mtc_periods", "40\n");
	config = make(NULL, false, 0);
	assert_true(!config.event && config.mtc_freq == 6);
	make("event", false, VMT_E_CAPABILITY);
	vmt_ptm_file(top, "caps/mtc", "0\n");
	vmt_ptm_file(top, "caps/psb_cyc", "0\n");
	config = make(NULL, false, 0);
	assert_true(config.config == (1u | 1u << 10 | 1u << 13));
	make(NULL, true, VMT_E_CAPABILITY);
	vmt_ptm_file(top, "type", NULL);
	assert_int_equal(vmt_pt_pmu_read(&pmu, &fs, &diag), VMT_E_CAPABILITY);
	assert_non_null(strstr(diag.what, "no Intel PT"));
	fs = vmt_ptm_files(top, false);
}

/* ---- capture ---- */

static struct vmt_vcpu vcpus[2];
static struct vmt_domain domain;
static struct vmt_domains domains;

static void make_domain(void)
{
	static char name[] = "web01";

	vcpus[0] = (struct vmt_vcpu){ .id = 0, .tid = TID, .tid_source = "thread name" };
	vcpus[1] = (struct vmt_vcpu){ .id = 1, .tid = TID + 1, .tid_source = "thread name" };
	domain = (struct vmt_domain){ .name = name, .nr_vcpus = 1, .vcpus = vcpus };
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

/* All trace of the only area; marks[i] is 1 where a cut is marked before byte i. */
static uint8_t *read_back(size_t *len, uint8_t **marks, struct vmt_pt_info *info)
{
	const struct vmt_aux_index *index;
	struct vmt_store_reader *store;
	struct vmt_reader *reader;
	struct vmt_item item;
	uint8_t *bytes;

	assert_int_equal(vmt_reader_open(&reader, path, NULL, NULL), 0);
	assert_int_equal(vmt_store_open(&store, reader, NULL), 0);
	while (vmt_store_next(store, &item, NULL) == 1) {
		if (item.type == VMT_ITEM_LOSS)
			fail_msg("a loss in the file");
	}
	index = vmt_store_aux_index(store);
	assert_true(index->has_info);
	assert_int_equal(index->nr_areas, 1);
	*info = index->info;
	*len = 0;
	for (size_t i = 0; i < index->areas[0].nr_extents; i++) {
		assert_int_equal(index->areas[0].extents[i].aux_offset, *len);
		*len += index->areas[0].extents[i].len;
	}
	bytes = malloc(*len + 1);
	*marks = calloc(1, *len + 1);
	for (size_t i = 0; i < index->areas[0].nr_extents; i++) {
		const struct vmt_aux_extent *e = &index->areas[0].extents[i];
		size_t done;

		assert_int_equal(index->read(index->source, e, 0, bytes + e->aux_offset, e->len,
					     &done, NULL),
				 0);
		(*marks)[e->aux_offset] = e->handle & VMT_AUX_RESTART;
		assert_int_equal(index->areas[0].tid, TID);
		assert_int_equal(index->areas[0].cpu, VMT_AUX_NO_CPU);
	}
	vmt_store_close(store);
	return bytes;
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
	got = read_back(&len, &marks, &info);
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
	got = read_back(&len, &marks, &info);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_config),		 cmocka_unit_test(test_other_cpus),
		cmocka_unit_test(test_schedules),	 cmocka_unit_test(test_beside_a_cpu),
		cmocka_unit_test(test_threads_and_cpus), cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
