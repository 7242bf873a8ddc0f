/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_FLOW_IPT_H
#define VMT_SUPPORT_FLOW_IPT_H

/*
 * libipt's instruction flow over the streams of flow_generate.h: an oracle and a peer. Code lies in
 * one file that libipt maps. To be included by programs that link with libipt.
 */
#include <intel-pt.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/flow_generate.h"

struct flow_ipt {
	struct pt_config config;
	struct pt_image_section_cache *cache; /* keeps the file mapped and the blocks */
	struct pt_image *image;
	char path[64];
};

/* The host's code, the first section, at its address in every address space. */
static inline void flow_ipt_open(struct flow_ipt *ipt, struct vmt_flowgen *gen)
{
	const struct vmt_flowgen_section *s = &gen->sections[0];
	FILE *f;
	int fd, section;

	memset(ipt, 0, sizeof(*ipt));
	pt_config_init(&ipt->config);
	ipt->config.begin = gen->stream.bytes;
	ipt->config.end = gen->stream.bytes + gen->stream.len;
	ipt->image = pt_image_alloc("code");
	ipt->cache = pt_iscache_alloc("code");
	strcpy(ipt->path, "/tmp/vmt-flow-XXXXXX");
	fd = mkstemp(ipt->path);
	f = fd < 0 ? NULL : fdopen(fd, "wb");
	if (!f || fwrite(s->bytes, 1, s->len, f) != s->len || fclose(f) || !ipt->image ||
	    !ipt->cache || pt_iscache_set_limit(ipt->cache, UINT64_C(1) << 32) < 0)
		abort();
	section = pt_iscache_add_file(ipt->cache, ipt->path, 0, s->len, s->addr);
	if (section < 0 || pt_image_add_cached(ipt->image, ipt->cache, section, NULL) < 0)
		abort();
}

static inline void flow_ipt_close(struct flow_ipt *ipt)
{
	pt_image_free(ipt->image);
	pt_iscache_free(ipt->cache);
	unlink(ipt->path);
}

/* Calls fn for each block; returns how many instructions there are, or a negative error. */
static inline int64_t flow_ipt_blocks(struct flow_ipt *ipt,
				      void (*fn)(void *context, const struct pt_block *block),
				      void *context)
{
	struct pt_block_decoder *decoder = pt_blk_alloc_decoder(&ipt->config);
	int64_t instructions = 0;
	int status;

	if (!decoder || pt_blk_set_image(decoder, ipt->image) < 0)
		abort();
	status = pt_blk_sync_forward(decoder);
	while (status >= 0 && !(status & pts_eos)) {
		struct pt_event event;
		struct pt_block block;

		while (status >= 0 && status & pts_event_pending)
			status = pt_blk_event(decoder, &event, sizeof(event));
		if (status < 0 || status & pts_eos)
			break;
		status = pt_blk_next(decoder, &block, sizeof(block));
		instructions += block.ninsn;
		if (fn && block.ninsn)
			fn(context, &block);
	}
	pt_blk_free_decoder(decoder);
	return status < 0 && status != -pte_eos ? status : instructions;
}

/* Calls fn for each instruction; 0, or a negative error. */
static inline int flow_ipt_insns(struct flow_ipt *ipt,
				 void (*fn)(void *context, const struct pt_insn *insn),
				 void *context)
{
	struct pt_insn_decoder *decoder = pt_insn_alloc_decoder(&ipt->config);
	int status;

	if (!decoder || pt_insn_set_image(decoder, ipt->image) < 0)
		abort();
	status = pt_insn_sync_forward(decoder);
	while (status >= 0 && !(status & pts_eos)) {
		struct pt_event event;
		struct pt_insn insn;

		while (status >= 0 && status & pts_event_pending)
			status = pt_insn_event(decoder, &event, sizeof(event));
		if (status < 0 || status & pts_eos)
			break;
		status = pt_insn_next(decoder, &insn, sizeof(insn));
		if (status >= 0 || insn.iclass != ptic_error)
			fn(context, &insn);
	}
	pt_insn_free_decoder(decoder);
	return status < 0 && status != -pte_eos ? status : 0;
}

#endif
