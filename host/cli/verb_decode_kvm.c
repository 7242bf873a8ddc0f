// SPDX-License-Identifier: LGPL-2.1-or-later
/* vmtrace decode kvm: the records of a capture as they stand in the file, and the loss ledger. */
#include "decode/export/records.h"
#include "host/cli/decode.h"
#include "host/cli/items.h"

static int copy(struct vmt_feed *feed, struct vmt_items *items, struct vmt_records *records,
		struct vmt_diag *diag)
{
	struct vmt_item item;
	int got = 1;

	while (!feed->out->sys_errno && (got = vmt_items_next(items, &item, diag)) > 0)
		vmt_records_item(records, &item);
	if (got < 0)
		return got;
	vmt_records_ledger(records, vmt_items_ledger(items));
	return 0;
}

int vmt_decode_kvm(struct vmt_feed *feed)
{
	struct vmt_items items = { 0 };
	struct vmt_records records;
	struct vmt_diag diag = { 0 };
	int status = VMT_STATUS_OK;
	int err = vmt_records_new(&records, feed->out, (enum vmt_script_format)feed->cli->format);

	if (err)
		vmt_diag_set(&diag, err, "memory is short", "");
	else
		err = vmt_items_open(&items, feed->reader, &diag);
	if (!err)
		feed->reader = NULL;
	if (!err)
		err = copy(feed, &items, &records, &diag);
	status = err ? vmt_cli_fail(&diag)
		     : vmt_feed_finish(feed, vmt_items_ledger(&items), records.records);
	vmt_items_close(&items);
	vmt_records_free(&records);
	return status;
}
