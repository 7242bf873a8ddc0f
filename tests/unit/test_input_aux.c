// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Whose the Intel PT of a vCPU's thread is, and the TSC of guests in it: the map that the session
 * tells is that of a vCPU's thread from the first byte, and kvm_write_tsc_offset changes it from
 * its own time on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/analyze/input.h"
#include "decode/base/anchor.h"
#include "decode/store/store.h"
#include "tests/support/memory_file.h"
#include "tests/support/perfdata_file.h"
#include "tests/support/pt_encode.h"
#include "tests/support/stream.h"

#define KERNEL	  "6.18"
#define FIRST_TSC (UINT64_C(1) << 41)
#define RUN_TSC	  UINT64_C(100000)
#define RUNS	  60u
#define GUEST_TSC UINT64_C(50000) /* in a guest, each run */
#define RIP	  UINT64_C(0xffffffff81000000)
#define VMCS	  UINT64_C(0x1bff6a000)
#define PID	  4000u
#define TID	  4002u
#define ONE	  (UINT64_C(1) << 48)

static const char session[] =
	"{\"schema\":\"vmtrace-session/1\",\"tool\":\"vmtrace 0.1.0\",\"domains\":[{\"name\":"
	"\"web01\",\"pid\":4000,\"vcpus\":[{\"vcpu\":0,\"tid\":4002}]}]}";

struct setting {
	uint64_t ratio, offset;
	unsigned int changes; /* the run before which the offset changes, 0: never */
	uint64_t next;
	bool late; /* the recorder reads offset and ratio behind all records */
};

struct seen {
	const struct setting *setting;
	unsigned int exits, timed, vcpus;
};

static uint64_t in_guest(const struct setting *s, unsigned int run, uint64_t tsc)
{
	__extension__ typedef unsigned __int128 u128;

	return (uint64_t)((u128)tsc * s->ratio >> 48) +
	       (s->changes && run >= s->changes ? s->next : s->offset);
}

static uint64_t start_of(unsigned int run)
{
	return FIRST_TSC + run * RUN_TSC;
}

/* Run 0 is in the guest when the trace begins. */
static void put_trace(struct vmt_ptenc *e, const struct setting *s)
{
	vmt_ptenc_psb(e);
	vmt_ptenc_tsc(e, in_guest(s, 0, start_of(0)));
	vmt_ptenc_vmcs(e, VMCS);
	vmt_ptenc_pip(e, 0x2000, true);
	vmt_ptenc_mode_exec(e, 1);
	vmt_ptenc_ip(e, VMT_PTENC_FUP, VMT_PTENC_FULL, RIP);
	vmt_ptenc_psbend(e);
	for (unsigned int run = 0; run < RUNS; run++) {
		const uint64_t at = start_of(run);

		if (run) {
			vmt_ptenc_tsc(e, at);
			vmt_ptenc_pip(e, 0x2000, true);
			vmt_ptenc_ip(e, VMT_PTENC_TIP, VMT_PTENC_FULL, RIP + 16 * run);
		}
		vmt_ptenc_tsc(e, in_guest(s, run, at + GUEST_TSC));
		vmt_ptenc_ip(e, VMT_PTENC_FUP, VMT_PTENC_FULL, RIP + 16 * run);
		vmt_ptenc_pip(e, 0x1000, false);
		vmt_ptenc_ip(e, VMT_PTENC_TIP, VMT_PTENC_FULL, 0xffffffffc0000000);
		vmt_ptenc_tsc(e, at + GUEST_TSC + 20);
	}
}

static void append(struct vmt_store_writer *w, uint16_t type, const void *bytes, size_t len)
{
	struct vmt_store_chunk chunk = {
		.type = type, .cpu = -1, .nr_parts = 1, .parts = { { bytes, len } }
	};

	assert_int_equal(vmt_store_append(w, &chunk, NULL), 0);
}

static void put_formats(struct vmt_store_writer *w, const struct vmt_format *format)
{
	struct vmt_ring_attr attr = vmt_stream_attr(format->id);
	const uint64_t id = 1;
	size_t len;
	char *text = vmt_stream_format_text(KERNEL, format->name, &len);

	assert_int_equal(vmt_store_attr(w, &attr, &id, 1, NULL), 0);
	assert_int_equal(vmt_store_format(w, text, NULL), 0);
	free(text);
}

static void put_change(struct vmt_store_writer *w, const struct vmt_format *format,
		       const struct setting *s)
{
	const struct vmt_stream_value values[] = { { "vcpu_id", 0 },
						   { "previous_tsc_offset", s->offset },
						   { "next_tsc_offset", s->next } };
	const struct vmt_stream_at at = {
		.time_ns = (start_of(s->changes) - 20000) / 2, .id = 1, .pid = PID, .tid = TID
	};
	struct vmt_stream ring = { 0 };

	vmt_stream_tracepoint(&ring, format, &at, values, 3);
	append(w, VMT_CHUNK_RECORDS, ring.bytes, ring.len);
	vmt_stream_free(&ring);
}

static void write_file(const char *path, const struct setting *s)
{
	const struct vmt_store_options options = { .force = true, .file_id = 1 };
	const struct vmt_pt_info info = { .pmu_type = 8,
					  .config = 1 << 10,
					  .has_time_conv = true,
					  .time_shift = 31,
					  .time_mult = 1u << 30 };
	const struct vmt_anchor anchor = { .host_ns = 1, .time_mult = 1u << 30, .time_shift = 31 };
	const struct vmt_vcpu_tsc tsc = {
		.host_ns = 1, .ratio = s->ratio, .offset = (int64_t)s->offset, .frac = 48
	};
	const struct vmt_aux_area area = { .cpu = VMT_AUX_NO_CPU, .pid = PID, .tid = TID };
	struct vmt_format format = vmt_stream_format(KERNEL, "kvm_write_tsc_offset");
	struct vmt_store_trace trace = { 0 };
	struct vmt_ptenc e = { 0 };
	struct vmt_store_writer *w;

	put_trace(&e, s);
	trace.parts[0] = (struct vmt_store_part){ e.bytes, e.len };
	assert_int_equal(vmt_store_create(&w, path, &options, NULL), 0);
	assert_int_equal(vmt_store_session(w, session, NULL), 0);
	append(w, VMT_CHUNK_ANCHOR, &anchor, sizeof(anchor));
	if (!s->late)
		append(w, VMT_CHUNK_VCPU_TSC, &tsc, sizeof(tsc));
	put_formats(w, &format);
	assert_int_equal(vmt_store_aux_info(w, &info, NULL), 0);
	assert_int_equal(vmt_store_aux(w, &area, &trace, NULL), 0);
	if (s->changes)
		put_change(w, &format, s);
	if (s->late)
		append(w, VMT_CHUNK_VCPU_TSC, &tsc, sizeof(tsc));
	assert_int_equal(vmt_store_round(w, 0, NULL), 0);
	assert_int_equal(vmt_store_finish(w, NULL), 0);
	vmt_ptenc_free(&e);
}

static void take(void *context, const struct vmt_event *e)
{
	struct seen *seen = context;
	const uint64_t run = (e->guest_rip - RIP) / 16, at = start_of((unsigned int)run);

	if (e->type != VMT_EVENT_EXIT)
		return;
	assert_true(e->has & VMT_HAS_RIP && run < RUNS);
	seen->exits++;
	seen->vcpus += e->has & VMT_HAS_VCPU && e->vcpu == 0;
	if (!seen->setting || !(e->has & VMT_HAS_TIME))
		return;
	if (e->host_tsc_low + 2 < at + GUEST_TSC || e->host_tsc_low > at + GUEST_TSC + 20)
		fail_msg("exit %u is at %lld from its time", (unsigned int)run,
			 (long long)(e->host_tsc_low - at - GUEST_TSC));
	assert_true(e->host_tsc_error <= 32);
	seen->timed++;
}

static struct seen run_setting(const struct setting *s)
{
	static const struct vmt_input_options none;
	struct vmt_reader *reader;
	struct vmt_input *input;
	struct seen seen = { .setting = s };
	char path[64];

	snprintf(path, sizeof(path), "/tmp/vmt-input-aux-%d.vmt", (int)getpid());
	write_file(path, s);
	assert_int_equal(vmt_reader_open(&reader, path, NULL, NULL), 0);
	assert_int_equal(vmt_input_open(&input, reader, &none, NULL), 0);
	assert_int_equal(vmt_input_run(input, take, &seen, NULL), 0);
	vmt_input_close(input);
	unlink(path);
	assert_int_equal(seen.exits, RUNS);
	return seen;
}

static void a_guest_at_half_the_rate(void **state)
{
	const struct setting s = { .ratio = ONE / 2, .offset = 123456789 };
	const struct seen seen = run_setting(&s);

	(void)state;
	assert_int_equal(seen.timed, RUNS); /* the first one too, which begins before the trace */
	assert_int_equal(seen.vcpus, RUNS);
}

static void an_offset_that_changes(void **state)
{
	(void)state;
	for (unsigned int i = 2; i < 2 * RUNS; i++) {
		const struct setting s = { .ratio = ONE / 2,
					   .offset = 123456789,
					   .changes = i / 2,
					   .next = 123999999,
					   .late = i % 2 };

		assert_int_equal(run_setting(&s).timed, RUNS);
	}
}

/* perf.data: AUXTRACE of a thread, and an ID_INDEX that says which vCPU that is. */
static void a_link_of_an_id_index(void **state)
{
	static const char *const events[] = { "kvm_exit", NULL };
	static const struct vmt_input_options none;
	const struct vmt_perfdata_file_options options = {
		.kernel = "6.1", .events = events, .isa = VMT_ISA_VMX, .fd = -1
	};
	const struct setting s = { .ratio = ONE };
	const uint64_t links[] = { 1, 1, 0, 0, TID, PID, 0 };
	const uint64_t info[18] = { 8, 31, 1 << 30, 0, 1, 1 << 10 };
	const struct vmt_aux_area area = { .cpu = VMT_AUX_NO_CPU, .tid = TID };
	struct vmt_perfdata_file *file = vmt_perfdata_file_new(&options);
	struct vmt_aux_extent extent = { 0 };
	struct vmt_ptenc e = { 0 };
	struct seen seen = { 0 };
	struct vmt_reader *reader;
	struct vmt_input *input;
	uint8_t *bytes;
	size_t len;

	(void)state;
	put_trace(&e, &s);
	while (e.len % 8)
		vmt_ptenc_pad(&e);
	extent.len = e.len;
	vmt_perfdata_file_user(file, 69, links, sizeof(links));
	vmt_perfdata_file_auxtrace_info(file, info, 18);
	vmt_perfdata_file_auxtrace(file, &area, &extent, e.bytes);
	vmt_perfdata_file_round(file);
	vmt_perfdata_file_finish(file);
	bytes = vmt_perfdata_file_take(file, &len);
	assert_int_equal(vmt_reader_from_fd(&reader, vmt_memory_file(bytes, len), NULL, NULL), 0);
	assert_int_equal(vmt_input_open(&input, reader, &none, NULL), 0);
	assert_int_equal(vmt_input_run(input, take, &seen, NULL), 0);
	assert_int_equal(seen.exits + vmt_input_facts(input)->join.untimed, RUNS);
	assert_int_equal(vmt_input_facts(input)->join.untimed, 1);
	assert_true(vmt_input_facts(input)->has_join);
	assert_int_equal(seen.vcpus, seen.exits);
	vmt_input_close(input);
	vmt_perfdata_file_free(file);
	vmt_ptenc_free(&e);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_guest_at_half_the_rate),
		cmocka_unit_test(an_offset_that_changes),
		cmocka_unit_test(a_link_of_an_id_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
