// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariant: `offset` never goes back, so that no byte of an area is given twice; each byte of an
 * extent is given, was given before, or is in a piece's `skipped`.
 */
#include "decode/analyze/pt_pieces.h"

#include <stdlib.h>

#include "decode/base/err.h"

#define BUFFER_BYTES 16384u

struct vmt_pt_pieces {
	const struct vmt_aux_index *index;
	const struct vmt_aux_area *area;
	size_t extent;	 /* the one that is read */
	uint64_t from;	 /* next byte of it */
	uint64_t offset; /* of the area's stream: where the last byte given ended */
	enum vmt_pt_join join;
	uint8_t buffer[BUFFER_BYTES];
};

struct vmt_pt_pieces *vmt_pt_pieces_new(const struct vmt_aux_index *index, size_t area)
{
	struct vmt_pt_pieces *p = malloc(sizeof(*p));

	if (!p)
		return NULL;
	p->index = index;
	p->area = &index->areas[area];
	p->extent = 0;
	p->from = p->offset = 0;
	if (p->area->nr_extents)
		p->offset = p->area->extents[0].aux_offset;
	p->join = index->info.snapshot ? VMT_PT_JOIN_SEEK : VMT_PT_JOIN_CONTINUES;
	return p;
}

void vmt_pt_pieces_free(struct vmt_pt_pieces *p)
{
	free(p);
}

static void set_join(struct vmt_pt_pieces *p, enum vmt_pt_join join)
{
	p->join = join > p->join ? join : p->join;
}

/* Begins an extent: steps over what was given before. */
static void begin_extent(struct vmt_pt_pieces *p, const struct vmt_aux_extent *x)
{
	if (x->handle & VMT_AUX_RESTART)
		set_join(p, VMT_PT_JOIN_GAP);
	if (x->aux_offset > p->offset) {
		p->offset = x->aux_offset;
		set_join(p, p->index->info.snapshot ? VMT_PT_JOIN_SEEK : VMT_PT_JOIN_GAP);
		return;
	}
	p->from = p->offset - x->aux_offset;
	if (p->from > x->len)
		p->from = x->len;
}

static int read_some(struct vmt_pt_pieces *p, const struct vmt_aux_extent *x,
		     struct vmt_pt_piece *piece, struct vmt_diag *diag)
{
	const uint64_t left = x->len - p->from;
	const size_t want = left < BUFFER_BYTES ? (size_t)left : BUFFER_BYTES;
	size_t done = 0;
	int status = p->index->read(p->index->source, x, p->from, p->buffer, want, &done, diag);

	if (status != 0 && status != VMT_E_TRUNCATED && status != VMT_E_DAMAGED)
		return status;
	*piece = (struct vmt_pt_piece){ .join = p->join,
					.bytes = p->buffer,
					.len = status ? done : want,
					.at = x->at + p->from,
					.aux_offset = p->offset,
					.reference = x->reference };
	p->join = VMT_PT_JOIN_CONTINUES;
	p->from += piece->len;
	p->offset += piece->len;
	if (!status)
		return 1;
	piece->skipped = x->len - p->from;
	piece->why = "unreadable";
	piece->lost = true;
	p->from = x->len;
	p->offset = x->aux_offset + x->len;
	set_join(p, VMT_PT_JOIN_SEEK);
	return 1;
}

int vmt_pt_pieces_next(struct vmt_pt_pieces *p, struct vmt_pt_piece *piece, struct vmt_diag *diag)
{
	while (p->extent < p->area->nr_extents) {
		const struct vmt_aux_extent *x = &p->area->extents[p->extent];

		if (p->from == 0)
			begin_extent(p, x);
		if (p->from != x->len)
			return read_some(p, x, piece, diag);
		p->from = 0;
		p->extent++;
	}
	return 0;
}

void vmt_pt_piece_feed(const struct vmt_pt_piece *piece, struct vmt_pt_decoder *decoder)
{
	if (piece->join == VMT_PT_JOIN_GAP)
		vmt_pt_decoder_gap(decoder);
	else if (piece->join == VMT_PT_JOIN_SEEK)
		vmt_pt_decoder_seek(decoder);
	vmt_pt_decoder_feed(decoder, piece->bytes, piece->len);
}
