// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/domain/process.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CMDLINE_MAX 131072

int vmt_process_stat(const struct vmt_hostfs *fs, pid_t pid, pid_t tid, struct vmt_task_stat *out)
{
	char text[1024], *save = NULL, *p;
	unsigned int field = 3;
	uint64_t cpu;
	int n = vmt_hostfs_read(text, sizeof(text), "%s/%d/task/%d/stat", vmt_hostfs_proc(fs), pid,
				tid);

	if (n < 0)
		return n;
	/* The name (field 2) is in parentheses and may hold anything, also parentheses. */
	p = strrchr(text, ')');
	if (!p)
		return -EINVAL;
	for (p = strtok_r(p + 1, " \n", &save); p; p = strtok_r(NULL, " \n", &save), field++) {
		if (field == 22)
			out->start = strtoull(p, NULL, 10);
		if (field == 39) {
			if (!vmt_parse_uint(p, INT32_MAX, &cpu))
				return -EINVAL;
			out->cpu = (int)cpu;
			return 0;
		}
	}
	return -EINVAL;
}

pid_t vmt_process_of_thread(const struct vmt_hostfs *fs, pid_t tid)
{
	char text[2048];
	const char *p;

	if (vmt_hostfs_read(text, sizeof(text), "%s/%d/status", vmt_hostfs_proc(fs), tid) < 0)
		return 0;
	p = strstr(text, "\nTgid:");
	return p ? (pid_t)strtol(p + 6, NULL, 10) : 0;
}

int vmt_process_cmdline(const struct vmt_hostfs *fs, pid_t pid, char *buf, size_t size)
{
	return vmt_hostfs_read(buf, size, "%s/%d/cmdline", vmt_hostfs_proc(fs), pid);
}

const char *vmt_cmdline_value(const char *cmdline, size_t len, const char *option)
{
	const char *end = cmdline + len, *next;

	for (const char *arg = cmdline; arg < end; arg = next) {
		next = arg + strnlen(arg, (size_t)(end - arg)) + 1;
		if (next < end && !strcmp(arg, option))
			return next;
	}
	return NULL;
}

/* -name guest=NAME,debug-threads=on, and the older -name NAME,…; libvirt doubles commas. */
static bool name_is(const char *value, const char *name)
{
	const char *p = strncmp(value, "guest=", 6) ? value : value + 6;

	for (; *name; name++, p++) {
		if (*p != *name)
			return false;
		if (*name == ',' && *++p != ',')
			return false;
	}
	return !*p || (*p == ',' && p[1] != ',');
}

bool vmt_cmdline_is_domain(const char *cmdline, size_t len, const char *uuid, const char *name)
{
	const char *value = vmt_cmdline_value(cmdline, len, "-uuid");

	if (value && uuid && *uuid)
		return !strcasecmp(value, uuid);
	value = vmt_cmdline_value(cmdline, len, "-name");
	return value && name && name_is(value, name);
}

struct find_process {
	const struct vmt_hostfs *fs;
	const char *uuid, *name;
	char *buf;
	pid_t found;
};

static void try_process(void *context, int pid)
{
	struct find_process *find = context;
	int len;

	if (find->found)
		return;
	len = vmt_process_cmdline(find->fs, pid, find->buf, CMDLINE_MAX);
	if (len > 0 && vmt_cmdline_is_domain(find->buf, (size_t)len, find->uuid, find->name))
		find->found = pid;
}

pid_t vmt_process_find(const struct vmt_hostfs *fs, const char *uuid, const char *name)
{
	struct find_process find = { .fs = fs, .uuid = uuid, .name = name };

	find.buf = malloc(CMDLINE_MAX);
	if (!find.buf)
		return 0;
	vmt_hostfs_numbers(vmt_hostfs_proc(fs), try_process, &find);
	free(find.buf);
	return find.found;
}

int vmt_process_vm_fds(const struct vmt_hostfs *fs, pid_t pid, struct vmt_vm_fds *out)
{
	char folder[VMT_PATH_MAX], target[64];
	const struct dirent *entry;
	uint64_t fd;
	DIR *dir;

	memset(out, 0, sizeof(*out));
	snprintf(folder, sizeof(folder), "%s/%d/fd", vmt_hostfs_proc(fs), pid);
	dir = opendir(folder);
	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		if (n <= 0)
			continue;
		target[n] = '\0';
		if (!strncmp(target, "anon_inode:kvm-vcpu", 19))
			out->nr_vcpu_fds++;
		if (!strcmp(target, "anon_inode:kvm-vm") && out->count < VMT_VM_FDS_MAX &&
		    vmt_parse_uint(entry->d_name, INT32_MAX, &fd))
			out->fds[out->count++] = (int)fd;
	}
	closedir(dir);
	return 0;
}

struct kvm_list {
	const struct vmt_hostfs *fs;
	pid_t *pids;
	size_t count, max;
};

static void add_if_kvm(void *context, int pid)
{
	struct kvm_list *list = context;
	struct vmt_vm_fds fds;

	if (list->count < list->max && !vmt_process_vm_fds(list->fs, pid, &fds) && fds.count)
		list->pids[list->count++] = pid;
}

static int compare_pids(const void *a, const void *b)
{
	const pid_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

size_t vmt_kvm_processes(const struct vmt_hostfs *fs, pid_t *pids, size_t max)
{
	struct kvm_list list = { .fs = fs, .pids = pids, .max = max };

	vmt_hostfs_numbers(vmt_hostfs_proc(fs), add_if_kvm, &list);
	qsort(pids, list.count, sizeof(*pids), compare_pids);
	return list.count;
}
