// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/domain/perf_page.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel writes under `lock`, an even number when the page is at rest (perf_event.h). */
static void copy_page(const volatile struct perf_event_mmap_page *page, struct vmt_perf_page *out)
{
	uint32_t before, tries = 0;

	do {
		before = page->lock;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		out->cap_user_time = page->cap_user_time;
		out->cap_user_time_zero = page->cap_user_time_zero;
		out->cap_user_rdpmc = page->cap_user_rdpmc;
		out->time_shift = page->time_shift;
		out->time_mult = page->time_mult;
		out->time_zero = page->time_zero;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (((before & 1) || page->lock != before) && ++tries < 1000);
}

int vmt_perf_page_read(struct vmt_perf_page *out)
{
	struct perf_event_attr attr;
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *map;
	int fd, err = 0;

	memset(out, 0, sizeof(*out));
	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	attr.exclude_kernel = 1;
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		err = -errno;
	else
		copy_page(map, out);
	if (map != MAP_FAILED)
		munmap(map, size);
	close(fd);
	return err;
}

/* ns = (tsc * mult) >> shift, so kHz = 10^6 << shift / mult. */
uint64_t vmt_perf_page_tsc_khz(const struct vmt_perf_page *page)
{
	unsigned __int128 n;

	if (!page->cap_user_time || !page->time_mult || page->time_shift > 63)
		return 0;
	n = ((unsigned __int128)1000000 << page->time_shift) + page->time_mult / 2;
	return (uint64_t)(n / page->time_mult);
}
