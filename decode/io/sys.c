// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/io/sys.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/random.h>
#include <time.h>

bool vmt_io_again(int fd, int sys_errno, bool for_write)
{
	struct pollfd p = { .fd = fd, .events = for_write ? POLLOUT : POLLIN };

	if (sys_errno == EINTR)
		return true;
	if (sys_errno != EAGAIN)
		return false;
	poll(&p, 1, 100);
	return true;
}

uint64_t vmt_io_monotonic_ns(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_MONOTONIC, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t vmt_io_random(void)
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return 0;
	return number;
}
