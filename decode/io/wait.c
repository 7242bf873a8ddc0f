// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/io/wait.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>

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
