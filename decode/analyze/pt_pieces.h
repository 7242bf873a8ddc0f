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
 * Every byte of every extent is in a piece or in a `skipped`. Memory: one buffer an area.
 */
enum vmt_pt_join {
	VMT_PT_JOIN_CONTINUES, /* vmt_pt_decoder_feed alone */
	VMT_PT_JOIN_GAP,       /* vmt_pt_decoder_gap: begins with a whole packet */
	VMT_PT_JOIN_SEEK,      /* vmt_pt_decoder_seek: nothing before the next PSB counts */
};

struct vmt_pt_piece {
	enum vmt_pt_join join;
	const uint8_t *bytes; /* valid until the next call for the same area */
	size_t len;	      /* 0: nothing but `skipped`, before the next piece or at the end */
	uint64_t at;	      /* file offset of bytes[0] */
	uint64_t aux_offset;  /* the same in the area's own stream */
	uint64_t reference;   /* of the extent */
	/* Bytes of the area right before bytes[0] that are in no piece. */
	uint64_t skipped;
	uint64_t skipped_at; /* file offset of them */
	const char *why;     /* "overlap", "padding", "unreadable"; NULL: skipped is 0 */
	bool lost;	     /* they are missing; else they came before or mean nothing */
};

struct vmt_pt_pieces;

/* NULL when memory is short. The index must outlive it. */
struct vmt_pt_pieces *vmt_pt_pieces_new(const struct vmt_aux_index *index, size_t area);
void vmt_pt_pieces_free(struct vmt_pt_pieces *pieces);

/* 1 and the next piece, 0 at the end, VMT_E_IO, VMT_E_NOMEM. Damage is a piece with `skipped`. */
int vmt_pt_pieces_next(struct vmt_pt_pieces *pieces, struct vmt_pt_piece *piece,
		       struct vmt_diag *diag);

/* Tells the decoder what piece->join asks for and feeds it. */
void vmt_pt_piece_feed(const struct vmt_pt_piece *piece, struct vmt_pt_decoder *decoder);

#endif
