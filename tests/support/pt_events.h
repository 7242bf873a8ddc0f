/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_PT_EVENTS_H
#define VMT_SUPPORT_PT_EVENTS_H

#include "decode/pt/decoder.h"

struct vmt_pt_result {
	char *events; /* a line an event (event_text.h), without " source=pt"; free it */
	struct vmt_pt_counts counts;
	struct vmt_ledger ledger;
	char skipped[512]; /* "OFFSET+LENGTH why;" for each stretch */
};

/*
 * Decodes a stream given as words (pt_text.h), "gap" and "seek" between them call
 * vmt_pt_decoder_gap and _seek. piece: bytes a feed, 0 for all at once. Aborts when the ledger does
 * not balance. options: emit and skipped are set here.
 */
struct vmt_pt_result vmt_pt_events(const char *text, const struct vmt_pt_decoder_options *options,
				   size_t piece);

#endif
