/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_FLOW_TEXT_H
#define VMT_SUPPORT_FLOW_TEXT_H

#include <stddef.h>

#include "decode/flow/flow.h"
#include "tests/support/pt_vtt.h"

/*
 * One line for a block or an event of the flow, without a newline:
 *   run FIRST..LAST n=COUNT CLASS -> NEXT|-        event [IP] [-> TO] [NAME=VALUE ...]
 * then what is not the default of the state: guest, 16 or 32, cr3=, vmcs=, tsc=. size >= 256.
 */
char *vmt_flow_block_text(char *buf, size_t size, const struct vmt_flow_state *state,
			  const struct vmt_flow_block *block);
char *vmt_flow_event_text(char *buf, size_t size, const struct vmt_flow_state *state,
			  const struct vmt_flow_event *event);

/* The flow of a fixture's stream and code as such lines, one each; *len without the zero byte. The
 * caller frees the text. Aborts when memory is short. */
char *vmt_flow_list(const struct vmt_vtt *vtt, size_t *len, struct vmt_flow_counts *counts);

#endif
