// SPDX-License-Identifier: LGPL-2.1-or-later
/* Invariant: a filter passes at least what it is asked to pass, and its text fits a page. */
#include "host/capture/filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "(common_pid >= 2147483647 && common_pid <= 2147483647) || " */
#define RANGES_MAX	60
#define MAP_MIN_BYTES	(64u << 10)
#define MAP_RANGES_KEPT 512

/* Names that virtual machines' threads have: QEMU's vCPUs, I/O threads, main thread; vhost. */
#define FOREIGN_THREADS                                                                            \
	"comm ~ \"CPU *\" || comm ~ \"vhost-*\" || comm ~ \"IO *\" || comm ~ \"qemu*\" || comm ~ " \
	"\"kvm-pit*\""

static int compare_ids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

static int compare_ranges(const void *a, const void *b)
{
	const struct vmt_range *x = a, *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

/* Joins the two neighbours with the smallest gap; ranges are sorted and nr >= 2. */
static size_t join_closest(struct vmt_range *ranges, size_t nr)
{
	size_t best = 0;

	for (size_t i = 1; i + 1 < nr; i++) {
		if (ranges[i + 1].first - ranges[i].last <
		    ranges[best + 1].first - ranges[best].last)
			best = i;
	}
	ranges[best].last = ranges[best + 1].last;
	memmove(&ranges[best + 1], &ranges[best + 2], (nr - best - 2) * sizeof(*ranges));
	return nr - 1;
}

/* Appends a range after the last one, keeping at most max. */
static size_t add_range(struct vmt_range *ranges, size_t nr, size_t max, struct vmt_range r)
{
	if (nr && r.first <= ranges[nr - 1].last + 1) {
		if (r.last > ranges[nr - 1].last)
			ranges[nr - 1].last = r.last;
		return nr;
	}
	if (nr == max) {
		/* The new one takes part in the choice: its gap may be the smallest. */
		struct vmt_range last = ranges[nr - 1];
		uint64_t gap = r.first - last.last;

		for (size_t i = 0; i + 1 < nr; i++) {
			if (ranges[i + 1].first - ranges[i].last < gap) {
				nr = join_closest(ranges, nr);
				ranges[nr] = r;
				return nr + 1;
			}
		}
		ranges[nr - 1].last = r.last;
		return nr;
	}
	ranges[nr] = r;
	return nr + 1;
}

size_t vmt_filter_ranges(pid_t *ids, size_t nr_ids, struct vmt_range *ranges, size_t max)
{
	size_t nr = 0;

	if (nr_ids)
		qsort(ids, nr_ids, sizeof(*ids), compare_ids);
	for (size_t i = 0; i < nr_ids; i++) {
		struct vmt_range one = { (uint64_t)ids[i], (uint64_t)ids[i] };

		nr = add_range(ranges, nr, max, one);
	}
	return nr;
}

void vmt_filter_ids(char *text, size_t size, const char *field, pid_t *ids, size_t nr_ids)
{
	struct vmt_range ranges[RANGES_MAX];
	size_t nr = vmt_filter_ranges(ids, nr_ids, ranges, RANGES_MAX), len = 0;

	if (!nr)
		snprintf(text, size, "%s == -1", field);
	for (size_t i = 0; i < nr && len < size; i++) {
		const char * or = i ? " || " : "";
		unsigned long long a = ranges[i].first, b = ranges[i].last;
		int n = a == b ? snprintf(text + len, size - len, "%s%s == %llu", or, field, a)
			       : snprintf(text + len, size - len, "%s(%s >= %llu && %s <= %llu)",
					  or, field, a, field, b);

		len += n > 0 ? (size_t)n : 0;
	}
}

void vmt_filter_anywhere(char *text, size_t size, pid_t *ids, size_t nr_ids, bool only_ids)
{
	char ours[VMT_FILTER_MAX];

	vmt_filter_ids(ours, sizeof(ours) - 200, "common_pid", ids, nr_ids);
	if (only_ids)
		snprintf(text, size, "(%s) && (" FOREIGN_THREADS ")", ours);
	else
		snprintf(text, size, "%s || !(" FOREIGN_THREADS ")", ours);
}

void vmt_filter_memory(char *text, size_t size, const struct vmt_range *ranges, size_t nr)
{
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < nr && len < size; i++) {
		int n = snprintf(text + len, size - len, "%s(start <= %llu && end >= %llu)",
				 i ? " || " : "", (unsigned long long)ranges[i].last,
				 (unsigned long long)ranges[i].first);

		len += n > 0 ? (size_t)n : 0;
	}
}

/* "7f0000000000-7f0040000000 rw-p …": true for one that may be a guest's memory. */
static bool writable_mapping(const char *line, struct vmt_range *map)
{
	char *at;
	uint64_t end;

	map->first = strtoull(line, &at, 16);
	if (*at != '-')
		return false;
	end = strtoull(at + 1, &at, 16);
	if (at[0] != ' ' || !at[1] || at[2] != 'w' || end < map->first + MAP_MIN_BYTES)
		return false;
	map->last = end - 1;
	return true;
}

size_t vmt_filter_guest_memory(const char *maps_path, struct vmt_range *ranges, size_t max)
{
	FILE *f = fopen(maps_path, "re");
	struct vmt_range *all = f ? calloc(MAP_RANGES_KEPT, sizeof(*all)) : NULL;
	char line[512];
	size_t nr = 0, kept = 0;

	while (all && fgets(line, sizeof(line), f)) {
		struct vmt_range map;

		if (writable_mapping(line, &map))
			nr = add_range(all, nr, MAP_RANGES_KEPT, map);
	}
	if (all && nr)
		qsort(all, nr, sizeof(*all), compare_ranges);
	for (size_t i = 0; i < nr; i++)
		kept = add_range(ranges, kept, max, all[i]);
	free(all);
	if (f)
		fclose(f);
	return kept;
}
