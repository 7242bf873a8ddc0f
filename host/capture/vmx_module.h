/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_CAPTURE_VMX_MODULE_H
#define VMT_CAPTURE_VMX_MODULE_H

#include <stdbool.h>
#include <sys/types.h>

#include "host/capture/perf_event.h"
#include "vmx/kmod/vmtrace_vmx.h"
#include "vmx/pt_plan.h"

/*
 * The kernel module of vmx/kmod by its device: VMX controls for Intel PT of chosen vCPU threads. It
 * undoes what it did when the descriptor is closed.
 */

/*
 * A descriptor. VMT_E_NOT_FOUND: the module is not loaded. VMT_E_PERMISSION. VMT_E_IO otherwise.
 */
int vmt_vmx_module_open(const struct vmt_perf_ops *ops, struct vmt_diag *diag);

/*
 * The words of a plan that needs no MSR-load lists. VMT_E_CAPABILITY: this CPU does not allow them.
 * VMT_E_EXISTS: another capture has the module.
 */
int vmt_vmx_module_setup(const struct vmt_perf_ops *ops, int fd, const struct vmx_pt_plan *plan,
			 struct vmt_diag *diag);

/* For one more thread; 0 as well when it has ended, or is there already. VMT_E_LIMIT, VMT_E_IO. */
int vmt_vmx_module_add(const struct vmt_perf_ops *ops, int fd, pid_t tid, struct vmt_diag *diag);

/* False when it is none of the threads. */
bool vmt_vmx_module_read(const struct vmt_perf_ops *ops, int fd, pid_t tid,
			 struct vmtrace_vmx_state *out);

#endif
