// SPDX-License-Identifier: LGPL-2.1-or-later
/* Invariant: what the module is told is the plan, word by word, and nothing else. */
#include "host/capture/vmx_module.h"

#include <errno.h>
#include <stdint.h>

#include "decode/io/diagf.h"
#include "vmx/rtit.h"

int vmt_vmx_module_open(const struct vmt_perf_ops *ops, struct vmt_diag *diag)
{
	const int fd = ops->open_device(VMTRACE_VMX_DEVICE);

	if (fd >= 0)
		return fd;
	if (errno == ENOENT || errno == ENODEV || errno == ENXIO)
		return vmt_diag_set(diag, VMT_E_NOT_FOUND,
				    "the kernel module vmtrace_vmx is not loaded",
				    "build it with make kmod and load it with insmod "
				    "build/kmod/vmtrace_vmx.ko");
	if (errno == EACCES || errno == EPERM)
		return vmt_diag_set(diag, VMT_E_PERMISSION,
				    "no right to set VMX controls by " VMTRACE_VMX_DEVICE,
				    "run as root, or with CAP_PERFMON and access to the device");
	return vmt_diag_printf(diag, VMT_E_IO, errno, NULL, "cannot open " VMTRACE_VMX_DEVICE);
}

int vmt_vmx_module_setup(const struct vmt_perf_ops *ops, int fd, const struct vmx_pt_plan *plan,
			 struct vmt_diag *diag)
{
	static const enum vmx_ctl_word words[VMTRACE_VMX_WORDS] = {
		[VMTRACE_VMX_SECONDARY] = VMX_CTL_PROC2,
		[VMTRACE_VMX_EXIT] = VMX_CTL_EXIT,
		[VMTRACE_VMX_ENTRY] = VMX_CTL_ENTRY,
	};
	struct vmtrace_vmx_setup setup = { .abi = VMTRACE_VMX_ABI };

	for (unsigned int i = 0; i < VMTRACE_VMX_WORDS; i++)
		vmx_pt_plan_word(plan, words[i], &setup.set[i], &setup.clear[i]);
	if (plan->has_guest_ctl)
		setup.guest_ctl = plan->guest_ctl & (VMX_RTIT_OS | VMX_RTIT_USER);
	if (!ops->control(fd, VMTRACE_VMX_SETUP, (uintptr_t)&setup))
		return 0;
	if (errno == EOPNOTSUPP)
		return vmt_diag_set(diag, VMT_E_CAPABILITY,
				    "this CPU does not allow the VMX controls that it takes",
				    "vmtrace vmx plan says which");
	if (errno == EBUSY)
		return vmt_diag_set(diag, VMT_E_EXISTS,
				    "another capture sets VMX controls by the module vmtrace_vmx",
				    "stop it first: vmtrace status");
	if (errno == EINVAL)
		return vmt_diag_set(diag, VMT_E_CAPABILITY,
				    "the loaded module vmtrace_vmx is of another version",
				    "build and load the one that belongs to this program");
	return vmt_diag_printf(diag, VMT_E_IO, errno, NULL, "cannot set VMX controls");
}

int vmt_vmx_module_add(const struct vmt_perf_ops *ops, int fd, pid_t tid, struct vmt_diag *diag)
{
	uint32_t number = (uint32_t)tid;

	if (!ops->control(fd, VMTRACE_VMX_ADD, (uintptr_t)&number) || errno == ESRCH ||
	    errno == EEXIST)
		return 0;
	return vmt_diag_printf(diag, errno == ENOSPC ? VMT_E_LIMIT : VMT_E_IO, errno, NULL,
			       "cannot set VMX controls of thread %d", tid);
}

bool vmt_vmx_module_read(const struct vmt_perf_ops *ops, int fd, pid_t tid,
			 struct vmtrace_vmx_state *out)
{
	*out = (struct vmtrace_vmx_state){ .tid = (uint32_t)tid };
	return ops->control(fd, VMTRACE_VMX_READ, (uintptr_t)out) == 0;
}
