/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_STORE_AUX_H
#define VMT_STORE_AUX_H

#include "decode/base/aux.h"
#include "decode/ring/aux_build.h"
#include "decode/store/scan.h"

/* Chunks of trace whose checksum was verified; more areas than these are read again and again. */
#define VMT_STORE_AUX_SLOTS 8u

struct vmt_store_aux_slot {
	uint64_t used;	/* when; 0: empty */
	uint64_t chunk; /* offset of the chunk */
	uint8_t *bytes;
	size_t trace_at, trace_len; /* in bytes */
};

/* The AUX data of a .vmt. Zero-initialise. */
struct vmt_store_aux {
	struct vmt_aux_index index;
	struct vmt_aux_build build;
	struct vmt_reader *reader;
	char *filter; /* index.info.filter */
	bool built;
	uint64_t file_id;
	uint64_t lost; /* bytes of a pipe that found no room, to be told */
	bool tell_limit;
	struct vmt_store_aux_slot slots[VMT_STORE_AUX_SLOTS];
	uint64_t uses;
	ZSTD_DCtx *zstd;
	uint8_t *packed;	      /* a chunk that is compressed */
	struct vmt_aux_extent extent; /* of the last AUX item */
};

/*
 * Makes the index of all chunks from the one in view on, which the reader stands at, and comes
 * back to it; a pipe is spooled first. 0, VMT_E_IO, VMT_E_FULL (not even the chunk at hand found
 * room there), VMT_E_NOMEM.
 */
int vmt_store_aux_build(struct vmt_store_aux *aux, const struct vmt_store_scan *scan,
			const struct vmt_store_view *view, struct vmt_diag *diag);

/* The extent of an AUX chunk that is_supported. */
struct vmt_aux_extent vmt_store_aux_extent(const struct vmt_store_view *view);

/* Whether the payload of AUX_INFO or AUX can be one. */
bool vmt_store_aux_fits(const struct vmt_store_view *view);

void vmt_store_aux_free(struct vmt_store_aux *aux);

#endif
