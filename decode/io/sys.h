/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_IO_SYS_H
#define VMT_IO_SYS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * After a system call on fd failed with sys_errno: true when it is to be tried again, that is at
 * once for EINTR, and for EAGAIN when fd is ready (for writing or reading) or a tenth of a second
 * has passed.
 */
bool vmt_io_again(int fd, int sys_errno, bool for_write);

/* CLOCK_MONOTONIC. */
uint64_t vmt_io_monotonic_ns(void);

/* A number that nobody can guess; 0 when the system has none to give. */
uint64_t vmt_io_random(void);

#endif
