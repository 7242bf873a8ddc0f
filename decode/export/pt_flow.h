/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_EXPORT_PT_FLOW_H
#define VMT_EXPORT_PT_FLOW_H

#include "decode/base/item.h"
#include "decode/export/script.h"
#include "decode/flow/flow.h"

/*
 * The instruction flow of Intel PT, one instruction, block or call a line, events between them, as
 * text or as JSON Lines of schema vmtrace-flow/1: a header line, then with "offset":N of the packet
 * in its stream, "tsc":H and "nonroot":B
 *   {"type":"insn","mode":N,"ip":H,"bytes":S,"class":S}
 *   {"type":"block","mode":N,"ip":H,"last_ip":H,"count":N,"class":S,"next_ip":H}
 *   {"type":"call","depth":N,"class":S,"ip":H,"next_ip":H}   also returns and far branches
 *   {"type":"event","event":S,"ip":H,"to":H,"name":S, ...}
 *   {"ledger":{...},"flow":{...}}                            the last line
 * With areas each line but the first and the last begins with "cpu":N or "tid":N. Errors of writing
 * stay in `out`.
 */
enum vmt_flow_detail {
	VMT_FLOW_INSN,
	VMT_FLOW_BLOCK,
	VMT_FLOW_CALL,
};

struct vmt_flow_lines {
	struct vmt_out *out;
	bool json;
	enum vmt_flow_detail detail;
	const struct vmt_flow *flow; /* that calls */
	uint64_t depth[2];	     /* of calls, in root and in non-root operation */
	struct vmt_flow_counts sum;  /* vmt_flow_lines_add */
	char area_json[24], area_text[16];
	const struct vmt_flow_state *state; /* inside a call */
};

void vmt_flow_lines_begin(const struct vmt_flow_lines *lines);
/* Whose flow comes: cpu, or, where that is VMT_AUX_NO_CPU, tid. */
void vmt_flow_lines_area(struct vmt_flow_lines *lines, uint32_t cpu, uint32_t tid);
/* For struct vmt_flow_options; context: struct vmt_flow_lines. */
void vmt_flow_lines_block(void *context, const struct vmt_flow_state *state,
			  const struct vmt_flow_block *block);
void vmt_flow_lines_event(void *context, const struct vmt_flow_state *state,
			  const struct vmt_flow_event *event);
/* The flow of a stream has ended. */
void vmt_flow_lines_add(struct vmt_flow_lines *lines, const struct vmt_flow_counts *counts);
void vmt_flow_lines_ledger(const struct vmt_flow_lines *lines, const struct vmt_ledger *ledger);

#endif
