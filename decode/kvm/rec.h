/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VMT_KVM_REC_H
#define VMT_KVM_REC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/kvm/format.h"
#include "decode/ring/ring.h"

/*
 * One host record, decoded to a fixed size: a tracepoint sample, a context switch or a loss. It
 * holds no pointer into the input, so it can wait in the merge while the input moves on. 88 bytes.
 */
enum vmt_rec_kind {
	VMT_REC_NONE = 0,
	/* from the ring itself */
	VMT_REC_SWITCH_IN,
	VMT_REC_SWITCH_OUT,
	VMT_REC_ITRACE_START, /* the thread has the CPU while Intel PT begins */
	VMT_REC_AUX_LOST,     /* trace is missing: u.any.first = PERF_AUX_FLAG_* */
	VMT_REC_LOST,	      /* u.lost */
	/* tracepoints: one enumerator a name in the table of rec.c */
	VMT_REC_KVM_ENTRY,
	VMT_REC_KVM_EXIT,
	VMT_REC_KVM_USERSPACE_EXIT,
	VMT_REC_KVM_PIO,
	VMT_REC_KVM_MMIO,
	VMT_REC_KVM_FAST_MMIO,
	VMT_REC_KVM_MSR,
	VMT_REC_KVM_CPUID,
	VMT_REC_KVM_CR,
	VMT_REC_KVM_INJ_VIRQ,
	VMT_REC_KVM_INJ_EXCEPTION,
	VMT_REC_KVM_APIC,
	VMT_REC_KVM_APIC_IPI,
	VMT_REC_KVM_APIC_ACCEPT_IRQ,
	VMT_REC_KVM_EOI,
	VMT_REC_KVM_PV_EOI,
	VMT_REC_KVM_HYPERCALL,
	VMT_REC_KVM_HV_HYPERCALL,
	VMT_REC_KVM_HV_OTHER, /* every other kvm_hv_*: name only */
	VMT_REC_KVM_PAGE_FAULT,
	VMT_REC_KVM_HALT_POLL_NS,
	VMT_REC_KVM_VCPU_WAKEUP,
	VMT_REC_KVM_PLE_WINDOW,
	VMT_REC_KVM_NESTED_VMEXIT,
	VMT_REC_KVM_NESTED_VMEXIT_INJECT,
	VMT_REC_KVM_NESTED_VMENTER,
	VMT_REC_KVM_NESTED_OTHER,
	VMT_REC_KVM_WRITE_TSC_OFFSET,
	VMT_REC_KVM_TRACK_TSC,
	VMT_REC_KVM_UPDATE_MASTER_CLOCK,
	VMT_REC_KVM_PVCLOCK_UPDATE,
	VMT_REC_KVM_ASYNC_PF,
	VMT_REC_KVM_UNMAP_HVA,
	VMT_REC_KVM_SET_IRQ,
	VMT_REC_KVM_MSI_SET_IRQ,
	VMT_REC_KVM_EMULATE_INSN,
	VMT_REC_KVM_VMGEXIT,
	VMT_REC_KVM_OTHER, /* any other event of system kvm */
	VMT_REC_SCHED_SWITCH,
	VMT_REC_SCHED_WAKING,
	VMT_REC_KIND_COUNT,
};

/* Why records are missing. */
enum vmt_lost_cause {
	VMT_LOST_RECORDS = 0, /* no room in the ring, or bytes of the input that cannot be read */
	VMT_LOST_SAMPLES,     /* the kernel refused to write samples */
	VMT_LOST_THROTTLED,   /* the event was stopped, or goes on after it was */
	VMT_LOST_CAUSE_COUNT,
	VMT_LOST_BEGIN, /* no loss itself: see vmt_rec_loss_begin */
};

struct vmt_rec {
	uint64_t time_ns; /* perf clock */
	uint8_t kind;	  /* enum vmt_rec_kind */
	uint8_t flags;	  /* VMT_REC_* below */
	uint16_t catalog; /* index of the format in the catalog, for its name; 0xffff: none */
	uint32_t cpu;
	uint32_t pid, tid; /* current task, host's initial pid namespace */
	union {
		struct {
			uint64_t rip, info1, info2;
			uint32_t reason, isa, intr_info, error_code, vcpu_id, pad;
		} exit; /* KVM_EXIT, KVM_NESTED_VMEXIT, KVM_NESTED_VMEXIT_INJECT, KVM_VMGEXIT */
		struct {
			uint64_t rip;
			uint32_t vcpu_id, immediate_exit, intr_info, error_code;
		} entry;
		struct {
			uint32_t reason;
			int32_t error;
		} userspace;
		struct {
			uint64_t address, value; /* port or GPA or MSR or CR or register */
			uint32_t access;	 /* enum vmt_access */
			uint32_t size, count, exception;
		} io; /* PIO, MMIO, FAST_MMIO, MSR, CR, APIC */
		struct {
			uint32_t leaf, subleaf;
		} cpuid;
		struct {
			uint32_t vector, has_error, error_code, reinjected;
		} inject;
		struct {
			uint64_t nr, a0, ingpa;
		} hypercall;
		struct {
			uint64_t gpa, error_code, rip;
			uint32_t vcpu_id;
		} fault;
		struct {
			uint64_t ns;
			uint32_t waited, valid;
		} wakeup;
		struct {
			uint64_t previous, next;
			uint32_t vcpu_id, mul;
			int32_t shift;
			uint32_t flags;
		} tsc; /* WRITE_TSC_OFFSET (previous, next); PVCLOCK (tsc_timestamp, system_time) */
		struct {
			uint64_t first, second;
			uint32_t vcpu_id, third;
		} any; /* HALT_POLL_NS old/new, PLE old/new, UNMAP start/end, SET_IRQ gsi/level, …
			*/
		struct {
			uint32_t prev_tid, next_tid;
			uint64_t prev_state; /* prev_state & 0xff: 0 = runnable */
		} sched_switch;
		struct {
			uint32_t tid, target_cpu;
		} waking;
		struct {
			uint64_t count; /* records; 0: not known */
			uint32_t stream, bytes;
			uint32_t cause;	     /* enum vmt_lost_cause */
			uint32_t begun;	     /* a VMT_LOST_BEGIN of it came before */
			const char *kind;    /* of a loss of the file: static text, else NULL */
			uint64_t file_bytes; /* that were skipped or never written */
		} lost;
		uint64_t words[8];
	} u;
};

#define VMT_REC_PREEMPTED   0x01u /* SWITCH_OUT: still runnable */
#define VMT_REC_HAS_VCPU    0x02u /* the format has vcpu_id */
#define VMT_REC_HAS_INTR    0x04u /* EXIT, ENTRY: the format has intr_info and error_code */
#define VMT_REC_HAS_TIME    0x08u /* time_ns is known */
#define VMT_REC_HAS_SUBLEAF 0x10u /* CPUID: the format has index */
#define VMT_REC_HAS_RIP	    0x20u /* EXIT, ENTRY: the format has the guest's RIP */
#define VMT_REC_OF_THREAD   0x40u /* LOST: set by a caller whose ring holds tid's records alone */
#define VMT_REC_HAS_REASON  0x80u /* VMGEXIT: the format has exit_reason */

/*
 * The formats of one capture by tracepoint id, compiled for speed: per known field one load of
 * known size and sign. At most 4096 formats. Free with vmt_catalog_free.
 */
struct vmt_catalog;
struct vmt_catalog *vmt_catalog_new(void);
void vmt_catalog_free(struct vmt_catalog *catalog);

/* Adds a format; a second one with the same id must be equal, else VMT_E_DAMAGED. Returns its
 * index. */
int vmt_catalog_add(struct vmt_catalog *catalog, const struct vmt_format *format);
size_t vmt_catalog_count(const struct vmt_catalog *catalog);
const struct vmt_format *vmt_catalog_format(const struct vmt_catalog *catalog, size_t index);
/* The format's name, or NULL beyond the end. Lives as long as the catalog. */
const char *vmt_catalog_name(const struct vmt_catalog *catalog, size_t index);

/*
 * Turns a ring record into a rec. Returns 1 when *out is filled; 0 when the record is of no
 * interest (COMM, MMAP, …); VMT_E_DAMAGED when a sample is shorter than its format says;
 * VMT_E_UNSUPPORTED when the sample's tracepoint id has no format.
 */
int vmt_rec_decode(const struct vmt_catalog *catalog, const struct vmt_ring_record *record,
		   struct vmt_rec *out);

/* The same for a record that vmt_ring_sample took apart. */
int vmt_rec_decode_sample(const struct vmt_catalog *catalog, const struct vmt_ring_sample *sample,
			  struct vmt_rec *out);

/*
 * The kernel tells of a loss only with the next record that fits: what is missing in a ring was
 * lost at any time since the record before it, since_ns. Where rings belong to CPUs and threads
 * move between them, records of other rings within that stretch are not to be trusted either. Fills
 * *begin with the rec that opens the stretch, to be pushed into the merge in front of *lost, and
 * marks *lost as its end.
 */
void vmt_rec_loss_begin(struct vmt_rec *lost, uint64_t since_ns, struct vmt_rec *begin);

#endif
