// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: every byte of trace goes through the rewriter of its area, in the order of the file;
 * an area that cannot have one ends the copy.
 */
#include "host/cli/export_vmt.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/base/cursor.h"
#include "decode/io/output.h"
#include "decode/io/sys.h"
#include "decode/store/store.h"
#include "host/capture/pt_kept.h"
#include "host/cli/drop.h"
#include "host/session/session.h"

#define AREAS_MAX 8192u

struct area {
	uint32_t idx, cpu, tid;
	uint64_t next; /* offset behind what was seen of it */
	struct vmt_pt_kept *kept;
};

struct filter {
	struct vmt_rewrite_options options;
	struct area *areas;
	size_t nr_areas, cap_areas;
};

/* Records of perf that hold addresses of code (perf_event.h). */
static bool is_of_host_code(uint32_t type)
{
	enum { MMAP = 1, MMAP2 = 10, KSYMBOL = 17, BPF_EVENT = 18, TEXT_POKE = 20 };

	return type == MMAP || type == MMAP2 || type == KSYMBOL || type == BPF_EVENT ||
	       type == TEXT_POKE;
}

static size_t on_records(void *context, uint8_t *bytes, size_t len)
{
	const struct filter *f = context;
	size_t at = 0, kept = 0;

	if (f->options.keep != VMT_PRIVACY_GUEST)
		return len;
	while (len - at >= 8) {
		const size_t size = vmt_load_u16(bytes + at + 6);

		if (size < 8 || size > len - at)
			break;
		if (!is_of_host_code(vmt_load_u32(bytes + at))) {
			memmove(bytes + kept, bytes + at, size);
			kept += size;
		}
		at += size;
	}
	return kept;
}

static int on_info(void *context, const struct vmt_pt_info *info, struct vmt_diag *diag)
{
	struct filter *f = context;

	if (info->snapshot)
		return vmt_diag_set(diag, VMT_E_UNSUPPORTED,
				    "the capture's Intel PT is of snapshots that may overlap",
				    "record it with --privacy from the start");
	f->options.cpu = (struct vmt_pt_cpu){ info->has_cpu_id, info->family, (uint8_t)info->model,
					      (uint8_t)info->stepping };
	return 0;
}

static struct area *area_of(struct filter *f, const struct vmt_aux_area *wanted)
{
	struct area *grown;

	for (size_t i = 0; i < f->nr_areas; i++) {
		struct area *a = &f->areas[i];

		if (a->idx == wanted->idx && a->cpu == wanted->cpu && a->tid == wanted->tid)
			return a;
	}
	if (f->nr_areas == AREAS_MAX)
		return NULL;
	if (f->nr_areas == f->cap_areas) {
		f->cap_areas = 2 * f->cap_areas + 16;
		grown = realloc(f->areas, f->cap_areas * sizeof(*grown));
		if (!grown)
			return NULL;
		f->areas = grown;
	}
	grown = &f->areas[f->nr_areas];
	*grown = (struct area){ .idx = wanted->idx, .cpu = wanted->cpu, .tid = wanted->tid };
	grown->kept = vmt_pt_kept_new(&f->options);
	f->nr_areas += grown->kept != NULL;
	return grown->kept ? grown : NULL;
}

static int on_trace(void *context, struct vmt_store_writer *to, const struct vmt_aux_area *area,
		    const struct vmt_store_trace *trace, struct vmt_diag *diag)
{
	struct area *a = area_of(context, area);
	enum vmt_pt_kept_join join = VMT_PT_KEPT_CONTINUES;

	if (!a)
		return vmt_diag_set(diag, VMT_E_NOMEM, "cannot rewrite the capture",
				    "memory is short, or there are more than 8192 areas");
	if (trace->restart)
		join = VMT_PT_KEPT_RESTART;
	else if (trace->aux_offset != a->next)
		join = VMT_PT_KEPT_SEEK;
	a->next = trace->aux_offset + trace->parts[0].len;
	return vmt_pt_kept_put(a->kept, area, trace, join, to, diag);
}

static int on_end(void *context, struct vmt_store_writer *to, struct vmt_diag *diag)
{
	const struct filter *f = context;
	int err = 0;

	for (size_t i = 0; !err && i < f->nr_areas; i++)
		err = vmt_pt_kept_end(f->areas[i].kept, to, diag);
	return err;
}

static int copy(struct vmt_reader *reader, struct vmt_store_writer *to, enum vmt_privacy privacy,
		struct vmt_diag *diag)
{
	struct filter f = { .options = { .keep = privacy, .key = vmt_io_random() } };
	const struct vmt_store_edit edit = { on_records, on_info, on_trace, on_end, &f };
	int err = vmt_store_copy(reader, to, &edit, diag);

	for (size_t i = 0; i < f.nr_areas; i++)
		vmt_pt_kept_free(f.areas[i].kept);
	free(f.areas);
	return err;
}

/* For root the new file is put in place at once: see open_output of feed.c. */
static int open_output(struct vmt_store_writer **to, const struct vmt_cli *cli, const char *input,
		       struct vmt_diag *diag)
{
	const struct vmt_store_options options = { .force = cli->force };
	int err = vmt_output_not_input(cli->output, input, diag);

	if (!err)
		err = vmt_store_create_late(to, cli->output, &options, diag);
	if (err || geteuid())
		return err;
	err = vmt_store_commit(*to, diag);
	if (err)
		vmt_store_discard(*to);
	return err;
}

int vmt_export_vmt(struct vmt_cli *cli)
{
	struct vmt_store_writer *to;
	struct vmt_reader *reader;
	struct vmt_diag diag = { 0 };
	char path[512];
	int err = 0;

	if (!cli->privacy || cli->pt.raw)
		return vmt_cli_usage(cli, "--to vmt writes one side of a capture",
				     "name the side with --privacy guest or host");
	if (!cli->input)
		err = vmt_session_newest(cli->nr_domains ? cli->domains[0] : NULL, path,
					 sizeof(path), &diag);
	if (!err)
		err = vmt_reader_open(&reader, cli->input ? cli->input : path, NULL, &diag);
	if (err)
		return vmt_cli_fail(&diag);
	err = open_output(&to, cli, cli->input ? cli->input : path, &diag);
	if (err) {
		vmt_reader_close(reader);
		return vmt_cli_fail(&diag);
	}
	err = vmt_cli_drop_rights(&diag);
	if (!err)
		err = copy(reader, to, cli->privacy, &diag);
	vmt_reader_close(reader);
	if (err)
		vmt_store_discard(to);
	else
		err = vmt_store_finish(to, &diag);
	return err ? vmt_cli_fail(&diag) : VMT_STATUS_OK;
}
