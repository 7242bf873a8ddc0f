/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/support/stream.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS 1024
#define START_NS    UINT64_C(1000000000)

struct vmt_machine {
	struct vmt_stream *out;
	struct vmt_format *formats;
	size_t nr_formats;
	size_t entry, exit; /* indices of kvm_entry and kvm_exit */
	struct {
		uint32_t tid;
		uint64_t now_ns;
	} threads[MAX_THREADS];
	size_t nr_threads;
};

static void die(const char *what, const char *name)
{
	fprintf(stderr, "machine: %s: %s\n", what, name);
	abort();
}

static int is_format(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return len > 7 && strcmp(entry->d_name + len - 7, ".format") == 0;
}

/* Every fixture of the kernel, in order of name. */
static void load_formats(struct vmt_machine *m, const char *kernel)
{
	const char *top = getenv("VMT_TOP");
	struct dirent **names;
	char path[4096];
	int n;

	snprintf(path, sizeof(path), "%s/tests/golden/formats/%s", top ? top : ".", kernel);
	n = scandir(path, &names, is_format, alphasort);
	if (n <= 0)
		die("no formats", path);
	m->formats = calloc((size_t)n, sizeof(*m->formats));
	if (!m->formats)
		die("out of memory", kernel);
	for (int i = 0; i < n; i++) {
		names[i]->d_name[strlen(names[i]->d_name) - 7] = '\0';
		m->formats[m->nr_formats++] = vmt_stream_format(kernel, names[i]->d_name);
		free(names[i]);
	}
	free(names);
}

static size_t find(const struct vmt_machine *m, const char *name)
{
	for (size_t i = 0; i < m->nr_formats; i++)
		if (strcmp(m->formats[i].name, name) == 0)
			return i;
	die("no such tracepoint", name);
	return 0;
}

struct vmt_machine *vmt_machine_new(const char *kernel, struct vmt_stream *out)
{
	struct vmt_machine *m = calloc(1, sizeof(*m));

	if (!m)
		die("out of memory", kernel);
	m->out = out;
	load_formats(m, kernel);
	m->entry = find(m, "kvm_entry");
	m->exit = find(m, "kvm_exit");
	return m;
}

void vmt_machine_free(struct vmt_machine *m)
{
	if (!m)
		return;
	free(m->formats);
	free(m);
}

size_t vmt_machine_formats(const struct vmt_machine *m, const struct vmt_format **formats)
{
	*formats = m->formats;
	return m->nr_formats;
}

static uint64_t *clock_of(struct vmt_machine *m, uint32_t tid)
{
	for (size_t i = 0; i < m->nr_threads; i++)
		if (m->threads[i].tid == tid)
			return &m->threads[i].now_ns;
	if (m->nr_threads == MAX_THREADS)
		die("too many threads", "clock_of");
	m->threads[m->nr_threads].tid = tid;
	m->threads[m->nr_threads].now_ns = START_NS;
	return &m->threads[m->nr_threads++].now_ns;
}

static struct vmt_stream_at advance(struct vmt_machine *m, const struct vmt_machine_exit *who,
				    uint64_t ns, size_t format)
{
	uint64_t *now = clock_of(m, who->tid);

	*now += ns;
	return (struct vmt_stream_at){
		.time_ns = *now,
		.id = format + 1,
		.pid = who->pid,
		.tid = who->tid,
		.cpu = who->cpu,
	};
}

void vmt_machine_run(struct vmt_machine *m, const struct vmt_machine_exit *exit)
{
	const struct vmt_stream_value entry_values[] = {
		{ "vcpu_id", exit->vcpu },
		{ "rip", exit->rip },
	};
	const struct vmt_stream_value exit_values[] = {
		{ "exit_reason", exit->reason },
		{ "guest_rip", exit->rip },
		{ "isa", exit->isa },
		{ "info1", exit->info1 },
		{ "info2", exit->info2 },
		{ "intr_info", exit->intr_info },
		{ "vcpu_id", exit->vcpu },
	};
	struct vmt_stream_at at = advance(m, exit, exit->gap_ns, m->entry);

	vmt_stream_tracepoint(m->out, &m->formats[m->entry], &at, entry_values,
			      sizeof(entry_values) / sizeof(entry_values[0]));
	at = advance(m, exit, exit->guest_ns, m->exit);
	vmt_stream_tracepoint(m->out, &m->formats[m->exit], &at, exit_values,
			      sizeof(exit_values) / sizeof(exit_values[0]));
}

void vmt_machine_event(struct vmt_machine *m, const char *name, const struct vmt_machine_exit *who,
		       uint64_t after_ns, const struct vmt_stream_value *values, size_t nr_values)
{
	size_t format = find(m, name);
	struct vmt_stream_at at = advance(m, who, after_ns, format);

	vmt_stream_tracepoint(m->out, &m->formats[format], &at, values, nr_values);
}

void vmt_machine_switch(struct vmt_machine *m, const struct vmt_machine_exit *who,
			uint64_t after_ns, int out, int preempted)
{
	struct vmt_stream_at at = advance(m, who, after_ns, m->entry);

	vmt_stream_switch(m->out, &at, out, preempted);
}

uint64_t vmt_machine_now(const struct vmt_machine *m, uint32_t tid)
{
	for (size_t i = 0; i < m->nr_threads; i++)
		if (m->threads[i].tid == tid)
			return m->threads[i].now_ns;
	return START_NS;
}
