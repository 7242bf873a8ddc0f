// SPDX-License-Identifier: LGPL-2.1-or-later
/* Areas in memory as one stream in time: order, gaps, areas without events, limits, losses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "decode/analyze/pt_streams.h"
#include "tests/support/pt_encode.h"

#define AREAS 64u

struct bench {
	struct vmt_aux_index index;
	struct vmt_aux_area areas[AREAS];
	struct vmt_aux_extent extents[AREAS][4];
	struct vmt_ptenc bytes[AREAS];
	/* what came out */
	size_t events, exits, losses, untimed;
	uint64_t last_low, last_area[AREAS];
	size_t order[256];
};

static int read_bytes(void *source, const struct vmt_aux_extent *x, uint64_t from, uint8_t *out,
		      size_t len, size_t *done, struct vmt_diag *diag)
{
	const struct bench *b = source;

	(void)diag;
	*done = 0;
	if (x->handle == 2 * AREAS) /* an extent that cannot be read */
		return VMT_E_DAMAGED;
	memcpy(out, b->bytes[x->handle / 2].bytes + x->at + from, len);
	*done = len;
	return 0;
}

static struct bench *bench_of(size_t nr)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->index.areas = b->areas;
	b->index.nr_areas = nr;
	b->index.read = read_bytes;
	b->index.source = b;
	for (size_t i = 0; i < nr; i++) {
		b->areas[i].idx = b->areas[i].cpu = (uint32_t)i;
		b->areas[i].extents = b->extents[i];
	}
	return b;
}

static void add_extent(struct bench *b, size_t area, uint64_t at, uint64_t len, uint64_t offset)
{
	struct vmt_aux_area *a = &b->areas[area];

	a->extents[a->nr_extents++] = (struct vmt_aux_extent){
		.at = at, .len = len, .aux_offset = offset, .handle = 2 * area
	};
}

static void whole(struct bench *b, size_t area)
{
	add_extent(b, area, 0, b->bytes[area].len, 0);
}

static void free_bench(struct bench *b)
{
	for (size_t i = 0; i < AREAS; i++)
		vmt_ptenc_free(&b->bytes[i]);
	free(b);
}

static void put_psb(struct vmt_ptenc *e, uint64_t tsc, bool nonroot)
{
	vmt_ptenc_psb(e);
	vmt_ptenc_tsc(e, tsc);
	vmt_ptenc_pip(e, 0x1000, nonroot);
	vmt_ptenc_psbend(e);
}

/* An entry at tsc and an exit 10 later, of which the time is known. */
static void put_run(struct vmt_ptenc *e, uint64_t tsc)
{
	vmt_ptenc_tsc(e, tsc);
	vmt_ptenc_pip(e, 0x2000, true);
	vmt_ptenc_ip(e, VMT_PTENC_TIP, VMT_PTENC_FULL, 0xffffffff81000000);
	vmt_ptenc_ip(e, VMT_PTENC_FUP, VMT_PTENC_FULL, 0xffffffff81000010);
	vmt_ptenc_pip(e, 0x1000, false);
	vmt_ptenc_ip(e, VMT_PTENC_TIP, VMT_PTENC_FULL, 0xffffffffc0000000);
	vmt_ptenc_tsc(e, tsc + 10);
}

static void on_event(void *context, size_t area, const struct vmt_event *e, struct vmt_pt_span span)
{
	struct bench *b = context;

	assert_true(span.low_ns <= span.high_ns);
	assert_true(span.low_ns >= b->last_low || e->type == VMT_EVENT_LOSS);
	if (e->has & VMT_HAS_TIME) {
		assert_true(e->time.host_ns >= span.low_ns && e->time.host_ns <= span.high_ns);
		assert_true(e->time.host_ns >= b->last_area[area]);
		b->last_area[area] = e->time.host_ns;
	} else {
		b->untimed++;
	}
	if (span.low_ns > b->last_low)
		b->last_low = span.low_ns;
	if (b->events < 256)
		b->order[b->events] = area;
	b->events++;
	b->exits += e->type == VMT_EVENT_EXIT;
	b->losses += e->type == VMT_EVENT_LOSS;
}

/* TSC at 1 GHz: a unit is a nanosecond. */
static struct vmt_pt_streams *streams_of(const struct bench *b)
{
	const struct vmt_pt_streams_options options = { .index = &b->index,
							.clock = { .tsc_hz = 1000000000 } };
	struct vmt_pt_streams *s = vmt_pt_streams_new(&options);

	assert_non_null(s);
	return s;
}

static void pull(struct vmt_pt_streams *s, struct bench *b, uint64_t limit)
{
	assert_int_equal(vmt_pt_streams_pull(s, limit, on_event, b, NULL), 0);
}

static void many_areas_in_order_of_time(void **state)
{
	struct bench *b = bench_of(AREAS);
	struct vmt_pt_streams *s;

	(void)state;
	for (size_t i = 0; i < AREAS; i++) {
		put_psb(&b->bytes[i], 1000, false);
		for (uint64_t n = 0; n < 300; n++)
			put_run(&b->bytes[i], 2000 + n * 1000 + (i * 37 + n * 13) % 900);
		whole(b, i);
	}
	s = streams_of(b);
	pull(s, b, 0);
	assert_int_equal(b->events, 0);
	pull(s, b, 100000);
	assert_true(b->exits > 98 * AREAS - AREAS && b->exits <= 99 * AREAS);
	assert_true(b->last_low <= 100000);
	pull(s, b, 100000);
	pull(s, b, UINT64_MAX);
	assert_int_equal(b->exits, 300 * AREAS);
	assert_int_equal(b->events, 600 * AREAS);
	assert_int_equal(vmt_pt_streams_counts(s).exits, 300 * AREAS);
	assert_int_equal(vmt_pt_streams_ledger(s).bytes_skipped, 0);
	vmt_pt_streams_free(s);
	free_bench(b);
}

/* An area that tells nothing for a long time keeps nobody waiting for ever, and nothing is early.
 */
static void an_area_without_events(void **state)
{
	struct bench *b = bench_of(3);
	struct vmt_pt_streams *s;
	uint64_t next;

	(void)state;
	put_psb(&b->bytes[0], 1000, false);
	for (unsigned int i = 0; i < 100000; i++)
		vmt_ptenc_tnt(&b->bytes[0], 1, 3);
	put_run(&b->bytes[0], 5000);
	put_psb(&b->bytes[1], 1000, false);
	put_run(&b->bytes[1], 7000);
	put_run(&b->bytes[1], 3000000);
	for (size_t i = 0; i < 3; i++)
		whole(b, i); /* the third one is empty */
	s = streams_of(b);
	pull(s, b, 6000);
	assert_int_equal(b->events, 2);
	assert_int_equal(b->order[0], 0);
	assert_true(vmt_pt_streams_next(s, &next) && next == 7000);
	pull(s, b, UINT64_MAX);
	assert_int_equal(b->events, 6);
	assert_false(vmt_pt_streams_next(s, &next));
	vmt_pt_streams_free(s);
	free_bench(b);
}

/* Extents with a stretch missing between them, one that came before, and one that is unreadable. */
static void gaps_and_what_came_before(void **state)
{
	struct bench *b = bench_of(2);
	struct vmt_pt_streams *s;
	uint64_t first, all;

	(void)state;
	put_psb(&b->bytes[0], 1000, false);
	put_run(&b->bytes[0], 2000);
	first = b->bytes[0].len;
	put_psb(&b->bytes[0], 3000, false);
	put_run(&b->bytes[0], 4000);
	all = b->bytes[0].len;
	add_extent(b, 0, 0, first, 0);
	add_extent(b, 0, 0, first, 0); /* the same again */
	add_extent(b, 0, first, all - first, first + 4096);
	put_psb(&b->bytes[1], 1000, false);
	put_run(&b->bytes[1], 2500);
	whole(b, 1);
	add_extent(b, 1, 0, 512, b->bytes[1].len);
	b->extents[1][1].handle = 2 * AREAS;
	s = streams_of(b);
	pull(s, b, UINT64_MAX);
	assert_int_equal(b->exits, 3);
	assert_int_equal(b->losses, 1);
	assert_int_equal(vmt_pt_streams_ledger(s).bytes_skipped, 512);
	assert_int_equal(vmt_pt_streams_ledger(s).bytes_total,
			 vmt_pt_streams_ledger(s).bytes_decoded + 512);
	vmt_pt_streams_free(s);
	free_bench(b);
}

/* Without a TSC rate there is no time, and the TSC orders. Areas of threads are found by thread. */
static void no_rate_and_threads(void **state)
{
	struct bench *b = bench_of(2);
	const struct vmt_pt_streams_options options = { .index = &b->index };
	struct vmt_pt_streams *s;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		b->areas[i].cpu = VMT_AUX_NO_CPU;
		b->areas[i].tid = 100 + (uint32_t)i;
		put_psb(&b->bytes[i], 1000, false);
		put_run(&b->bytes[i], 3000 - 1000 * i);
		whole(b, i);
	}
	s = vmt_pt_streams_new(&options);
	assert_non_null(s);
	pull(s, b, UINT64_MAX);
	assert_int_equal(b->untimed, 4);
	assert_int_equal(b->order[0], 1);
	assert_int_equal(b->order[3], 0);
	assert_int_equal(vmt_pt_streams_area(s, UINT32_MAX, 101), 1);
	assert_int_equal(vmt_pt_streams_area(s, 3, 100), 0);
	assert_true(vmt_pt_streams_area(s, 3, 99) == SIZE_MAX);
	vmt_pt_streams_free(s);
	free_bench(b);
}

/* A LOSS comes with the event before it: it may have begun then. */
static void a_loss_begins_with_the_event_before(void **state)
{
	struct bench *b = bench_of(2);
	struct vmt_pt_streams *s;

	(void)state;
	put_psb(&b->bytes[0], 1000, false);
	put_run(&b->bytes[0], 2000);
	vmt_ptenc_tsc(&b->bytes[0], 8000);
	vmt_ptenc_ovf(&b->bytes[0]);
	put_psb(&b->bytes[0], 9000, false);
	put_run(&b->bytes[0], 9500);
	put_psb(&b->bytes[1], 1000, false);
	put_run(&b->bytes[1], 5000);
	whole(b, 0);
	whole(b, 1);
	s = streams_of(b);
	pull(s, b, 3000);
	assert_int_equal(b->events, 3);
	assert_int_equal(b->losses, 1);
	pull(s, b, UINT64_MAX);
	assert_int_equal(b->exits, 3);
	assert_int_equal(vmt_pt_streams_counts(s).overflows, 1);
	vmt_pt_streams_free(s);
	free_bench(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_areas_in_order_of_time),
		cmocka_unit_test(an_area_without_events),
		cmocka_unit_test(gaps_and_what_came_before),
		cmocka_unit_test(no_rate_and_threads),
		cmocka_unit_test(a_loss_begins_with_the_event_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
