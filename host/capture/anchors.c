// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: an anchor's TSC bracket encloses the reading of every other clock in it, and all were
 * read on the CPU that it names.
 */
#include "host/capture/anchors.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define TRIES	      5
#define SEQLOCK_TRIES 1000
#define VCPUS_MAX     4096 /* of all domains in a chunk */

void vmt_clock_open(struct vmt_clock *clock, const struct vmt_perf_ops *ops)
{
	struct vmt_perf_want want = { .name = "clock",
				      .dummy = true,
				      .comm = true,
				      .user_only = true,
				      .pid = 0,
				      .cpu = -1,
				      .watermark = 1 };
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);

	*clock = (struct vmt_clock){ .ops = ops, .map_bytes = page_bytes * 2 };
	clock->fd = vmt_perf_open(ops, &want, NULL);
	if (clock->fd < 0) {
		clock->fd = -1;
		return;
	}
	clock->page = vmt_perf_map(ops, clock->fd, page_bytes, NULL);
	if (!clock->page || vmt_perf_enable(ops, clock->fd, NULL))
		vmt_clock_close(clock);
}

void vmt_clock_close(struct vmt_clock *clock)
{
	if (clock->page)
		clock->ops->unmap(clock->page, clock->map_bytes);
	if (clock->fd >= 0)
		clock->ops->close(clock->fd);
	clock->page = NULL;
	clock->fd = -1;
}

/* Time of the newest record in the clock's ring, which is then empty; 0 when there is none. */
static uint64_t take_time(const struct vmt_clock *clock)
{
	struct perf_event_mmap_page *page = clock->page;
	const uint8_t *data = (const uint8_t *)page + clock->map_bytes / 2;
	size_t mask = clock->map_bytes / 2 - 1;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	uint64_t time_ns = 0;

	/* The trailer is TID, TIME, CPU, IDENTIFIER: the time stands 24 bytes before the end. */
	if (head != page->data_tail && head >= 24)
		memcpy(&time_ns, data + ((head - 24) & mask), sizeof(time_ns));
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
	return time_ns;
}

static uint64_t self_sample(const struct vmt_clock *clock)
{
	char name[17] = "";

	if (clock->fd < 0 || prctl(PR_GET_NAME, name))
		return 0;
	take_time(clock);
	prctl(PR_SET_NAME, name);
	return take_time(clock);
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t = { 0, 0 };

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* time_zero, mult, shift under the page's seqlock; false when perf time is not convertible. */
static bool read_conversion(const struct perf_event_mmap_page *page, struct vmt_anchor *out)
{
	for (int i = 0; page && i < SEQLOCK_TRIES; i++) {
		uint32_t seq = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
		bool can = page->cap_user_time && page->cap_user_time_zero;

		out->time_zero = page->time_zero;
		out->time_mult = page->time_mult;
		out->time_shift = page->time_shift;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(seq & 1) && __atomic_load_n(&page->lock, __ATOMIC_RELAXED) == seq)
			return can && out->time_mult;
	}
	return false;
}

/* Perf time of a TSC value, as arch_perf_update_userpage's fields define it. */
static uint64_t perf_time(const struct vmt_anchor *a, uint64_t tsc)
{
	uint64_t quot = tsc >> a->time_shift;
	uint64_t rem = tsc & ((UINT64_C(1) << a->time_shift) - 1);

	return a->time_zero + quot * a->time_mult + ((rem * a->time_mult) >> a->time_shift);
}

static bool read_once(const struct vmt_clock *clock, struct vmt_anchor *out)
{
	unsigned int cpu_before = 0, cpu_after = 0;
	bool convertible;

	memset(out, 0, sizeof(*out));
	convertible = read_conversion(clock->page, out) && out->time_shift < 64;
	out->host_tsc_before = __rdtscp(&cpu_before);
	if (!convertible)
		out->host_ns = self_sample(clock);
	out->monotonic_raw_ns = clock_ns(CLOCK_MONOTONIC_RAW);
	out->realtime_ns = clock_ns(CLOCK_REALTIME);
	out->host_tsc_after = __rdtscp(&cpu_after);
	if (convertible) {
		out->host_ns =
			perf_time(out, out->host_tsc_before +
					       (out->host_tsc_after - out->host_tsc_before) / 2);
	} else {
		out->time_zero = 0;
		out->time_mult = 0;
		out->time_shift = 0;
		out->flags |= VMT_ANCHOR_NO_TIME_ZERO;
	}
	if (!out->host_ns)
		out->flags |= VMT_ANCHOR_NO_PERF_CLOCK;
	out->cpu = cpu_after & 0xfff; /* TSC_AUX as Linux fills it: CPU in bits 11:0 */
	return cpu_before == cpu_after;
}

void vmt_anchor_read(const struct vmt_clock *clock, struct vmt_anchor *out)
{
	bool have = false;

	memset(out, 0, sizeof(*out));
	for (int i = 0; i < TRIES || (!have && i < TRIES * 20); i++) {
		struct vmt_anchor one;
		bool good = read_once(clock, &one);

		if (!have || (good && one.host_tsc_after - one.host_tsc_before <
					      out->host_tsc_after - out->host_tsc_before))
			*out = one;
		have = have || good;
	}
}

uint64_t vmt_clock_now_ns(const struct vmt_clock *clock)
{
	struct vmt_anchor now;

	vmt_anchor_read(clock, &now);
	return now.host_ns;
}

size_t vmt_vcpu_tsc_of(const struct vmt_domain *domain, uint32_t index, uint64_t host_ns,
		       struct vmt_vcpu_tsc *out, size_t max)
{
	size_t nr = 0;

	for (size_t i = 0; i < domain->nr_vcpus && nr < max; i++) {
		const struct vmt_vcpu *v = &domain->vcpus[i];

		if (!v->has_offset)
			continue;
		out[nr++] = (struct vmt_vcpu_tsc){
			.host_ns = host_ns,
			.ratio = v->has_ratio ? v->tsc_ratio : 1,
			.offset = v->tsc_offset,
			.domain = index,
			.vcpu = v->id,
			.frac = v->has_ratio ? v->tsc_frac : 0,
			.source = 1,
		};
	}
	return nr;
}

int vmt_anchor_write(const struct vmt_clock *clock, struct vmt_store_writer *store,
		     struct vmt_diag *diag)
{
	struct vmt_anchor anchor;
	struct vmt_store_chunk chunk = { .type = VMT_CHUNK_ANCHOR,
					 .cpu = -1,
					 .nr_parts = 1,
					 .parts = { { &anchor, sizeof(anchor) } } };

	vmt_anchor_read(clock, &anchor);
	chunk.time_first_ns = chunk.time_last_ns = anchor.host_ns;
	return vmt_store_append(store, &chunk, diag);
}

int vmt_vcpu_tsc_write(const struct vmt_clock *clock, const struct vmt_domains *domains,
		       struct vmt_store_writer *store, struct vmt_diag *diag)
{
	struct vmt_vcpu_tsc *rows = calloc(VCPUS_MAX, sizeof(*rows));
	struct vmt_store_chunk chunk = { .type = VMT_CHUNK_VCPU_TSC, .cpu = -1, .nr_parts = 1 };
	uint64_t now = vmt_clock_now_ns(clock);
	size_t nr = 0;
	int err = 0;

	for (size_t i = 0; rows && i < domains->count; i++)
		nr += vmt_vcpu_tsc_of(&domains->items[i], (uint32_t)i, now, rows + nr,
				      VCPUS_MAX - nr);
	chunk.time_first_ns = chunk.time_last_ns = now;
	chunk.parts[0] = (struct vmt_store_part){ rows, nr * sizeof(*rows) };
	if (nr)
		err = vmt_store_append(store, &chunk, diag);
	free(rows);
	return err;
}
