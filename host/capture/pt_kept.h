/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_PT_KEPT_H
#define VMT_CAPTURE_PT_KEPT_H

#include "decode/rewrite/privacy.h"
#include "decode/store/store.h"

/*
 * Intel PT of one area on its way to the store, rewritten for one side: what was drained never
 * reaches the file as it was. Offsets in the area's stream are those of what is kept.
 */
struct vmt_pt_kept;

/* Of the options write and context are its own. NULL when memory is short. */
struct vmt_pt_kept *vmt_pt_kept_new(const struct vmt_rewrite_options *options);
void vmt_pt_kept_free(struct vmt_pt_kept *kept);

/*
 * How a piece follows the one before: as pieces of a decoder do (decode/analyze/pt_pieces.h); or it
 * is all that a ring holds which is overwritten, whose end what is under way cannot follow.
 */
enum vmt_pt_kept_join {
	VMT_PT_KEPT_CONTINUES,
	VMT_PT_KEPT_RESTART,
	VMT_PT_KEPT_SEEK,
	VMT_PT_KEPT_SNAPSHOT,
};

/*
 * Rewrites what was drained and gives it to the store. Offset and restart of the trace do not
 * count. Errors of vmt_store_aux, after all was rewritten.
 */
int vmt_pt_kept_put(struct vmt_pt_kept *kept, const struct vmt_aux_area *area,
		    const struct vmt_store_trace *trace, enum vmt_pt_kept_join how,
		    struct vmt_store_writer *store, struct vmt_diag *diag);

/* The end of the stream: what waits for a packet does not come to anything else. */
int vmt_pt_kept_end(struct vmt_pt_kept *kept, struct vmt_store_writer *store,
		    struct vmt_diag *diag);

#endif
