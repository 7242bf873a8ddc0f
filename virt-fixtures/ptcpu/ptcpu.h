// SPDX-License-Identifier: LGPL-2.1-or-later
#ifndef VMT_PTCPU_PTCPU_H
#define VMT_PTCPU_PTCPU_H
/*
 * The Intel PT unit of one emulated logical processor. Everything is per processor; a processor is
 * emulated by one host thread at a time, so nothing here is locked.
 *
 * Layers, lowest first: topa.c moves bytes to memory, packet.c makes single packets, engine.c
 * decides which packets an instruction, a transfer or a VM transition makes, msr.c and vmx.c change
 * the engine's configuration, hooks.c tells all of them what Bochs does. truth.c logs beside them.
 */
#include "virt-fixtures/ptcpu/bochs.h"

enum {
	PTCPU_MAX_CPUS = 8,
	PTCPU_RANGES = 2,
	PTCPU_RET_DEPTH = 64,
	/* TSC = crystal * 292 / 2, CPUID leaf 15H */
	PTCPU_TSC_PER_CRYSTAL = 146,
	PTCPU_BUS_RATIO = 35,
};

/* IA32_RTIT_CTL */
#define RTIT_TRACE_EN	    (1ULL << 0)
#define RTIT_CYC_EN	    (1ULL << 1)
#define RTIT_OS		    (1ULL << 2)
#define RTIT_USER	    (1ULL << 3)
#define RTIT_CR3_FILTER	    (1ULL << 7)
#define RTIT_TOPA	    (1ULL << 8)
#define RTIT_MTC_EN	    (1ULL << 9)
#define RTIT_TSC_EN	    (1ULL << 10)
#define RTIT_DIS_RETC	    (1ULL << 11)
#define RTIT_BRANCH_EN	    (1ULL << 13)
#define RTIT_EVENT_EN	    (1ULL << 31)
#define RTIT_DIS_TNT	    (1ULL << 55)
#define RTIT_MTC_FREQ(c)    ((unsigned int)((c) >> 14 & 15))
#define RTIT_CYC_THRESH(c)  ((unsigned int)((c) >> 19 & 15))
#define RTIT_PSB_FREQ(c)    ((unsigned int)((c) >> 24 & 15))
#define RTIT_ADDR_CFG(c, n) ((unsigned int)((c) >> (32 + 4 * (n)) & 15))

/* IA32_RTIT_STATUS */
#define RTIT_FILTER_EN	(1ULL << 0)
#define RTIT_CONTEXT_EN (1ULL << 1)
#define RTIT_TRIGGER_EN (1ULL << 2)
#define RTIT_ERROR	(1ULL << 4)
#define RTIT_STOPPED	(1ULL << 5)

/* VMX controls for PT: secondary, VM-exit, VM-entry */
#define VMX2_PT_CONCEAL	   (1U << 19)
#define VMX2_PT_GUEST_PA   (1U << 24)
#define VMX2_TSC_SCALING   (1U << 25)
#define VMEXIT_PT_CONCEAL  (1U << 24)
#define VMEXIT_CLEAR_RTIT  (1U << 25)
#define VMENTRY_PT_CONCEAL (1U << 17)
#define VMENTRY_LOAD_RTIT  (1U << 18)

/* What the instruction in execution has done so far; packets follow when it retires. */
enum ptcpu_note {
	NOTE_NONE,
	NOTE_NOT_TAKEN,
	NOTE_TAKEN,    /* conditional branch */
	NOTE_DIRECT,   /* JMP */
	NOTE_CALL,     /* direct CALL */
	NOTE_INDIRECT, /* JMP */
	NOTE_CALL_INDIRECT,
	NOTE_RET,
	NOTE_FAR,
	NOTE_IRET,
};

/* A VM transition between its start and its first instruction on the other side: MSR lists and the
 * controls change IA32_RTIT_CTL meanwhile, packets follow when it is complete. */
enum ptcpu_transition { TRANSITION_NONE, TRANSITION_ENTRY, TRANSITION_EXIT };

struct ptcpu {
	struct bochs_cpu *cpu;
	unsigned int id;

	/* registers; STATUS[2:0] and PacketByteCnt are made when they are read */
	uint64_t ctl, status, output_base, mask_ptrs, cr3_match, addr[2 * PTCPU_RANGES];

	/* topa.c: the region in use, valid while TriggerEn */
	uint64_t region_base, region_size, region_offset;
	bool region_stop, region_int;
	bool pmi;	       /* to be raised at the next instruction boundary */
	uint64_t region_index; /* of the entry, read again while region_known is false */
	bool region_known;
	bool guest_pa;	   /* output addresses are guest-physical */
	bool output_fault; /* ... and the last one, output_gpa, has no EPT mapping */
	uint64_t output_gpa;
	uint8_t held[4096]; /* packet bytes that wait for that mapping */
	size_t held_count;

	/* packet.c */
	uint64_t bytes_since_psb;
	uint64_t last_ip;
	uint64_t tnt; /* the youngest in bit 0 */
	unsigned int tnt_count;
	uint64_t tnt_tsc;      /* of its first branch */
	uint64_t cyc_tsc;      /* of the last CYC packet */
	uint64_t next_mtc_tsc; /* all ones: no MTC */
	uint64_t ret_stack[PTCPU_RET_DEPTH];
	unsigned int ret_top, ret_count;
	unsigned int mode;	/* of the last MODE.Exec; all ones: unknown to the decoder */
	uint64_t overflow_left; /* instructions whose packets are lost */

	/* engine.c */
	bool context_en, filter_en;
	enum ptcpu_transition transition;
	uint64_t transition_ip, old_ctl;
	uint32_t exit_reason;
	uint64_t exit_qualification;
	bool exit_concealed;
	uint64_t guest_tsc, guest_rip, guest_cr3, host_tsc, vmcs, exit_interruption;

	/* hooks.c: the instruction in execution */
	bool logged; /* truth_begin() was called for it, truth_retire() not yet */
	bool executing, slept, mov_cr3, vmptrld;
	uint64_t ip;
	enum ptcpu_note note;
	uint64_t note_next; /* address of the instruction after it */
};

struct ptcpu *ptcpu_get(unsigned int id);

/* ---- state as the packets see it ---- */
static inline bool ptcpu_in_guest(const struct ptcpu *p)
{
	return bochs_u8(p->cpu, BOCHS_IN_GUEST) != 0;
}

static inline bool ptcpu_trigger_en(const struct ptcpu *p)
{
	return (p->ctl & RTIT_TRACE_EN) && !(p->status & (RTIT_ERROR | RTIT_STOPPED));
}

static inline bool ptcpu_packet_en(const struct ptcpu *p)
{
	return ptcpu_trigger_en(p) && p->context_en && p->filter_en && (p->ctl & RTIT_BRANCH_EN);
}

/* CS.L & EFER.LMA in bit 0, CS.D in bit 1, RFLAGS.IF in bit 2 with Event Trace. */
unsigned int ptcpu_mode(const struct ptcpu *p);
bool ptcpu_in_context(const struct ptcpu *p);

/* ---- topa.c ---- */
/* Reads the output registers when tracing starts; sets STATUS.Error where they are not legal. */
void topa_start(struct ptcpu *p);
void topa_write(struct ptcpu *p, const uint8_t *bytes, size_t count);
/* Writes what waits for an EPT mapping; false when it is still missing. */
bool topa_retry(struct ptcpu *p);
/* IA32_RTIT_OUTPUT_MASK_PTRS as software reads it now. */
uint64_t topa_mask_ptrs(const struct ptcpu *p);
/* Raises a pending PMI through the local APIC. */
void topa_deliver_pmi(struct ptcpu *p);

/* ---- packet.c: each appends one packet, TNT bits that wait go first ---- */
enum ptcpu_ip_packet { PACKET_TIP = 0x0d, PACKET_PGE = 0x11, PACKET_PGD = 0x01, PACKET_FUP = 0x1d };
void packet_tnt(struct ptcpu *p, bool taken);
void packet_flush_tnt(struct ptcpu *p);
void packet_ip(struct ptcpu *p, enum ptcpu_ip_packet kind, uint64_t ip);
void packet_ip_suppressed(struct ptcpu *p, enum ptcpu_ip_packet kind);
void packet_mode(struct ptcpu *p);
void packet_pip(struct ptcpu *p, uint64_t cr3, bool nr);
void packet_vmcs(struct ptcpu *p, uint64_t vmcs);
void packet_cfe(struct ptcpu *p, unsigned int type, bool ip, unsigned int vector);
void packet_evd(struct ptcpu *p, unsigned int type, uint64_t payload);
void packet_trace_stop(struct ptcpu *p);
void packet_overflow(struct ptcpu *p);
/* TSC, TMA and CBR, as configured. */
void packet_time(struct ptcpu *p);
void packet_mtc(struct ptcpu *p, uint64_t tsc);
/* PSB+; with an IP in it when PacketEn is 1. */
void packet_psb(struct ptcpu *p, uint64_t ip);

/* ---- engine.c ---- */
/* TraceEn changes from 0 to 1 or back; ip is where packets start or end. */
void engine_enable(struct ptcpu *p, uint64_t ctl, uint64_t ip);
void engine_disable(struct ptcpu *p, uint64_t ctl, uint64_t ip);
/* Before each instruction: periodic packets, PMI. */
void engine_boundary(struct ptcpu *p, uint64_t ip);
/* An instruction with its notes has retired, the CPU is at `to`. */
void engine_retire(struct ptcpu *p, uint64_t to);
/* An interrupt or exception was delivered from `from`, old_* as before it. */
void engine_interrupt(struct ptcpu *p, unsigned int vector, uint64_t from, uint64_t to);
void engine_entry(struct ptcpu *p);
void engine_exit(struct ptcpu *p);
void engine_overflow(struct ptcpu *p, uint64_t instructions);

/* ---- msr.c, cpuid.c, perfmon.c: answers as Bochs's virtual functions give them ---- */
enum ptcpu_answer { ANSWER_NOT_MINE = -1, ANSWER_FAULT = 0, ANSWER_DONE = 1 };
enum ptcpu_answer msr_read(struct ptcpu *p, uint32_t index, uint64_t *value);
enum ptcpu_answer msr_write(struct ptcpu *p, uint32_t index, uint64_t value);
bool msr_ctl_is_legal(uint64_t ctl);
void cpuid_adjust(uint32_t leaf, uint32_t sub_leaf, uint32_t registers[4]);
enum ptcpu_answer perfmon_read(struct ptcpu *p, uint32_t index, uint64_t *value);
enum ptcpu_answer perfmon_write(struct ptcpu *p, uint32_t index, uint64_t value);
void perfmon_pmi(struct ptcpu *p);
/* The RDPMC instruction; it may raise #GP or exit. */
void perfmon_rdpmc(struct bochs_cpu *cpu, void *instruction);

/* ---- vmx.c ---- */
struct ptcpu_plan;
void vmx_set_plan(const struct ptcpu_plan *plan);
/* Puts the plan's controls into the current VMCS. */
void vmx_apply_plan(struct ptcpu *p);
void vmx_offer_controls(struct bochs_cpu *cpu);
/* VM-instruction error number for the PT controls of the current VMCS, 0 when they are legal. */
uint32_t vmx_check_controls(struct ptcpu *p);
bool vmx_guest_rtit_is_legal(struct ptcpu *p);
uint32_t vmx_entry_controls(struct ptcpu *p);
uint32_t vmx_exit_controls(struct ptcpu *p);
/* Exits with an EPT violation of the output (qualification bit 16); does not return. */
void vmx_exit_for_output(struct ptcpu *p);
/* NR of a PIP packet now, and whether VMX is hidden from PSB+. */
bool vmx_nr(struct ptcpu *p);
bool vmx_concealed(struct ptcpu *p);

/* ---- call.c ---- */
/* A four-byte OUT to PTCPU_CALL_PORT: the emulated system asks the bed for something. */
void call_out(struct ptcpu *p, uint32_t command);

#endif
