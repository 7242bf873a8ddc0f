// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Prints the VMX controls that KVM gives vCPU threads, by the kernel module vmtrace_vmx, which is
 * asked to read them only: a line "TID secondary exit entry" each, once each thread has entered its
 * guest. usage: vmxwords TID...
 */
#include "vmx/kmod/vmtrace_vmx.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int fail(const char *what)
{
	perror(what);
	return 1;
}

int main(int argc, char **argv)
{
	const struct vmtrace_vmx_setup setup = { .abi = VMTRACE_VMX_ABI };
	const int fd = open(VMTRACE_VMX_DEVICE, O_RDWR);

	if (fd < 0 || ioctl(fd, VMTRACE_VMX_SETUP, &setup))
		return fail(VMTRACE_VMX_DEVICE);
	for (int i = 1; i < argc; i++) {
		struct vmtrace_vmx_state state = { .tid = (__u32)atoi(argv[i]) };

		if (ioctl(fd, VMTRACE_VMX_ADD, &state.tid))
			return fail(argv[i]);
		for (int tries = 0; tries < 500 && !state.entries; tries++) {
			usleep(1000);
			if (ioctl(fd, VMTRACE_VMX_READ, &state))
				return fail(argv[i]);
		}
		if (state.entries)
			printf("%u 0x%x 0x%x 0x%x\n", state.tid, state.in_force[0],
			       state.in_force[1], state.in_force[2]);
	}
	return 0;
}
