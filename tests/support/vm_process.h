/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_SUPPORT_VM_PROCESS_H
#define VMT_SUPPORT_VM_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * A process that is a small KVM virtual machine: vCPU threads named "CPU n/KVM" whose guest writes
 * to port 0x3f8 for ever, one exit to user space a write. It does what it is told, exactly.
 */
struct vm_process {
	pid_t pid;
	int to, from; /* pipes */
};

/* NULL, or why such a machine cannot run and be captured here (static text). */
const char *vm_process_reason(void);

/* Starts it with nr_vcpus threads that wait. Aborts when that fails. */
void vm_process_start(struct vm_process *vm, unsigned int nr_vcpus);
/* One more vCPU thread, which waits. */
void vm_process_add_vcpu(struct vm_process *vm);
/* vCPU n runs the guest for nr_writes writes, sleeping once in between; returns when it is done. */
void vm_process_run(struct vm_process *vm, unsigned int vcpu, unsigned int nr_writes);
/* Ends it and reaps it. */
void vm_process_stop(struct vm_process *vm);

#endif
