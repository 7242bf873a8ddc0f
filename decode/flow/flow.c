// SPDX-License-Identifier: LGPL-2.1-or-later
/* The flow of one stream: its decoder feeds it packet by packet. */
#include "decode/flow/flow.h"

#include <stdlib.h>
#include <string.h>

#include "decode/flow/flow_private.h"

struct vmt_flow *vmt_flow_new(const struct vmt_flow_options *options)
{
	struct vmt_flow *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->options = *options;
	if (f->options.nr_filters > VMT_FLOW_FILTERS_MAX)
		f->options.nr_filters = VMT_FLOW_FILTERS_MAX;
	f->errata = vmt_pt_errata_of(&options->pt.cpu);
	f->state.mode = VMT_INSN_64;
	f->options.pt.packet = flow_packet;
	f->options.pt.skipped = flow_skipped;
	f->options.pt.branches = flow_branches;
	f->options.pt.packet_context = f;
	f->decoder = vmt_pt_decoder_new(&f->options.pt);
	if (!f->decoder || !flow_cache_init(&f->cache)) {
		vmt_flow_free(f);
		return NULL;
	}
	f->clock = vmt_pt_decoder_clock(f->decoder);
	return f;
}

void vmt_flow_free(struct vmt_flow *f)
{
	if (!f)
		return;
	vmt_pt_decoder_free(f->decoder);
	flow_cache_fini(&f->cache);
	free(f);
}

void vmt_flow_feed(struct vmt_flow *f, const uint8_t *bytes, size_t len)
{
	vmt_pt_decoder_feed(f->decoder, bytes, len);
}

/* Bytes are missing in the stream. */
static void cut(struct vmt_flow *f)
{
	f->psb.inside = false;
	f->skipped = false;
	if (f->phase == FLOW_ON && !f->unconfirmed)
		flow_lose(f, "bytes are missing or damaged");
	f->phase = FLOW_LOST;
	f->unconfirmed = false;
	f->pending = 0;
}

void vmt_flow_gap(struct vmt_flow *f)
{
	vmt_pt_decoder_gap(f->decoder);
	cut(f);
}

void vmt_flow_seek(struct vmt_flow *f)
{
	vmt_pt_decoder_seek(f->decoder);
	cut(f);
}

void vmt_flow_end(struct vmt_flow *f)
{
	vmt_pt_decoder_end(f->decoder);
}

struct vmt_flow_counts vmt_flow_counts(const struct vmt_flow *f)
{
	return f->counts;
}

struct vmt_ledger vmt_flow_ledger(const struct vmt_flow *f)
{
	return vmt_pt_decoder_ledger(f->decoder);
}

const char *vmt_flow_event_name(enum vmt_flow_event_type type)
{
	static const char *const names[VMT_FLOW_EVENT_COUNT] = {
		[VMT_FLOW_ENABLED] = "enabled",
		[VMT_FLOW_DISABLED] = "disabled",
		[VMT_FLOW_RESUMED] = "resumed",
		[VMT_FLOW_OVERFLOW] = "overflow",
		[VMT_FLOW_ASYNC] = "async",
		[VMT_FLOW_VM_ENTRY] = "vm_entry",
		[VMT_FLOW_VM_EXIT] = "vm_exit",
		[VMT_FLOW_ENTRY_FAILED] = "entry_failed",
		[VMT_FLOW_CR3] = "cr3",
		[VMT_FLOW_IF] = "if",
		[VMT_FLOW_TSX] = "tsx",
		[VMT_FLOW_PTWRITE] = "ptwrite",
		[VMT_FLOW_STOPPED] = "stopped",
		[VMT_FLOW_NOTE] = "note",
		[VMT_FLOW_TRACESTOP] = "tracestop",
		[VMT_FLOW_ERROR] = "error",
	};

	return (unsigned int)type < VMT_FLOW_EVENT_COUNT ? names[type] : NULL;
}
