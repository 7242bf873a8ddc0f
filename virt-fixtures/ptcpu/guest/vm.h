// SPDX-License-Identifier: LGPL-2.1-or-later
#ifndef VMT_PTCPU_GUEST_VM_H
#define VMT_PTCPU_GUEST_VM_H
/*
 * A guest of a few instructions on /dev/kvm, so small that a trace of it stays small: it spins,
 * reads its TSC and writes to a port `outs` times, calls and returns, executes CPUID and halts.
 */
#include <stdint.h>

enum vm_kind {
	VM_REAL, /* real mode */
	VM_LONG, /* 64-bit mode with paging */
	VM_SELF, /* 64-bit mode; it traces itself into a page that it never touches */
};

enum { VM_CR3 = 0x4000, VM_OUTPUT = 0x7000, VM_OUTPUT_BYTES = 0x1000 };

struct vm {
	int fd, vcpu;
	uint8_t *ram;
	void *run;
	uint32_t exits; /* to user space */
};

/* At tsc_khz, 0: the host's rate. Exits on failure. */
void vm_create(struct vm *vm, enum vm_kind kind, uint32_t outs, uint32_t tsc_khz);
/* Until the guest halts. */
void vm_run(struct vm *vm);

#endif
