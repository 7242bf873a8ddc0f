/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_PT_SETUP_H
#define VMT_CAPTURE_PT_SETUP_H

#include "host/capture/capture.h"
#include "host/capture/live.h"

/* VMT_E_USAGE when options of Intel PT are given but Intel PT is not asked for. */
int vmt_pt_check_options(const struct vmt_capture_options *options, bool wanted,
			 struct vmt_diag *diag);

/*
 * Reads the PMU, makes the configuration of setup, writes AUX_INFO into setup->store and sets the
 * module of vmx/kmod up where what is asked for takes it; setup->controls is then open. Errors of
 * vmt_pt_pmu_read, vmt_pt_config_make, vmt_store_append, vmt_pt_means_choose and of the module.
 */
int vmt_pt_setup(struct vmt_live_setup *setup, const struct vmt_capture_options *options,
		 const struct vmt_anchor *anchor, const struct vmt_hostfs *fs,
		 struct vmt_diag *diag);

#endif
