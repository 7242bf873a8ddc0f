/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records of perf's rings: every member that can stand in front of RAW, trailers, ids, bad sizes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "decode/ring/ring.h"
#include "tests/support/stream.h"

enum { /* PERF_SAMPLE_* */
       IP = 1 << 0,
       TID = 1 << 1,
       TIME = 1 << 2,
       ADDR = 1 << 3,
       READ = 1 << 4,
       CALLCHAIN = 1 << 5,
       ID = 1 << 6,
       CPU = 1 << 7,
       PERIOD = 1 << 8,
       STREAM_ID = 1 << 9,
       RAW = 1 << 10,
       IDENTIFIER = 1 << 16,
};

static struct vmt_ring_attr attr_of(uint64_t sample_type)
{
	return (struct vmt_ring_attr){ .type = 2,
				       .sample_type = sample_type,
				       .flags = VMT_RING_FLAG_SAMPLE_ID_ALL };
}

static struct vmt_ring_set *set_of(const struct vmt_ring_attr *attrs, size_t n)
{
	struct vmt_ring_set *set = vmt_ring_set_new();

	assert_non_null(set);
	for (size_t i = 0; i < n; i++) {
		const uint64_t ids[] = { 100 + i, 200 + i };

		assert_int_equal(vmt_ring_set_add(set, &attrs[i], ids, 2), i);
	}
	return set;
}

/* A record from 8-byte words. */
static size_t record(uint8_t *out, uint32_t type, uint16_t misc, const uint64_t *words, size_t n)
{
	uint16_t size = (uint16_t)(8 + 8 * n);

	memcpy(out, &type, 4);
	memcpy(out + 4, &misc, 2);
	memcpy(out + 6, &size, 2);
	memcpy(out + 8, words, 8 * n);
	return size;
}

static const uint64_t tid_word = 4000 | UINT64_C(4001) << 32;

static void all_members_in_order(void **state)
{
	struct vmt_ring_attr attr = attr_of(IDENTIFIER | IP | TID | TIME | ADDR | ID | STREAM_ID |
					    CPU | PERIOD | READ | CALLCHAIN | RAW);
	const uint64_t words[] = { 100,
				   0xffff,
				   tid_word,
				   123456,
				   0xadd,
				   100,
				   77,
				   3,
				   1,
				   5,
				   11,
				   12,
				   2, /* read: value, enabled, id */
				   UINT64_MAX - 127,
				   0x42, /* callchain of 2 */
				   4 | UINT64_C(0xaabbccdd) << 32 /* raw */ };
	struct vmt_ring_record r;
	struct vmt_ring_set *set;
	uint8_t bytes[256];
	size_t size = record(bytes, VMT_RING_SAMPLE, 1, words, sizeof(words) / 8);
	int index = 7;

	(void)state;
	attr.read_format = 1 | 4;
	set = set_of(&attr, 1);
	assert_int_equal(vmt_ring_parse(set, bytes, size, &r, &index), size);
	assert_int_equal(index, 0);
	assert_true(r.has_time && r.has_tid && r.has_cpu && r.has_id && r.has_ip);
	assert_int_equal(r.ip, 0xffff);
	assert_int_equal(r.pid, 4000);
	assert_int_equal(r.tid, 4001);
	assert_int_equal(r.time_ns, 123456);
	assert_int_equal(r.cpu, 3);
	assert_int_equal(r.id, 100);
	assert_int_equal(r.raw_len, 4);
	assert_ptr_equal(r.raw, bytes + size - 4);
	vmt_ring_set_free(set);
}

static void read_of_groups(void **state)
{
	struct vmt_ring_attr attr = attr_of(IDENTIFIER | READ | RAW);
	/* group of 2: nr, enabled, running, 2 x { value, id, lost } */
	const uint64_t words[] = { 100, 2, 1, 1, 5, 6, 7, 8, 9, 10, 4 };
	struct vmt_ring_record r;
	struct vmt_ring_set *set;
	uint8_t bytes[256];
	size_t size = record(bytes, VMT_RING_SAMPLE, 1, words, sizeof(words) / 8);

	(void)state;
	attr.read_format = 1 | 2 | 4 | 8 | 16;
	set = set_of(&attr, 1);
	assert_int_equal(vmt_ring_parse(set, bytes, size, &r, NULL), size);
	assert_int_equal(r.raw_len, 4);
	/* a count that no record can hold */
	memset(bytes + 16, 0xff, 8);
	assert_int_equal(vmt_ring_parse(set, bytes, size, &r, NULL), VMT_E_DAMAGED);
	assert_int_equal(r.size, size);
	vmt_ring_set_free(set);
}

static void trailers(void **state)
{
	struct vmt_ring_attr attr = attr_of(TID | TIME | ID | STREAM_ID | CPU | IDENTIFIER | RAW);
	const uint64_t words[] = { 100,	     55, /* LOST: id, lost */
				   tid_word, 999, 100, 1, 6, 200 };
	struct vmt_ring_set *set = set_of(&attr, 1);
	struct vmt_ring_record r;
	uint8_t bytes[128];
	size_t size = record(bytes, VMT_RING_LOST, 0, words, 8);

	(void)state;
	assert_int_equal(vmt_ring_parse(set, bytes, size, &r, NULL), size);
	assert_int_equal(r.body_len, 16);
	assert_int_equal(r.lost, 55);
	assert_int_equal(r.tid, 4001);
	assert_int_equal(r.time_ns, 999);
	assert_int_equal(r.cpu, 6);
	assert_int_equal(r.id, 200);
	assert_null(r.raw);
	/* too short for its trailer */
	size = record(bytes, VMT_RING_SWITCH, 0, words, 5);
	assert_int_equal(vmt_ring_parse(set, bytes, size, &r, NULL), VMT_E_DAMAGED);
	/* a record of perf itself has none */
	size = record(bytes, 68, 0, words, 0);
	assert_int_equal(vmt_ring_parse(set, bytes, size, &r, NULL), 8);
	assert_false(r.has_tid);
	vmt_ring_set_free(set);
}

/* Bodies of the records about AUX areas and switches. */
static void bodies(void **state)
{
	struct vmt_ring_attr attr = attr_of(TID | TIME | CPU | IDENTIFIER | RAW);
	const uint64_t words[] = { 4096, 904, 5, tid_word, 999, 6, 200 };
	struct vmt_ring_set *set = set_of(&attr, 1);
	struct vmt_ring_record r;
	struct vmt_ring_aux aux;
	uint32_t pid, tid;
	uint64_t hw_id;
	uint8_t bytes[128];
	size_t size = record(bytes, VMT_RING_AUX, 0, words, 7);

	(void)state;
	assert_int_equal(vmt_ring_parse(set, bytes, size, &r, NULL), size);
	assert_true(vmt_ring_aux_of(&r, &aux));
	assert_int_equal(aux.aux_offset, 4096);
	assert_int_equal(aux.aux_size, 904);
	assert_int_equal(aux.flags, VMT_RING_AUX_TRUNCATED | VMT_RING_AUX_PARTIAL);
	assert_int_equal(r.cpu, 6);
	assert_false(vmt_ring_task_of(&r, &pid, &tid) || vmt_ring_hw_id_of(&r, &hw_id));
	size = record(bytes, VMT_RING_AUX, 0, words + 1, 6); /* too short */
	assert_int_equal(vmt_ring_parse(set, bytes, size, &r, NULL), size);
	assert_false(vmt_ring_aux_of(&r, &aux));
	for (int i = 0; i < 2; i++) {
		size = record(bytes, i ? VMT_RING_ITRACE_START : VMT_RING_SWITCH_CPU_WIDE, 0,
			      (const uint64_t[]){ 77 | UINT64_C(78) << 32, tid_word, 999, 6, 200 },
			      5);
		assert_int_equal(vmt_ring_parse(set, bytes, size, &r, NULL), size);
		assert_true(vmt_ring_task_of(&r, &pid, &tid));
		assert_int_equal(pid, 77);
		assert_int_equal(tid, 78);
		assert_int_equal(r.tid, 4001);
		assert_false(vmt_ring_aux_of(&r, &aux) || vmt_ring_hw_id_of(&r, &hw_id));
	}
	size = record(bytes, VMT_RING_AUX_OUTPUT_HW_ID, 0, words + 2, 5);
	assert_int_equal(vmt_ring_parse(set, bytes, size, &r, NULL), size);
	assert_true(vmt_ring_hw_id_of(&r, &hw_id));
	assert_int_equal(hw_id, 5);
	size = record(bytes, VMT_RING_SWITCH, 0, words + 3, 4);
	assert_int_equal(vmt_ring_parse(set, bytes, size, &r, NULL), size);
	assert_false(vmt_ring_task_of(&r, &pid, &tid));
	vmt_ring_set_free(set);
}

static void no_trailer_without_sample_id_all(void **state)
{
	struct vmt_ring_attr attr = attr_of(TID | TIME | RAW);
	const uint64_t words[] = { 100, 55 };
	struct vmt_ring_set *set;
	struct vmt_ring_record r;
	uint8_t bytes[64];
	size_t size = record(bytes, VMT_RING_LOST, 0, words, 2);

	(void)state;
	attr.flags = 0;
	set = set_of(&attr, 1);
	assert_int_equal(vmt_ring_parse(set, bytes, size, &r, NULL), size);
	assert_int_equal(r.lost, 55);
	assert_false(r.has_time || r.has_tid);
	vmt_ring_set_free(set);
}

static void different_layouts(void **state)
{
	const struct vmt_ring_attr attrs[] = {
		attr_of(IDENTIFIER | TID | TIME | CPU | RAW),
		attr_of(IDENTIFIER | IP | TIME),
	};
	const uint64_t first[] = { 200, tid_word, 10, 1, 4 }, second[] = { 101, 0x1234, 20 };
	const uint64_t switched[] = { 30, 201 }, unknown[] = { 300, 1, 2 };
	struct vmt_ring_set *set = set_of(attrs, 2);
	struct vmt_ring_record r;
	uint8_t bytes[128];
	size_t size = record(bytes, VMT_RING_SAMPLE, 1, first, 5);
	int index;

	(void)state;
	assert_int_equal(vmt_ring_parse(set, bytes, size, &r, &index), size);
	assert_int_equal(index, 0);
	assert_int_equal(r.tid, 4001);
	size = record(bytes, VMT_RING_SAMPLE, 1, second, 3);
	assert_int_equal(vmt_ring_parse(set, bytes, size, &r, &index), size);
	assert_int_equal(index, 1);
	assert_int_equal(r.ip, 0x1234);
	assert_int_equal(r.time_ns, 20);
	size = record(bytes, VMT_RING_SWITCH, 0, switched, 2);
	assert_int_equal(vmt_ring_parse(set, bytes, size, &r, &index), size);
	assert_int_equal(index, 1);
	assert_int_equal(r.time_ns, 30);
	/* an id of no attr: stepped over, not guessed */
	size = record(bytes, VMT_RING_SAMPLE, 1, unknown, 3);
	assert_int_equal(vmt_ring_parse(set, bytes, size, &r, &index), size);
	assert_int_equal(index, -1);
	assert_true(!r.has_time && !r.has_id && !r.raw);
	vmt_ring_set_free(set);
}

static void id_without_identifier(void **state)
{
	/* ID stands behind IP, TID and TIME in both, and third from the end of the trailers */
	const struct vmt_ring_attr attrs[] = {
		attr_of(IP | TID | TIME | ID | CPU | RAW),
		attr_of(IP | TID | TIME | ID | CPU | PERIOD | RAW),
	};
	const uint64_t words[] = { 1, tid_word, 3, 101, 5, 6, 4 };
	struct vmt_ring_set *set = set_of(attrs, 2);
	struct vmt_ring_record r;
	uint8_t bytes[128];
	size_t size = record(bytes, VMT_RING_SAMPLE, 1, words, 7);
	int index;

	(void)state;
	assert_int_equal(vmt_ring_parse(set, bytes, size, &r, &index), size);
	assert_int_equal(index, 1);
	assert_int_equal(r.raw_len, 4);
	vmt_ring_set_free(set);
}

static void bad_sizes(void **state)
{
	struct vmt_ring_attr attr = vmt_stream_attr(1);
	struct vmt_ring_set *set = set_of(&attr, 1);
	const uint64_t words[] = { 100, tid_word, 10, 1, 4 | UINT64_C(1) << 32 };
	struct vmt_ring_record r;
	uint8_t bytes[64];
	size_t size = record(bytes, VMT_RING_SAMPLE, 1, words, 5);
	uint16_t claimed;
	uint32_t raw_len;

	(void)state;
	assert_int_equal(size, 48);
	for (size_t len = 0; len < size; len++)
		assert_int_equal(vmt_ring_parse(set, bytes, len, &r, NULL), VMT_E_TRUNCATED);
	for (claimed = 0; claimed < 48; claimed++) {
		memcpy(bytes + 6, &claimed, 2);
		assert_int_equal(vmt_ring_parse(set, bytes, size, &r, NULL), VMT_E_DAMAGED);
		assert_int_equal(r.size, claimed);
	}
	memcpy(bytes + 6, &(uint16_t){ (uint16_t)size }, 2);
	for (raw_len = 5; raw_len; raw_len <<= 1) {
		memcpy(bytes + size - 8, &raw_len, 4);
		assert_int_equal(vmt_ring_parse(set, bytes, size, &r, NULL), VMT_E_DAMAGED);
	}
	vmt_ring_set_free(set);
}

static void many_ids(void **state)
{
	struct vmt_ring_attr attr = vmt_stream_attr(1);
	struct vmt_ring_set *set = vmt_ring_set_new();
	const uint64_t words[] = { 0, tid_word, 10, 1, 4 };
	struct vmt_ring_record r;
	uint8_t bytes[64];
	int index;

	(void)state;
	for (uint64_t a = 0; a < 1000; a++) {
		const uint64_t ids[] = { a * 3, UINT64_MAX - a, a * 3 };

		assert_int_equal(vmt_ring_set_add(set, &attr, ids, 3), a);
	}
	assert_int_equal(vmt_ring_set_count(set), 1000);
	assert_non_null(vmt_ring_set_attr(set, 999));
	assert_null(vmt_ring_set_attr(set, 1000));
	for (uint64_t a = 0; a < 1000; a++) {
		uint64_t id = a % 2 ? a * 3 : UINT64_MAX - a;
		size_t size = record(bytes, VMT_RING_SAMPLE, 1, words, 5);

		memcpy(bytes + 8, &id, 8);
		assert_int_equal(vmt_ring_parse(set, bytes, size, &r, &index), size);
		assert_int_equal(index, a);
	}
	vmt_ring_set_free(set);
}

static void refused_attrs(void **state)
{
	struct vmt_ring_attr attr = vmt_stream_attr(1), strange = attr_of(UINT64_C(1) << 25);
	struct vmt_ring_set *set = vmt_ring_set_new();
	uint64_t *ids = calloc((1u << 20) + 1, sizeof(*ids));

	(void)state;
	assert_non_null(ids);
	assert_int_equal(vmt_ring_set_add(set, &strange, NULL, 0), VMT_E_UNSUPPORTED);
	assert_int_equal(vmt_ring_set_add(set, &attr, ids, (1u << 20) + 1), VMT_E_LIMIT);
	for (int i = 0; i < 4096; i++)
		assert_int_equal(vmt_ring_set_add(set, &attr, NULL, 0), i);
	assert_int_equal(vmt_ring_set_add(set, &attr, NULL, 0), VMT_E_LIMIT);
	free(ids);
	vmt_ring_set_free(set);
}

static void empty_set(void **state)
{
	const uint64_t words[] = { 1, 2, 3 };
	struct vmt_ring_set *set = vmt_ring_set_new();
	struct vmt_ring_record r;
	uint8_t bytes[64];
	size_t size = record(bytes, VMT_RING_SAMPLE, 1, words, 3);
	int index;

	(void)state;
	assert_int_equal(vmt_ring_parse(set, bytes, size, &r, &index), size);
	assert_int_equal(index, -1);
	assert_int_equal(r.body_len, 24);
	vmt_ring_set_free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_members_in_order),
		cmocka_unit_test(read_of_groups),
		cmocka_unit_test(trailers),
		cmocka_unit_test(bodies),
		cmocka_unit_test(no_trailer_without_sample_id_all),
		cmocka_unit_test(different_layouts),
		cmocka_unit_test(id_without_identifier),
		cmocka_unit_test(bad_sizes),
		cmocka_unit_test(many_ids),
		cmocka_unit_test(refused_attrs),
		cmocka_unit_test(empty_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
