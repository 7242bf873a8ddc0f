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
 * Rewrites what was drained and gives it to the store. The trace's aux_offset does not count.
 * Errors of vmt_store_aux, after all was rewritten.
 */
int vmt_pt_kept_put(struct vmt_pt_kept *kept, const struct vmt_aux_area *area,
		    const struct vmt_store_trace *trace, struct vmt_store_writer *store,
		    struct vmt_diag *diag);

/* The same for all that a ring held which is overwritten: it does not follow what was put before.
 */
int vmt_pt_kept_snapshot(struct vmt_pt_kept *kept, const struct vmt_aux_area *area,
			 const struct vmt_store_trace *trace, struct vmt_store_writer *store,
			 struct vmt_diag *diag);

#endif
