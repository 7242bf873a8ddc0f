// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/domain/threads.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/domain/process.h"
#include "host/domain/xml_walk.h"

#define VCPUS_MAX 4096

/* How VMMs name their vCPU threads: QEMU, cloud-hypervisor, Firecracker, kvmtool, crosvm. */
static const struct {
	const char *prefix, *suffix;
} vcpu_names[] = {
	{ "CPU ", "/KVM" }, { "CPU ", "/TCG" },	 { "vcpu", "" },
	{ "fc_vcpu ", "" }, { "kvm-vcpu-", "" }, { "crosvm_vcpu", "" },
};

void vmt_domain_note(struct vmt_domain *domain, const char *format, ...)
{
	char text[sizeof(domain->note)];
	size_t used = strlen(domain->note);
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (strstr(domain->note, text))
		return;
	snprintf(domain->note + used, sizeof(domain->note) - used, "%s%s", used ? "; " : "", text);
}

bool vmt_thread_name_vcpu(const char *comm, unsigned int *vcpu)
{
	for (size_t i = 0; i < sizeof(vcpu_names) / sizeof(vcpu_names[0]); i++) {
		size_t len = strlen(vcpu_names[i].prefix);
		unsigned long number;
		char *end;

		if (strncmp(comm, vcpu_names[i].prefix, len) != 0 || comm[len] < '0' ||
		    comm[len] > '9')
			continue;
		number = strtoul(comm + len, &end, 10);
		if (strcmp(end, vcpu_names[i].suffix) != 0 || number >= VCPUS_MAX)
			continue;
		*vcpu = (unsigned int)number;
		return true;
	}
	return false;
}

/* Lines are hierarchy:controllers:path; the path of a vCPU thread ends in /vcpuN. */
bool vmt_cgroup_vcpu(const char *cgroup_text, unsigned int *vcpu)
{
	for (const char *line = cgroup_text; line && *line;) {
		size_t len = strcspn(line, "\n");
		const char *last = memrchr(line, '/', len);
		unsigned long number;
		char *end;

		if (last && !strncmp(last, "/vcpu", 5) && last[5] >= '0' && last[5] <= '9') {
			number = strtoul(last + 5, &end, 10);
			if (end == line + len && number < VCPUS_MAX) {
				*vcpu = (unsigned int)number;
				return true;
			}
		}
		line = line[len] ? line + len + 1 : NULL;
	}
	return false;
}

static int compare_vcpus(const void *a, const void *b)
{
	const struct vmt_vcpu *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

struct vmt_vcpu *vmt_domain_vcpu(struct vmt_domain *domain, unsigned int id)
{
	struct vmt_vcpu *grown;

	for (size_t i = 0; i < domain->nr_vcpus; i++) {
		if (domain->vcpus[i].id == id)
			return &domain->vcpus[i];
	}
	if (id >= VCPUS_MAX || domain->nr_vcpus >= VCPUS_MAX)
		return NULL;
	grown = realloc(domain->vcpus, (domain->nr_vcpus + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	domain->vcpus = grown;
	grown[domain->nr_vcpus++] = (struct vmt_vcpu){ .id = id, .host_cpu = -1 };
	qsort(grown, domain->nr_vcpus, sizeof(*grown), compare_vcpus);
	for (size_t i = 0; i < domain->nr_vcpus; i++) {
		if (grown[i].id == id)
			return &grown[i];
	}
	return NULL;
}

void vmt_domain_set_tid(struct vmt_domain *domain, unsigned int id, pid_t tid, const char *source)
{
	struct vmt_vcpu *vcpu = vmt_domain_vcpu(domain, id);

	if (!vcpu || tid <= 0)
		return;
	if (!vcpu->tid) {
		vcpu->tid = tid;
		vcpu->tid_source = source;
	} else if (vcpu->tid != tid) {
		vmt_domain_note(domain, "vCPU %u is thread %d by %s but %d by %s", id, vcpu->tid,
				vcpu->tid_source, tid, source);
	}
}

struct task_list {
	struct vmt_domain *domain;
	bool by_cgroup;
};

static void take_task(void *context, int tid)
{
	struct task_list *list = context;
	const struct vmt_domain *domain = list->domain;
	const char *proc = vmt_hostfs_proc(domain->fs);
	unsigned int vcpu;
	char text[4096];

	if (list->by_cgroup) {
		if (vmt_hostfs_read(text, sizeof(text), "%s/%d/task/%d/cgroup", proc, domain->pid,
				    tid) > 0 &&
		    vmt_cgroup_vcpu(text, &vcpu))
			vmt_domain_set_tid(list->domain, vcpu, tid, "cgroup");
		return;
	}
	if (vmt_hostfs_read(text, sizeof(text), "%s/%d/task/%d/comm", proc, domain->pid, tid) <= 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	if (vmt_thread_name_vcpu(text, &vcpu))
		vmt_domain_set_tid(list->domain, vcpu, tid, "thread name");
}

static int read_tasks(struct vmt_domain *domain, bool by_cgroup)
{
	struct task_list list = { .domain = domain, .by_cgroup = by_cgroup };
	char folder[VMT_PATH_MAX];

	snprintf(folder, sizeof(folder), "%s/%d/task", vmt_hostfs_proc(domain->fs), domain->pid);
	return vmt_hostfs_numbers(folder, take_task, &list);
}

/* Host CPU and allowed CPUs of a vCPU's thread. */
static void read_placement(const struct vmt_domain *domain, struct vmt_vcpu *vcpu)
{
	struct vmt_task_stat stat;
	char text[4096], *p;

	if (vmt_process_stat(domain->fs, domain->pid, vcpu->tid, &stat) == 0)
		vcpu->host_cpu = stat.cpu;
	if (vmt_hostfs_read(text, sizeof(text), "%s/%d/task/%d/status", vmt_hostfs_proc(domain->fs),
			    domain->pid, vcpu->tid) <= 0)
		return;
	p = strstr(text, "\nCpus_allowed_list:");
	if (!p)
		return;
	p += strlen("\nCpus_allowed_list:");
	p += strspn(p, " \t");
	p[strcspn(p, "\n")] = '\0';
	vmt_text_copy(vcpu->affinity, sizeof(vcpu->affinity), p);
}

/* A tid must be a thread of the VMM: a stale or forged source is left out, and said. */
static void drop_foreign_tids(struct vmt_domain *domain)
{
	struct vmt_task_stat stat;

	for (size_t i = 0; i < domain->nr_vcpus; i++) {
		struct vmt_vcpu *vcpu = &domain->vcpus[i];

		if (!vcpu->tid ||
		    vmt_process_stat(domain->fs, domain->pid, vcpu->tid, &stat) != -ENOENT)
			continue;
		vmt_domain_note(domain, "vCPU %u: thread %d (%s) is not one of process %d",
				vcpu->id, vcpu->tid, vcpu->tid_source, domain->pid);
		vcpu->tid = 0;
		vcpu->tid_source = NULL;
	}
}

int vmt_domain_read_process(struct vmt_domain *domain, const struct vmt_status_xml *status)
{
	struct vmt_task_stat stat;
	int err = vmt_process_stat(domain->fs, domain->pid, domain->pid, &stat);

	if (err < 0)
		return err;
	domain->pid_start = stat.start;
	for (size_t i = 0; i < domain->nr_vcpus; i++) {
		struct vmt_vcpu *vcpu = &domain->vcpus[i];

		if (vcpu->tid_source && !strcmp(vcpu->tid_source, "monitor"))
			continue;
		*vcpu = (struct vmt_vcpu){ .id = vcpu->id, .host_cpu = -1 };
	}
	vmt_domain_find_debugfs(domain);
	read_tasks(domain, false);
	vmt_domain_read_debugfs_tids(domain);
	for (size_t i = 0; status && i < status->nr_vcpus; i++)
		vmt_domain_set_tid(domain, status->vcpus[i].id, status->vcpus[i].tid,
				   "status file");
	read_tasks(domain, true);
	drop_foreign_tids(domain);
	for (size_t i = 0; i < domain->nr_vcpus; i++) {
		if (domain->vcpus[i].tid)
			read_placement(domain, &domain->vcpus[i]);
	}
	vmt_domain_read_tsc(domain);
	vmt_domain_read_helpers(domain);
	return 0;
}
