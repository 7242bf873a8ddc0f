// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * DEBUGFS/kvm/<tid that made the VM>-<its descriptor>/vcpuN/{pid,tsc-offset,tsc-scaling-ratio,
 * tsc-scaling-ratio-frac-bits} (Linux arch/x86/kvm/debugfs.c, virt/kvm/kvm_main.c). The ratio files
 * exist only with TSC control hardware; N is KVM's vcpu_id.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "host/domain/process.h"
#include "host/domain/threads.h"

/* "<tid>-<fd>" with fd as given and a tid that belongs to the process. */
static bool belongs(const struct vmt_domain *domain, const char *entry, int fd)
{
	char *end;
	unsigned long tid = strtoul(entry, &end, 10), number;

	if (end == entry || *end != '-' || tid > INT32_MAX)
		return false;
	number = strtoul(end + 1, &end, 10);
	return !*end && number == (unsigned long)fd &&
	       vmt_process_of_thread(domain->fs, (pid_t)tid) == domain->pid;
}

static bool find_folder(struct vmt_domain *domain, const char *root, int fd)
{
	const struct dirent *entry;
	struct stat st;
	bool found = false;
	char all[300];
	DIR *dir;
	int n = snprintf(domain->debugfs, sizeof(domain->debugfs), "%s/kvm/%d-%d", root,
			 domain->pid, fd);

	if (n > 0 && (size_t)n < sizeof(domain->debugfs) && !stat(domain->debugfs, &st))
		return true;
	domain->debugfs[0] = '\0';
	snprintf(all, sizeof(all), "%.255s/kvm", root);
	dir = opendir(all);
	if (!dir) {
		vmt_domain_note(domain, "%s: %s", all, strerror(errno));
		return false;
	}
	while (!found && (entry = readdir(dir))) {
		if (!belongs(domain, entry->d_name, fd))
			continue;
		n = snprintf(domain->debugfs, sizeof(domain->debugfs), "%s/%s", all, entry->d_name);
		found = n > 0 && (size_t)n < sizeof(domain->debugfs);
	}
	closedir(dir);
	if (!found)
		domain->debugfs[0] = '\0';
	return found;
}

void vmt_domain_find_debugfs(struct vmt_domain *domain)
{
	struct vmt_vm_fds fds;
	char root[256];
	int err = vmt_process_vm_fds(domain->fs, domain->pid, &fds);

	domain->vm_fd = -1;
	domain->debugfs[0] = '\0';
	if (err < 0) {
		vmt_domain_note(domain, "descriptors of process %d: %s", domain->pid,
				strerror(-err));
		return;
	}
	if (!fds.count)
		return;
	domain->vm_fd = fds.fds[0];
	if (!vmt_hostfs_debugfs(domain->fs, root, sizeof(root))) {
		vmt_domain_note(domain, "debugfs is not mounted");
		return;
	}
	for (size_t i = 0; i < fds.count; i++) {
		if (find_folder(domain, root, fds.fds[i])) {
			domain->vm_fd = fds.fds[i];
			return;
		}
	}
}

/* Calls fn for each N of vcpuN. */
static void each_vcpu(struct vmt_domain *domain,
		      void (*fn)(struct vmt_domain *domain, unsigned int n))
{
	const struct dirent *entry;
	uint64_t n;
	DIR *dir = domain->debugfs[0] ? opendir(domain->debugfs) : NULL;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (!strncmp(entry->d_name, "vcpu", 4) &&
		    vmt_parse_uint(entry->d_name + 4, UINT16_MAX, &n))
			fn(domain, (unsigned int)n);
	}
	closedir(dir);
}

static struct vmt_vcpu *vcpu_of_tid(struct vmt_domain *domain, pid_t tid)
{
	for (size_t i = 0; i < domain->nr_vcpus; i++) {
		if (tid && domain->vcpus[i].tid == tid)
			return &domain->vcpus[i];
	}
	return NULL;
}

/*
 * KVM's vcpu_id is an APIC id and may differ from the cpu-index, so a thread that is known already
 * is no contradiction.
 */
static void take_tid(struct vmt_domain *domain, unsigned int n)
{
	uint64_t tid;

	if (vmt_hostfs_u64(&tid, "%s/vcpu%u/pid", domain->debugfs, n) || !tid || tid > INT32_MAX ||
	    vcpu_of_tid(domain, (pid_t)tid))
		return;
	vmt_domain_set_tid(domain, n, (pid_t)tid, "debugfs");
}

void vmt_domain_read_debugfs_tids(struct vmt_domain *domain)
{
	each_vcpu(domain, take_tid);
}

static void take_tsc(struct vmt_domain *domain, unsigned int n)
{
	uint64_t tid = 0, ratio, frac;
	struct vmt_vcpu *vcpu = NULL;
	int err;

	if (!vmt_hostfs_u64(&tid, "%s/vcpu%u/pid", domain->debugfs, n) && tid <= INT32_MAX)
		vcpu = vcpu_of_tid(domain, (pid_t)tid);
	if (!vcpu) { /* it has not run yet, or its thread has ended */
		vcpu = vmt_domain_vcpu(domain, n);
		if (vcpu && vcpu->tid)
			vcpu = NULL;
	}
	if (!vcpu)
		return;
	err = vmt_hostfs_i64(&vcpu->tsc_offset, "%s/vcpu%u/tsc-offset", domain->debugfs, n);
	vcpu->has_offset = !err;
	if (err && err != -ENOENT)
		vmt_domain_note(domain, "tsc-offset: %s%s", strerror(-err),
				err == -EPERM ? " (kernel lockdown)" : "");
	err = vmt_hostfs_u64(&ratio, "%s/vcpu%u/tsc-scaling-ratio", domain->debugfs, n);
	if (!err)
		err = vmt_hostfs_u64(&frac, "%s/vcpu%u/tsc-scaling-ratio-frac-bits",
				     domain->debugfs, n);
	vcpu->has_ratio = !err && frac < 64;
	if (vcpu->has_ratio) {
		vcpu->tsc_ratio = ratio;
		vcpu->tsc_frac = (uint8_t)frac;
	} else if (err == -ENOENT && vcpu->has_offset) { /* no scaling hardware: ratio 1 */
		vcpu->has_ratio = true;
		vcpu->tsc_ratio = 1;
		vcpu->tsc_frac = 0;
	}
}

void vmt_domain_read_tsc(struct vmt_domain *domain)
{
	each_vcpu(domain, take_tsc);
}
