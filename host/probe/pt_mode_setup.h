/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_PROBE_PT_MODE_SETUP_H
#define VMT_PROBE_PT_MODE_SETUP_H

#include <stdbool.h>
#include <stddef.h>

#include "decode/base/diag.h"
#include "host/domain/hostfs.h"

/*
 * The parameter pt_mode of kvm_intel: 0 "system" (the host traces itself and its guests), 1
 * "host-guest" (KVM switches the host's trace off in guests, which may use Intel PT themselves).
 * Kernels since 6.12 are built without it.
 */
struct vmt_pt_mode_setup {
	unsigned int mode, mode_now;
	char file[VMT_PATH_MAX]; /* ETC/modprobe.d/vmtrace.conf */
};

/*
 * Writes the module's option for the mode ("system", "host-guest") into out->file, replacing what
 * vmtrace wrote there before. It is in force when the module is loaded next. VMT_E_USAGE: no such
 * mode. VMT_E_CAPABILITY: kvm_intel is not loaded, has no such parameter or is part of the kernel;
 * the cure says what applies then. VMT_E_EXISTS: virtual machines run, or the file is somebody
 * else's. VMT_E_PERMISSION and others of vmt_output_open.
 */
int vmt_pt_mode_setup(struct vmt_pt_mode_setup *out, const char *mode, const struct vmt_hostfs *fs,
		      struct vmt_diag *diag);

/* "system", "host-guest" */
const char *vmt_pt_mode_name(unsigned int mode);

#endif
