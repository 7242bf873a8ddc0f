/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CLI_ITEMS_H
#define VMT_CLI_ITEMS_H

#include "decode/perfdata/perfdata.h"
#include "decode/store/store.h"

/* A .vmt or a perf.data: both deliver the same items. Zero-initialise. */
struct vmt_items {
	struct vmt_store_reader *store;
	struct vmt_perfdata *perf;
};

/* 1 when the input is a .vmt or a perf.data, 0 when not, or VMT_E_IO, VMT_E_NOMEM. */
int vmt_items_recognise(struct vmt_reader *reader, struct vmt_diag *diag);
/* Recognises the format; on success the reader is taken over. Errors of vmt_perfdata_open. */
int vmt_items_open(struct vmt_items *items, struct vmt_reader *reader, struct vmt_diag *diag);
int vmt_items_next(struct vmt_items *items, struct vmt_item *item, struct vmt_diag *diag);
struct vmt_ledger vmt_items_ledger(const struct vmt_items *items);
/* As vmt_perfdata_aux. */
const struct vmt_aux_index *vmt_items_aux(struct vmt_items *items);
void vmt_items_close(struct vmt_items *items);

#endif
