// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * decode pt of a .vmt or perf.data: a decoder an AUX area. Lines say where a packet stands in the
 * file, which decoders count in their own stream: `starts` translates. Invariant: starts ascend in
 * the stream; a stretch of the stream up to the next start stands together in the file.
 */
#include <string.h>

#include "decode/analyze/pt_pieces.h"
#include "decode/export/pt_pebs.h"
#include "decode/io/diagf.h"
#include "host/cli/decode.h"
#include "host/cli/items.h"

#define STARTS_MAX 256u

struct start {
	uint64_t stream, at;
};

struct walk {
	struct vmt_pt_lines *lines;
	struct vmt_ledger *ledger;
	struct start starts[STARTS_MAX]; /* the last ones, in a ring */
	size_t nr_starts;
	uint64_t fed; /* bytes of the area */
};

/* A stretch of undecodable bytes may be older than the ring: then the oldest start has to do. */
static uint64_t in_file(const struct walk *w, uint64_t stream)
{
	size_t oldest = w->nr_starts > STARTS_MAX ? w->nr_starts - STARTS_MAX : 0;
	const struct start *s;

	for (size_t i = w->nr_starts; i-- > oldest + 1;) {
		s = &w->starts[i % STARTS_MAX];
		if (s->stream <= stream)
			return s->at + (stream - s->stream);
	}
	s = &w->starts[oldest % STARTS_MAX];
	return s->at + (stream > s->stream ? stream - s->stream : 0);
}

static void note_start(struct walk *w, uint64_t at)
{
	const struct start *last =
		w->nr_starts ? &w->starts[(w->nr_starts - 1) % STARTS_MAX] : NULL;

	if (last && last->at + (w->fed - last->stream) == at)
		return;
	w->starts[w->nr_starts++ % STARTS_MAX] = (struct start){ w->fed, at };
}

static void on_packet(void *context, uint64_t offset, const uint8_t *bytes,
		      const struct vmt_pt_packet *packet)
{
	struct walk *w = context;

	vmt_pt_lines_packet(w->lines, in_file(w, offset), bytes, packet);
}

static void on_skipped(void *context, uint64_t offset, uint64_t len, const char *why)
{
	struct walk *w = context;

	vmt_pt_lines_skipped(w->lines, in_file(w, offset), len, why);
}

static void on_pebs(void *context, const struct vmt_pt_pebs_record *record, enum vmt_pt_mode mode)
{
	struct walk *w = context;

	vmt_pt_lines_pebs(w->lines, record, mode);
}

static void skip(struct walk *w, uint64_t at, uint64_t len, const char *why)
{
	vmt_pt_lines_skipped(w->lines, at, len, why);
	w->ledger->bytes_total += len;
	w->ledger->bytes_skipped += len;
}

static void add_ledger(struct vmt_ledger *sum, const struct vmt_ledger *one)
{
	sum->bytes_total += one->bytes_total;
	sum->bytes_decoded += one->bytes_decoded;
	sum->bytes_skipped += one->bytes_skipped;
	sum->overflows += one->overflows;
	sum->truncated = sum->truncated || one->truncated;
}

static int feed_pieces(struct vmt_feed *feed, struct walk *w, struct vmt_pt_pieces *pieces,
		       struct vmt_pt_decoder *decoder, struct vmt_diag *diag)
{
	struct vmt_pt_piece piece;
	int got = 0;

	while (!feed->out->sys_errno && (got = vmt_pt_pieces_next(pieces, &piece, diag)) > 0) {
		if (!piece.bytes) {
			skip(w, piece.at, piece.skipped, piece.why);
			continue;
		}
		note_start(w, piece.at);
		vmt_pt_piece_feed(&piece, decoder);
		w->fed += piece.len;
	}
	return got;
}

static int decode_area(struct vmt_feed *feed, struct walk *w, const struct vmt_aux_index *index,
		       size_t nr, struct vmt_diag *diag)
{
	struct vmt_pt_decoder_options options = { .cpu = feed->cli->pt.cpu,
						  .block = feed->cli->pt.block,
						  .packet = on_packet,
						  .skipped = on_skipped,
						  .pebs = on_pebs,
						  .context = w };
	struct vmt_pt_pieces *pieces = vmt_pt_pieces_new(index, nr);
	struct vmt_pt_decoder *decoder;
	struct vmt_ledger ledger;
	int err = VMT_E_NOMEM;

	vmt_pt_decoder_setup(&options, index, nr);
	vmt_pt_lines_area(w->lines, index->areas[nr].cpu, index->areas[nr].tid);
	w->nr_starts = 0;
	w->fed = 0;
	decoder = vmt_pt_decoder_new(&options);
	if (pieces && decoder) {
		err = feed_pieces(feed, w, pieces, decoder, diag);
		vmt_pt_decoder_end(decoder);
		ledger = vmt_pt_decoder_ledger(decoder);
		add_ledger(w->ledger, &ledger);
	} else {
		vmt_diag_set(diag, VMT_E_NOMEM, "memory is short", "");
	}
	vmt_pt_decoder_free(decoder);
	vmt_pt_pieces_free(pieces);
	return err;
}

/* The items are of no interest but for bytes of the file that are missing: trace may be in them. */
static int read_items(struct walk *w, struct vmt_items *items, struct vmt_diag *diag)
{
	struct vmt_item item;
	int got;

	while ((got = vmt_items_next(items, &item, diag)) > 0) {
		if (item.type != VMT_ITEM_LOSS || item.data || !item.lost_bytes ||
		    !strcmp(item.loss_kind, "keep") || !strcmp(item.loss_kind, "auxtrace") ||
		    !strcmp(item.loss_kind, "after-end"))
			continue;
		skip(w, item.offset, item.lost_bytes, item.loss_kind);
	}
	w->ledger->truncated = vmt_items_ledger(items).truncated;
	return got;
}

static int none_found(const struct vmt_feed *feed, const struct vmt_aux_index *index,
		      struct vmt_diag *diag)
{
	if (!index->nr_areas)
		return vmt_diag_set(diag, VMT_E_UNSUPPORTED, "the file holds no Intel PT",
				    "perf record -e intel_pt// records it; --pt-raw says that the "
				    "file is a bare stream");
	return vmt_diag_printf(diag, VMT_E_NOT_FOUND, 0,
			       "without --cpu those of all CPUs and threads are shown",
			       "the file holds no Intel PT of CPU %llu",
			       (unsigned long long)feed->cli->pt.only_cpu);
}

static int decode_areas(struct vmt_feed *feed, struct walk *w, struct vmt_items *items,
			struct vmt_diag *diag)
{
	const struct vmt_pt_cli *pt = &feed->cli->pt;
	const struct vmt_aux_index *index;
	size_t nr = 0;
	int err;

	w->lines->areas = true;
	vmt_pt_lines_begin(w->lines);
	err = read_items(w, items, diag);
	index = vmt_items_aux(items);
	for (size_t i = 0; !err && !feed->out->sys_errno && i < index->nr_areas; i++) {
		if (pt->has_only_cpu && index->areas[i].cpu != pt->only_cpu)
			continue;
		err = decode_area(feed, w, index, i, diag);
		nr++;
	}
	return err || nr ? err : none_found(feed, index, diag);
}

int vmt_decode_pt_file(struct vmt_feed *feed, struct vmt_pt_lines *lines, struct vmt_ledger *ledger,
		       struct vmt_diag *diag)
{
	struct walk w = { .lines = lines, .ledger = ledger };
	struct vmt_items items = { 0 };
	int err = vmt_items_recognise(feed->reader, diag);

	if (!err)
		return vmt_diag_set(diag, VMT_E_USAGE, "the file is neither .vmt nor perf.data",
				    "--pt-raw says that it is a bare stream of Intel PT");
	if (err > 0)
		err = vmt_items_open(&items, feed->reader, diag);
	if (err)
		return err;
	feed->reader = NULL;
	err = decode_areas(feed, &w, &items, diag);
	vmt_items_close(&items);
	return err;
}
