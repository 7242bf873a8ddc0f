// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * vmtrace decode pt --flow: the instructions that ran, from the streams of a file or a bare one
 * and the code that --elf and --raw name.
 */
#include <stdlib.h>
#include <string.h>

#include "decode/analyze/pt_pieces.h"
#include "decode/export/pt_flow.h"
#include "decode/io/diagf.h"
#include "decode/symbols/elf_image.h"
#include "host/cli/decode.h"
#include "host/cli/items.h"

#define PIECE_BYTES 65536u
#define RAW_MAX	    (UINT64_C(1) << 31)

struct code {
	struct vmt_elf_image *elf;
	uint8_t *raw;
};

struct work {
	struct vmt_feed *feed;
	struct vmt_flow_lines lines;
	struct vmt_ledger ledger;
	struct vmt_image *image;
	struct code codes[VMT_CLI_CODES_MAX];
};

/* ---- code ---- */

static int add_elf(struct work *w, const struct vmt_pt_code *c, int fd, struct code *code,
		   struct vmt_diag *diag)
{
	const struct vmt_elf_segment *segments;
	uint64_t bias = 0;
	size_t count;
	int err = vmt_elf_image_from_fd(&code->elf, fd, diag);

	if (err)
		return err;
	segments = vmt_elf_image_segments(code->elf, &count);
	if (c->has_addr && count)
		bias = c->addr - (segments[0].vaddr - segments[0].offset);
	for (size_t i = 0; i < count && !err; i++)
		if (segments[i].len)
			err = vmt_image_add(w->image, &c->space, segments[i].vaddr + bias,
					    segments[i].bytes, segments[i].len, c->from, diag);
	if (!err && !count)
		return vmt_diag_printf(diag, VMT_E_DAMAGED, 0, "it must have executable segments",
				       "no code in %.*s", (int)c->path_len, c->path);
	return err;
}

static int read_raw(const struct vmt_pt_code *c, int fd, uint8_t **bytes, size_t *len,
		    struct vmt_diag *diag)
{
	struct vmt_reader *reader;
	uint64_t size;
	int err = vmt_reader_from_fd(&reader, fd, NULL, diag);

	if (err)
		return err;
	size = vmt_reader_size(reader);
	if (size && size <= RAW_MAX) {
		*bytes = malloc((size_t)size);
		err = *bytes ? vmt_reader_read_at(reader, 0, *bytes, (size_t)size, len, diag)
			     : vmt_diag_set(diag, VMT_E_NOMEM, "memory is short", "");
	} else {
		err = vmt_diag_printf(diag, VMT_E_LIMIT, 0, "--raw takes files of 1 byte to 2 GiB",
				      "no code in %.*s", (int)c->path_len, c->path);
	}
	vmt_reader_close(reader);
	return err;
}

static int add_code(struct work *w, size_t nr, struct vmt_diag *diag)
{
	const struct vmt_pt_code *c = &w->feed->cli->pt.codes[nr];
	struct code *code = &w->codes[nr];
	const int fd = w->feed->codes[nr];
	size_t len = 0;
	int err;

	w->feed->codes[nr] = -1;
	if (c->is_elf)
		return add_elf(w, c, fd, code, diag);
	err = read_raw(c, fd, &code->raw, &len, diag);
	return err ? err
		   : vmt_image_add(w->image, &c->space, c->addr, code->raw, len, c->from, diag);
}

static int read_codes(struct work *w, struct vmt_diag *diag)
{
	int err = 0;

	w->image = vmt_image_new();
	if (!w->image)
		return vmt_diag_set(diag, VMT_E_NOMEM, "memory is short", "");
	for (size_t i = 0; i < w->feed->nr_codes && !err; i++)
		err = add_code(w, i, diag);
	return err ? err : vmt_image_seal(w->image, diag);
}

static void drop_codes(struct work *w)
{
	vmt_image_free(w->image);
	for (size_t i = 0; i < VMT_CLI_CODES_MAX; i++) {
		vmt_elf_image_free(w->codes[i].elf);
		free(w->codes[i].raw);
	}
}

/* ---- streams ---- */

static struct vmt_flow *new_flow(struct work *w, const struct vmt_pt_decoder_options *pt,
				 struct vmt_diag *diag)
{
	const struct vmt_flow_options options = { .pt = *pt,
						  .image = w->image,
						  .block = vmt_flow_lines_block,
						  .event = vmt_flow_lines_event,
						  .context = &w->lines };
	struct vmt_flow *flow = vmt_flow_new(&options);

	if (!flow)
		vmt_diag_set(diag, VMT_E_NOMEM, "memory is short", "");
	w->lines.flow = flow;
	return flow;
}

static void end_flow(struct work *w, struct vmt_flow *flow)
{
	struct vmt_flow_counts counts;
	struct vmt_ledger one;

	vmt_flow_end(flow);
	counts = vmt_flow_counts(flow);
	vmt_flow_lines_add(&w->lines, &counts);
	one = vmt_flow_ledger(flow);
	w->ledger.bytes_total += one.bytes_total;
	w->ledger.bytes_decoded += one.bytes_decoded;
	w->ledger.bytes_skipped += one.bytes_skipped;
	w->ledger.overflows += one.overflows;
	w->ledger.truncated = w->ledger.truncated || one.truncated;
	vmt_flow_free(flow);
}

static int flow_of_bare(struct work *w, struct vmt_diag *diag)
{
	const struct vmt_pt_cli *pt = &w->feed->cli->pt;
	const struct vmt_pt_decoder_options options = { .cpu = pt->cpu,
							.clock = pt->clock,
							.block = pt->block,
							.vms = pt->vms,
							.nr_vms = pt->nr_vms,
							.host_cpu = UINT32_MAX };
	struct vmt_flow *flow = new_flow(w, &options, diag);
	const uint8_t *bytes;
	int64_t n = 0;
	int err = flow ? 0 : VMT_E_NOMEM;

	while (!err && !w->feed->out->sys_errno &&
	       (n = vmt_reader_peek(w->feed->reader, PIECE_BYTES, &bytes, diag)) > 0) {
		vmt_flow_feed(flow, bytes, (size_t)n);
		err = vmt_reader_skip(w->feed->reader, (uint64_t)n, diag);
	}
	if (flow)
		end_flow(w, flow);
	return n < 0 ? (int)n : err;
}

static int flow_of_area(struct work *w, const struct vmt_aux_index *index, size_t nr,
			struct vmt_diag *diag)
{
	const struct vmt_pt_cli *pt = &w->feed->cli->pt;
	struct vmt_pt_decoder_options options = { .cpu = pt->cpu, .block = pt->block };
	struct vmt_pt_pieces *pieces = vmt_pt_pieces_new(index, nr);
	struct vmt_pt_piece piece;
	struct vmt_flow *flow;
	int got = 0;

	vmt_pt_decoder_setup(&options, index, nr);
	vmt_flow_lines_area(&w->lines, index->areas[nr].cpu, index->areas[nr].tid);
	flow = pieces ? new_flow(w, &options, diag) : NULL;
	if (!flow) {
		vmt_pt_pieces_free(pieces);
		return vmt_diag_set(diag, VMT_E_NOMEM, "memory is short", "");
	}
	while (!w->feed->out->sys_errno && (got = vmt_pt_pieces_next(pieces, &piece, diag)) > 0) {
		if (!piece.bytes) {
			w->ledger.bytes_total += piece.skipped;
			w->ledger.bytes_skipped += piece.skipped;
			continue;
		}
		if (piece.join == VMT_PT_JOIN_GAP)
			vmt_flow_gap(flow);
		else if (piece.join == VMT_PT_JOIN_SEEK)
			vmt_flow_seek(flow);
		vmt_flow_feed(flow, piece.bytes, piece.len);
	}
	end_flow(w, flow);
	vmt_pt_pieces_free(pieces);
	return got;
}

static int flow_of_areas(struct work *w, struct vmt_items *items, struct vmt_diag *diag)
{
	const struct vmt_pt_cli *pt = &w->feed->cli->pt;
	const struct vmt_aux_index *index;
	struct vmt_item item;
	int err;

	while ((err = vmt_items_next(items, &item, diag)) > 0)
		;
	index = vmt_items_aux(items);
	if (!err && !index->nr_areas)
		return vmt_diag_set(diag, VMT_E_NOT_FOUND, "the file holds no Intel PT",
				    "--pt-raw says that the file is a bare stream");
	for (size_t i = 0; !err && !w->feed->out->sys_errno && i < index->nr_areas; i++)
		if (!pt->has_only_cpu || index->areas[i].cpu == pt->only_cpu)
			err = flow_of_area(w, index, i, diag);
	return err;
}

static int flow_of_file(struct work *w, struct vmt_diag *diag)
{
	struct vmt_items items = { 0 };
	int err = vmt_items_recognise(w->feed->reader, diag);

	if (!err)
		return vmt_diag_set(diag, VMT_E_USAGE, "the file is neither .vmt nor perf.data",
				    "--pt-raw says that it is a bare stream of Intel PT");
	if (err > 0)
		err = vmt_items_open(&items, w->feed->reader, diag);
	if (err)
		return err;
	w->feed->reader = NULL;
	err = flow_of_areas(w, &items, diag);
	vmt_items_close(&items);
	return err;
}

int vmt_decode_flow(struct vmt_feed *feed)
{
	const struct vmt_cli *cli = feed->cli;
	struct work *w = calloc(1, sizeof(*w));
	struct vmt_diag diag = { 0 };
	struct vmt_ledger ledger;
	uint64_t instructions;
	int err;

	if (cli->format == VMT_FORMAT_CSV || cli->pt.hex) {
		free(w);
		return vmt_cli_usage(cli, "--flow writes text or json, of a file", NULL);
	}
	if (!w) {
		vmt_diag_set(&diag, VMT_E_NOMEM, "memory is short", "");
		return vmt_cli_fail(&diag);
	}
	w->feed = feed;
	w->lines = (struct vmt_flow_lines){ .out = feed->out,
					    .json = cli->format == VMT_FORMAT_JSON,
					    .detail = cli->pt.flow };
	err = read_codes(w, &diag);
	if (!err) {
		vmt_flow_lines_begin(&w->lines);
		err = cli->pt.raw ? flow_of_bare(w, &diag) : flow_of_file(w, &diag);
	}
	if (!err)
		vmt_flow_lines_ledger(&w->lines, &w->ledger);
	ledger = w->ledger;
	instructions = w->lines.sum.instructions;
	drop_codes(w);
	free(w);
	return err ? vmt_cli_fail(&diag) : vmt_feed_finish(feed, ledger, instructions);
}
