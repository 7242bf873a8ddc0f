/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_BASE_EVENT_H
#define VMT_BASE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/base/clock.h"

/*
 * The one event that every source ends in; analysis and exports know nothing else. A field is valid
 * only when its VMT_HAS_* bit is set in `has`: unknown is absent, never zero.
 */
enum vmt_event_type {
	VMT_EVENT_ENTRY,     /* VM entry */
	VMT_EVENT_EXIT,	     /* VM exit, or an entry that failed (failed_entry) */
	VMT_EVENT_USERSPACE, /* KVM_RUN returned to the VMM (reason = KVM_EXIT_*) */
	VMT_EVENT_SWITCH,    /* the vCPU thread left or got a host CPU */
	VMT_EVENT_WAKEUP,    /* a halted vCPU is runnable again (duration_ns = time halted) */
	VMT_EVENT_INJECT,    /* an interrupt or exception is injected into the guest */
	VMT_EVENT_TSC_WRITE, /* KVM set a vCPU's TSC offset (value = next offset) */
	VMT_EVENT_NOTE,	     /* any other KVM record; name = tracepoint, key when it has one */
	VMT_EVENT_MARK,	     /* life of the domain or session: name = started, paused, reset, … */
	VMT_EVENT_LOSS,	     /* records or bytes are missing: value = how many, name = kind */
	VMT_EVENT_GAP,	     /* guest/host changed somewhere inside a loss */
	VMT_EVENT_TYPE_COUNT,
};

enum vmt_source {
	VMT_SOURCE_KVM,
	VMT_SOURCE_PT,
	VMT_SOURCE_SCHED,
	VMT_SOURCE_SESSION,
};

enum vmt_isa {
	VMT_ISA_UNKNOWN = 0,
	VMT_ISA_VMX = 1, /* the values of kvm_exit.isa */
	VMT_ISA_SVM = 2,
};

/* What a sub-key names; vmt_key_format writes it as `msr:0x6e0:w`, `port:0x3f8:out`, … */
enum vmt_key_kind {
	VMT_KEY_NONE = 0,
	VMT_KEY_MSR,	    /* number = index, access r/w */
	VMT_KEY_PORT,	    /* number = port, access in/out */
	VMT_KEY_GPA,	    /* number = guest-physical address, access r/w/x */
	VMT_KEY_CPUID,	    /* number = leaf, sub = sub-leaf */
	VMT_KEY_VECTOR,	    /* number = vector */
	VMT_KEY_CR,	    /* number = CR, access r/w */
	VMT_KEY_DR,	    /* number = DR, access r/w */
	VMT_KEY_HYPERCALL,  /* number = hypercall nr; sub = 1 for Hyper-V's */
	VMT_KEY_APIC,	    /* number = register offset, access r/w */
	VMT_KEY_USERSPACE,  /* number = KVM_EXIT_* */
	VMT_KEY_CPUID_LEAF, /* number = leaf; the source does not tell the sub-leaf */
};

enum vmt_access {
	VMT_ACCESS_NONE = 0,
	VMT_ACCESS_READ,  /* r, in */
	VMT_ACCESS_WRITE, /* w, out */
	VMT_ACCESS_EXEC,  /* x */
};

struct vmt_key {
	enum vmt_key_kind kind;
	enum vmt_access access;
	uint64_t number;
	uint32_t sub;
};

enum vmt_has {
	VMT_HAS_TIME = 1u << 0,
	VMT_HAS_HOST_TSC = 1u << 1,
	VMT_HAS_CPU = 1u << 2,
	VMT_HAS_TID = 1u << 3,
	VMT_HAS_VCPU = 1u << 4,
	VMT_HAS_DOMAIN = 1u << 5,
	VMT_HAS_VMCS = 1u << 6,
	VMT_HAS_REASON = 1u << 7,
	VMT_HAS_QUALIFICATION = 1u << 8, /* EVD.VMXQ, or info1 of kvm_exit */
	VMT_HAS_INFO2 = 1u << 9,
	VMT_HAS_VECTOR = 1u << 10,
	VMT_HAS_RIP = 1u << 11,
	VMT_HAS_CR3 = 1u << 12,
	VMT_HAS_DURATION = 1u << 13,
	VMT_HAS_CPL = 1u << 14,
	VMT_HAS_VALUE = 1u << 15,
	VMT_HAS_PARTS = 1u << 16, /* the *_part_ns members are a full account of the duration */
	VMT_HAS_INTR_INFO = 1u << 17,
	VMT_HAS_DURATION_TSC = 1u << 18,
	VMT_HAS_NESTED = 1u << 19, /* nested is known */
	VMT_HAS_LOST_BYTES = 1u << 20,
};

struct vmt_event {
	enum vmt_event_type type;
	enum vmt_source source;
	uint32_t has; /* VMT_HAS_* */

	struct vmt_host_ns time;
	struct vmt_host_tsc host_tsc;
	uint64_t host_tsc_error; /* the true TSC lies within +- this many units */
	uint64_t host_tsc_low;	 /* source PT: nor is it below */
	uint32_t cpu;		 /* host CPU */
	uint32_t pid, tid;	 /* host process and thread; tid 0 when unknown */
	uint32_t domain;	 /* index into the session's domains */
	uint32_t vcpu;		 /* KVM's vcpu_id */
	uint64_t vmcs;

	enum vmt_isa isa;
	uint32_t reason;       /* VMX: bits 15:0; SVM: exit code; USERSPACE: KVM_EXIT_* */
	uint32_t reason_flags; /* VMX: bits 31:16 in place */
	uint64_t qualification;
	uint64_t info2;
	uint32_t intr_info, error_code;
	uint32_t vector;
	struct vmt_key key;
	uint64_t guest_rip;
	uint64_t guest_cr3;
	uint8_t cpl;
	bool joined;	    /* ENTRY, EXIT: source PT, and a tracepoint told of it too */
	bool nested;	    /* from L2 */
	bool failed_entry;  /* EXIT only: the entry failed, no guest instruction ran */
	bool concealed_rip; /* protected guest (SEV-ES, TDX): RIP is not visible to the host */
	bool preempted;	    /* SWITCH: out although runnable */
	bool switch_in;	    /* SWITCH: got the CPU */

	uint64_t duration_ns; /* EXIT: to the next entry of the vCPU; WAKEUP: time halted */
	uint64_t duration_tsc;
	/* Parts of an exit's duration; what is left is time in KVM itself. */
	uint64_t userspace_part_ns; /* on CPU in the VMM (QEMU) */
	uint64_t halt_poll_part_ns;
	uint64_t blocked_part_ns;   /* off CPU, not runnable */
	uint64_t preempted_part_ns; /* runnable, not running */

	uint64_t lost_bytes; /* LOSS: bytes of the file that are missing */
	int64_t value;
	const char
		*name; /* NOTE, MARK, LOSS: static text or text that lives as long as the input */
};

/* Takes an event; it lasts as long as the call. */
typedef void vmt_event_fn(void *context, const struct vmt_event *event);

#endif
