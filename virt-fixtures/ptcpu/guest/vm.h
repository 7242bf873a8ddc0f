// SPDX-License-Identifier: LGPL-2.1-or-later
#ifndef VMT_PTCPU_GUEST_VM_H
#define VMT_PTCPU_GUEST_VM_H
/*
 * A guest of a few instructions on /dev/kvm, so small that a trace of it stays small: it spins,
 * reads its TSC and writes to a port `outs` times, calls and returns, executes CPUID and halts.
 */
#include <stdbool.h>
#include <stdint.h>

struct vm {
	int fd, vcpu;
	uint8_t *ram;
	void *run;
	uint32_t exits; /* to user space */
};

/* In 64-bit mode with paging, or in real mode; at tsc_khz, 0: the host's rate. Exits on failure. */
void vm_create(struct vm *vm, bool long_mode, uint32_t outs, uint32_t tsc_khz);
/* Until the guest halts. */
void vm_run(struct vm *vm);

#endif
