/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_THREADS_H
#define VMT_CAPTURE_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/domain/domain.h"

/*
 * The threads a capture follows: vCPUs, and helpers that live as long as their device (emulator,
 * iothread, vhost, kvm-pit). QEMU's pool workers come and go by the second and run no guest; they
 * are left out.
 */
struct vmt_thread {
	pid_t tid;
	uint32_t domain;
	bool is_vcpu;
	bool seen; /* in the present table */
};

struct vmt_threads {
	struct vmt_thread *rows;
	size_t count, cap;
};

/*
 * Brings the table up to date with the domains. New threads are appended: *first_new is the count
 * before. Threads that are gone leave the table. Returns 1 when anything changed, 0 when not,
 * VMT_E_NOMEM.
 */
int vmt_threads_update(struct vmt_threads *threads, const struct vmt_domains *domains,
		       size_t *first_new);
void vmt_threads_free(struct vmt_threads *threads);

/* A number that changes when the set of threads in /proc/PID/task does; 0 when it is not there. */
uint64_t vmt_threads_print(pid_t pid);

#endif
