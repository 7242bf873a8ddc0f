// SPDX-License-Identifier: LGPL-2.1-or-later
#include "host/cli/items.h"

#include <string.h>

int vmt_items_recognise(struct vmt_reader *reader, struct vmt_diag *diag)
{
	const uint8_t *head;
	int64_t n = vmt_reader_peek(reader, 8, &head, diag);

	if (n < 0)
		return (int)n;
	if (n >= 8 && (!memcmp(head, "PERFILE2", 8) || !memcmp(head, "2ELIFREP", 8)))
		return 1;
	return vmt_store_recognise(reader, diag);
}

int vmt_items_open(struct vmt_items *items, struct vmt_reader *reader, struct vmt_diag *diag)
{
	int is_store = vmt_store_recognise(reader, diag);

	if (is_store < 0)
		return is_store;
	return is_store ? vmt_store_open(&items->store, reader, diag)
			: vmt_perfdata_open(&items->perf, reader, diag);
}

int vmt_items_next(struct vmt_items *items, struct vmt_item *item, struct vmt_diag *diag)
{
	return items->store ? vmt_store_next(items->store, item, diag)
			    : vmt_perfdata_next(items->perf, item, diag);
}

struct vmt_ledger vmt_items_ledger(const struct vmt_items *items)
{
	return items->store ? vmt_store_ledger(items->store) : vmt_perfdata_ledger(items->perf);
}

const struct vmt_aux_index *vmt_items_aux(struct vmt_items *items)
{
	return items->store ? vmt_store_aux_index(items->store) : vmt_perfdata_aux(items->perf);
}

void vmt_items_close(struct vmt_items *items)
{
	vmt_store_close(items->store);
	vmt_perfdata_close(items->perf);
}
