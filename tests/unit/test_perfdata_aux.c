// SPDX-License-Identifier: LGPL-2.1-or-later
/* decode/perfdata: Intel PT, from a file and from a pipe: the index, its bytes, what is damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "decode/perfdata/perfdata.h"
#include "tests/support/memory_file.h"
#include "tests/support/perfdata_file.h"

#define AREAS 2u

/* PMU type, shift, mult, zero, cap, TSC bit, …: config has MTC on with frequency 3. */
static const uint64_t words[] = { VMT_PERFDATA_FILE_PT,
				  31,
				  0x6aaaaaaa,
				  77,
				  1,
				  0x400,
				  0x800,
				  3,
				  0,
				  1,
				  0x200,
				  0x3c000,
				  100,
				  2,
				  2,
				  12,
				  0,
				  1 };

static uint8_t trace_byte(size_t area, uint64_t offset)
{
	return (uint8_t)(area * 101 + offset * 7 + (offset >> 8));
}

struct file {
	uint8_t *bytes;
	size_t len;
};

static struct vmt_perfdata_file *begin(struct vmt_perfdata_file_options options)
{
	static const char *const none[] = { NULL };

	options.kernel = "6.1";
	options.events = options.events ? options.events : none;
	options.isa = VMT_ISA_VMX;
	options.cpus = AREAS;
	options.pt = true;
	options.fd = -1;
	return vmt_perfdata_file_new(&options);
}

static struct file end(struct vmt_perfdata_file *file)
{
	struct file f;

	vmt_perfdata_file_finish(file);
	f.bytes = vmt_perfdata_file_take(file, &f.len);
	vmt_perfdata_file_free(file);
	return f;
}

static void add(struct vmt_perfdata_file *file, uint32_t nr, uint64_t aux_offset, size_t len)
{
	const struct vmt_aux_area area = { .idx = nr, .cpu = nr, .tid = UINT32_MAX };
	const struct vmt_aux_extent extent = { .len = len,
					       .aux_offset = aux_offset,
					       .reference = 1000 + aux_offset };
	uint8_t *bytes = malloc(len + 1);

	assert_non_null(bytes);
	for (size_t i = 0; i < len; i++)
		bytes[i] = trace_byte(nr, aux_offset + i);
	vmt_perfdata_file_auxtrace(file, &area, &extent, bytes);
	free(bytes);
}

/* Two areas, three buffers each, the second one of area 1 ends where the trace was stopped. */
static struct file make(struct vmt_perfdata_file_options options)
{
	struct vmt_perfdata_file *file = begin(options);
	const struct vmt_ring_aux stopped = { 4096, 904, VMT_RING_AUX_TRUNCATED };
	const struct vmt_ring_aux whole = { 0, 4096, 0 };

	vmt_perfdata_file_auxtrace_info(file, words, sizeof(words) / sizeof(words[0]));
	for (uint64_t i = 0; i < 3; i++) {
		vmt_perfdata_file_aux(file, 0, 5000 + i, &whole);
		vmt_perfdata_file_aux(file, 1, 6000 + i, i == 1 ? &stopped : &whole);
		for (uint32_t nr = 0; nr < AREAS; nr++)
			add(file, nr, i * 4096, 4096);
		vmt_perfdata_file_round(file);
	}
	return end(file);
}

struct seen {
	size_t aux, losses, links, records;
	uint64_t lost;
	char kind[32];
	bool ended;
	struct vmt_ledger ledger;
};

static void read_items(struct vmt_perfdata *perf, struct seen *seen)
{
	struct vmt_item item;
	int got;

	*seen = (struct seen){ 0 };
	while ((got = vmt_perfdata_next(perf, &item, NULL)) == 1) {
		seen->aux += item.type == VMT_ITEM_AUX;
		seen->links += item.type == VMT_ITEM_VCPU_LINK;
		seen->records += item.type == VMT_ITEM_RECORDS;
		seen->ended = item.type == VMT_ITEM_END;
		if (item.type != VMT_ITEM_LOSS)
			continue;
		seen->losses++;
		seen->lost += item.lost_bytes;
		snprintf(seen->kind, sizeof(seen->kind), "%s", item.loss_kind);
	}
	assert_int_equal(got, 0);
	seen->ledger = vmt_perfdata_ledger(perf);
	assert_int_equal(seen->ledger.bytes_total,
			 seen->ledger.bytes_decoded + seen->ledger.bytes_skipped);
	assert_int_equal(seen->ledger.bytes_skipped, seen->lost);
}

static struct vmt_perfdata *open_bytes(const uint8_t *bytes, size_t len, bool pipe)
{
	struct vmt_reader *reader;
	struct vmt_perfdata *perf;
	int fd = pipe ? vmt_memory_pipe(bytes, len) : vmt_memory_file(bytes, len);

	assert_int_equal(vmt_reader_from_fd(&reader, fd, NULL, NULL), 0);
	assert_int_equal(vmt_perfdata_open(&perf, reader, NULL), 0);
	return perf;
}

/* Every byte of every extent, in reads of odd sizes, is what was written. */
static void check_bytes(const struct vmt_aux_index *index)
{
	uint8_t bytes[1000];

	for (size_t i = 0; i < index->nr_areas; i++) {
		const struct vmt_aux_area *area = &index->areas[i];

		for (size_t k = 0; k < area->nr_extents; k++) {
			const struct vmt_aux_extent *e = &area->extents[k];

			for (uint64_t from = 0; from < e->len; from += sizeof(bytes)) {
				size_t len = sizeof(bytes), done;

				if (len > e->len - from)
					len = (size_t)(e->len - from);
				assert_int_equal(index->read(index->source, e, from, bytes, len,
							     &done, NULL),
						 0);
				assert_int_equal(done, len);
				for (size_t n = 0; n < len; n++)
					assert_int_equal(bytes[n],
							 trace_byte(area->idx,
								    e->aux_offset + from + n));
			}
		}
	}
}

static void check_info(const struct vmt_pt_info *info)
{
	assert_int_equal(info->config, VMT_PERFDATA_FILE_PT_CONFIG);
	assert_true(info->has_time_conv && info->has_mtc_freq && info->per_cpu);
	assert_false(info->snapshot);
	assert_true(info->event_trace);
	assert_int_equal(info->time_shift, 31);
	assert_int_equal(info->time_mult, 0x6aaaaaaa);
	assert_int_equal(info->time_zero, 77);
	assert_int_equal(info->mtc_freq, 3);
	assert_int_equal(info->tsc_num, 100);
	assert_int_equal(info->art_den, 2);
	assert_int_equal(info->nom_ratio, 12);
	assert_true(info->has_cpu_id);
	assert_int_equal(info->family, 6);
	assert_int_equal(info->model, 143);
	assert_int_equal(info->stepping, 8);
	assert_null(info->filter);
}

static void check_whole(const struct file *f, bool pipe, bool at_once)
{
	struct vmt_perfdata *perf = open_bytes(f->bytes, f->len, pipe);
	const struct vmt_aux_index *index;
	struct seen seen;

	assert_int_equal(vmt_perfdata_aux(perf)->nr_areas, at_once ? AREAS : 0);
	read_items(perf, &seen);
	assert_int_equal(seen.aux, 6);
	assert_int_equal(seen.losses, 0);
	assert_true(seen.ended);
	assert_int_equal(seen.ledger.bytes_total, f->len);
	index = vmt_perfdata_aux(perf);
	assert_true(index->has_info);
	check_info(&index->info);
	assert_int_equal(index->nr_areas, AREAS);
	assert_int_equal(index->areas[0].nr_extents, 3);
	assert_int_equal(index->areas[1].nr_extents, 4); /* divided where the trace was stopped */
	assert_int_equal(index->areas[1].extents[2].aux_offset, 5000);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(index->areas[1].extents[i].handle & VMT_AUX_RESTART, i == 2);
	check_bytes(index);
	vmt_perfdata_close(perf);
}

static void every_mode(void **state)
{
	static const struct {
		struct vmt_perfdata_file_options options;
		bool pipe;
	} modes[] = {
		{ { .pipe = false }, false },	     { { .pipe = true }, false },
		{ { .pipe = true }, true },	     { { .zstd = true }, false },
		{ { .no_data_size = true }, false }, { { .pipe = true, .zstd = true }, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		struct file f = make(modes[i].options);

		check_whole(&f, modes[i].pipe, !modes[i].options.pipe);
		free(f.bytes);
	}
}

/* What can be read of a file that was cut off at any place is a front of what was there. */
static void cut_anywhere(void **state)
{
	struct file f = make((struct vmt_perfdata_file_options){ .pipe = true });

	(void)state;
	for (size_t len = f.len - 9000; len < f.len; len += 37) {
		for (int pipe = 0; pipe < 2; pipe++) {
			struct vmt_perfdata *perf = open_bytes(f.bytes, len, pipe);
			struct seen seen;

			read_items(perf, &seen);
			assert_int_equal(seen.ledger.bytes_total, len);
			check_bytes(vmt_perfdata_aux(perf));
			vmt_perfdata_close(perf);
		}
	}
	free(f.bytes);
}

/* A buffer's size that is 0, odd, too large, or impossible. */
static void damaged_sizes(void **state)
{
	static const struct {
		uint64_t size;
		uint64_t in_index;
		const char *kind; /* NULL: the file goes on */
	} rows[] = {
		{ 0, 0, NULL },
		{ 13, 13, NULL },
		{ 4096, 4096, NULL },
		{ 5000, 4104, "truncated" }, /* with the record that follows */
		{ UINT64_C(1) << 40, 4104, "truncated" },
		{ UINT64_MAX, 0, "damaged" },
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		struct vmt_perfdata_file *file =
			begin((struct vmt_perfdata_file_options){ .pipe = true });
		size_t real = rows[i / 2].size < 4096 ? (size_t)rows[i / 2].size : 4096;
		const struct vmt_aux_index *index;
		struct vmt_perfdata *perf;
		struct seen seen;
		struct file f;

		vmt_perfdata_file_auxtrace_info(file, words, 10);
		add(file, 0, 0, real);
		vmt_perfdata_file_round(file);
		f = end(file);
		memcpy(f.bytes + f.len - 8 - real - 40, &rows[i / 2].size, 8);
		perf = open_bytes(f.bytes, f.len, i % 2);
		read_items(perf, &seen);
		index = vmt_perfdata_aux(perf);
		assert_int_equal(seen.ended, !rows[i / 2].kind);
		if (rows[i / 2].kind)
			assert_string_equal(seen.kind, rows[i / 2].kind);
		assert_int_equal(index->nr_areas, rows[i / 2].in_index > 0);
		if (index->nr_areas)
			assert_int_equal(index->areas[0].extents[0].len, rows[i / 2].in_index);
		vmt_perfdata_close(perf);
		free(f.bytes);
	}
}

/* AUXTRACE_INFO of any length; a filter; another tracer. */
static void infos(void **state)
{
	uint64_t filtered[21];

	(void)state;
	memcpy(filtered, words, 17 * 8);
	filtered[16] = 9;
	memcpy(&filtered[17], "filter 0x1\0\0\0\0\0", 16);
	memcpy((char *)&filtered[17] + 9, "\0\0\0\0\0\0\0", 7);
	filtered[19] = 1;
	for (size_t nr = 0; nr <= 20; nr++) {
		struct vmt_perfdata_file *file =
			begin((struct vmt_perfdata_file_options){ .pipe = nr % 2 });
		const struct vmt_aux_index *index;
		struct vmt_perfdata *perf;
		struct seen seen;
		struct file f;

		vmt_perfdata_file_auxtrace_info(file, filtered, nr);
		add(file, 0, 0, 64);
		f = end(file);
		perf = open_bytes(f.bytes, f.len, nr % 2);
		read_items(perf, &seen);
		index = vmt_perfdata_aux(perf);
		assert_int_equal(seen.aux, 1);
		assert_int_equal(index->nr_areas, 1);
		assert_int_equal(index->has_info, nr >= 10);
		assert_int_equal(index->info.has_time_conv, nr >= 10);
		assert_int_equal(index->info.event_trace, nr >= 20);
		if (nr >= 19)
			assert_string_equal(index->info.filter, "filter 0x");
		else
			assert_null(index->info.filter);
		vmt_perfdata_close(perf);
		free(f.bytes);
	}
}

static void other_tracers_are_a_loss(void **state)
{
	struct vmt_perfdata_file *file = begin((struct vmt_perfdata_file_options){ .pipe = false });
	const uint64_t bts[] = { 2, 9, 9, 9 };
	struct vmt_perfdata *perf;
	struct seen seen;
	struct file f;

	(void)state;
	vmt_perfdata_file_user(file, 70, bts, sizeof(bts));
	add(file, 0, 0, 512);
	f = end(file);
	perf = open_bytes(f.bytes, f.len, false);
	read_items(perf, &seen);
	assert_int_equal(seen.aux, 0);
	assert_string_equal(seen.kind, "auxtrace");
	assert_int_equal(seen.lost, 512);
	assert_int_equal(vmt_perfdata_aux(perf)->nr_areas, 0);
	vmt_perfdata_close(perf);
	free(f.bytes);
}

/* TIME_CONV in both forms, without any AUX data. */
static void time_conv_alone(void **state)
{
	uint64_t body[6] = { 31, 5, 99, 0, 0, 1 };

	(void)state;
	for (size_t i = 0; i < 4; i++) { /* short, long, long without time_zero, too short */
		static const size_t lens[] = { 24, 48, 48, 16 };
		struct vmt_perfdata_file *file =
			begin((struct vmt_perfdata_file_options){ .pipe = true });
		struct vmt_perfdata *perf;
		struct seen seen;
		struct file f;

		body[5] = i == 1;
		vmt_perfdata_file_user(file, 79, body, lens[i]);
		f = end(file);
		perf = open_bytes(f.bytes, f.len, true);
		read_items(perf, &seen);
		assert_int_equal(vmt_perfdata_aux(perf)->info.has_time_conv, i < 2);
		assert_int_equal(vmt_perfdata_aux(perf)->info.time_zero, i < 2 ? 99 : 0);
		assert_false(vmt_perfdata_aux(perf)->has_info);
		vmt_perfdata_close(perf);
		free(f.bytes);
	}
}

/* nr entries of 32 bytes, and as many of 16 when a guest is in it. */
static void id_index(void **state)
{
	uint64_t body[1 + 3 * 6] = {
		3,   /* id, idx, cpu, tid */ 1, 0, 0,	UINT64_MAX, 2,	 1, 0, 501, 3, 2, 0,
		502, /* machine_pid, vcpu */ 0, 0, 500, 0,	    500, 1
	};
	struct vmt_perfdata_file *file = begin((struct vmt_perfdata_file_options){ .pipe = true });
	struct vmt_vcpu_link links[2];
	struct vmt_perfdata *perf;
	struct vmt_item item;
	size_t n = 0;
	struct file f;

	(void)state;
	vmt_perfdata_file_user(file, 69, body, sizeof(body));
	vmt_perfdata_file_user(file, 69, body, 8 + 3 * 32); /* of a host alone */
	body[0] = 4;
	vmt_perfdata_file_user(file, 69, body, sizeof(body)); /* more than there are */
	body[0] = UINT64_MAX / 16;
	vmt_perfdata_file_user(file, 69, body, sizeof(body));
	f = end(file);
	perf = open_bytes(f.bytes, f.len, true);
	while (vmt_perfdata_next(perf, &item, NULL) == 1) {
		if (item.type != VMT_ITEM_VCPU_LINK)
			continue;
		assert_int_equal(n++, 0);
		assert_int_equal(item.len, sizeof(links));
		memcpy(links, item.data, item.len);
		for (uint32_t i = 0; i < 2; i++) {
			assert_int_equal(links[i].machine_pid, 500);
			assert_int_equal(links[i].vcpu, i);
			assert_int_equal(links[i].tid, 501 + i);
		}
	}
	assert_int_equal(n, 1);
	vmt_perfdata_close(perf);
	free(f.bytes);
}

/* More buffers than the index holds: the rest is a loss, and all bytes are accounted for. */
static void many_buffers(void **state)
{
	const uint64_t nr = (1u << 20) + 1000;
	struct vmt_perfdata_file *file = begin((struct vmt_perfdata_file_options){ .pipe = true });
	const struct vmt_aux_index *index;
	struct vmt_perfdata *perf;
	struct seen seen;
	struct file f;

	(void)state;
	vmt_perfdata_file_auxtrace_info(file, words, 10);
	for (uint64_t i = 0; i < nr; i++)
		add(file, 0, i * 8, 8);
	f = end(file);
	perf = open_bytes(f.bytes, f.len, false);
	read_items(perf, &seen);
	index = vmt_perfdata_aux(perf);
	assert_int_equal(seen.aux, nr);
	assert_string_equal(seen.kind, "aux-limit");
	assert_int_equal(seen.lost, 8000);
	assert_int_equal(index->lost_extents, 1000);
	assert_int_equal(index->areas[0].nr_extents, 1u << 20);
	vmt_perfdata_close(perf);
	free(f.bytes);
}

static void many_areas(void **state)
{
	struct vmt_perfdata_file *file = begin((struct vmt_perfdata_file_options){ .pipe = true });
	const struct vmt_aux_index *index;
	struct vmt_perfdata *perf;
	struct seen seen;
	struct file f;

	(void)state;
	vmt_perfdata_file_auxtrace_info(file, words, 10);
	for (uint32_t i = 0; i < 9000; i++)
		add(file, 100000 - i, 0, 8);
	f = end(file);
	perf = open_bytes(f.bytes, f.len, false);
	read_items(perf, &seen);
	index = vmt_perfdata_aux(perf);
	assert_int_equal(index->nr_areas, 8192);
	assert_int_equal(index->lost_extents, 9000 - 8192);
	for (size_t i = 1; i < index->nr_areas; i++)
		assert_true(index->areas[i - 1].idx < index->areas[i].idx);
	vmt_perfdata_close(perf);
	free(f.bytes);
}

/* ---- a spool that fails ---- */

static uint64_t room;

static ssize_t short_writev(int fd, const struct iovec *iov, int n)
{
	struct iovec part = iov[0];

	(void)n;
	if (!room) {
		errno = ENOSPC;
		return -1;
	}
	if (part.iov_len > room)
		part.iov_len = room;
	room -= part.iov_len;
	return writev(fd, &part, 1);
}

static int little_free(int fd, uint64_t *bytes)
{
	(void)fd;
	*bytes = 1000;
	return 0;
}

static int no_folder(int dirfd, const char *path, int flags, mode_t mode)
{
	(void)dirfd;
	(void)path;
	(void)flags;
	(void)mode;
	errno = EROFS;
	return -1;
}

static void full_spool(void **state)
{
	struct file f = make((struct vmt_perfdata_file_options){ .pipe = true });
	struct vmt_io_ops ops = vmt_io_system;

	(void)state;
	ops.writev = short_writev;
	for (size_t i = 0; i < 40; i++) {
		struct vmt_reader *reader;
		struct vmt_perfdata *perf;
		struct seen seen;

		room = i * 600;
		if (i == 39)
			ops.free_bytes = little_free;
		assert_int_equal(vmt_reader_from_fd(&reader, vmt_memory_pipe(f.bytes, f.len), &ops,
						    NULL),
				 0);
		assert_int_equal(vmt_perfdata_open(&perf, reader, NULL), 0);
		read_items(perf, &seen);
		assert_true(seen.losses > 0);
		assert_int_equal(seen.ledger.bytes_total, f.len);
		assert_true(seen.lost >= f.len - 2000 - i * 600);
		check_bytes(vmt_perfdata_aux(perf));
		vmt_perfdata_close(perf);
	}
	free(f.bytes);
}

static void no_spool(void **state)
{
	struct file f = make((struct vmt_perfdata_file_options){ .pipe = true });
	struct vmt_io_ops ops = vmt_io_system;
	struct vmt_diag diag = { 0 };
	struct vmt_reader *reader;
	struct vmt_perfdata *perf;
	struct vmt_item item;
	int got;

	(void)state;
	ops.openat = no_folder;
	assert_int_equal(vmt_reader_from_fd(&reader, vmt_memory_pipe(f.bytes, f.len), &ops, NULL),
			 0);
	assert_int_equal(vmt_perfdata_open(&perf, reader, NULL), 0);
	while ((got = vmt_perfdata_next(perf, &item, &diag)) == 1)
		;
	assert_int_equal(got, VMT_E_IO);
	assert_string_equal(diag.what, "cannot make a temporary file: Read-only file system");
	vmt_perfdata_close(perf);
	free(f.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_mode),	   cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(damaged_sizes),   cmocka_unit_test(infos),
		cmocka_unit_test(time_conv_alone), cmocka_unit_test(other_tracers_are_a_loss),
		cmocka_unit_test(id_index),	   cmocka_unit_test(many_buffers),
		cmocka_unit_test(many_areas),	   cmocka_unit_test(full_spool),
		cmocka_unit_test(no_spool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
