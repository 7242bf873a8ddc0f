// SPDX-License-Identifier: LGPL-2.1-or-later
/* Capability texts, and a plan of every kind on what they say. */
#include <stdlib.h>

#include "host/probe/pt_caps.h"
#include "vmx/pt_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vmt_pt_caps caps;
	struct vmt_diag diag = { 0 };
	int err = vmt_pt_caps_text(&caps, data, size, &diag);

	if (err && err != VMT_E_DAMAGED)
		abort();
	for (unsigned int i = 0; i < VMX_PT_MODES * 8; i++) {
		const struct vmx_pt_request request = { .mode = (enum vmx_pt_mode)(i / 8),
							.conceal = i & 1,
							.event_trace = i & 2,
							.no_branches = i & 4 };
		struct vmx_pt_expect expect[VMX_PT_EXPECT_MAX];
		struct vmx_pt_plan plan;

		vmx_pt_plan_make(&request, &caps.cpu, &plan);
		if (plan.nr_problems == 0 && (plan.entry_fails || plan.unsure))
			abort();
		for (unsigned int t = 0; t < VMX_PT_TRANSITIONS; t++) {
			if (vmx_pt_plan_expect(&plan, (enum vmx_pt_transition)t, expect) >
			    VMX_PT_EXPECT_MAX)
				abort();
		}
	}
	vmx_pt_guest_time_of(&caps.cpu, size ? UINT64_MAX / (data[0] + 1u) : 0, 48);
	return 0;
}
