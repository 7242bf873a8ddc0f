// SPDX-License-Identifier: LGPL-2.1-or-later
/* Threads that work for a domain without running its vCPUs. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/domain/threads.h"
#include "host/domain/xml_walk.h"

#define HELPERS_MAX 8192

static void add(struct vmt_domain *domain, pid_t tid, const char *name, const char *role)
{
	struct vmt_helper *grown;

	for (size_t i = 0; i < domain->nr_helpers; i++) {
		if (domain->helpers[i].tid == tid)
			return;
	}
	if (domain->nr_helpers >= HELPERS_MAX)
		return;
	grown = realloc(domain->helpers, (domain->nr_helpers + 1) * sizeof(*grown));
	if (!grown)
		return;
	domain->helpers = grown;
	grown += domain->nr_helpers++;
	grown->tid = tid;
	grown->role = role;
	vmt_text_copy(grown->name, sizeof(grown->name), name);
}

/* Names of threads; kernels since 6.4 run vhost and the recovery worker inside the process. */
static const struct {
	const char *prefix, *role;
} roles[] = {
	{ "IO ", "iothread" },
	{ "vhost-", "vhost" },
	{ "kvm-nx-lpage-", "kvm-nx" },
	{ "kvm-pit/", "kvm-pit" },
};

static const char *role_of(const char *name)
{
	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
		if (!strncmp(name, roles[i].prefix, strlen(roles[i].prefix)))
			return roles[i].role;
	}
	return NULL;
}

static bool is_vcpu(const struct vmt_domain *domain, pid_t tid)
{
	for (size_t i = 0; i < domain->nr_vcpus; i++) {
		if (domain->vcpus[i].tid == tid)
			return true;
	}
	return false;
}

static void take_own(void *context, int tid)
{
	struct vmt_domain *domain = context;
	const char *role;
	char name[64];

	if (is_vcpu(domain, tid) ||
	    vmt_hostfs_read(name, sizeof(name), "%s/%d/task/%d/comm", vmt_hostfs_proc(domain->fs),
			    domain->pid, tid) <= 0)
		return;
	name[strcspn(name, "\n")] = '\0';
	role = role_of(name);
	if (tid == domain->pid)
		role = "emulator";
	add(domain, tid, name, role ? role : "worker");
}

/* Kernel threads carry the VMM's pid in their name: vhost-4711, kvm-pit/4711. */
static void take_kernel_thread(void *context, int pid)
{
	struct vmt_domain *domain = context;
	const char *proc = vmt_hostfs_proc(domain->fs), *role, *number;
	char name[64], status[1024];
	uint64_t owner;

	if (vmt_hostfs_read(name, sizeof(name), "%s/%d/comm", proc, pid) <= 0)
		return;
	name[strcspn(name, "\n")] = '\0';
	role = role_of(name);
	number = name + strlen(name);
	while (number > name && number[-1] >= '0' && number[-1] <= '9')
		number--;
	if (!role || !strcmp(role, "iothread") || !vmt_parse_uint(number, INT32_MAX, &owner) ||
	    (pid_t)owner != domain->pid)
		return;
	/* Only the kernel's own: a process can call itself anything. */
	if (vmt_hostfs_read(status, sizeof(status), "%s/%d/status", proc, pid) <= 0 ||
	    strstr(status, "\nVmSize:"))
		return;
	add(domain, pid, name, role);
}

void vmt_domain_read_helpers(struct vmt_domain *domain)
{
	char folder[VMT_PATH_MAX];

	domain->nr_helpers = 0;
	snprintf(folder, sizeof(folder), "%s/%d/task", vmt_hostfs_proc(domain->fs), domain->pid);
	vmt_hostfs_numbers(folder, take_own, domain);
	vmt_hostfs_numbers(vmt_hostfs_proc(domain->fs), take_kernel_thread, domain);
}
