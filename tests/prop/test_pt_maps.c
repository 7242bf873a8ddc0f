// SPDX-License-Identifier: LGPL-2.1-or-later
/* A guest's TSC over time: the map that is given is the true one, or none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>

#include "decode/pt/maps.h"

#define FRAC	48
#define ONE	(UINT64_C(1) << FRAC)
#define START	UINT64_C(3000000000)
#define CHANGES 12u
#define MASK56	((UINT64_C(1) << 56) - 1)

static uint64_t below(uint64_t *state, uint64_t n)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (*state >> 20) % n;
}

struct schedule {
	struct vmx_tsc_map base;
	struct vmt_pt_map_change changes[CHANGES];
	struct vmt_pt_maps maps;
};

static const struct vmx_tsc_map *true_map(const struct schedule *s, uint64_t host)
{
	const struct vmx_tsc_map *map = &s->base;

	for (size_t i = 0; i < s->maps.nr && s->changes[i].first <= host; i++)
		map = &s->changes[i].map;
	return map;
}

/* Offsets that go up, down and by little, at times near and far from each other. */
static void make(struct schedule *s, uint64_t *random)
{
	uint64_t at = START;

	*s = (struct schedule){ .base = { ONE / (1 + below(random, 3)),
					  below(random, UINT64_C(1) << 40), FRAC } };
	s->maps = (struct vmt_pt_maps){ &s->base, s->changes, below(random, CHANGES) };
	for (size_t i = 0; i < s->maps.nr; i++) {
		const struct vmx_tsc_map *before = i ? &s->changes[i - 1].map : &s->base;
		const uint64_t step = below(random, UINT64_C(1) << below(random, 33));

		at += 1 + below(random, UINT64_C(1) << below(random, 34));
		s->changes[i] =
			(struct vmt_pt_map_change){ .first = at, .last = at, .map = *before };
		s->changes[i].map.offset += below(random, 2) ? step : -step;
	}
	vmt_pt_maps_prepare(s->changes, s->maps.nr);
}

static bool equal(const struct vmx_tsc_map *a, const struct vmx_tsc_map *b)
{
	return a->offset == b->offset && a->multiplier == b->multiplier;
}

static void the_true_map_or_none(void **state)
{
	uint64_t random = 7;
	unsigned int given = 0, none = 0;

	(void)state;
	for (unsigned int round = 0; round < 4000; round++) {
		struct schedule s;

		make(&s, &random);
		for (unsigned int i = 0; i < 8; i++) {
			const uint64_t host = START + below(&random, UINT64_C(1) << 36);
			const uint64_t behind = below(&random, UINT64_C(1) << below(&random, 32));
			const uint64_t low = host - START > behind ? host - behind : START;
			const struct vmx_tsc_map *want = true_map(&s, host);
			const struct vmx_tsc_map *map =
				vmt_pt_maps_at(&s.maps, low, vmx_tsc_to_guest(want, host) & MASK56);

			given += map != NULL;
			none += !map;
			assert_true(!map || equal(map, want));
		}
	}
	assert_true(given > 4 * none);
}

/* A guest that was stopped goes on with the TSC at which it stopped. */
static void a_pause(void **state)
{
	const struct vmx_tsc_map base = { ONE, 1000, FRAC };
	struct vmt_pt_map_change change = { .first = 5000000, .last = 5000001, .map = base };
	const struct vmt_pt_maps maps = { &base, &change, 1 };

	(void)state;
	change.map.offset = 1000 - UINT64_C(2000000); /* stopped at 3000000 */
	vmt_pt_maps_prepare(&change, 1);
	/* Before the stop; behind it with a time that tells; and without one. */
	assert_ptr_equal(vmt_pt_maps_at(&maps, 2000000, 2500000 + 1000), &base);
	assert_ptr_equal(vmt_pt_maps_at(&maps, 5000001, 3000100 + 1000), &change.map);
	assert_null(vmt_pt_maps_at(&maps, 2999999, 3000100 + 1000));
	/* What the TSC before cannot be any more. */
	assert_ptr_equal(vmt_pt_maps_at(&maps, 2999999, 5000100 + 1000), &change.map);
}

/* Each entry moves the offset on, as where a faster TSC is made without scaling. */
static void thousands_of_changes(void **state)
{
	enum { N = 5000 };
	static struct vmt_pt_map_change changes[N];
	const struct vmx_tsc_map base = { ONE, 77, FRAC };
	const struct vmt_pt_maps maps = { &base, changes, N };

	(void)state;
	for (size_t i = 0; i < N; i++)
		changes[i] = (struct vmt_pt_map_change){ .first = START + i * 1000,
							 .last = START + i * 1000 + 2,
							 .map = { ONE, 77 + 10 * (i + 1), FRAC } };
	vmt_pt_maps_prepare(changes, N);
	for (size_t i = 1; i < N; i++) {
		const uint64_t host = START + i * 1000 + 500;

		assert_ptr_equal(vmt_pt_maps_at(&maps, host - 900,
						vmx_tsc_to_guest(&changes[i].map, host) & MASK56),
				 &changes[i].map);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_true_map_or_none),
		cmocka_unit_test(a_pause),
		cmocka_unit_test(thousands_of_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
