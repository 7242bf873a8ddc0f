// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Opening what a live capture reads. Invariant: a descriptor is in live->fds or is a ring's leader
 * from the moment it exists, so that closing the capture closes it, whatever fails in between.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "decode/io/diagf.h"
#include "host/capture/live_state.h"
#include "host/capture/tracefs.h"

static int out_of_memory(struct vmt_diag *diag)
{
	return vmt_diag_set(diag, VMT_E_NOMEM, "cannot open the capture", "memory is short");
}

/* Room for one more element of a growing array. */
static bool grow(void **items, size_t count, size_t *cap, size_t size)
{
	size_t want = *cap ? *cap * 2 : 64;
	void *bigger;

	if (count < *cap)
		return true;
	bigger = realloc(*items, want * size);
	if (!bigger)
		return false;
	*items = bigger;
	*cap = want;
	return true;
}

/* ---- which events ---- */

static bool is_wanted(const struct vmt_live_setup *setup, const struct vmt_event_row *row)
{
	if (row->role == VMT_ROLE_FLOOD)
		return false;
	if (row->isa != VMT_ISA_UNKNOWN && setup->isa != VMT_ISA_UNKNOWN && row->isa != setup->isa)
		return false;
	return row->role == VMT_ROLE_WAKING ? setup->sched : setup->kvm;
}

static int add_event(struct vmt_live *live, const struct vmt_live_setup *setup,
		     const struct vmt_event_row *row, struct vmt_diag *diag)
{
	struct vmt_live_event *event = &live->events[live->nr_events];
	struct vmt_diag own = { 0 };
	char *format;
	int err = vmt_tracefs_event(setup->tracefs, row->system, row->name, &event->id, &format,
				    &own);

	/* Kernels differ in what they have; without exits and entries there is no capture. */
	if (err == VMT_E_CAPABILITY && strcmp(row->name, "kvm_exit") != 0)
		return 0;
	if (err) {
		if (diag && !diag->code)
			*diag = own;
		return err;
	}
	err = vmt_store_format(live->store, format, diag);
	if (live->watch)
		vmt_trigger_watch_format(live->watch, format, strlen(format));
	free(format);
	event->row = row;
	live->nr_events++;
	if (!strcmp(row->name, "kvm_exit"))
		live->exit_id = event->id;
	return err;
}

int vmt_live_find_events(struct vmt_live *live, const struct vmt_live_setup *setup,
			 struct vmt_diag *diag)
{
	size_t nr_rows;
	const struct vmt_event_row *rows = vmt_event_rows(&nr_rows);
	int err = 0;

	live->events = calloc(nr_rows + VMT_LIVE_TRACEPOINTS, sizeof(*live->events));
	if (!live->events)
		return out_of_memory(diag);
	live->nr_events = VMT_LIVE_TRACEPOINTS;
	for (size_t i = 0; i < nr_rows && !err; i++) {
		if (is_wanted(setup, &rows[i]))
			err = add_event(live, setup, &rows[i], diag);
	}
	return err;
}

/* ---- filters ---- */

static size_t collect_tids(const struct vmt_live *live, size_t from, bool vcpus_only, pid_t *tids)
{
	size_t nr = 0;

	for (size_t i = from; i < live->threads.count; i++) {
		if (!vcpus_only || live->threads.rows[i].is_vcpu)
			tids[nr++] = live->threads.rows[i].tid;
	}
	return nr;
}

static void memory_filter(const struct vmt_domains *domains, char *text, size_t size)
{
	struct vmt_range ranges[24];
	size_t nr = 0, per_domain = domains->count ? 24 / domains->count : 0;

	for (size_t i = 0; i < domains->count && per_domain; i++) {
		char path[64];
		size_t found;

		if (domains->items[i].pid <= 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/maps", domains->items[i].pid);
		found = vmt_filter_guest_memory(path, ranges + nr, per_domain);
		if (!found) { /* not readable: better too much than nothing */
			text[0] = '\0';
			return;
		}
		nr += found;
	}
	vmt_filter_memory(text, size, ranges, nr);
}

void vmt_live_make_filters(const struct vmt_live *live, const struct vmt_domains *domains,
			   size_t from, struct vmt_live_filters *filters)
{
	pid_t *tids = calloc(live->threads.count + 1, sizeof(*tids));
	size_t nr;

	filters->first = from == 0;
	if (!tids) { /* no filter: everything is recorded */
		memset(filters->text, 0, sizeof(filters->text));
		return;
	}
	nr = collect_tids(live, from, false, tids);
	vmt_filter_ids(filters->text[VMT_ROLE_VCPU], VMT_FILTER_MAX, "common_pid", tids, nr);
	vmt_filter_anywhere(filters->text[VMT_ROLE_ANYWHERE], VMT_FILTER_MAX, tids, nr,
			    !filters->first);
	nr = collect_tids(live, from, true, tids);
	vmt_filter_ids(filters->text[VMT_ROLE_WAKING], VMT_FILTER_MAX, "pid", tids, nr);
	if (filters->first)
		memory_filter(domains, filters->text[VMT_ROLE_MEMORY], VMT_FILTER_MAX);
	free(tids);
}

/* ---- rings ---- */

static int note_id(struct vmt_live *live, struct vmt_live_event *event, int fd,
		   struct vmt_diag *diag)
{
	uint64_t id;
	int err = vmt_perf_id(live->ops, fd, &id, diag);

	if (err)
		return err;
	if (!grow((void **)&event->ids, event->nr_ids, &event->cap_ids, sizeof(*event->ids)))
		return out_of_memory(diag);
	event->ids[event->nr_ids++] = id;
	if (event == &live->events[VMT_LIVE_PT] && !live->pt_id)
		live->pt_id = id;
	return 0;
}

static void event_name(const struct vmt_live_event *event, const struct vmt_perf_want *want,
		       char *text, size_t size)
{
	const char *system = event->row ? event->row->system : "software";
	const char *name = event->row ? event->row->name : "dummy";

	if (want->pmu_type) {
		system = "intel_pt";
		name = "";
	}
	if (want->pid >= 0)
		snprintf(text, size, "%s:%s of thread %d", system, name, want->pid);
	else
		snprintf(text, size, "%s:%s on CPU %d", system, name, want->cpu);
}

struct vmt_perf_want vmt_live_want(const struct vmt_live *live, size_t event)
{
	const bool pt = live->pt_type != 0, wide = pt && live->system_wide;
	/* Records with addresses of the host's code. */
	const bool host_code = pt && live->pt_privacy.keep != VMT_PRIVACY_GUEST;

	switch (event) {
	case VMT_LIVE_LEADER:
		return (struct vmt_perf_want){
			.dummy = true,
			.text_poke = host_code,
			.mappings = wide && host_code,
			.switches = wide,
		};
	case VMT_LIVE_SWITCHES:
		return (struct vmt_perf_want){ .dummy = true, .switches = true };
	case VMT_LIVE_PT:
		return (struct vmt_perf_want){ .pmu_type = live->pt_type,
					       .config = live->pt_config,
					       .no_host = live->pt_no_host,
					       .mappings = host_code && !wide };
	default:
		return (struct vmt_perf_want){ .config = live->events[event].id };
	}
}

void vmt_live_close_ring(struct vmt_live *live, struct vmt_live_ring *ring)
{
	uint64_t lost;

	if (ring->leader < 0)
		return;
	if ((ring->tid || ring->pt) && vmt_perf_lost(live->ops, ring->leader, &lost))
		live->closed_lost += lost;
	vmt_live_unmap_pt(live, ring);
	if (ring->ring.page)
		live->ops->unmap(ring->ring.page,
				 ring->ring.data_bytes + (size_t)sysconf(_SC_PAGESIZE));
	live->ops->close(ring->leader);
	ring->ring.page = NULL;
	ring->leader = -1;
}

/* Maps the ring of its leader and watches it. */
static int start_ring(struct vmt_live *live, struct vmt_live_event *event,
		      struct vmt_live_ring *ring, struct vmt_diag *diag)
{
	struct epoll_event watch = { .events = EPOLLIN | EPOLLET };
	struct vmt_diag own = { 0 };

	ring->ring.page = vmt_perf_map(live->ops, ring->leader, ring->ring.data_bytes, &own);
	if (!ring->ring.page) {
		if (diag && !diag->code)
			*diag = own;
		return (int)own.code;
	}
	ring->ring.data = (const uint8_t *)ring->ring.page + sysconf(_SC_PAGESIZE);
	if (event == &live->events[VMT_LIVE_PT]) {
		int err = vmt_live_map_pt(live, ring, diag);

		if (err)
			return err;
	}
	watch.data.u64 = (uint64_t)(ring - live->rings);
	if (epoll_ctl(live->epoll, EPOLL_CTL_ADD, ring->leader, &watch) && errno != EPERM)
		return vmt_diag_printf(diag, VMT_E_IO, errno, NULL, "cannot watch a perf ring");
	return note_id(live, event, ring->leader, diag);
}

int vmt_live_open_ring(struct vmt_live *live, size_t index, struct vmt_perf_want want, size_t bytes,
		       struct vmt_diag *diag)
{
	struct vmt_live_event *event = &live->events[index];
	struct vmt_live_ring *ring;
	char name[96];
	int fd, err;

	want.watermark = (uint32_t)(bytes / 2);
	event_name(event, &want, name, sizeof(name));
	want.name = name;
	if (!grow((void **)&live->rings, live->nr_rings, &live->cap_rings, sizeof(*live->rings)))
		return out_of_memory(diag);
	fd = vmt_perf_open(live->ops, &want, diag);
	if (fd < 0)
		return fd;
	ring = &live->rings[live->nr_rings];
	*ring = (struct vmt_live_ring){ .leader = fd,
					.tid = want.pid > 0 ? want.pid : 0,
					.ring = { .data_bytes = bytes,
						  .stream = live->next_stream++,
						  .cpu = want.cpu,
						  .watch = live->watch } };
	live->nr_rings++;
	err = start_ring(live, event, ring, diag);
	if (err) {
		vmt_live_close_ring(live, ring);
		return err;
	}
	return (int)live->nr_rings - 1;
}

int vmt_live_open_cpu(struct vmt_live *live, int cpu, struct vmt_diag *diag)
{
	struct vmt_perf_want want = vmt_live_want(live, VMT_LIVE_LEADER);

	want.pid = -1;
	want.cpu = cpu;
	return vmt_live_open_ring(live, VMT_LIVE_LEADER, want, live->cpu_ring_bytes, diag);
}

/* Opens an event of a CPU into the ring of that CPU. */
static int open_into(struct vmt_live *live, struct vmt_live_event *event, struct vmt_perf_want want,
		     const struct vmt_live_ring *ring, const char *filter, struct vmt_diag *diag)
{
	char name[96];
	int fd, err = 0;

	want.cpu = ring->ring.cpu;
	event_name(event, &want, name, sizeof(name));
	want.name = name;
	if (!grow((void **)&live->fds, live->nr_fds, &live->cap_fds, sizeof(*live->fds)))
		return out_of_memory(diag);
	fd = vmt_perf_open(live->ops, &want, diag);
	if (fd < 0)
		return fd;
	live->fds[live->nr_fds++] = fd;
	if (filter[0])
		err = vmt_perf_filter(live->ops, fd, filter, diag);
	if (!err)
		err = vmt_perf_redirect(live->ops, fd, ring->leader, diag);
	return err ? err : note_id(live, event, fd, diag);
}

int vmt_live_open_events(struct vmt_live *live, size_t ring, const struct vmt_live_filters *filters,
			 struct vmt_diag *diag)
{
	for (size_t i = VMT_LIVE_TRACEPOINTS; i < live->nr_events; i++) {
		struct vmt_live_event *event = &live->events[i];
		enum vmt_event_role role = event->row->role;
		int err;

		if (role == VMT_ROLE_MEMORY && !filters->first)
			continue;
		err = open_into(live, event,
				(struct vmt_perf_want){ .config = event->id, .pid = -1 },
				&live->rings[ring], filters->text[role], diag);
		if (err)
			return err;
	}
	return 0;
}

/*
 * The switches of a thread without a ring of their own: into the rings of the CPUs, which are
 * there. It takes a descriptor a CPU, but no memory that would have to be locked.
 */
static int open_thread_on_cpus(struct vmt_live *live, pid_t tid, struct vmt_diag *diag)
{
	struct vmt_live_event *event = &live->events[VMT_LIVE_SWITCHES];
	struct vmt_perf_want want = vmt_live_want(live, VMT_LIVE_SWITCHES);
	size_t first = live->nr_fds;
	int err = 0;

	want.pid = tid;
	for (size_t i = 0; i < live->nr_rings && !err; i++) {
		if (vmt_live_takes_events(&live->rings[i]))
			err = open_into(live, event, want, &live->rings[i], "", diag);
	}
	while (err && live->nr_fds > first)
		live->ops->close(live->fds[--live->nr_fds]);
	return err;
}

int vmt_live_open_thread(struct vmt_live *live, pid_t tid, struct vmt_diag *diag)
{
	struct vmt_perf_want want = vmt_live_want(live, VMT_LIVE_SWITCHES);
	struct vmt_diag own = { 0 };
	int err;

	want.pid = tid;
	want.cpu = -1;
	err = vmt_live_open_ring(live, VMT_LIVE_SWITCHES, want, live->thread_ring_bytes, &own);
	if (err == VMT_E_LIMIT) {
		int second = open_thread_on_cpus(live, tid, NULL);

		err = second == 0 || second == VMT_E_NOT_FOUND ? second : err;
	}
	if (err >= 0 || err == VMT_E_NOT_FOUND)
		return 0;
	if (diag && !diag->code)
		*diag = own;
	return err;
}

int vmt_live_write_attrs(struct vmt_live *live, struct vmt_diag *diag)
{
	for (size_t i = 0; i < live->nr_events; i++) {
		struct vmt_live_event *event = &live->events[i];
		struct vmt_perf_want want = vmt_live_want(live, i);
		struct vmt_ring_attr attr = vmt_perf_ring_attr(&want);
		int err;

		if (!event->nr_ids)
			continue;
		err = vmt_store_attr(live->store, &attr, event->ids, event->nr_ids, diag);
		if (err)
			return err;
		event->nr_ids = 0;
	}
	return 0;
}
