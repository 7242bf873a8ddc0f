// SPDX-License-Identifier: LGPL-2.1-or-later
/* Intel PT in a .vmt: there and back, in copies, in flight recorders, damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/store/layout.h"
#include "decode/store/store.h"
#include "tests/support/store_sample.h"

#define SECOND UINT64_C(1000000000)
#define TRACE  (700u << 10) /* three chunks */

static char folder[] = "/tmp/vmt-aux-XXXXXX";
static char path[64], copy_path[64];
static uint8_t trace[TRACE];

static int make_folder(void **state)
{
	(void)state;
	for (size_t i = 0; i < TRACE; i++)
		trace[i] = (uint8_t)(i * 7 + (i >> 9));
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/a.vmt", folder);
	snprintf(copy_path, sizeof(copy_path), "%s/b.vmt", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

static int remove_files(void **state)
{
	(void)state;
	unlink(path);
	unlink(copy_path);
	return 0;
}

static const struct vmt_pt_info info = { .pmu_type = 8,
					 .config = UINT64_C(0x123456789),
					 .has_time_conv = true,
					 .time_shift = 31,
					 .time_mult = 0x6aaaaaaa,
					 .time_zero = UINT64_C(0xfffffff86343cb91),
					 .mtc_freq = 9,
					 .has_mtc_freq = true,
					 .tsc_num = 200,
					 .art_den = 3,
					 .nom_ratio = 24,
					 .per_cpu = true,
					 .event_trace = true,
					 .has_cpu_id = true,
					 .family = 6,
					 .model = 0x8f,
					 .stepping = 8,
					 .filter = "filter 0x1000/0x20" };

static void put(struct vmt_store_writer *w, uint32_t idx, uint64_t from, size_t len)
{
	const struct vmt_aux_area area = { .idx = idx,
					   .cpu = idx == 9 ? VMT_AUX_NO_CPU : idx,
					   .pid = idx == 9 ? 500 : 0,
					   .tid = idx == 9 ? 501 : 0 };
	const size_t front = len / 3;
	const struct vmt_store_trace t = { .aux_offset = from,
					   .reference = 77,
					   .restart = from == 1000,
					   .parts = { { trace + from, front },
						      { trace + from + front, len - front } } };

	assert_int_equal(vmt_store_aux(w, &area, &t, NULL), 0);
}

static void put_records(struct vmt_store_writer *w, uint32_t nr, uint64_t time_ns)
{
	uint8_t bytes[4 * VMT_SAMPLE_RECORD];
	const struct vmt_store_chunk chunk = { .type = VMT_CHUNK_RECORDS,
					       .cpu = -1,
					       .time_first_ns = time_ns,
					       .time_last_ns = time_ns,
					       .nr_parts = 1,
					       .parts = { { bytes, sizeof(bytes) } } };

	vmt_sample_records(bytes, 4, nr);
	assert_int_equal(vmt_store_append(w, &chunk, NULL), 0);
	assert_int_equal(vmt_store_round(w, time_ns, NULL), 0);
}

static void write_file(bool compress)
{
	const struct vmt_store_options options = { .compress = compress };
	struct vmt_store_writer *w = vmt_sample_create(path, &options);

	assert_int_equal(vmt_store_aux_info(w, &info, NULL), 0);
	put_records(w, 1, SECOND);
	put(w, 2, 0, 1000);
	put(w, 9, 0, TRACE);
	put(w, 2, 1000, TRACE - 1000);
	put_records(w, 2, 2 * SECOND);
	assert_int_equal(vmt_store_finish(w, NULL), 0);
}

/* Reads all items; how many were AUX. */
static size_t read_items(struct vmt_store_reader *store, uint64_t *lost)
{
	struct vmt_item item;
	size_t aux = 0;
	struct vmt_ledger l;
	int got;

	*lost = 0;
	while ((got = vmt_store_next(store, &item, NULL)) == 1) {
		if (item.type == VMT_ITEM_AUX)
			assert_true(!item.data && item.aux->len);
		aux += item.type == VMT_ITEM_AUX;
		if (item.type == VMT_ITEM_LOSS)
			*lost += item.lost_bytes;
		if (item.type == VMT_ITEM_RECORDS) /* known by now */
			assert_true(vmt_store_aux_index(store)->has_info);
	}
	assert_int_equal(got, 0);
	l = vmt_store_ledger(store);
	assert_int_equal(l.bytes_total, l.bytes_decoded + l.bytes_skipped);
	return aux;
}

static void check_info(const struct vmt_pt_info *got)
{
	struct vmt_pt_info copy = *got;

	assert_string_equal(got->filter, info.filter);
	copy.filter = info.filter;
	assert_int_equal(copy.pmu_type, info.pmu_type);
	assert_int_equal(copy.config, info.config);
	assert_int_equal(copy.time_zero, info.time_zero);
	assert_int_equal(copy.time_mult, info.time_mult);
	assert_int_equal(copy.time_shift, info.time_shift);
	assert_int_equal(copy.mtc_freq, info.mtc_freq);
	assert_int_equal(copy.tsc_num, info.tsc_num);
	assert_int_equal(copy.art_den, info.art_den);
	assert_int_equal(copy.nom_ratio, info.nom_ratio);
	assert_int_equal(copy.family, info.family);
	assert_int_equal(copy.model, info.model);
	assert_int_equal(copy.stepping, info.stepping);
	assert_true(copy.has_time_conv && copy.has_mtc_freq && copy.per_cpu && copy.event_trace &&
		    copy.has_cpu_id && !copy.snapshot);
}

static void check_area(const struct vmt_aux_index *index, const struct vmt_aux_area *area)
{
	static uint8_t bytes[5000];
	uint64_t next = 0;

	for (size_t i = 0; i < area->nr_extents; i++) {
		const struct vmt_aux_extent *e = &area->extents[i];

		assert_int_equal(e->aux_offset, next);
		assert_int_equal(e->reference, 77);
		assert_int_equal(e->handle & VMT_AUX_RESTART, next == 1000);
		for (uint64_t from = 0; from < e->len; from += sizeof(bytes)) {
			size_t len = sizeof(bytes), done;

			if (len > e->len - from)
				len = (size_t)(e->len - from);
			assert_int_equal(index->read(index->source, e, from, bytes, len, &done,
						     NULL),
					 0);
			assert_int_equal(done, len);
			assert_memory_equal(bytes, trace + next + from, len);
		}
		next += e->len;
	}
	assert_int_equal(next, TRACE);
}

static void check_file(struct vmt_store_reader *store)
{
	const struct vmt_aux_index *index;
	uint64_t lost;

	assert_int_equal(read_items(store, &lost), 7);
	assert_int_equal(lost, 0);
	index = vmt_store_aux_index(store);
	check_info(&index->info);
	assert_int_equal(index->nr_areas, 2);
	assert_int_equal(index->areas[0].idx, 2);
	assert_int_equal(index->areas[0].cpu, 2);
	assert_int_equal(index->areas[1].idx, 9);
	assert_int_equal(index->areas[1].cpu, VMT_AUX_NO_CPU);
	assert_int_equal(index->areas[1].pid, 500);
	assert_int_equal(index->areas[1].tid, 501);
	check_area(index, &index->areas[0]);
	check_area(index, &index->areas[1]);
	vmt_store_close(store);
}

static uint8_t *load(const char *name, size_t *len)
{
	FILE *f = fopen(name, "rb");
	uint8_t *bytes = malloc(4u << 20);

	assert_true(f && bytes);
	*len = fread(bytes, 1, 4u << 20, f);
	fclose(f);
	return bytes;
}

static void there_and_back(void **state)
{
	(void)state;
	for (int compress = 0; compress < 2; compress++) {
		struct vmt_store_reader *store;
		uint8_t *bytes;
		size_t len;

		write_file(compress);
		check_file(vmt_sample_open(path));
		bytes = load(path, &len);
		assert_true(compress ? len < TRACE : len > 2 * TRACE);
		assert_int_equal(vmt_store_open(&store, vmt_sample_reader(bytes, len), NULL), 0);
		check_file(store);
		free(bytes);
		remove_files(NULL);
	}
}

static void copies_have_it(void **state)
{
	struct vmt_store_snapshot options = { .store = { .compress = true } };

	(void)state;
	write_file(false);
	assert_int_equal(vmt_store_snapshot(path, copy_path, &options, NULL, NULL), 0);
	check_file(vmt_sample_open(copy_path));
}

/* A chunk of trace that is damaged when the file is read, and one that becomes so later. */
static void damage_is_told(void **state)
{
	struct vmt_store_reader *store;
	const struct vmt_aux_index *index;
	uint8_t *bytes, out[16];
	uint64_t lost, at;
	size_t len, done;
	int fd;

	(void)state;
	write_file(false);
	store = vmt_sample_open(path);
	read_items(store, &lost);
	index = vmt_store_aux_index(store);
	at = index->areas[0].extents[1].at;
	fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, "x", 1, (off_t)at + 99), 1);
	close(fd);
	assert_int_equal(index->read(index->source, &index->areas[0].extents[1], 0, out,
				     sizeof(out), &done, NULL),
			 VMT_E_DAMAGED);
	assert_int_equal(done, 0);
	vmt_store_close(store);

	bytes = load(path, &len);
	assert_int_equal(vmt_store_open(&store, vmt_sample_reader(bytes, len), NULL), 0);
	assert_int_equal(read_items(store, &lost), 6);
	assert_true(lost > VMT_STORE_AUX_MAX);
	index = vmt_store_aux_index(store);
	assert_int_equal(index->areas[0].nr_extents, 3);
	vmt_store_close(store);
	free(bytes);
}

/* Trace keeps its segment as RECORDS do, by its time or, without one, by that of the segment. */
static void flight_recorder(void **state)
{
	const struct vmt_store_options options = { .keep_ns = 10 * SECOND };
	struct vmt_store_writer *w = vmt_sample_create(path, &options);
	const struct vmt_aux_area area = { .idx = 1, .cpu = 1 };
	struct vmt_store_reader *store;
	struct vmt_store_totals totals;
	const struct vmt_aux_index *index;
	const struct vmt_aux_extent *first;
	uint64_t lost;

	(void)state;
	assert_int_equal(vmt_store_aux_info(w, &info, NULL), 0);
	for (uint32_t i = 1; i <= 60; i++) {
		struct vmt_store_trace t = { .aux_offset = i * 100000ull,
					     .parts = { { trace, 100000 } } };

		if (i % 2)
			t.time_first_ns = t.time_last_ns = i * SECOND;
		assert_int_equal(vmt_store_aux(w, &area, &t, NULL), 0);
		assert_int_equal(vmt_store_round(w, i * SECOND, NULL), 0);
	}
	totals = vmt_store_totals(w);
	assert_int_equal(vmt_store_finish(w, NULL), 0);
	if (totals.keep_unsupported) {
		print_message("# this file system has no holes\n");
		skip();
	}
	assert_true(totals.dropped_bytes > 3000000);
	store = vmt_sample_open(path);
	assert_true(read_items(store, &lost) >= 10);
	index = vmt_store_aux_index(store);
	check_info(&index->info);
	first = &index->areas[0].extents[0];
	assert_true(first->aux_offset <= 50 * 100000ull && first->aux_offset > 40 * 100000ull);
	vmt_store_close(store);
}

static int no_room(int fd, uint64_t *bytes)
{
	(void)fd;
	*bytes = 0;
	return 0;
}

/* A pipe that finds no room in a temporary file. */
static void a_pipe_without_room(void **state)
{
	struct vmt_io_ops ops = vmt_io_system;
	struct vmt_diag diag = { 0 };
	struct vmt_store_reader *store;
	struct vmt_reader *reader;
	struct vmt_item item;
	char command[80];
	FILE *cat;
	int got;

	(void)state;
	write_file(false);
	snprintf(command, sizeof(command), "cat %s", path);
	cat = popen(command, "r");
	assert_non_null(cat);
	ops.free_bytes = no_room;
	assert_int_equal(vmt_reader_from_fd(&reader, dup(fileno(cat)), &ops, NULL), 0);
	assert_int_equal(vmt_store_open(&store, reader, NULL), 0);
	while ((got = vmt_store_next(store, &item, &diag)) == 1)
		;
	assert_int_equal(got, VMT_E_FULL);
	assert_non_null(strstr(diag.cure, "TMPDIR"));
	vmt_store_close(store);
	pclose(cat);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(there_and_back, remove_files),
		cmocka_unit_test_teardown(copies_have_it, remove_files),
		cmocka_unit_test_teardown(damage_is_told, remove_files),
		cmocka_unit_test_teardown(flight_recorder, remove_files),
		cmocka_unit_test_teardown(a_pipe_without_room, remove_files),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
