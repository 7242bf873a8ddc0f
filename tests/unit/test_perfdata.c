// SPDX-License-Identifier: LGPL-2.1-or-later
/* decode/perfdata: what perf writes comes out again, and of what is cut off or damaged, the rest.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/perfdata/perfdata.h"
#include "decode/ring/ring.h"
#include "tests/support/kvm_load.h"
#include "tests/support/memory_file.h"

#define RECORDS 300
#define CPUS	3

/* A file, and the records that are in it. */
struct sample {
	uint8_t *bytes;
	size_t len;
	uint64_t data_offset;
	size_t nr_records, nr_formats, rounds;
	struct vmt_stream records;
};

static struct sample make(const struct vmt_perfdata_file_options *base)
{
	struct vmt_perfdata_file_options options = *base;
	struct vmt_perfdata_file *file;
	struct vmt_kvm_load *load;
	const struct vmt_format *formats;
	struct sample s = { 0 };
	uint64_t end = VMT_KVM_LOAD_START_NS;

	options.kernel = "6.1";
	options.events = vmt_kvm_load_events;
	options.cpus = CPUS;
	options.fd = -1;
	file = vmt_perfdata_file_new(&options);
	load = vmt_kvm_load_new(file, VMT_ISA_VMX, CPUS, 7);
	while (s.nr_records < RECORDS) {
		end += 100000;
		for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
			struct vmt_stream ring = { 0 };

			s.nr_records += vmt_kvm_load_ring(load, cpu, end, 40, &ring);
			vmt_perfdata_file_records(file, ring.bytes, ring.len);
			vmt_stream_append(&s.records, ring.bytes, ring.len);
			vmt_stream_free(&ring);
		}
		vmt_perfdata_file_round(file);
		s.rounds++;
	}
	vmt_perfdata_file_finish(file);
	s.nr_formats = vmt_perfdata_file_formats(file, &formats);
	s.data_offset = vmt_perfdata_file_data_offset(file);
	s.bytes = vmt_perfdata_file_take(file, &s.len);
	vmt_kvm_load_free(load);
	vmt_perfdata_file_free(file);
	return s;
}

static void unmake(struct sample *s)
{
	free(s->bytes);
	vmt_stream_free(&s->records);
}

/* What a reader delivers. */
struct seen {
	int open_status;
	struct vmt_diag diag;
	size_t attrs, ids, formats, rounds, ends, losses;
	uint64_t lost_bytes;
	char kind[32]; /* of the last loss */
	struct vmt_stream records;
	struct vmt_ledger ledger;
	char cpuid[64];
};

static void take(struct seen *seen, const struct vmt_item *item)
{
	switch (item->type) {
	case VMT_ITEM_ATTR:
		seen->attrs++;
		seen->ids += item->nr_ids;
		break;
	case VMT_ITEM_FORMAT:
		seen->formats++;
		break;
	case VMT_ITEM_RECORDS:
		vmt_stream_append(&seen->records, item->data, item->len);
		break;
	case VMT_ITEM_ROUND:
		seen->rounds++;
		break;
	case VMT_ITEM_END:
		seen->ends++;
		break;
	case VMT_ITEM_LOSS:
		seen->losses++;
		seen->lost_bytes += item->lost_bytes;
		strncpy(seen->kind, item->loss_kind, sizeof(seen->kind) - 1);
		break;
	default:
		fail_msg("an item of type %d", item->type);
	}
}

static void read_fd(struct seen *seen, int fd, size_t len)
{
	struct vmt_reader *reader;
	struct vmt_perfdata *perf;
	struct vmt_item item;
	const char *cpuid;
	int more;

	*seen = (struct seen){ 0 };
	assert_int_equal(vmt_reader_from_fd(&reader, fd, NULL, NULL), 0);
	seen->open_status = vmt_perfdata_open(&perf, reader, &seen->diag);
	if (seen->open_status) {
		assert_int_equal(seen->diag.code, seen->open_status);
		assert_true(seen->diag.what[0] && seen->diag.cure[0]);
		vmt_reader_close(reader);
		return;
	}
	while ((more = vmt_perfdata_next(perf, &item, &seen->diag)) == 1) {
		take(seen, &item);
		seen->ledger = vmt_perfdata_ledger(perf);
		assert_true(seen->ledger.bytes_total ==
			    seen->ledger.bytes_decoded + seen->ledger.bytes_skipped);
	}
	assert_int_equal(more, 0);
	assert_int_equal(vmt_perfdata_next(perf, &item, &seen->diag), 0);
	seen->ledger = vmt_perfdata_ledger(perf);
	assert_true(seen->ledger.bytes_total == len);
	assert_true(seen->ledger.bytes_total ==
		    seen->ledger.bytes_decoded + seen->ledger.bytes_skipped);
	assert_true(seen->ledger.bytes_skipped == seen->lost_bytes);
	assert_int_equal(seen->ends + seen->losses >= 1, 1);
	cpuid = vmt_perfdata_feature(perf, "CPUID");
	if (cpuid)
		strncpy(seen->cpuid, cpuid, sizeof(seen->cpuid) - 1);
	vmt_perfdata_close(perf);
}

static void read_file(struct seen *seen, const uint8_t *bytes, size_t len)
{
	read_fd(seen, vmt_memory_file(bytes, len), len);
}

/* The same bytes through a pipe: they fit into its buffer. */
static void read_pipe(struct seen *seen, const uint8_t *bytes, size_t len)
{
	read_fd(seen, vmt_memory_pipe(bytes, len), len);
}

static void assert_whole(const struct seen *seen, const struct sample *s)
{
	assert_int_equal(seen->open_status, 0);
	assert_int_equal(seen->attrs, s->nr_formats);
	assert_int_equal(seen->ids, s->nr_formats * CPUS);
	assert_int_equal(seen->formats, s->nr_formats);
	assert_int_equal(seen->rounds, s->rounds);
	assert_int_equal(seen->ends, 1);
	assert_int_equal(seen->losses, 0);
	assert_int_equal(seen->records.len, s->records.len);
	assert_memory_equal(seen->records.bytes, s->records.bytes, s->records.len);
	assert_int_equal(seen->ledger.bytes_skipped, 0);
	assert_false(seen->ledger.truncated);
	assert_string_equal(seen->cpuid, "GenuineIntel,6,143,8");
}

/* Nothing is delivered that was not written. */
static void assert_prefix(const struct seen *seen, const struct sample *s)
{
	assert_true(seen->records.len <= s->records.len);
	if (seen->records.len)
		assert_memory_equal(seen->records.bytes, s->records.bytes, seen->records.len);
}

static const struct vmt_perfdata_file_options modes[] = {
	{ .isa = VMT_ISA_VMX },
	{ .isa = VMT_ISA_VMX, .pipe = true },
	{ .isa = VMT_ISA_VMX, .zstd = true },
	{ .isa = VMT_ISA_VMX, .pipe = true, .zstd = true },
};

static void test_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		struct sample s = make(&modes[i]);
		struct seen seen;

		read_file(&seen, s.bytes, s.len);
		assert_whole(&seen, &s);
		vmt_stream_free(&seen.records);
		if (modes[i].pipe) {
			read_pipe(&seen, s.bytes, s.len);
			assert_whole(&seen, &s);
			vmt_stream_free(&seen.records);
		}
		unmake(&s);
	}
}

static void test_file_mode_needs_a_file(void **state)
{
	struct sample s = make(&modes[0]);
	struct seen seen;

	(void)state;
	read_pipe(&seen, s.bytes, s.len);
	assert_int_equal(seen.open_status, VMT_E_USAGE);
	unmake(&s);
}

static void test_other_formats(void **state)
{
	static const uint8_t foreign[104] = "2ELIFREP", text[104] = "no perf.data";
	struct seen seen;

	(void)state;
	read_file(&seen, foreign, sizeof(foreign));
	assert_int_equal(seen.open_status, VMT_E_UNSUPPORTED);
	read_file(&seen, text, sizeof(text));
	assert_int_equal(seen.open_status, VMT_E_DAMAGED);
	read_file(&seen, text, 0);
	assert_int_equal(seen.open_status, VMT_E_DAMAGED);
}

static void test_pipe_cut_anywhere(void **state)
{
	(void)state;
	for (size_t i = 1; i < sizeof(modes) / sizeof(modes[0]); i += 2) {
		struct sample s = make(&modes[i]);
		size_t ends = 0;

		for (size_t len = 16; len < s.len; len += i == 1 ? 8 : 5) {
			struct seen seen;

			read_pipe(&seen, s.bytes, len);
			assert_int_equal(seen.open_status, 0);
			assert_prefix(&seen, &s);
			assert_int_equal(seen.ends + seen.ledger.truncated, 1);
			ends += seen.ends;
			vmt_stream_free(&seen.records);
		}
		/* Only between two records does a cut look like an end. */
		assert_true(ends > 0 && ends < s.nr_records + 100);
		unmake(&s);
	}
}

/* Without the tables at the end, tracepoints cannot be read: it is said, with the cure. */
static void test_file_cut_anywhere(void **state)
{
	struct sample s = make(&modes[0]);
	size_t refused = 0;

	(void)state;
	for (size_t len = 0; len < s.len; len += 37) {
		struct seen seen;

		read_file(&seen, s.bytes, len);
		if (seen.open_status) {
			assert_true(seen.open_status == VMT_E_DAMAGED ||
				    seen.open_status == VMT_E_TRUNCATED);
			refused++;
			continue;
		}
		assert_prefix(&seen, &s);
		vmt_stream_free(&seen.records);
	}
	assert_true(refused > (s.data_offset + s.records.len) / 37);
	unmake(&s);
}

static void test_no_data_size(void **state)
{
	struct vmt_perfdata_file_options options = { .isa = VMT_ISA_VMX, .no_data_size = true };
	struct sample s = make(&options);
	struct seen seen;

	(void)state;
	read_file(&seen, s.bytes, s.len);
	assert_whole(&seen, &s);
	vmt_stream_free(&seen.records);
	unmake(&s);

	options.no_features = true;
	s = make(&options);
	read_file(&seen, s.bytes, s.len);
	assert_int_equal(seen.open_status, VMT_E_DAMAGED);
	assert_non_null(strstr(seen.diag.what, "formats"));
	unmake(&s);
}

/* No tracepoints, no tables, no data.size: as perf leaves a file when it is killed. */
static void test_killed_without_tracepoints(void **state)
{
	struct vmt_perfdata_file_options options = { .no_data_size = true, .no_features = true };
	struct sample s = make(&options);
	uint64_t attrs;
	struct seen seen;

	(void)state;
	memcpy(&attrs, s.bytes + 24, 8);
	for (size_t i = 0; i < s.nr_formats; i++) /* software events */
		s.bytes[attrs + i * 144] = 1;
	read_file(&seen, s.bytes, s.len - 20);
	assert_int_equal(seen.open_status, 0);
	assert_int_equal(seen.ends, 0);
	assert_true(seen.ledger.truncated);
	assert_prefix(&seen, &s);
	assert_true(seen.records.len > s.records.len - 400);
	vmt_stream_free(&seen.records);
	unmake(&s);
}

/* The size of one record after the other is overwritten. */
static void test_damaged_sizes(void **state)
{
	static const uint16_t sizes[] = { 0, 4, 7, 12, 65535 };
	struct sample s = make(&modes[1]);
	size_t at = 16, n = 0;

	(void)state;
	while (at + 8 <= s.len) {
		uint16_t size, bad = sizes[n % 5];
		struct seen seen;
		uint32_t type;

		memcpy(&type, s.bytes + at, 4);
		memcpy(&size, s.bytes + at + 6, 2);
		memcpy(s.bytes + at + 6, &bad, 2);
		read_pipe(&seen, s.bytes, s.len);
		assert_int_equal(seen.open_status, 0);
		if (type == VMT_RING_SAMPLE && n % 5 != 4) {
			assert_prefix(&seen, &s);
			assert_string_equal(seen.kind, "damaged");
			assert_int_equal(seen.ledger.bytes_skipped, s.len - at);
		}
		vmt_stream_free(&seen.records);
		memcpy(s.bytes + at + 6, &size, 2);
		at += size;
		if (type == 66) /* the tracing data follow their record */
			at += ((size_t)(s.bytes[at - 8] | s.bytes[at - 7] << 8) + 7) & ~(size_t)7;
		n++;
	}
	assert_true(n > s.nr_records);
	unmake(&s);
}

/* Each word of header, attrs and tables is set to something huge. */
static void test_huge_counts(void **state)
{
	static const uint64_t huge[] = { UINT64_MAX, UINT64_C(1) << 40,
					 UINT64_C(0x7ffffffffffffff0), UINT64_C(0xffffffff) };
	struct sample s = make(&modes[0]);

	(void)state;
	for (size_t at = 8; at + 8 <= s.len; at += at < s.data_offset ? 8 : 1001) {
		uint8_t kept[8];
		struct seen seen;

		memcpy(kept, s.bytes + at, 8);
		memcpy(s.bytes + at, &huge[at / 8 % 4], 8);
		read_file(&seen, s.bytes, s.len);
		vmt_stream_free(&seen.records);
		memcpy(s.bytes + at, kept, 8);
	}
	unmake(&s);
}

static void append_auxtrace(struct vmt_perfdata_file *file, uint64_t claimed, size_t real)
{
	uint64_t body[5] = { claimed };
	uint8_t *trace = calloc(1, real + 1);

	assert_non_null(trace);
	vmt_perfdata_file_user(file, 71, body, sizeof(body));
	vmt_perfdata_file_records(file, trace, real);
	free(trace);
}

/* Trace bytes of hardware are skipped and counted; a size that cannot be ends the data. */
static void test_auxtrace(void **state)
{
	static const struct {
		uint64_t claimed;
		const char *kind;
		uint64_t lost;
		bool ends;
	} cases[] = {
		{ 4096, "auxtrace", 4096, true },
		{ 1 << 20, "truncated", 4096 + 8, false },
		{ UINT64_MAX - 40, "damaged", 48 + 4096 + 8, false },
	};

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		struct vmt_perfdata_file_options options = {
			.kernel = "6.1", .events = vmt_kvm_load_events, .pipe = i < 3, .fd = -1
		};
		struct vmt_perfdata_file *file = vmt_perfdata_file_new(&options);
		struct seen seen;
		uint8_t *bytes;
		size_t len;

		append_auxtrace(file, cases[i % 3].claimed, 4096);
		vmt_perfdata_file_round(file);
		vmt_perfdata_file_finish(file);
		bytes = vmt_perfdata_file_take(file, &len);
		if (i < 3)
			read_pipe(&seen, bytes, len);
		else
			read_file(&seen, bytes, len);
		assert_int_equal(seen.open_status, 0);
		assert_string_equal(seen.kind, cases[i % 3].kind);
		assert_int_equal(seen.lost_bytes, cases[i % 3].lost);
		assert_int_equal(seen.ends, cases[i % 3].ends);
		free(bytes);
		vmt_perfdata_file_free(file);
	}
}

/* Every bit of a small compressed stream: never more than was written, the ledger balances. */
static void test_damaged_zstd(void **state)
{
	struct sample s = make(&modes[3]);
	size_t told = 0, n = 0;

	(void)state;
	for (size_t at = s.len - 2500; at < s.len; at += 3) {
		struct seen seen;

		s.bytes[at] ^= (uint8_t)(1u << at % 8);
		read_pipe(&seen, s.bytes, s.len);
		assert_int_equal(seen.open_status, 0);
		told += seen.losses > 0;
		n++;
		vmt_stream_free(&seen.records);
		s.bytes[at] ^= (uint8_t)(1u << at % 8);
	}
	assert_true(told > n / 20);
	unmake(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_file_mode_needs_a_file),
		cmocka_unit_test(test_other_formats),
		cmocka_unit_test(test_pipe_cut_anywhere),
		cmocka_unit_test(test_file_cut_anywhere),
		cmocka_unit_test(test_no_data_size),
		cmocka_unit_test(test_killed_without_tracepoints),
		cmocka_unit_test(test_damaged_sizes),
		cmocka_unit_test(test_huge_counts),
		cmocka_unit_test(test_auxtrace),
		cmocka_unit_test(test_damaged_zstd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
