// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Draining a ring against a model: whatever the sizes of records, the places where the ring wraps
 * and the moments of draining, the bytes that reach the store are those that were written, in
 * order, in chunks of whole records.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "host/capture/ring.h"

#define RING_BYTES 65536u
#define EXIT_ID	   1234u

struct model {
	struct perf_event_mmap_page page;
	_Alignas(8) uint8_t data[RING_BYTES];
	uint8_t *written, *stored;
	size_t nr_written, nr_stored, cap;
	uint64_t records, exits, lost, seed, time_ns;
	size_t largest_chunk;
	bool refuse;
};

static uint64_t next_random(struct model *m)
{
	m->seed ^= m->seed << 13;
	m->seed ^= m->seed >> 7;
	m->seed ^= m->seed << 17;
	return m->seed;
}

static void put(struct model *m, const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		m->data[(m->page.data_head + i) % RING_BYTES] = ((const uint8_t *)bytes)[i];
	assert_true(m->nr_written + len <= m->cap);
	memcpy(m->written + m->nr_written, bytes, len);
	m->nr_written += len;
	m->page.data_head += len;
}

static void set16(uint8_t *p, uint16_t v)
{
	memcpy(p, &v, sizeof(v));
}

static void set32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
}

static void set64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof(v));
}

/* One random record as the kernel lays it out; false when the ring has no room. */
static bool write_record(struct model *m)
{
	uint8_t r[65528] = { 0 };
	uint64_t kind = next_random(m) % 16;
	size_t len = kind == 0 ? 48 : 8 * (6 + next_random(m) % 40);

	if (next_random(m) % 400 == 0)
		len = 8 * (1000 + next_random(m) % 7000);
	if (len > RING_BYTES - (m->page.data_head - m->page.data_tail))
		return false;
	m->time_ns += 1 + next_random(m) % 1000;
	set32(r, kind == 0 ? PERF_RECORD_LOST : kind < 3 ? PERF_RECORD_SWITCH : PERF_RECORD_SAMPLE);
	if (kind == 0) {
		len = 8 + 16 + 32;
		if (len > RING_BYTES - (m->page.data_head - m->page.data_tail))
			return false;
		set64(r + 16, kind + 7);
		m->lost += 7;
	}
	set16(r + 6, (uint16_t)len);
	if (kind < 3) {
		set64(r + len - 24, m->time_ns);
	} else {
		bool is_exit = next_random(m) % 3 == 0;

		set64(r + 24, m->time_ns);
		set32(r + 40, (uint32_t)(len - 44));
		set16(r + 44, is_exit ? EXIT_ID : EXIT_ID + 1);
		m->exits += is_exit;
	}
	put(m, r, len);
	m->records++;
	return true;
}

static int sink(void *context, const struct vmt_store_chunk *chunk, struct vmt_diag *diag)
{
	struct model *m = context;
	size_t len = 0;

	(void)diag;
	assert_int_equal(chunk->type, VMT_CHUNK_RECORDS);
	assert_int_equal(chunk->stream, 5);
	assert_int_equal(chunk->cpu, 3);
	assert_in_range(chunk->nr_parts, 1, 2);
	if (m->refuse)
		return VMT_E_FULL;
	for (unsigned int i = 0; i < chunk->nr_parts; i++) {
		memcpy(m->stored + m->nr_stored + len, chunk->parts[i].bytes, chunk->parts[i].len);
		len += chunk->parts[i].len;
	}
	assert_true(chunk->time_first_ns && chunk->time_first_ns <= chunk->time_last_ns);
	/* whole records */
	for (size_t at = 0; at < len;) {
		uint16_t size;

		memcpy(&size, m->stored + m->nr_stored + at + 6, sizeof(size));
		assert_true(size >= 8 && size <= len - at);
		at += size;
	}
	if (len > m->largest_chunk)
		m->largest_chunk = len;
	m->nr_stored += len;
	return 0;
}

static struct model *model_new(uint64_t seed)
{
	struct model *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	m->seed = seed * 0x9e3779b97f4a7c15u + 1;
	m->cap = 8u << 20;
	m->written = malloc(m->cap);
	m->stored = malloc(m->cap);
	assert_non_null(m->written);
	assert_non_null(m->stored);
	/* Positions never start at 0 in a long run. */
	m->page.data_head = m->page.data_tail = (next_random(m) % 1000000) * 8;
	return m;
}

static void model_free(struct model *m)
{
	free(m->written);
	free(m->stored);
	free(m);
}

static struct vmt_capture_ring ring_of(struct model *m)
{
	return (struct vmt_capture_ring){
		.page = &m->page, .data = m->data, .data_bytes = RING_BYTES, .stream = 5, .cpu = 3
	};
}

static void test_bytes_arrive_in_order(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct model *m = model_new(seed);
		struct vmt_capture_ring ring = ring_of(m);
		struct vmt_capture_counts counts = { 0 };

		for (int i = 0; i < 300 && m->nr_written + RING_BYTES < m->cap; i++) {
			uint64_t nr = next_random(m) % 200;

			for (uint64_t k = 0; k < nr && write_record(m); k++)
				;
			assert_int_equal(vmt_capture_ring_drain(&ring, EXIT_ID, sink, m, &counts,
								NULL),
					 0);
			assert_int_equal(m->page.data_tail, m->page.data_head);
		}
		assert_int_equal(m->nr_stored, m->nr_written);
		assert_memory_equal(m->stored, m->written, m->nr_written);
		assert_int_equal(counts.records, m->records);
		assert_int_equal(counts.exits, m->exits);
		assert_int_equal(counts.lost, m->lost);
		assert_int_equal(counts.bytes, m->nr_written);
		assert_int_equal(counts.last_ns, m->time_ns);
		model_free(m);
	}
}

/* A store that takes nothing: the ring is emptied all the same, and every byte is accounted for. */
static void test_full_store(void **state)
{
	struct model *m = model_new(77);
	struct vmt_capture_ring ring = ring_of(m);
	struct vmt_capture_counts counts = { 0 };
	uint64_t half;

	(void)state;
	assert_false(vmt_capture_ring_is_full(&ring, false));
	while (write_record(m))
		;
	assert_int_equal(vmt_capture_ring_is_full(&ring, false),
			 ring.data_bytes - m->nr_written < 1024);
	m->refuse = true;
	assert_int_equal(vmt_capture_ring_drain(&ring, EXIT_ID, sink, m, &counts, NULL),
			 VMT_E_FULL);
	half = m->nr_written;
	assert_int_equal(counts.unstored, half);
	/* nothing came since: what was lost is still untold */
	assert_true(vmt_capture_ring_is_full(&ring, true));
	m->refuse = false;
	while (write_record(m))
		;
	assert_int_equal(vmt_capture_ring_drain(&ring, EXIT_ID, sink, m, &counts, NULL), 0);
	assert_int_equal(counts.unstored + counts.bytes, m->nr_written);
	assert_memory_equal(m->stored, m->written + half, m->nr_written - half);
	model_free(m);
}

/* Bytes that are no record: what stands before them is kept, the rest is given up. */
static void test_no_record(void **state)
{
	static const uint16_t sizes[] = { 0, 4, 12, 65528 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct model *m = model_new(90 + i);
		struct vmt_capture_ring ring = ring_of(m);
		struct vmt_capture_counts counts = { 0 };
		struct vmt_diag diag = { 0 };
		uint8_t bad[64] = { 0 };
		uint64_t good;

		for (int k = 0; k < 20; k++)
			assert_true(write_record(m));
		good = m->nr_written;
		set16(bad + 6, sizes[i]);
		put(m, bad, sizeof(bad));
		assert_int_equal(vmt_capture_ring_drain(&ring, EXIT_ID, sink, m, &counts, &diag),
				 VMT_E_DAMAGED);
		assert_int_equal(m->nr_stored, good);
		assert_memory_equal(m->stored, m->written, good);
		assert_int_equal(counts.unstored, sizeof(bad));
		assert_int_equal(m->page.data_tail, m->page.data_head);
		model_free(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_arrive_in_order),
		cmocka_unit_test(test_full_store),
		cmocka_unit_test(test_no_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
