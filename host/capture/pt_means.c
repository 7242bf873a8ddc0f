// SPDX-License-Identifier: LGPL-2.1-or-later
/* Invariant: the rows stand best first. */
#include "host/capture/pt_means.h"

#include <stddef.h>

#include "decode/io/diagf.h"

static const struct means_row {
	enum vmx_pt_mode mode;
	bool conceals, needs_module;
	enum vmt_pt_means means;
} means_rows[] = {
	{ VMX_PT_SYSTEM, false, false, VMT_PT_MEANS_DRIVER },
	{ VMX_PT_SYSTEM, true, true, VMT_PT_MEANS_CONTROLS },
	{ VMX_PT_GUEST_ONLY, true, true, VMT_PT_MEANS_CONTROLS },
	{ VMX_PT_GUEST_ONLY, false, false, VMT_PT_MEANS_FILTER },
	{ VMX_PT_HOST_ONLY, false, false, VMT_PT_MEANS_FILTER },
};

int vmt_pt_means_choose(enum vmt_pt_means *out, enum vmx_pt_mode mode, bool conceal,
			bool has_module, struct vmt_diag *diag)
{
	for (size_t i = 0; i < sizeof(means_rows) / sizeof(means_rows[0]); i++) {
		const struct means_row *row = &means_rows[i];

		if (row->mode != mode)
			continue;
		if ((conceal && !row->conceals) || (row->needs_module && !has_module))
			continue;
		*out = row->means;
		return 0;
	}
	return vmt_diag_printf(diag, VMT_E_CAPABILITY, 0,
			       "load the kernel module: make kmod, insmod "
			       "build/kmod/vmtrace_vmx.ko (experimental)",
			       "nothing on this host can set the VMX controls for %s tracing%s",
			       vmx_pt_mode_name(mode), conceal ? " that is concealed" : "");
}

const char *vmt_pt_means_name(enum vmt_pt_means means)
{
	static const char *const names[VMT_PT_MEANS_NR] = { "driver", "vmx-controls", "filter" };

	return names[means];
}
