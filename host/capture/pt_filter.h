/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_PT_FILTER_H
#define VMT_CAPTURE_PT_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "decode/base/diag.h"

#define VMT_PT_FILTER_MAX 1024u

/*
 * Address filters of Intel PT in perf's words, "ACTION START/SIZE[@FILE]" with commas or blanks
 * between: `filter` traces inside the range alone, `stop` and `tracestop` end the trace where it is
 * entered. Numbers in C syntax; without @FILE the range is of linear addresses, of the host and of
 * guests alike. Writes them into out as PERF_EVENT_IOC_SET_FILTER of intel_pt takes them.
 *
 * VMT_E_USAGE with the offset and what is expected; VMT_E_CAPABILITY: more than nr_max, `start`, or
 * a @FILE system-wide, which the driver refuses.
 */
int vmt_pt_filter_make(char out[VMT_PT_FILTER_MAX], const char *text, unsigned int nr_max,
		       bool system_wide, struct vmt_diag *diag);

#endif
