/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_ANALYZE_PT_WHO_H
#define VMT_ANALYZE_PT_WHO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/analyze/pt_streams.h"
#include "decode/base/event.h"

/*
 * Whose is an event of Intel PT: the thread that had the CPU at its time, the VMCS that was seen
 * with a thread before, and which vCPU of which domain a thread is. Nothing is guessed: where the
 * time of an event does not tell between threads, it has none.
 */
#define VMT_PT_WHO_THREADS_MAX 65536u
#define VMT_PT_WHO_VMCS_MAX    4096u

struct vmt_pt_who;

/* NULL when memory is short. */
struct vmt_pt_who *vmt_pt_who_new(void);
void vmt_pt_who_free(struct vmt_pt_who *who);

/* A thread that is a vCPU. domain UINT32_MAX: not known, what was known stays. */
void vmt_pt_who_vcpu(struct vmt_pt_who *who, uint32_t tid, uint32_t pid, uint32_t domain,
		     uint32_t vcpu);

/* The thread has the CPU of an area from time_ns on; tid UINT32_MAX: not known who. In order of
 * time. */
void vmt_pt_who_runs(struct vmt_pt_who *who, size_t area, uint64_t time_ns, uint32_t pid,
		     uint32_t tid);

/* The VMCS was seen with the thread. True when that is news. */
bool vmt_pt_who_vmcs(struct vmt_pt_who *who, uint64_t vmcs, uint32_t tid);

/* Thread of a VMCS, 0: not known. */
uint32_t vmt_pt_who_tid_of(const struct vmt_pt_who *who, uint64_t vmcs);
/* The vCPU of a thread; false: none. pid 0, domain UINT32_MAX: not known. */
bool vmt_pt_who_vcpu_of(const struct vmt_pt_who *who, uint32_t tid, uint32_t *pid, uint32_t *domain,
			uint32_t *vcpu);

/* Whether one thread is known to have had the CPU of an area all the time. */
bool vmt_pt_who_stayed(const struct vmt_pt_who *who, size_t area, uint64_t from_ns, uint64_t to_ns);

/* Adds to an event of an area what it lacks of thread, domain and vCPU, as far as it is known. */
void vmt_pt_who_fill(struct vmt_pt_who *who, size_t area, struct vmt_event *event,
		     struct vmt_pt_span span);

/* How often a VMCS was seen with another thread than before. */
uint64_t vmt_pt_who_contradictions(const struct vmt_pt_who *who);

#endif
