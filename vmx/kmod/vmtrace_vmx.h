/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
#ifndef VMTRACE_VMX_H
#define VMTRACE_VMX_H
/*
 * /dev/vmtrace_vmx: the VMX controls for Intel PT of chosen vCPU threads. Opening it takes
 * CAP_PERFMON. One descriptor at a time may be set up; closing it, by whatever end of the process,
 * undoes everything.
 *
 * From kvm_entry to kvm_exit of such a thread the bits of `set` are 1 and those of `clear` are 0 in
 * the current VMCS; before and after, the words are KVM's own. All zero: the words are only read.
 *
 * With "load IA32_RTIT_CTL" (VM-entry bit 18) and "clear IA32_RTIT_CTL" (VM-exit bit 25), which go
 * together, a perf event of intel_pt that excludes kernel and user gives the buffer and the terms:
 * IA32_RTIT_CTL in the guest is the event's with the bits of guest_ctl on top, and TraceEn is 0 in
 * the host from the first VM entry on. Where no such event runs the guest is not traced, and an
 * event of another kind is left alone.
 */
#include <linux/ioctl.h>
#include <linux/types.h>

#define VMTRACE_VMX_ABI	   1
#define VMTRACE_VMX_DEVICE "/dev/vmtrace_vmx"

enum {
	VMTRACE_VMX_SECONDARY, /* processor-based, 401EH */
	VMTRACE_VMX_EXIT,      /* 400CH */
	VMTRACE_VMX_ENTRY,     /* 4012H */
	VMTRACE_VMX_WORDS,
};

struct vmtrace_vmx_setup {
	__u32 abi;
	__u32 set[VMTRACE_VMX_WORDS];
	__u32 clear[VMTRACE_VMX_WORDS];
	__u32 reserved; /* 0 */
	__u64 guest_ctl;
};

struct vmtrace_vmx_state {
	__u32 tid;			   /* in */
	__u32 before[VMTRACE_VMX_WORDS];   /* KVM's, of the last VM entry */
	__u32 in_force[VMTRACE_VMX_WORDS]; /* read back before that entry */
	__u32 after[VMTRACE_VMX_WORDS];	   /* read back after the exit */
	__u64 guest_ctl; /* field 2814H at the last entry that loads it, 0: none */
	__u64 entries;	 /* with the words in force */
	__u64 untraced;	 /* no event: words of KVM */
	__u64 left;	 /* the guest traces itself by KVM: words of KVM */
	__u64 rewritten; /* KVM has written a word between kvm_entry and the entry */
};

/*
 * EINVAL: another ABI, or bits that are none of the controls. EOPNOTSUPP: the CPU does not allow
 * them (IA32_VMX_MISC[14] and the allowed-0 and allowed-1 settings). EBUSY: somebody else's setup
 * is in force, or this one's already.
 */
#define VMTRACE_VMX_SETUP _IOW('V', 0xd0, struct vmtrace_vmx_setup)
/* A thread id of the caller's PID namespace. ESRCH; EEXIST; ENOSPC: more than 4096. */
#define VMTRACE_VMX_ADD _IOW('V', 0xd1, __u32)
/* ENOENT: the thread is none of those added. */
#define VMTRACE_VMX_READ _IOWR('V', 0xd2, struct vmtrace_vmx_state)

#endif
