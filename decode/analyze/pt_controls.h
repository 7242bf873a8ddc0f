/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_ANALYZE_PT_CONTROLS_H
#define VMT_ANALYZE_PT_CONTROLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/pt/decoder.h"
#include "vmx/pt_plan.h"

/*
 * How a capture wants Intel PT to be traced, by its session document, and the VMX controls that
 * were in force; held against the plan for it (vmx/pt_plan.h), and the stream as well.
 */
enum vmt_pt_words { VMT_PT_SECONDARY, VMT_PT_EXIT, VMT_PT_ENTRY, VMT_PT_WORDS };

struct vmt_pt_controls {
	bool known; /* the document says it; else system-wide tracing is supposed */
	enum vmx_pt_mode mode;
	bool conceal;
	const char *means; /* "driver", "vmx-controls", "other", static; NULL: not known */
	/* Of all vCPUs of which words are told: bits that were 1 in one, and in all of them. */
	size_t nr_vcpus;
	uint32_t any[VMT_PT_WORDS], all[VMT_PT_WORDS];
	uint64_t entries, untraced, left,
		rewritten; /* VM entries, as the kernel module counts them */
};

/* The value of "pt" in a session document (a json_t of jansson); the last one counts. */
struct json_t;
void vmt_pt_controls_take(struct vmt_pt_controls *controls, const struct json_t *pt);

/*
 * What differs from the plan, as static texts, at most VMX_PT_PROBLEMS_MAX: "bit 24 of the VM-exit
 * controls seems to be 1". guest_ran: it is known from elsewhere that guests ran where the stream
 * covers it. Too few transitions prove nothing.
 */
unsigned int vmt_pt_controls_compare(const struct vmt_pt_controls *controls,
				     const struct vmt_pt_counts *counts, bool guest_ran,
				     const char *texts[VMX_PT_PROBLEMS_MAX]);

/* The nth control whose value at VM entries was not as planned; false when there is none. */
bool vmt_pt_controls_differ(const struct vmt_pt_controls *controls, unsigned int nth,
			    struct vmx_pt_control *planned);

#endif
