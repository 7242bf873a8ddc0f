/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_EXPORT_RECORDS_H
#define VMT_EXPORT_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/base/item.h"
#include "decode/export/script.h"
#include "decode/kvm/rec.h"
#include "decode/ring/ring.h"

/*
 * The records of a capture one a line, in file order, each with its offset and length, as they
 * stand there: nothing is merged or joined. Errors of writing stay in `out`.
 *
 * The offset is that of the item (a chunk of a .vmt, a run of records of a perf.data) and `at` the
 * place in its data, which in a compressed chunk has no place in the file.
 */
struct vmt_records {
	struct vmt_out *out;
	enum vmt_script_format format;
	struct vmt_ring_set *set;
	struct vmt_catalog *catalog;
	uint64_t records;
	uint64_t skipped; /* bytes of RECORDS items that are no records */
};

/* VMT_E_NOMEM. Free with vmt_records_free in either case. */
int vmt_records_new(struct vmt_records *records, struct vmt_out *out,
		    enum vmt_script_format format);
void vmt_records_free(struct vmt_records *records);

/* One item of any type; what says what events are (ATTR, FORMAT) is learned and printed as well. */
void vmt_records_item(struct vmt_records *records, const struct vmt_item *item);

/* The last line: the account of all bytes. ledger is the file reader's. */
void vmt_records_ledger(struct vmt_records *records, struct vmt_ledger ledger);

#endif
