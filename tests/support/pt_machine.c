// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/support/pt_machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE	 4096u
#define FDS_MAX	 1024
#define DEVICE	 "sys/bus/event_source/devices/intel_pt"
#define ENABLED	 1u
#define AUX_TYPE 11u

struct event {
	int fd;
	pid_t pid;
	int cpu;
	struct perf_event_attr attr;
	struct perf_event_mmap_page *page;
	uint8_t *data, *aux;
	size_t data_bytes, aux_bytes;
	uint64_t aux_head; /* as the kernel counts */
	unsigned int enabled;
	bool overwrite;
	char filter[128];
};

static struct {
	struct event events[FDS_MAX]; /* of every kind */
	size_t nr;
	int open_fds, maps, open_errno, map_errno;
	uint64_t next_id, time_ns;
} machine;

static void check(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "pt_machine: %s\n", what);
	abort();
}

/* ---- files ---- */

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	check(f && fputs(text, f) >= 0 && fclose(f) == 0, path);
}

static void make_folders(const char *top, const char *path)
{
	char text[300];

	snprintf(text, sizeof(text), "%s/%s", top, path);
	for (char *at = text + strlen(top) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(text, 0755);
		*at = '/';
	}
	mkdir(text, 0755);
}

void vmt_ptm_file(const char *top, const char *name, const char *text)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/" DEVICE "/%s", top, name);
	if (text)
		write_file(path, text);
	else
		unlink(path);
}

struct vmt_hostfs vmt_ptm_files(const char *top, bool skz84)
{
	static const char *const files[][2] = {
		{ "type", "8\n" },
		{ "nr_addr_filters", "2\n" },
		{ "max_nonturbo_ratio", "35\n" },
		{ "tsc_art_ratio", "292:2\n" },
		{ "caps/psb_cyc", "1\n" },
		{ "caps/mtc", "1\n" },
		{ "caps/event_trace", "1\n" },
		{ "caps/tnt_disable", "1\n" },
		{ "caps/topa_output", "1\n" },
		{ "caps/topa_multiple_entries", "1\n" },
		{ "caps/num_address_ranges", "2\n" },
		{ "caps/mtc_periods", "249\n" },
		{ "caps/cycle_thresholds", "3fff\n" },
		{ "caps/psb_periods", "3f\n" },
		{ "format/pt", "config:0\n" },
		{ "format/cyc", "config:1\n" },
		{ "format/pwr_evt", "config:4\n" },
		{ "format/fup_on_ptw", "config:5\n" },
		{ "format/mtc", "config:9\n" },
		{ "format/tsc", "config:10\n" },
		{ "format/noretcomp", "config:11\n" },
		{ "format/ptw", "config:12\n" },
		{ "format/branch", "config:13\n" },
		{ "format/mtc_period", "config:14-17\n" },
		{ "format/cyc_thresh", "config:19-22\n" },
		{ "format/psb_period", "config:24-27\n" },
		{ "format/event", "config:31\n" },
		{ "format/notnt", "config:55\n" },
	};
	static char sys[200], proc[200];
	struct vmt_hostfs fs = { .sys = sys, .proc = proc };
	char path[300], text[200];

	make_folders(top, DEVICE "/caps");
	make_folders(top, DEVICE "/format");
	make_folders(top, "proc");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		vmt_ptm_file(top, files[i][0], files[i][1]);
	snprintf(path, sizeof(path), "%s/proc/cpuinfo", top);
	snprintf(text, sizeof(text),
		 "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: %d\n"
		 "model name\t: a CPU\nstepping\t: 4\n",
		 skz84 ? 85 : 154);
	write_file(path, text);
	snprintf(sys, sizeof(sys), "%s/sys", top);
	snprintf(proc, sizeof(proc), "%s/proc", top);
	return fs;
}

/* ---- perf ---- */

static struct event *of_fd(int fd)
{
	for (size_t i = 0; i < machine.nr; i++) {
		if (machine.events[i].fd == fd)
			return &machine.events[i];
	}
	check(false, "no such descriptor");
	return NULL;
}

static int ptm_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group,
		    unsigned long flags)
{
	struct event *e = &machine.events[machine.nr];

	(void)flags;
	check(group == -1 && (pid != -1 || cpu != -1) && machine.nr < FDS_MAX, "open");
	if (attr->type == VMT_PTM_TYPE && machine.open_errno) {
		errno = machine.open_errno;
		return -1;
	}
	*e = (struct event){ .pid = pid, .cpu = cpu, .attr = *attr };
	e->fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	check(e->fd >= 0, "/dev/null");
	machine.nr++;
	machine.open_fds++;
	return e->fd;
}

static void *ptm_map(size_t len, int prot, int fd, size_t offset)
{
	struct event *e = of_fd(fd);
	void *map;

	if (offset && machine.map_errno) {
		errno = machine.map_errno;
		return MAP_FAILED;
	}
	map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(map != MAP_FAILED, "mmap");
	machine.maps++;
	if (!offset) {
		e->page = map;
		e->data = (uint8_t *)map + PAGE;
		e->data_bytes = len - PAGE;
		return map;
	}
	check(e->page && e->page->aux_offset == offset && e->page->aux_size == len &&
		      offset == PAGE + e->data_bytes && !(len & (len - 1)) &&
		      e->attr.type == VMT_PTM_TYPE && e->attr.aux_watermark <= len,
	      "an AUX area as the kernel takes it");
	e->aux = map;
	e->aux_bytes = len;
	e->overwrite = !(prot & PROT_WRITE);
	return map;
}

static int ptm_unmap(void *map, size_t len)
{
	machine.maps--;
	return munmap(map, len);
}

static int ptm_control(int fd, unsigned long request, uintptr_t argument)
{
	struct event *e = of_fd(fd);

	if (request == PERF_EVENT_IOC_ID) {
		/* as ioctl(2) takes it */
		uint64_t *id = (uint64_t *)argument; /* NOLINT(performance-no-int-to-ptr) */

		*id = ++machine.next_id;
	}
	if (request == PERF_EVENT_IOC_SET_FILTER) /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
		snprintf(e->filter, sizeof(e->filter), "%s", (const char *)argument);
	if (request == PERF_EVENT_IOC_ENABLE)
		__atomic_store_n(&e->enabled, ENABLED, __ATOMIC_RELEASE);
	if (request == PERF_EVENT_IOC_DISABLE)
		__atomic_store_n(&e->enabled, 0, __ATOMIC_RELEASE);
	return 0;
}

static ssize_t ptm_read(int fd, void *buffer, size_t size)
{
	(void)fd;
	memset(buffer, 0, size);
	return (ssize_t)size;
}

static int ptm_close(int fd)
{
	of_fd(fd)->fd = -1;
	machine.open_fds--;
	return close(fd);
}

const struct vmt_perf_ops vmt_ptm_ops = {
	.open = ptm_open,
	.map = ptm_map,
	.unmap = ptm_unmap,
	.control = ptm_control,
	.read = ptm_read,
	.close = ptm_close,
};

void vmt_ptm_reset(void)
{
	check(machine.open_fds == 0, "descriptors are left");
	check(machine.maps == 0, "mappings are left");
	memset(&machine, 0, sizeof(machine));
}

void vmt_ptm_fail(int open_errno, int map_errno)
{
	machine.open_errno = open_errno;
	machine.map_errno = map_errno;
}

size_t vmt_ptm_event(int tid, int cpu)
{
	for (size_t i = 0; i < machine.nr; i++) {
		const struct event *e = &machine.events[i];

		if (e->attr.type == VMT_PTM_TYPE && e->pid == tid && e->cpu == cpu && e->fd >= 0)
			return i;
	}
	check(false, "no such intel_pt event");
	return 0;
}

size_t vmt_ptm_count(void)
{
	size_t n = 0;

	for (size_t i = 0; i < machine.nr; i++)
		n += machine.events[i].attr.type == VMT_PTM_TYPE && machine.events[i].fd >= 0;
	return n;
}

const char *vmt_ptm_filter(size_t event)
{
	return machine.events[event].filter;
}

const struct perf_event_attr *vmt_ptm_attr(size_t event)
{
	return &machine.events[event].attr;
}

/* ---- the CPU ---- */

static void put_record(struct event *e, uint64_t offset, uint64_t size, uint64_t flags)
{
	uint64_t words[8] = { AUX_TYPE | UINT64_C(64) << 48, offset, size, flags };
	uint64_t head = e->page->data_head;
	uint64_t tail = __atomic_load_n(&e->page->data_tail, __ATOMIC_ACQUIRE);

	words[4] = (uint64_t)(uint32_t)e->pid << 32 | (uint32_t)e->pid;
	words[5] = machine.time_ns += 1000;
	words[6] = (uint32_t)(e->cpu < 0 ? 0 : e->cpu);
	if (head - tail + sizeof(words) > e->data_bytes)
		return; /* lost, as in a full ring */
	for (size_t i = 0; i < 8; i++)
		memcpy(e->data + ((head + 8 * i) & (e->data_bytes - 1)), &words[i], 8);
	__atomic_store_n(&e->page->data_head, head + sizeof(words), __ATOMIC_RELEASE);
}

bool vmt_ptm_is_enabled(size_t event)
{
	return __atomic_load_n(&machine.events[event].enabled, __ATOMIC_ACQUIRE) == ENABLED;
}

size_t vmt_ptm_room(size_t event)
{
	const struct event *e = &machine.events[event];

	return e->aux_bytes -
	       (size_t)(e->aux_head - __atomic_load_n(&e->page->aux_tail, __ATOMIC_ACQUIRE));
}

void vmt_ptm_overwrite(size_t event, const uint8_t *bytes, size_t len)
{
	struct event *e = &machine.events[event];

	check(e->overwrite && vmt_ptm_is_enabled(event), "an area that is overwritten");
	for (size_t i = 0; i < len; i++)
		e->aux[(e->aux_head + i) & (e->aux_bytes - 1)] = bytes[i];
	e->aux_head += len;
	__atomic_store_n(&e->page->aux_head, e->aux_head & (e->aux_bytes - 1), __ATOMIC_RELEASE);
	put_record(e, e->page->aux_head, e->aux_bytes, PERF_AUX_FLAG_OVERWRITE);
}

size_t vmt_ptm_write(size_t event, const uint8_t *bytes, size_t len, uint64_t flags)
{
	struct event *e = &machine.events[event];
	size_t room = vmt_ptm_room(event), n = len < room ? len : room;

	if (!vmt_ptm_is_enabled(event))
		return 0;
	for (size_t i = 0; i < n; i++)
		e->aux[(e->aux_head + i) & (e->aux_bytes - 1)] = bytes[i];
	if (n < len)
		flags |= PERF_AUX_FLAG_TRUNCATED;
	if (n < len)
		__atomic_store_n(&e->enabled, 0, __ATOMIC_RELEASE);
	if (n || flags)
		put_record(e, e->aux_head, n, flags);
	e->aux_head += n;
	__atomic_store_n(&e->page->aux_head, e->aux_head, __ATOMIC_RELEASE);
	return n;
}
