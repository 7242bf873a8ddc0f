// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: between two drains every ring that is mapped belongs to the kernel and to nobody else;
 * a ring whose thread ended is drained once more before it is closed.
 */
#include "host/capture/live.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "decode/io/diagf.h"
#include "decode/io/sys.h"
#include "host/capture/live_state.h"

#define CPU_RING_MIN	(64u << 10)
#define THREAD_RING_MIN (16u << 10)
#define THREAD_RING_MAX (256u << 10)
#define DEFAULT_BUFFER	(64u << 20)

static size_t power_of_two_below(uint64_t bytes, size_t least, size_t most)
{
	size_t size = least;

	while (size < most && size * 2 <= bytes)
		size *= 2;
	return size;
}

/* Seven eighths of the memory for the CPUs' rings, one for the threads'. */
static void size_rings(struct vmt_live *live, const struct vmt_live_setup *setup)
{
	uint64_t bytes = setup->buffer_bytes ? setup->buffer_bytes : DEFAULT_BUFFER;
	size_t threads = live->threads.count ? live->threads.count : 1;

	live->cpu_ring_bytes =
		power_of_two_below(bytes / 8 * 7 / setup->nr_cpus, CPU_RING_MIN, 1u << 30);
	live->thread_ring_bytes =
		power_of_two_below(bytes / 8 / threads, THREAD_RING_MIN, THREAD_RING_MAX);
	vmt_live_size_pt(live, setup);
}

/* Rings and events of a CPU for the threads rows[from..count). */
static int open_cpu(struct vmt_live *live, int cpu, const struct vmt_live_filters *filters,
		    struct vmt_diag *diag)
{
	struct vmt_diag own = { 0 };
	int ring = vmt_live_open_cpu(live, cpu, &own);

	if (ring >= 0 && live->system_wide) {
		int err = vmt_live_open_pt_cpu(live, cpu, diag);

		if (err)
			return err;
	}
	if (ring < 0 && own.code == VMT_E_CAPABILITY && live->nr_rings)
		return 0; /* went offline meanwhile */
	if (ring < 0) {
		if (diag && !diag->code)
			*diag = own;
		return ring;
	}
	return vmt_live_open_events(live, (size_t)ring, filters, diag);
}

/* Their switches, unless those of all threads are recorded. */
static bool records_threads(const struct vmt_live *live)
{
	return live->sched && !live->system_wide;
}

static int open_threads(struct vmt_live *live, const struct vmt_domains *domains,
			struct vmt_diag *diag)
{
	int err = 0;

	for (size_t i = 0; i < live->threads.count && !err; i++) {
		const struct vmt_thread *thread = &live->threads.rows[i];

		err = vmt_live_open_pt_thread(live, domains, thread, diag);
		if (!err && records_threads(live))
			err = vmt_live_open_thread(live, thread->tid, diag);
	}
	return err;
}

static int open_all(struct vmt_live *live, const struct vmt_live_setup *setup,
		    struct vmt_diag *diag)
{
	struct vmt_live_filters *filters;
	size_t first_new;
	int err = vmt_threads_update(&live->threads, setup->domains, &first_new);

	if (err < 0)
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot open the capture",
				    "memory is short");
	if (!live->threads.count)
		return vmt_diag_set(diag, VMT_E_NOT_FOUND, "no thread of the domain is known",
				    "vmtrace list -v says how threads were looked for");
	err = vmt_live_find_events(live, setup, diag);
	filters = err ? NULL : malloc(sizeof(*filters));
	if (!filters)
		return err ? err
			   : vmt_diag_set(diag, VMT_E_NOMEM, "cannot open the capture",
					  "memory is short");
	size_rings(live, setup);
	vmt_live_make_filters(live, setup->domains, 0, filters);
	for (size_t i = 0; i < setup->nr_cpus && !err; i++)
		err = open_cpu(live, setup->cpus[i], filters, diag);
	free(filters);
	if (!err)
		err = open_threads(live, setup->domains, diag);
	return err ? err : vmt_live_write_attrs(live, diag);
}

int vmt_live_open(struct vmt_live **out, const struct vmt_live_setup *setup, struct vmt_diag *diag)
{
	struct vmt_live *live = calloc(1, sizeof(*live));
	int err;

	if (!live || !setup->nr_cpus) {
		if (setup->pt && setup->controls >= 0)
			setup->ops->close(setup->controls);
		free(live);
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot open the capture",
				    "memory is short");
	}
	live->ops = setup->ops;
	live->store = setup->store;
	live->watch = setup->watch;
	live->sched = setup->sched;
	live->system_wide = setup->pt && setup->system_wide;
	live->pt_type = setup->pt ? setup->pmu.type : 0;
	live->pt_config = setup->config.config;
	live->pt_overwrite = setup->overwrite;
	live->pt_privacy = (struct vmt_rewrite_options){
		.keep = setup->privacy,
		.cpu = setup->pmu.cpu,
		.from_any_psb = setup->overwrite,
		.event_trace = setup->config.event,
		.key = vmt_io_random(),
	};
	memcpy(live->pt_filter, setup->pt_filter, sizeof(live->pt_filter));
	live->controls = setup->pt ? setup->controls : -1;
	live->pt_no_host = setup->pt && setup->means == VMT_PT_MEANS_CONTROLS &&
			   setup->mode == VMX_PT_GUEST_ONLY;
	live->epoll = epoll_create1(EPOLL_CLOEXEC);
	err = live->epoll < 0 ? vmt_diag_set(diag, VMT_E_LIMIT, "cannot make an epoll descriptor",
					     "the limit of open files is reached")
			      : open_all(live, setup, diag);
	if (err) {
		vmt_live_close(live);
		return err;
	}
	*out = live;
	return 0;
}

static int enable_new(struct vmt_live *live, struct vmt_diag *diag)
{
	int err = 0;

	for (; live->nr_leaders_enabled < live->nr_rings && !err; live->nr_leaders_enabled++) {
		if (live->rings[live->nr_leaders_enabled].leader >= 0)
			err = vmt_perf_enable(live->ops,
					      live->rings[live->nr_leaders_enabled].leader, diag);
	}
	for (; live->nr_enabled < live->nr_fds && !err; live->nr_enabled++)
		err = vmt_perf_enable(live->ops, live->fds[live->nr_enabled], diag);
	return err;
}

int vmt_live_enable(struct vmt_live *live, struct vmt_diag *diag)
{
	live->enabled = true;
	return enable_new(live, diag);
}

void vmt_live_disable(struct vmt_live *live)
{
	for (size_t i = 0; i < live->nr_fds; i++)
		vmt_perf_disable(live->ops, live->fds[i]);
	for (size_t i = 0; i < live->nr_rings; i++) {
		if (live->rings[i].leader >= 0)
			vmt_perf_disable(live->ops, live->rings[i].leader);
	}
	live->enabled = false;
}

void vmt_live_close(struct vmt_live *live)
{
	if (!live)
		return;
	for (size_t i = 0; i < live->nr_fds; i++)
		live->ops->close(live->fds[i]);
	for (size_t i = 0; i < live->nr_rings; i++)
		vmt_live_close_ring(live, &live->rings[i]);
	for (size_t i = 0; i < live->nr_events && live->events; i++)
		free(live->events[i].ids);
	if (live->controls >= 0)
		live->ops->close(live->controls);
	if (live->epoll >= 0)
		close(live->epoll);
	vmt_threads_free(&live->threads);
	free(live->events);
	free(live->controlled);
	free(live->rings);
	free(live->fds);
	free(live);
}

int vmt_live_fd(const struct vmt_live *live)
{
	return live->epoll;
}

/* Takes the pending wake-ups and learns which threads ended. */
static void take_wakeups(struct vmt_live *live)
{
	struct epoll_event ready[64];
	int n;

	do {
		n = epoll_wait(live->epoll, ready, 64, 0);
		for (int i = 0; i < n; i++) {
			if ((ready[i].events & EPOLLHUP) && ready[i].data.u64 < live->nr_rings)
				live->rings[ready[i].data.u64].ended = true;
		}
	} while (n == 64);
}

static int sink(void *context, const struct vmt_store_chunk *chunk, struct vmt_diag *diag)
{
	return vmt_store_append(context, chunk, diag);
}

int vmt_live_drain(struct vmt_live *live, struct vmt_capture_counts *counts, struct vmt_diag *diag)
{
	int first_err = 0;

	take_wakeups(live);
	for (size_t i = 0; i < live->nr_rings; i++) {
		struct vmt_live_ring *ring = &live->rings[i];
		bool last = ring->ended;
		uint64_t head;
		int err;

		if (ring->leader < 0)
			continue;
		head = ring->pt ? vmt_pt_ring_head(ring->pt) : 0;
		ring->full = vmt_capture_ring_is_full(&ring->ring, ring->full);
		err = vmt_capture_ring_drain(&ring->ring, live->exit_id, sink, live->store, counts,
					     diag);
		first_err = first_err ? first_err : err;
		if (ring->pt)
			err = vmt_live_drain_pt(live, ring, counts, head, diag);
		first_err = first_err ? first_err : err;
		if (last)
			vmt_live_close_ring(live, ring);
	}
	return first_err;
}

static bool add_lost(const struct vmt_live *live, int fd, uint64_t *sum)
{
	uint64_t lost;

	if (!vmt_perf_lost(live->ops, fd, &lost))
		return false;
	*sum += lost;
	return true;
}

bool vmt_live_lost(const struct vmt_live *live, uint64_t *lost)
{
	bool known = true, full = false;

	*lost = live->closed_lost;
	for (size_t i = 0; i < live->nr_fds && known; i++)
		known = add_lost(live, live->fds[i], lost);
	for (size_t i = 0; i < live->nr_rings; i++) {
		if (live->rings[i].leader >= 0 && known)
			known = add_lost(live, live->rings[i].leader, lost);
		full |= live->rings[i].full;
	}
	if (!known)
		*lost = full ? UINT64_MAX : 0;
	return known;
}

/* Opens the events of the threads rows[from..count) in every CPU's ring. */
static int open_set(struct vmt_live *live, const struct vmt_domains *domains, size_t from,
		    struct vmt_diag *diag)
{
	struct vmt_live_filters *filters = malloc(sizeof(*filters));
	size_t nr_rings = live->nr_rings;
	int err = 0;

	if (!filters)
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot follow a new thread",
				    "memory is short");
	vmt_live_make_filters(live, domains, from, filters);
	filters->first = false;
	for (size_t i = 0; i < nr_rings && !err; i++) {
		if (vmt_live_takes_events(&live->rings[i]))
			err = vmt_live_open_events(live, i, filters, diag);
	}
	free(filters);
	return err;
}

static bool follows(const struct vmt_live *live, pid_t tid)
{
	for (size_t i = 0; i < live->threads.count; i++) {
		if (live->threads.rows[i].tid == tid)
			return true;
	}
	return false;
}

/* Says which thread is missing, and why. */
static int note_uncaptured(struct vmt_live *live, const struct vmt_thread *thread,
			   const char *missing, const struct vmt_diag *why, struct vmt_diag *diag)
{
	if (!live->uncaptured) {
		live->uncaptured = thread->tid;
		live->uncaptured_domain = thread->domain;
	}
	return vmt_diag_printf(diag, why->code, 0, why->cure,
			       "the %s of the new thread %d are not captured: %s", missing,
			       thread->tid, why->what);
}

/* Each new thread is tried, also when one before it failed. The first error. */
static int follow_new(struct vmt_live *live, const struct vmt_domains *domains, size_t from,
		      struct vmt_diag *diag)
{
	struct vmt_diag own = { 0 };
	int first_err = 0;

	if (open_set(live, domains, from, &own) < 0)
		first_err = note_uncaptured(live, &live->threads.rows[from], "exits", &own, diag);
	for (size_t i = from; i < live->threads.count; i++) {
		const struct vmt_thread *thread = &live->threads.rows[i];
		int err;

		vmt_diag_clear(&own);
		err = vmt_live_open_pt_thread(live, domains, thread, &own);
		if (err)
			err = note_uncaptured(live, thread, "Intel PT trace", &own, diag);
		first_err = first_err ? first_err : err;
	}
	for (size_t i = from; records_threads(live) && i < live->threads.count; i++) {
		const struct vmt_thread *thread = &live->threads.rows[i];
		int err;

		vmt_diag_clear(&own);
		err = vmt_live_open_thread(live, thread->tid, &own);
		if (err)
			err = note_uncaptured(live, thread, "context switches", &own, diag);
		first_err = first_err ? first_err : err;
	}
	return first_err;
}

int vmt_live_follow(struct vmt_live *live, const struct vmt_domains *domains, struct vmt_diag *diag)
{
	size_t from;
	int changed = vmt_threads_update(&live->threads, domains, &from), err = 0;

	live->uncaptured = 0;
	if (changed <= 0)
		return changed;
	for (size_t i = 0; i < live->nr_rings; i++) {
		if (live->rings[i].tid && !follows(live, live->rings[i].tid))
			live->rings[i].ended = true;
	}
	if (from == live->threads.count)
		return 1;
	err = follow_new(live, domains, from, diag);
	/* What was opened before a failure is used. */
	if (vmt_live_write_attrs(live, diag) < 0 && !err)
		err = VMT_E_IO;
	if (live->enabled && enable_new(live, diag) < 0 && !err)
		err = VMT_E_IO;
	return err ? err : 1;
}

pid_t vmt_live_uncaptured(const struct vmt_live *live, uint32_t *domain)
{
	*domain = live->uncaptured_domain;
	return live->uncaptured;
}

int vmt_live_add_cpus(struct vmt_live *live, const int *cpus, size_t nr_cpus, struct vmt_diag *diag)
{
	struct vmt_live_filters *filters = NULL;
	int err = 0;

	for (size_t i = 0; i < nr_cpus && !err; i++) {
		bool known = false;

		for (size_t r = 0; r < live->nr_rings && !known; r++)
			known = !live->rings[r].tid && live->rings[r].ring.cpu == cpus[i];
		if (known)
			continue;
		if (!filters) {
			struct vmt_domains none = { 0 };

			filters = malloc(sizeof(*filters));
			if (!filters)
				return vmt_diag_set(diag, VMT_E_NOMEM, "cannot follow a new CPU",
						    "memory is short");
			vmt_live_make_filters(live, &none, 0, filters);
		}
		err = open_cpu(live, cpus[i], filters, diag);
	}
	if (filters && vmt_live_write_attrs(live, diag) < 0 && !err)
		err = VMT_E_IO;
	if (filters && live->enabled && enable_new(live, diag) < 0 && !err)
		err = VMT_E_IO;
	free(filters);
	return err;
}

struct vmt_live_totals vmt_live_totals(const struct vmt_live *live)
{
	struct vmt_live_totals t = { .descriptors = live->nr_fds,
				     .threads = live->threads.count,
				     .events = live->nr_events - VMT_LIVE_TRACEPOINTS };

	for (size_t i = 0; i < live->nr_rings; i++) {
		t.rings += live->rings[i].leader >= 0;
		t.pt_areas += live->rings[i].leader >= 0 && live->rings[i].pt;
	}
	t.descriptors += t.rings;
	return t;
}
