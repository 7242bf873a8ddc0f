/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_PT_MEANS_H
#define VMT_CAPTURE_PT_MEANS_H

#include <stdbool.h>

#include "decode/base/diag.h"
#include "vmx/pt_plan.h"

/* By which means a capture comes to hold what is asked for. */
enum vmt_pt_means {
	VMT_PT_MEANS_DRIVER,   /* the driver records what runs, as it is */
	VMT_PT_MEANS_CONTROLS, /* VMX controls, set by the kernel module of vmx/kmod */
	VMT_PT_MEANS_FILTER,   /* the recorder stores one side alone (decode/rewrite) */
	VMT_PT_MEANS_NR,
};

const char *vmt_pt_means_name(enum vmt_pt_means means);

/*
 * The best means for a way of tracing on a host that has the module or not. VMT_E_CAPABILITY: it
 * has none of the means.
 */
int vmt_pt_means_choose(enum vmt_pt_means *out, enum vmx_pt_mode mode, bool conceal,
			bool has_module, struct vmt_diag *diag);

#endif
