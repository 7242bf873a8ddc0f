// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Capture of one side alone, from a stand-in for the kernel: no byte of trace with an address of
 * the other side is in the file, and the exits are those of the whole trace.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/analyze/input.h"
#include "decode/pt/packet.h"
#include "host/capture/capture_with.h"
#include "tests/support/pt_generate.h"
#include "tests/support/pt_machine.h"
#include "tests/support/pt_read_trace.h"
#include "tests/support/remove_all.h"

#define TID 1000001

static char top[] = "/tmp/vmt-capture-kept-XXXXXX";
static char path[64];
static struct vmt_hostfs fs;
static struct vmt_vcpu vcpu = { .id = 0, .tid = TID, .tid_source = "thread name" };
static struct vmt_domain domain = { .nr_vcpus = 1, .vcpus = &vcpu };
static struct vmt_domains domains = { 1, &domain };

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

static struct vmt_ptgen generate(bool event_trace)
{
	struct vmt_ptgen gen;

	vmt_ptgen_run(&gen, &(struct vmt_ptgen_options){ .seed = 17,
							 .rounds = 2000,
							 .nr_vms = 1,
							 .event_trace = event_trace,
							 .branch = true,
							 .tsc = true,
							 .psb = 20,
							 .events = 30 });
	return gen;
}

struct machine {
	struct vmt_store_writer *store;
	struct vmt_capture *capture;
	size_t event;
};

static struct machine begin(const struct vmt_capture_options *options)
{
	struct vmt_store_options store = { .force = true };
	struct machine m;

	vmt_ptm_reset();
	assert_int_equal(vmt_store_create(&m.store, path, &store, NULL), 0);
	assert_int_equal(vmt_capture_open_with(&m.capture, options, &domains, m.store, &vmt_ptm_ops,
					       NULL, &fs, NULL),
			 0);
	m.event = vmt_ptm_event(TID, -1);
	return m;
}

static void end(struct machine *m)
{
	assert_int_equal(vmt_capture_close(m->capture, NULL), 0);
	assert_int_equal(vmt_store_finish(m->store, NULL), 0);
	vmt_ptm_reset();
}

/* The generator's guests run here and its host never does. */
static bool is_guest_ip(uint64_t ip)
{
	return (ip >= 0x400000 && ip < 0x600000) ||
	       (ip >= 0xffffffff81000000 && ip < 0xffffffff82200000);
}

static void check_bytes(const uint8_t *bytes, size_t len, bool guest)
{
	struct vmt_pt_reader reader = vmt_pt_reader_of(bytes, len);
	struct vmt_pt_packet p;
	int status;

	while ((status = vmt_pt_next(&reader, &p, NULL)) == 1) {
		if (p.has_ip)
			assert_true(!p.ip_unsure && is_guest_ip(p.ip) == guest);
		if (p.type == VMT_PT_PIP)
			assert_true(p.nr == guest);
	}
	assert_int_equal(status, 0);
}

/* All trace of the file, which is of one area. */
static size_t check_file(bool guest)
{
	struct vmt_pt_info info;
	uint8_t *marks;
	size_t len;
	uint8_t *bytes = vmt_read_trace(path, TID, &len, &marks, &info);

	check_bytes(bytes, len, guest);
	free(bytes);
	free(marks);
	return len;
}

static void count_exits(void *context, const struct vmt_event *event)
{
	*(size_t *)context += event->type == VMT_EVENT_EXIT && !event->failed_entry;
}

static size_t exits_of_file(void)
{
	struct vmt_reader *reader;
	struct vmt_input *input;
	size_t exits = 0;

	assert_int_equal(vmt_reader_open(&reader, path, NULL, NULL), 0);
	assert_int_equal(vmt_input_open(&input, reader, &(struct vmt_input_options){ 0 }, NULL), 0);
	assert_int_equal(vmt_input_run(input, count_exits, &exits, NULL), 0);
	assert_int_equal(vmt_input_ledger(input).bytes_skipped, 0);
	vmt_input_close(input);
	return exits;
}

static size_t exits_of(const struct vmt_ptgen *gen)
{
	size_t exits = 0;

	for (size_t i = 0; i < gen->nr_truth; i++)
		exits += gen->truth[i].kind == VMT_PTGEN_EXIT;
	return exits;
}

static void run(bool event_trace, enum vmt_privacy keep)
{
	const struct vmt_capture_options options = { .backend = "pt",
						     .pt_buffer_bytes = 64u << 10,
						     .pt_terms = event_trace ? NULL : "event=0",
						     .privacy = keep };
	struct machine m = begin(&options);
	struct vmt_ptgen gen = generate(event_trace);

	assert_true(vmt_ptm_attr(m.event)->mmap2 == (keep == VMT_PRIVACY_HOST));
	for (size_t at = 0, n; at < gen.stream.len; at += n) {
		n = 1 + at % 5000;
		n = n < gen.stream.len - at ? n : gen.stream.len - at;
		assert_int_equal(vmt_ptm_write(m.event, gen.stream.bytes + at, n, 0), n);
		assert_int_equal(vmt_capture_drain(m.capture, NULL), 0);
	}
	end(&m);
	assert_true(check_file(keep == VMT_PRIVACY_GUEST) < gen.stream.len);
	assert_int_equal(exits_of_file(), exits_of(&gen));
	vmt_ptgen_free(&gen);
}

static void test_one_side(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		run(i & 1, i & 2 ? VMT_PRIVACY_GUEST : VMT_PRIVACY_HOST);
}

/* The area is full again and again: what follows a cut follows it in the file, too. */
static void test_cuts(void **state)
{
	const struct vmt_capture_options options = { .backend = "pt",
						     .pt_buffer_bytes = 64u << 10,
						     .privacy = VMT_PRIVACY_GUEST };
	struct machine m = begin(&options);
	struct vmt_ptgen gen = generate(true);
	size_t at = 0, truth = 0, exits;

	(void)state;
	while (at < gen.stream.len) {
		size_t n = gen.stream.len - at < 70000 ? gen.stream.len - at : 70000;
		size_t written = vmt_ptm_write(m.event, gen.stream.bytes + at, n, 0);

		at += n;
		while (truth < gen.nr_truth && gen.truth[truth].begin < at)
			truth++;
		at = written < n && truth < gen.nr_truth ? gen.truth[truth].begin : at;
		assert_int_equal(vmt_capture_drain(m.capture, NULL), 0);
	}
	end(&m);
	check_file(true);
	exits = exits_of_file();
	assert_true(exits > exits_of(&gen) / 2 && exits < exits_of(&gen));
	vmt_ptgen_free(&gen);
}

/* Snapshots that overlap: what both hold comes once. */
static void test_snapshots(void **state)
{
	const struct vmt_capture_options options = { .backend = "pt",
						     .pt_buffer_bytes = 64u << 10,
						     .pt_overwrite = true,
						     .privacy = VMT_PRIVACY_GUEST };
	struct machine m = begin(&options);
	struct vmt_ptgen gen = generate(true);
	size_t exits = 0, found;

	(void)state;
	vmt_ptm_overwrite(m.event, gen.stream.bytes, 100000);
	assert_int_equal(vmt_capture_flush(m.capture, NULL), 0);
	vmt_ptm_overwrite(m.event, gen.stream.bytes + 100000, 20000);
	end(&m);
	check_file(true);
	for (size_t i = 0; i < gen.nr_truth; i++)
		exits += gen.truth[i].kind == VMT_PTGEN_EXIT &&
			 gen.truth[i].begin > 100000 - 65536 && gen.truth[i].end <= 120000;
	found = exits_of_file();
	assert_true(found <= exits && found + 40 > exits);
	vmt_ptgen_free(&gen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_side),
		cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_snapshots),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
