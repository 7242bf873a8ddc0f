// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: what is in `bytes` are whole records. A line of maps that is too long or no line of
 * maps is left out.
 */
#include "host/capture/synth.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define NAME_MAX_BYTES 4096u
#define BUFFER_BYTES   (64u << 10)
#define COMM_BYTES     16u

/* The end of a record by sample_id_all with TID, TIME, CPU and IDENTIFIER. */
struct trailer {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t id;
};

struct comm {
	struct perf_event_header header;
	uint32_t pid, tid;
	char text[COMM_BYTES];
	struct trailer trailer;
};

struct mmap2 { /* the name and the trailer follow */
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t major, minor;
	uint64_t inode, generation;
	uint32_t prot, flags;
};

struct synth {
	struct vmt_store_writer *store;
	struct vmt_diag *diag;
	const char *proc;
	uint64_t id;
	uint32_t stream;
	int pid, err;
	size_t len;
	uint8_t bytes[BUFFER_BYTES];
};

static void flush(struct synth *s)
{
	struct vmt_store_chunk chunk = { .type = VMT_CHUNK_RECORDS,
					 .stream = s->stream,
					 .cpu = -1,
					 .nr_parts = 1,
					 .parts = { { s->bytes, s->len } } };

	if (s->len && !s->err)
		s->err = vmt_store_append(s->store, &chunk, s->diag);
	s->len = 0;
}

static void put(struct synth *s, const void *bytes, size_t len)
{
	memcpy(s->bytes + s->len, bytes, len);
	s->len += len;
}

static struct trailer trailer_of(const struct synth *s, int tid)
{
	return (struct trailer){
		.pid = (uint32_t)s->pid, .tid = (uint32_t)tid, .cpu = UINT32_MAX, .id = s->id
	};
}

static void put_comm(void *context, int tid)
{
	struct synth *s = context;
	struct comm record = { .header = { .type = PERF_RECORD_COMM, .size = sizeof(record) },
			       .pid = (uint32_t)s->pid,
			       .tid = (uint32_t)tid,
			       .trailer = trailer_of(s, tid) };

	if (vmt_hostfs_read(record.text, sizeof(record.text), "%s/%d/task/%d/comm", s->proc, s->pid,
			    tid) < 0)
		return;
	record.text[strcspn(record.text, "\n")] = '\0';
	if (s->len + sizeof(record) > sizeof(s->bytes))
		flush(s);
	put(s, &record, sizeof(record));
}

static void put_mapping(struct synth *s, struct mmap2 *record, const char *name)
{
	static const char padding[8];
	struct trailer trailer = trailer_of(s, s->pid);
	size_t name_len = strlen(name) + 1, pad = (8 - name_len % 8) % 8;
	size_t size = sizeof(*record) + name_len + pad + sizeof(trailer);

	record->header = (struct perf_event_header){ .type = PERF_RECORD_MMAP2,
						     .misc = PERF_RECORD_MISC_USER,
						     .size = (uint16_t)size };
	if (s->len + size > sizeof(s->bytes))
		flush(s);
	put(s, record, sizeof(*record));
	put(s, name, name_len);
	put(s, padding, pad);
	put(s, &trailer, sizeof(trailer));
}

/* "start-end rwxp offset major:minor inode  name" */
static void take_line(struct synth *s, char *line)
{
	struct mmap2 r = { .pid = (uint32_t)s->pid, .tid = (uint32_t)s->pid };
	uint64_t end;
	char mode[5];
	int name = 0;

	if (sscanf(line,
		   "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx32 ":%" SCNx32 " %" SCNu64 " %n",
		   &r.addr, &end, mode, &r.pgoff, &r.major, &r.minor, &r.inode, &name) < 7 ||
	    strlen(mode) != 4 || mode[2] != 'x' || end <= r.addr || !name)
		return;
	r.len = end - r.addr;
	r.prot = PROT_EXEC | (mode[0] == 'r' ? PROT_READ : 0u) | (mode[1] == 'w' ? PROT_WRITE : 0u);
	r.flags = mode[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
	line[strcspn(line, "\n")] = '\0';
	put_mapping(s, &r, line[name] ? line + name : "//anon");
}

static void take_maps(struct synth *s)
{
	char path[VMT_PATH_MAX], line[NAME_MAX_BYTES + 128];
	bool whole = true;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%d/maps", s->proc, s->pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		bool begins = whole;

		whole = strchr(line, '\n') != NULL;
		if (begins && whole)
			take_line(s, line);
	}
	if (f)
		fclose(f);
}

int vmt_synth_domains(const struct vmt_domains *domains, uint64_t id, uint32_t stream,
		      bool mappings, struct vmt_store_writer *store, struct vmt_diag *diag)
{
	struct synth *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot write the mappings",
				    "memory is short");
	*s = (struct synth){ .store = store, .diag = diag, .id = id, .stream = stream };
	for (size_t i = 0; i < domains->count; i++) {
		const struct vmt_domain *d = &domains->items[i];
		char folder[VMT_PATH_MAX];

		if (d->pid <= 0)
			continue;
		s->pid = d->pid;
		s->proc = vmt_hostfs_proc(d->fs);
		snprintf(folder, sizeof(folder), "%s/%d/task", s->proc, s->pid);
		vmt_hostfs_numbers(folder, put_comm, s);
		if (mappings)
			take_maps(s);
	}
	flush(s);
	err = s->err;
	free(s);
	return err;
}
