/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A PMU named intel_pt for machines whose CPU has no Intel PT: a test double. It has the attributes,
 * AUX buffers and flags of the kernel's own driver, and writes the packets of each VM transition
 * that kvm-amd's tracepoints tell. It proves how a trace is captured and read, and nothing about a
 * CPU: there is no TNT and no TIP, an event's time is that of its tracepoint, and EVD.VMXR has the
 * SVM exit code.
 */
#ifndef STANDIN_H
#define STANDIN_H

#include <linux/types.h>

#define STANDIN_GROUP_MAX 192 /* PSB+ and the packets of one transition */

struct standin_group {
	u8 bytes[STANDIN_GROUP_MAX];
	unsigned int len;
};

/* SDM 33.4.2, "Event Trace" */
enum standin_cfe {
	STANDIN_CFE_VMENTRY = 7,
	STANDIN_CFE_VMEXIT = 8,
	STANDIN_CFE_VMEXIT_INTR = 9,
};
enum standin_evd {
	STANDIN_EVD_VMXQ = 1,
	STANDIN_EVD_VMXR = 2,
};

/* packets.c: each appends one packet. */
void standin_psb(struct standin_group *group);
void standin_psbend(struct standin_group *group);
void standin_tsc(struct standin_group *group, u64 tsc);
void standin_pip(struct standin_group *group, u64 cr3, bool non_root);
void standin_vmcs(struct standin_group *group, u64 address);
void standin_mode_exec(struct standin_group *group);
void standin_fup(struct standin_group *group, u64 ip);
void standin_cfe(struct standin_group *group, enum standin_cfe type, u8 vector);
void standin_evd(struct standin_group *group, enum standin_evd type, u64 payload);

/* pmu.c */
int standin_pmu_register(void);
void standin_pmu_unregister(void);
/* Interrupts are off. Whether an event runs on this CPU; *fresh: it has no PSB+ yet. */
bool standin_running(bool *fresh);
/* The group as a whole, or nothing of it and a buffer that is told as truncated. */
void standin_write(const struct standin_group *group);

/* kvm.c */
int standin_kvm_attach(void);
void standin_kvm_detach(void);

#endif
