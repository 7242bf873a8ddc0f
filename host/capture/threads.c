// SPDX-License-Identifier: LGPL-2.1-or-later
/* Invariant: one row a thread id; rows[first_new..count) are those that nothing was opened for. */
#include "host/capture/threads.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct vmt_thread *find(struct vmt_threads *threads, pid_t tid)
{
	for (size_t i = 0; i < threads->count; i++) {
		if (threads->rows[i].tid == tid)
			return &threads->rows[i];
	}
	return NULL;
}

static int note(struct vmt_threads *threads, pid_t tid, uint32_t domain, bool is_vcpu)
{
	struct vmt_thread *row = tid > 0 ? find(threads, tid) : NULL;

	if (tid <= 0)
		return 0;
	if (row) {
		row->seen = true;
		return 0;
	}
	if (threads->count == threads->cap) {
		size_t cap = threads->cap ? threads->cap * 2 : 64;
		struct vmt_thread *rows = realloc(threads->rows, cap * sizeof(*rows));

		if (!rows)
			return VMT_E_NOMEM;
		threads->rows = rows;
		threads->cap = cap;
	}
	threads->rows[threads->count++] = (struct vmt_thread){ tid, domain, is_vcpu, true };
	return 1;
}

static int note_domain(struct vmt_threads *threads, const struct vmt_domain *d, uint32_t index)
{
	int added = 0, err = 0;

	for (size_t i = 0; i < d->nr_vcpus && err >= 0; i++) {
		err = note(threads, d->vcpus[i].tid, index, true);
		added |= err > 0;
	}
	for (size_t i = 0; i < d->nr_helpers && err >= 0; i++) {
		if (d->helpers[i].role && !strcmp(d->helpers[i].role, "worker"))
			continue;
		err = note(threads, d->helpers[i].tid, index, false);
		added |= err > 0;
	}
	return err < 0 ? err : added;
}

int vmt_threads_update(struct vmt_threads *threads, const struct vmt_domains *domains,
		       size_t *first_new)
{
	size_t old = threads->count, kept = 0;
	int changed = 0;

	for (size_t i = 0; i < old; i++)
		threads->rows[i].seen = false;
	for (size_t i = 0; i < domains->count; i++) {
		int err = note_domain(threads, &domains->items[i], (uint32_t)i);

		if (err < 0)
			return err;
		changed |= err;
	}
	*first_new = old;
	for (size_t i = 0; i < threads->count; i++) {
		if (threads->rows[i].seen) {
			threads->rows[kept++] = threads->rows[i];
		} else {
			changed = 1;
			*first_new -= 1;
		}
	}
	threads->count = kept;
	return changed;
}

void vmt_threads_free(struct vmt_threads *threads)
{
	free(threads->rows);
	*threads = (struct vmt_threads){ 0 };
}

uint64_t vmt_threads_print(pid_t pid)
{
	char path[64];
	uint64_t print = 0;
	const struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		uint64_t tid = strtoull(entry->d_name, NULL, 10);

		/* Order does not matter: ids are mixed (splitmix64) and summed. */
		tid = (tid ^ (tid >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
		tid = (tid ^ (tid >> 27)) * UINT64_C(0x94d049bb133111eb);
		print += tid ^ (tid >> 31);
	}
	if (dir)
		closedir(dir);
	return print;
}
