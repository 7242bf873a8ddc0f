// SPDX-License-Identifier: LGPL-2.1-or-later
/* decode/analyze/pt_pieces: how the extents of an AUX area are joined for its decoder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "decode/analyze/pt_pieces.h"

#define EXTENTS_MAX 8u
#define STREAM	    (300u << 10)

/* A file in memory: an extent's `at` is its place there. */
struct file {
	uint8_t *bytes;
	size_t len;
	size_t unreadable_from, unreadable_to; /* places in the file */
	struct vmt_aux_extent extents[EXTENTS_MAX];
	struct vmt_aux_area area;
	struct vmt_aux_index index;
};

static int read_memory(void *source, const struct vmt_aux_extent *extent, uint64_t from,
		       uint8_t *out, size_t len, size_t *done, struct vmt_diag *diag)
{
	const struct file *f = source;
	size_t at = (size_t)(extent->at + from);

	(void)diag;
	*done = 0;
	assert_true(from + len <= extent->len);
	for (; *done < len; (*done)++, at++) {
		if (at >= f->unreadable_from && at < f->unreadable_to)
			return VMT_E_DAMAGED;
		out[*done] = f->bytes[at];
	}
	return 0;
}

static void begin(struct file *f, bool snapshot)
{
	*f = (struct file){ .bytes = calloc(1, 4 * STREAM) };
	assert_non_null(f->bytes);
	f->area = (struct vmt_aux_area){ .cpu = 3, .extents = f->extents };
	f->index.areas = &f->area;
	f->index.nr_areas = 1;
	f->index.info.snapshot = snapshot;
	f->index.read = read_memory;
}

/* `pad` bytes of zero behind it, as perf does. */
static void add(struct file *f, const uint8_t *bytes, size_t len, size_t pad, uint64_t aux_offset)
{
	f->extents[f->area.nr_extents++] =
		(struct vmt_aux_extent){ .at = f->len, .len = len + pad, .aux_offset = aux_offset };
	memcpy(f->bytes + f->len, bytes, len);
	f->len += len + pad + 32; /* something else stands between */
}

/* What comes out, put together; joins of pieces that begin an extent. */
struct out {
	uint8_t *bytes;
	size_t len, skipped, lost;
	enum vmt_pt_join joins[EXTENTS_MAX * 4];
	size_t nr_joins;
	const char *why;
};

static struct out read_all(struct file *f)
{
	struct vmt_pt_pieces *pieces;
	struct vmt_pt_piece piece;
	struct out o = { .bytes = malloc(4 * STREAM) };
	uint64_t next_at = UINT64_MAX;
	int got;

	f->index.source = f;
	pieces = vmt_pt_pieces_new(&f->index, 0);
	assert_true(pieces && o.bytes);
	while ((got = vmt_pt_pieces_next(pieces, &piece, NULL)) == 1) {
		if (!piece.bytes) {
			assert_true(piece.skipped && piece.why && !piece.len);
			o.skipped += piece.skipped;
			o.lost += piece.lost ? piece.skipped : 0;
			o.why = piece.why;
			continue;
		}
		assert_memory_equal(piece.bytes, f->bytes + piece.at, piece.len);
		memcpy(o.bytes + o.len, piece.bytes, piece.len);
		o.len += piece.len;
		if (piece.at != next_at)
			o.joins[o.nr_joins++] = piece.join;
		else
			assert_int_equal(piece.join, VMT_PT_JOIN_CONTINUES);
		next_at = piece.at + piece.len;
	}
	assert_int_equal(got, 0);
	vmt_pt_pieces_free(pieces);
	return o;
}

static void check(struct file *f, const uint8_t *want, size_t len, const char *joins)
{
	static const char letters[] = "cgs";
	struct out o = read_all(f);
	size_t total = 0;

	for (size_t i = 0; i < f->area.nr_extents; i++)
		total += f->extents[i].len;
	assert_int_equal(o.len + o.skipped, total);
	assert_int_equal(o.len, len);
	assert_memory_equal(o.bytes, want, len);
	assert_int_equal(o.nr_joins, strlen(joins));
	for (size_t i = 0; i < o.nr_joins; i++)
		assert_int_equal(letters[o.joins[i]], joins[i]);
	free(o.bytes);
	free(f->bytes);
}

/* A stream with a PSB and a TSC of its own every 1000 bytes. */
static const uint8_t *stream(void)
{
	static uint8_t bytes[STREAM];

	for (size_t i = 0; i < STREAM; i++)
		bytes[i] = (uint8_t)(0x40 | (i * 13 + (i >> 8) * 7));
	for (size_t i = 0; i + 1000 <= STREAM; i += 1000) {
		for (size_t k = 0; k < 16; k += 2) {
			bytes[i + k] = 0x02;
			bytes[i + k + 1] = 0x82;
		}
		bytes[i + 16] = 0x19;
		memcpy(bytes + i + 17, &i, 7);
	}
	return bytes;
}

static void one_long_stream(void **state)
{
	const uint8_t *s = stream();
	struct file f;

	(void)state;
	begin(&f, false);
	add(&f, s, 100003, 5, 0);
	add(&f, s + 100003, 50000, 0, 100003);
	add(&f, s + 150003, STREAM - 150003, 0, 150003);
	check(&f, s, STREAM, "ccc");
}

static void jumps_and_stops(void **state)
{
	const uint8_t *s = stream();
	struct file f;

	(void)state;
	begin(&f, false); /* the front of the stream is missing, and it does not begin with a PSB */
	add(&f, s + 7, 1000, 0, 7);
	add(&f, s + 1007, 1000, 0, 9000);
	add(&f, s + 2007, 1000, 0, 10000);
	f.extents[2].handle = VMT_AUX_RESTART;
	check(&f, s + 7, 3000, "ssg");
	begin(&f, false); /* it does */
	add(&f, s + 1000, 1000, 0, 1000);
	check(&f, s + 1000, 1000, "c");
	begin(&f, false); /* a stop counts behind padding and a jump as well */
	add(&f, s, 995, 5, 0);
	add(&f, s + 995, 1000, 0, 995);
	f.extents[1].handle = VMT_AUX_RESTART;
	check(&f, s, 1995, "cg");
}

/* What stands in the file twice comes once, if it is the same. */
static void repeated_by_offset(void **state)
{
	const uint8_t *s = stream();
	struct file f;

	(void)state;
	begin(&f, false);
	add(&f, s, 20000, 0, 0);
	add(&f, s + 5000, 20000, 0, 5000);
	check(&f, s, 25000, "cc");
	begin(&f, false);
	add(&f, s, 20000, 0, 0);
	add(&f, s + 5000, 15000, 0, 5000);
	add(&f, s + 20000, 100, 0, 20000);
	check(&f, s, 20100, "cc");
	begin(&f, false); /* two recordings, or offsets that mean nothing */
	add(&f, s, 2000, 0, 0);
	add(&f, s + 2000, 2000, 0, 0);
	check(&f, s, 4000, "cs");
}

static void snapshots(void **state)
{
	const uint8_t *s = stream();
	struct file f;

	(void)state;
	for (size_t pad = 0; pad < 8; pad++) { /* a common part in the middle of packets */
		begin(&f, true);
		add(&f, s + 333, 90000 - 1, pad, 0);
		add(&f, s + 40777, 90000, 0, 0);
		if (pad) { /* the padding came out with what is before it */
			struct out o = read_all(&f);

			assert_int_equal(o.len, 130444);
			assert_memory_equal(o.bytes, s + 333, o.len);
			free(o.bytes);
			free(f.bytes);
		} else {
			check(&f, s + 333, 130444, "sc");
		}
	}
	begin(&f, true); /* the second is the end of the first, the third goes on there */
	add(&f, s, 50000, 0, 0);
	add(&f, s + 20000, 30000, 0, 0);
	add(&f, s + 45000, 10000, 0, 0);
	check(&f, s, 55000, "cc");
	begin(&f, true); /* nothing in common */
	add(&f, s, 50000, 0, 0);
	add(&f, s + 50000, 5000, 0, 50000);
	check(&f, s, 55000, "cs");
	begin(&f, true); /* no PSB at all */
	add(&f, s + 30, 900, 0, 0);
	add(&f, s + 30, 900, 0, 0);
	{
		struct out o = read_all(&f);

		assert_int_equal(o.len, 1800);
		assert_int_equal(o.joins[1], VMT_PT_JOIN_SEEK);
		free(o.bytes);
		free(f.bytes);
	}
}

/* Zeros at the end that the next snapshot has as well are packets. */
static void zeros_are_packets_or_padding(void **state)
{
	static uint8_t s[8000];
	struct file f;

	(void)state;
	memcpy(s, stream(), sizeof(s));
	memset(s + 4996, 0, 3);
	begin(&f, true);
	add(&f, s, 4999, 1, 0);
	add(&f, s + 2000, 6000, 0, 0);
	check(&f, s, 8000, "cc");
}

/* The same PSB+ everywhere: tried a bounded number of times. */
static void hostile_snapshots(void **state)
{
	static uint8_t s[STREAM];
	struct out o;
	struct file f;

	(void)state;
	for (size_t i = 0; i + 64 <= STREAM; i += 64)
		memcpy(s + i, stream(), 60);
	begin(&f, true);
	add(&f, s, STREAM, 0, 0);
	s[STREAM - 70] ^= 0xff;
	s[60000] ^= 0xff;
	add(&f, s, STREAM, 0, 0);
	o = read_all(&f);
	assert_true(o.len + o.skipped == 2 * STREAM);
	free(o.bytes);
	free(f.bytes);
}

static void unreadable_bytes(void **state)
{
	const uint8_t *s = stream();
	struct out o;
	struct file f;

	(void)state;
	begin(&f, false);
	add(&f, s, 70000, 0, 0);
	add(&f, s + 70000, 1000, 0, 70000);
	add(&f, s + 71000, 1000, 0, 71000);
	f.extents[2].handle = VMT_AUX_RESTART;
	f.unreadable_from = 66000;
	f.unreadable_to = 66001;
	o = read_all(&f);
	assert_int_equal(o.len, 66000 + 2000);
	assert_int_equal(o.lost, 4000);
	assert_string_equal(o.why, "unreadable");
	assert_int_equal(o.nr_joins, 3);
	assert_int_equal(o.joins[1], VMT_PT_JOIN_SEEK);
	assert_int_equal(o.joins[2], VMT_PT_JOIN_GAP);
	free(o.bytes);
	f.unreadable_from = f.extents[1].at; /* a whole extent: the next one has to be found */
	f.unreadable_to = f.unreadable_from + 1000;
	f.extents[2].handle = 0;
	o = read_all(&f);
	assert_int_equal(o.lost, 1000);
	assert_int_equal(o.joins[1], VMT_PT_JOIN_SEEK);
	free(o.bytes);
	free(f.bytes);
}

static void what_the_file_says(void **state)
{
	const struct vmt_pt_info info = { .has_time_conv = true,
					  .time_shift = 31,
					  .time_mult = 0x6aaaaaaa,
					  .has_mtc_freq = true,
					  .mtc_freq = 3,
					  .tsc_num = 100,
					  .art_den = 2,
					  .nom_ratio = 12,
					  .has_cpu_id = true,
					  .family = 6,
					  .model = 0x5e,
					  .stepping = 3 };
	struct vmt_pt_decoder_options options = { .clock = { .nom_ratio = 40 } };
	struct file f;

	(void)state;
	begin(&f, false);
	add(&f, stream(), 64, 0, 0);
	f.extents[0].reference = 0xbc4cd519a6;
	f.index.info = info;
	vmt_pt_decoder_setup(&options, &f.index, 0);
	assert_true(options.cpu.known);
	assert_int_equal(options.cpu.model, 0x5e);
	assert_int_equal(options.clock.mtc_freq, 3);
	assert_int_equal(options.clock.tsc_num, 100);
	assert_int_equal(options.clock.art_den, 2);
	assert_int_equal(options.clock.nom_ratio, 40); /* the caller knows better */
	assert_int_equal(options.clock.tsc_hz, 1200000000);
	assert_int_equal(options.clock.reference, 0xbc4cd519a6);
	assert_int_equal(options.host_cpu, 3);
	free(f.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_long_stream),
		cmocka_unit_test(jumps_and_stops),
		cmocka_unit_test(repeated_by_offset),
		cmocka_unit_test(snapshots),
		cmocka_unit_test(hostile_snapshots),
		cmocka_unit_test(zeros_are_packets_or_padding),
		cmocka_unit_test(unreadable_bytes),
		cmocka_unit_test(what_the_file_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
