/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_DOMAIN_PROCESS_H
#define VMT_DOMAIN_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/domain/hostfs.h"

/* A VMM's process as PROC shows it. All results are snapshots: the process may go at any time. */

/* Field 22 and 39 of PROC/…/stat. Returns 0 or -errno; -EINVAL: not a stat line. */
struct vmt_task_stat {
	uint64_t start; /* clock ticks since boot */
	int cpu;	/* host CPU that ran it last */
};
int vmt_process_stat(const struct vmt_hostfs *fs, pid_t pid, pid_t tid, struct vmt_task_stat *out);

/* Thread group of a thread; 0 when there is none. */
pid_t vmt_process_of_thread(const struct vmt_hostfs *fs, pid_t tid);

/*
 * Command line with its NULs, at most size - 1 bytes and always ended by NUL. Returns the length or
 * -errno.
 */
int vmt_process_cmdline(const struct vmt_hostfs *fs, pid_t pid, char *buf, size_t size);

/* The argument after `option` (as "-uuid"), NULL when there is none. */
const char *vmt_cmdline_value(const char *cmdline, size_t len, const char *option);

/* Whether QEMU's command line names this domain by -uuid, else by -name guest=NAME. */
bool vmt_cmdline_is_domain(const char *cmdline, size_t len, const char *uuid, const char *name);

/* The process whose command line names the domain; 0 when there is none. */
pid_t vmt_process_find(const struct vmt_hostfs *fs, const char *uuid, const char *name);

/* Descriptors of a process that are KVM virtual machines (anon_inode:kvm-vm). */
#define VMT_VM_FDS_MAX 8
struct vmt_vm_fds {
	size_t count;
	int fds[VMT_VM_FDS_MAX];
	unsigned int nr_vcpu_fds; /* anon_inode:kvm-vcpu:N */
};

/* Returns 0 or -errno: -ENOENT no such process, -EACCES it belongs to somebody else. */
int vmt_process_vm_fds(const struct vmt_hostfs *fs, pid_t pid, struct vmt_vm_fds *out);

/* Processes that hold a kvm-vm descriptor, ascending; returns how many were stored. */
size_t vmt_kvm_processes(const struct vmt_hostfs *fs, pid_t *pids, size_t max);

#endif
