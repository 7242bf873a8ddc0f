// SPDX-License-Identifier: LGPL-2.1-or-later
/* What is missing from an input, by reason. */
#include <string.h>

#include "decode/analyze/input_private.h"

const char *input_loss_kind(const char *kind)
{
	static const char *const kinds[] = { "ring-full",      "ring-damaged", "throttled",
					     "size-limit",     "no-space",     "free-space",
					     "io-error",       "damaged",      "truncated",
					     "missing-chunks", "unsupported",  "after-end",
					     "auxtrace",       "aux-limit",    "spool-full",
					     "overflow" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kind && !strcmp(kind, kinds[i]))
			return kinds[i];
	}
	return "other";
}

void input_loss_count(struct vmt_input *in, const char *kind, uint64_t records, uint64_t bytes)
{
	struct vmt_input_facts *f = &in->facts;
	struct vmt_input_loss *loss;
	size_t i = 0;

	while (i < f->nr_losses && strcmp(f->losses[i].kind, kind) != 0)
		i++;
	if (i == VMT_INPUT_LOSSES)
		return; /* more than there are kinds */
	loss = &f->losses[i];
	if (i == f->nr_losses) {
		loss->kind = kind;
		f->nr_losses++;
	}
	loss->times++;
	loss->records += records;
	loss->bytes += bytes;
}
