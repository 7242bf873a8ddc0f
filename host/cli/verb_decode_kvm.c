// SPDX-License-Identifier: LGPL-2.1-or-later
/* vmtrace decode kvm: the records of a capture as they stand in the file, and the loss ledger. */
#include "decode/export/records.h"
#include "decode/perfdata/perfdata.h"
#include "decode/store/store.h"
#include "host/cli/decode.h"

/* Either kind of file; both deliver the same items. */
struct source {
	struct vmt_store_reader *store;
	struct vmt_perfdata *perf;
};

static int open_source(struct vmt_feed *feed, struct source *source, struct vmt_diag *diag)
{
	int is_store = vmt_store_recognise(feed->reader, diag), err;

	if (is_store < 0)
		return is_store;
	err = is_store ? vmt_store_open(&source->store, feed->reader, diag)
		       : vmt_perfdata_open(&source->perf, feed->reader, diag);
	if (!err)
		feed->reader = NULL;
	return err;
}

static int next_item(struct source *source, struct vmt_item *item, struct vmt_diag *diag)
{
	return source->store ? vmt_store_next(source->store, item, diag)
			     : vmt_perfdata_next(source->perf, item, diag);
}

static struct vmt_ledger ledger_of(const struct source *source)
{
	return source->store ? vmt_store_ledger(source->store) : vmt_perfdata_ledger(source->perf);
}

static int copy(struct vmt_feed *feed, struct source *source, struct vmt_records *records,
		struct vmt_diag *diag)
{
	struct vmt_item item;
	int got = 1;

	while (!feed->out->sys_errno && (got = next_item(source, &item, diag)) > 0)
		vmt_records_item(records, &item);
	if (got < 0)
		return got;
	vmt_records_ledger(records, ledger_of(source));
	return 0;
}

int vmt_decode_kvm(struct vmt_feed *feed)
{
	struct source source = { 0 };
	struct vmt_records records;
	struct vmt_diag diag = { 0 };
	int status = VMT_STATUS_OK;
	int err = vmt_records_new(&records, feed->out, (enum vmt_script_format)feed->cli->format);

	if (err)
		vmt_diag_set(&diag, err, "memory is short", "");
	else
		err = open_source(feed, &source, &diag);
	if (!err)
		err = copy(feed, &source, &records, &diag);
	status = err ? vmt_cli_fail(&diag)
		     : vmt_feed_finish(feed, ledger_of(&source), records.records);
	if (source.store)
		vmt_store_close(source.store);
	if (source.perf)
		vmt_perfdata_close(source.perf);
	vmt_records_free(&records);
	return status;
}
