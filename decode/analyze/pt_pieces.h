/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_ANALYZE_PT_PIECES_H
#define VMT_ANALYZE_PT_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/aux.h"
#include "decode/pt/decoder.h"

/*
 * One AUX area as the pieces that its decoder is fed, in the order of the file, each with how it
 * joins the one before: by aux_offset and VMT_AUX_RESTART, or, in snapshots, by finding the end of
 * the trace before in the beginning of the next one. What two extents have in common comes once.
 * Every byte of every extent is in a piece, as trace or as skipped. Memory: 64 KiB an area.
 */
enum vmt_pt_join {
	VMT_PT_JOIN_CONTINUES, /* vmt_pt_decoder_feed alone */
	VMT_PT_JOIN_GAP,       /* vmt_pt_decoder_gap: begins with a whole packet */
	VMT_PT_JOIN_SEEK,      /* vmt_pt_decoder_seek: nothing before the next PSB counts */
};

struct vmt_pt_piece {
	const uint8_t *bytes; /* valid until the next call for the same area; NULL: skipped */
	size_t len;	      /* of bytes, never 0 */
	enum vmt_pt_join join;
	uint64_t at;	     /* file offset of the first byte */
	uint64_t aux_offset; /* the same in the area's own stream */
	uint64_t reference;  /* of the extent */
	uint64_t skipped;    /* without bytes: how many are not given out */
	bool lost;	     /* they are missing; else they came before, or are padding */
	const char *why;     /* "came before", "padding", "unreadable" */
};

struct vmt_pt_pieces;

/* NULL when memory is short. The index must outlive it. */
struct vmt_pt_pieces *vmt_pt_pieces_new(const struct vmt_aux_index *index, size_t area);
void vmt_pt_pieces_free(struct vmt_pt_pieces *pieces);

/* 1 and the next piece, 0 at the end, VMT_E_IO, VMT_E_NOMEM. Damage is a piece without bytes. */
int vmt_pt_pieces_next(struct vmt_pt_pieces *pieces, struct vmt_pt_piece *piece,
		       struct vmt_diag *diag);

/*
 * What the file says about an area, for its decoder: processor, clock, CPU and thread. Members that
 * are set already stay.
 */
void vmt_pt_decoder_setup(struct vmt_pt_decoder_options *options, const struct vmt_aux_index *index,
			  size_t area);

/* Tells the decoder what piece->join asks for and feeds it; nothing to do for what is skipped. */
void vmt_pt_piece_feed(const struct vmt_pt_piece *piece, struct vmt_pt_decoder *decoder);

#endif
