/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_DOMAIN_THREADS_H
#define VMT_DOMAIN_THREADS_H

#include "host/domain/domain.h"
#include "host/domain/status_xml.h"

/*
 * Which thread of a VMM runs which vCPU. Each way fills what the ways before it left open, and is
 * compared with them: a contradiction is written into domain->note.
 */

/* "CPU 3/KVM", "CPU 3/TCG" (QEMU with debug-threads), and the names that other VMMs give. */
bool vmt_thread_name_vcpu(const char *comm, unsigned int *vcpu);

/* The vcpuN that ends a cgroup path of PROC/PID/task/TID/cgroup. */
bool vmt_cgroup_vcpu(const char *cgroup_text, unsigned int *vcpu);

/* Makes room for a vCPU; NULL when memory or the bound of 4096 vCPUs is exhausted. */
struct vmt_vcpu *vmt_domain_vcpu(struct vmt_domain *domain, unsigned int id);

/* A tid for a vCPU from one way; keeps an earlier one and notes a contradiction. */
void vmt_domain_set_tid(struct vmt_domain *domain, unsigned int id, pid_t tid, const char *source);

/*
 * Everything about a running process that PROC, debugfs and libvirt's status file tell: VM
 * descriptor, debugfs folder, threads, helpers, host CPUs, TSC offsets. What was known of them is
 * forgotten first, except tids whose source is "monitor". Returns 0 or -errno of PROC/PID.
 */
int vmt_domain_read_process(struct vmt_domain *domain, const struct vmt_status_xml *status);

/* Threads, in and out of the process, that work for the domain without being a vCPU. */
void vmt_domain_read_helpers(struct vmt_domain *domain);

/* debugfs: folder of the VM, vCPU threads, offsets and ratios. */
void vmt_domain_find_debugfs(struct vmt_domain *domain);
void vmt_domain_read_debugfs_tids(struct vmt_domain *domain);
void vmt_domain_read_tsc(struct vmt_domain *domain);

/* Appends to domain->note, with "; " between, what is not there yet. */
__attribute__((format(printf, 2, 3))) void vmt_domain_note(struct vmt_domain *domain,
							   const char *format, ...);

#endif
