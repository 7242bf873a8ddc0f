// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The perf.data that is written, read again: of a perf.data the same items, attrs, features and
 * trace; of a .vmt the same records and bytes of trace. Damaged input gives a sound file or none;
 * so does a disk that fills.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/base/cursor.h"
#include "decode/export/perfdata.h"
#include "decode/perfdata/perfdata.h"
#include "decode/store/store.h"
#include "tests/support/kvm_load.h"
#include "tests/support/memory_file.h"
#include "tests/support/perfdata_seen.h"
#include "tests/support/pt_capture.h"
#include "tests/support/pt_random.h"

static char folder[] = "/tmp/vmtrace-export-XXXXXX";
static char output[64], input[64];

/* ---- export ---- */

static int export_reader(struct vmt_reader *reader, const struct vmt_input_pt *pt,
			 const struct vmt_io_ops *ops, struct vmt_perfdata_totals *totals,
			 struct vmt_diag *diag)
{
	struct vmt_perfdata_writer *w;
	struct vmt_output file;
	int err = vmt_output_open(&file, output, false, ops, diag);

	if (!err)
		err = vmt_perfdata_create(&w, &file, diag);
	if (err) {
		vmt_reader_close(reader);
		return err;
	}
	err = vmt_perfdata_export(reader, pt, w, totals, diag);
	if (!err)
		return vmt_perfdata_finish(w, diag);
	vmt_perfdata_discard(w);
	return err;
}

static struct vmt_reader *reader_of(const uint8_t *bytes, size_t len)
{
	struct vmt_reader *reader;

	assert_int_equal(vmt_reader_from_fd(&reader, vmt_memory_file(bytes, len), NULL, NULL), 0);
	return reader;
}

static int export_bytes(const uint8_t *bytes, size_t len)
{
	struct vmt_perfdata_totals totals;

	return export_reader(reader_of(bytes, len), NULL, NULL, &totals, NULL);
}

static void export_path(const char *path)
{
	struct vmt_perfdata_totals totals;
	struct vmt_diag diag = { 0 };
	struct vmt_reader *reader;

	assert_int_equal(vmt_reader_open(&reader, path, NULL, NULL), 0);
	if (export_reader(reader, NULL, NULL, &totals, &diag))
		fail_msg("%s", diag.what);
	assert_int_equal(totals.lost_trace_bytes, 0);
}

/* ---- comparing ---- */

/* The output, whole and with nothing lost. */
static void read_output(struct vmt_perfdata_seen *seen)
{
	struct vmt_reader *reader;
	struct stat st;

	assert_int_equal(stat(output, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(vmt_reader_open(&reader, output, NULL, NULL), 0);
	assert_int_equal(vmt_perfdata_see(seen, reader), 0);
	assert_int_equal(seen->ends, 1);
	assert_int_equal(seen->losses, 0);
	assert_int_equal(seen->ledger.bytes_skipped, 0);
	assert_int_equal(seen->ledger.bytes_total, st.st_size);
	assert_int_equal(unlink(output), 0);
}

static void assert_same(const struct vmt_stream *a, const struct vmt_stream *b)
{
	assert_int_equal(a->len, b->len);
	if (a->len)
		assert_memory_equal(a->bytes, b->bytes, a->len);
}

/* ---- perf.data ---- */

static uint8_t *make_kvm(const struct vmt_perfdata_file_options *base, size_t *len)
{
	struct vmt_perfdata_file_options options = *base;
	struct vmt_perfdata_file *file;
	struct vmt_kvm_load *load;
	uint8_t *bytes;

	options.kernel = "6.1";
	options.events = vmt_kvm_load_events;
	options.cpus = 3;
	options.isa = VMT_ISA_VMX;
	options.fd = -1;
	file = vmt_perfdata_file_new(&options);
	load = vmt_kvm_load_new(file, VMT_ISA_VMX, 3, 7);
	vmt_kvm_load_fill(load, file, 2000, true);
	vmt_perfdata_file_finish(file);
	bytes = vmt_perfdata_file_take(file, len);
	vmt_kvm_load_free(load);
	vmt_perfdata_file_free(file);
	return bytes;
}

static void same_items(const struct vmt_perfdata_file_options *options)
{
	struct vmt_perfdata_seen before, after;
	size_t len;
	uint8_t *bytes = make_kvm(options, &len);

	assert_int_equal(vmt_perfdata_see(&before, reader_of(bytes, len)), 0);
	assert_int_equal(export_bytes(bytes, len), 0);
	read_output(&after);
	assert_same(&before.attrs, &after.attrs);
	assert_same(&before.ids, &after.ids);
	assert_same(&before.formats, &after.formats);
	assert_same(&before.records, &after.records);
	assert_int_equal(before.rounds, after.rounds);
	assert_string_equal(before.cpuid, after.cpuid);
	assert_string_equal(before.host, after.host);
	assert_true(after.records.len > 100000);
	vmt_perfdata_forget(&before);
	vmt_perfdata_forget(&after);
	free(bytes);
}

static void perfdata_comes_out_the_same(void **state)
{
	const struct vmt_perfdata_file_options file = { 0 }, pipe = { .pipe = true },
					       zstd = { .zstd = true },
					       both = { .pipe = true, .zstd = true };

	(void)state;
	same_items(&file);
	same_items(&pipe);
	same_items(&zstd);
	same_items(&both);
}

/* The second time nothing changes any more. */
static void rewriting_is_stable(void **state)
{
	const struct vmt_perfdata_file_options options = { .pipe = true };
	uint8_t *copies[2];
	size_t len, lens[2];
	uint8_t *bytes = make_kvm(&options, &len);

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct vmt_reader *reader;
		const uint8_t *all;

		assert_int_equal(export_bytes(i ? copies[0] : bytes, i ? lens[0] : len), 0);
		assert_int_equal(vmt_reader_open(&reader, output, NULL, NULL), 0);
		lens[i] = (size_t)vmt_reader_size(reader);
		assert_int_equal(vmt_reader_peek(reader, lens[i], &all, NULL), lens[i]);
		copies[i] = malloc(lens[i]);
		assert_non_null(copies[i]);
		memcpy(copies[i], all, lens[i]);
		vmt_reader_close(reader);
		unlink(output);
	}
	assert_int_equal(lens[0], lens[1]);
	assert_memory_equal(copies[0], copies[1], lens[0]);
	free(copies[0]);
	free(copies[1]);
	free(bytes);
}

static void real_trace_comes_out_the_same(void **state)
{
	static const char path[] = "../shared/data/pt/perf.data.intel_pt-4.14";
	struct vmt_perfdata_seen before, after;
	struct vmt_reader *reader;

	(void)state;
	if (access(path, R_OK)) {
		print_message("%s is absent\n", path);
		skip();
	}
	assert_int_equal(vmt_reader_open(&reader, path, NULL, NULL), 0);
	assert_int_equal(vmt_perfdata_see(&before, reader), 0);
	export_path(path);
	read_output(&after);
	assert_same(&before.ids, &after.ids);
	assert_same(&before.records, &after.records);
	for (size_t i = 0; i < VMT_PERFDATA_SEEN_AREAS; i++)
		assert_same(&before.trace[i], &after.trace[i]);
	assert_int_equal(after.trace[0].len, 12240);
	assert_int_equal(after.trace[3].len, 137728);
	assert_memory_equal(&before.info, &after.info, sizeof(before.info));
	vmt_perfdata_forget(&before);
	vmt_perfdata_forget(&after);
}

/* ---- .vmt ---- */

/* The records of the capture, behind those that name threads. */
static void check_records(const struct vmt_perfdata_seen *seen,
			  const struct vmt_pt_capture *capture)
{
	const size_t comms = seen->records.len - capture->records.len;
	size_t at = 0, nr = 0;

	assert_true(seen->records.len > capture->records.len);
	for (; at < comms; nr++) {
		assert_int_equal(vmt_load_u32(seen->records.bytes + at), VMT_RING_COMM);
		at += vmt_load_u16(seen->records.bytes + at + 6);
	}
	assert_int_equal(at, comms);
	assert_int_equal(nr, 1 + VMT_PT_CAPTURE_CPUS);
	assert_string_equal((const char *)seen->records.bytes + 16, "qemu-system-x86");
	assert_memory_equal(seen->records.bytes + comms, capture->records.bytes,
			    capture->records.len);
}

static void check_links(const struct vmt_perfdata_seen *seen)
{
	struct vmt_vcpu_link link;

	assert_int_equal(seen->links.len, VMT_PT_CAPTURE_CPUS * sizeof(link));
	for (uint32_t vcpu = 0; vcpu < VMT_PT_CAPTURE_CPUS; vcpu++) {
		memcpy(&link, seen->links.bytes + vcpu * sizeof(link), sizeof(link));
		assert_int_equal(link.machine_pid, VMT_PT_CAPTURE_PID);
		assert_int_equal(link.vcpu, vcpu);
		assert_int_equal(link.tid, VMT_PT_CAPTURE_PID + 1 + vcpu);
	}
}

static void vmt_keeps_records_and_trace(void **state)
{
	static const size_t pieces[] = { 1, 3, 8, 4093, 1u << 20 };

	(void)state;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct vmt_pt_capture capture;
		struct vmt_perfdata_seen seen;

		vmt_pt_capture_write(&capture, input, i + 1, pieces[i]);
		export_path(input);
		read_output(&seen);
		check_records(&seen, &capture);
		for (uint32_t cpu = 0; cpu < VMT_PT_CAPTURE_CPUS; cpu++) {
			const struct vmt_ptenc *e = &capture.trace[cpu];

			assert_int_equal(seen.trace[cpu].len, (e->len + 7) & ~(size_t)7);
			assert_memory_equal(seen.trace[cpu].bytes, e->bytes, e->len);
		}
		check_links(&seen);
		assert_int_equal(seen.info.pmu_type, VMT_PT_CAPTURE_PMU_TYPE);
		assert_int_equal(seen.info.time_mult, 1u << 30);
		assert_int_equal(seen.info.time_zero, 7000000000);
		assert_int_equal(seen.info.nom_ratio, 20);
		assert_true(seen.info.event_trace && seen.info.per_cpu && seen.info.has_cpu_id);
		assert_int_equal(seen.info.model, 143);
		assert_string_equal(seen.host, "host01");
		vmt_perfdata_forget(&seen);
		vmt_pt_capture_free(&capture);
		unlink(input);
	}
}

/* A .vmt of which a byte in the middle of the trace is wrong: that chunk is lost, and told. */
static void damaged_trace_is_counted(void **state)
{
	struct vmt_pt_capture capture;
	struct vmt_perfdata_totals totals;
	struct vmt_reader *reader;
	const uint8_t *bytes;
	uint8_t *copy;
	size_t len;

	(void)state;
	vmt_pt_capture_write(&capture, input, 1, 500);
	assert_int_equal(vmt_reader_open(&reader, input, NULL, NULL), 0);
	len = (size_t)vmt_reader_size(reader);
	assert_int_equal(vmt_reader_peek(reader, len, &bytes, NULL), len);
	copy = malloc(len);
	assert_non_null(copy);
	memcpy(copy, bytes, len);
	vmt_reader_close(reader);
	copy[len - 8000] ^= 0x10;
	assert_int_equal(export_reader(reader_of(copy, len), NULL, NULL, &totals, NULL), 0);
	assert_true(totals.ledger.bytes_skipped >= 500 && totals.ledger.bytes_skipped < 1200);
	assert_int_equal(totals.trace_bytes + 500, capture.trace[0].len + capture.trace[1].len);
	unlink(output);
	unlink(input);
	free(copy);
	vmt_pt_capture_free(&capture);
}

/* What a recorder lost stands in the output as LOST, behind the records before it. */
static void losses_become_lost_records(void **state)
{
	const struct vmt_store_options options = { .force = true };
	const struct vmt_format format = vmt_stream_format("6.1", "kvm_exit");
	const struct vmt_ring_attr attr = vmt_stream_attr(format.id);
	const uint64_t id = 5;
	const struct vmt_stream_at at = { .time_ns = 123456, .id = 5, .pid = 1, .tid = 1 };
	struct vmt_stream ring = { 0 };
	struct vmt_store_chunk chunk = { .type = VMT_CHUNK_RECORDS, .cpu = -1, .nr_parts = 1 };
	struct vmt_ring_set *set = vmt_ring_set_new();
	struct vmt_ring_record r;
	struct vmt_store_writer *w;
	size_t len;
	char *text;
	struct vmt_perfdata_seen seen;

	(void)state;
	vmt_stream_switch(&ring, &at, 0, 0);
	chunk.parts[0] = (struct vmt_store_part){ ring.bytes, ring.len };
	assert_int_equal(vmt_store_create(&w, input, &options, NULL), 0);
	assert_int_equal(vmt_store_attr(w, &attr, &id, 1, NULL), 0);
	text = vmt_stream_format_text("6.1", "kvm_exit", &len);
	assert_int_equal(vmt_store_format(w, text, NULL), 0);
	free(text);
	assert_int_equal(vmt_store_append(w, &chunk, NULL), 0);
	assert_int_equal(vmt_store_loss(w, 0, "ring-full", 0, 41, 0, NULL), 0);
	assert_int_equal(vmt_store_finish(w, NULL), 0);
	export_path(input);
	read_output(&seen);
	assert_non_null(set);
	assert_true(vmt_ring_set_add(set, &attr, &id, 1) >= 0);
	assert_memory_equal(seen.records.bytes, ring.bytes, ring.len);
	assert_int_equal(vmt_ring_parse(set, seen.records.bytes + ring.len,
					seen.records.len - ring.len, &r, NULL),
			 seen.records.len - ring.len);
	assert_int_equal(r.type, VMT_RING_LOST);
	assert_int_equal(r.lost, 41);
	assert_int_equal(r.time_ns, 123456);
	vmt_ring_set_free(set);
	vmt_stream_free(&ring);
	vmt_perfdata_forget(&seen);
	unlink(input);
}

/* ---- a bare stream ---- */

static void bare_stream_is_cut_at_psbs(void **state)
{
	const struct vmt_pt_random_kinds kinds = { .events = true, .modes = 3 };
	const struct vmt_input_pt pt = { .clock = { .tsc_hz = UINT64_C(2600000000) } };
	struct vmt_perfdata_totals totals;
	struct vmt_ptenc stream = { 0 };
	struct vmt_perfdata *perf;
	struct vmt_reader *reader;
	struct vmt_item item;
	uint64_t at = 0;
	size_t extents = 0;

	(void)state;
	vmt_pt_random(&stream, &kinds, 5, 2500000); /* above 4 MiB */
	assert_int_equal(export_reader(reader_of(stream.bytes, stream.len), &pt, NULL, &totals,
				       NULL),
			 0);
	assert_int_equal(totals.trace_bytes, stream.len);
	assert_int_equal(vmt_reader_open(&reader, output, NULL, NULL), 0);
	assert_int_equal(vmt_perfdata_open(&perf, reader, NULL), 0);
	while (vmt_perfdata_next(perf, &item, NULL) == 1) {
		static uint8_t psb[16];
		const struct vmt_aux_index *index = vmt_perfdata_aux(perf);
		size_t done;

		if (item.type != VMT_ITEM_AUX)
			continue;
		extents++;
		assert_int_equal(index->read(index->source, item.aux, 0, psb, sizeof(psb), &done,
					     NULL),
				 0);
		assert_memory_equal(psb, stream.bytes, sizeof(psb));
		assert_true(item.aux->aux_offset == at || at - item.aux->aux_offset < 8);
		assert_true(item.aux->reference != 0);
		at = item.aux->aux_offset + item.aux->len;
	}
	assert_true(extents > 1);
	assert_true(at >= stream.len && at - stream.len < 8);
	/* ns = tsc * mult >> shift, to within a part in 2^31. */
	assert_int_equal(vmt_perfdata_aux(perf)->info.time_shift, 32);
	assert_int_equal(vmt_perfdata_aux(perf)->info.time_mult, 1651910498);
	vmt_perfdata_close(perf);
	vmt_ptenc_free(&stream);
	unlink(output);
}

/* ---- damage ---- */

/* Whatever comes in, what comes out is a sound file, or no file. */
static void check_damaged(const uint8_t *bytes, size_t len)
{
	struct vmt_reader *reader;
	struct vmt_perfdata_seen seen;

	if (export_bytes(bytes, len)) {
		assert_int_equal(access(output, F_OK), -1);
		return;
	}
	assert_int_equal(vmt_reader_open(&reader, output, NULL, NULL), 0);
	if (!vmt_perfdata_see(&seen, reader)) {
		assert_int_equal(seen.ledger.bytes_total,
				 seen.ledger.bytes_decoded + seen.ledger.bytes_skipped);
		vmt_perfdata_forget(&seen);
	}
	unlink(output);
}

static void damaged_input_gives_a_sound_file_or_none(void **state)
{
	const struct vmt_perfdata_file_options options = { 0 };
	uint64_t random = 1;
	size_t len;
	uint8_t *bytes = make_kvm(&options, &len);
	uint8_t *copy = malloc(len);

	(void)state;
	assert_non_null(copy);
	for (size_t i = 0; i < 40; i++)
		check_damaged(bytes, len * i / 40);
	for (size_t i = 0; i < 300; i++) {
		memcpy(copy, bytes, len);
		for (size_t k = 0; k < 4; k++) {
			size_t at;

			random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
			at = (size_t)(random >> 20) % (k ? len : 2000);
			copy[at] ^= (uint8_t)(1u << (random >> 61));
		}
		check_damaged(copy, len);
	}
	free(copy);
	free(bytes);
}

static uint64_t room; /* bytes until the disk is full */

static ssize_t full_writev(int fd, const struct iovec *iov, int n)
{
	struct iovec part = *iov;

	if (!room) {
		errno = ENOSPC;
		return -1;
	}
	if (part.iov_len > room)
		part.iov_len = (size_t)room;
	(void)n;
	room -= part.iov_len;
	return vmt_io_system.writev(fd, &part, 1);
}

static void full_disk_leaves_no_file(void **state)
{
	const struct vmt_perfdata_file_options options = { 0 };
	struct vmt_io_ops ops = vmt_io_system;
	struct vmt_perfdata_totals totals;
	size_t len;
	uint8_t *bytes = make_kvm(&options, &len);
	int err = VMT_E_FULL;

	(void)state;
	ops.writev = full_writev;
	for (uint64_t space = 0; err; space += 3001) {
		struct vmt_diag diag = { 0 };

		room = space;
		err = export_reader(reader_of(bytes, len), NULL, &ops, &totals, &diag);
		assert_int_equal(err, err ? VMT_E_FULL : 0);
		assert_int_equal(access(output, F_OK), err ? -1 : 0);
		assert_true(err || space >= len / 2);
	}
	unlink(output);
	free(bytes);
}

static void pipe_is_refused(void **state)
{
	struct vmt_output file;
	struct vmt_perfdata_writer *w;
	struct vmt_diag diag = { 0 };
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	file = (struct vmt_output){ .ops = &vmt_io_system, .fd = fds[1], .is_device = true };
	file.path = strdup("a pipe");
	assert_int_equal(vmt_perfdata_create(&w, &file, &diag), VMT_E_USAGE);
	assert_int_equal(file.fd, -1);
	close(fds[0]);
}

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(output, sizeof(output), "%s/out.data", folder);
	snprintf(input, sizeof(input), "%s/in.vmt", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perfdata_comes_out_the_same),
		cmocka_unit_test(rewriting_is_stable),
		cmocka_unit_test(real_trace_comes_out_the_same),
		cmocka_unit_test(vmt_keeps_records_and_trace),
		cmocka_unit_test(damaged_trace_is_counted),
		cmocka_unit_test(losses_become_lost_records),
		cmocka_unit_test(bare_stream_is_cut_at_psbs),
		cmocka_unit_test(damaged_input_gives_a_sound_file_or_none),
		cmocka_unit_test(full_disk_leaves_no_file),
		cmocka_unit_test(pipe_is_refused),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
