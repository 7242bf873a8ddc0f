// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What Bochs does, told to the engine and to the truth. Invariant: `executing` is true from before
 * an instruction until it has retired, faulted or caused a VM exit, and only its notes are kept
 * meanwhile; packets follow when the outcome is certain.
 */
#include "virt-fixtures/ptcpu/hooks.h"

#include "virt-fixtures/ptcpu/call.h"
#include "virt-fixtures/ptcpu/truth_log.h"

static struct ptcpu units[PTCPU_MAX_CPUS];
static struct ptcpu *current; /* whose instruction is in execution */

struct ptcpu *ptcpu_get(unsigned int id)
{
	struct ptcpu *p = &units[id % PTCPU_MAX_CPUS];

	if (!p->cpu) {
		p->cpu = bochs_cpu(id);
		p->id = id;
		p->mask_ptrs = 0x7f;
		p->mode = ~0U;
		p->next_mtc_tsc = UINT64_MAX;
	}
	return p;
}

static struct ptcpu *unit_of(const struct bochs_cpu *cpu)
{
	return ptcpu_get(bochs_u32(cpu, BOCHS_ID));
}

/* ---- the model's virtual functions ---- */
static void (*old_get_cpuid)(const void *model, uint32_t leaf, uint32_t sub_leaf, uint32_t *out);

static void get_cpuid(const void *model, uint32_t leaf, uint32_t sub_leaf, uint32_t *out)
{
	static bool offered;

	if (!offered) {
		offered = true;
		for (unsigned int i = 0; i < bochs_cpu_count(); i++)
			vmx_offer_controls(bochs_cpu(i));
	}
	old_get_cpuid(model, leaf, sub_leaf, out);
	cpuid_adjust(leaf, sub_leaf, out);
}

static int model_rdmsr(const void *model, uint32_t index, uint64_t *value)
{
	(void)model;
	return msr_read(current, index, value);
}

static int model_wrmsr(const void *model, uint32_t index, uint64_t value)
{
	(void)model;
	return msr_write(current, index, value);
}

/* ---- instrumentation callbacks ---- */
enum { NEAR_JMP = 10, NEAR_JMP_INDIRECT, NEAR_CALL, NEAR_CALL_INDIRECT, NEAR_RET, FAR_IRET };
enum { TLB_MOV_CR3 = 11 };

/* Packets of a VM exit follow when the host's first instruction, or another event, is reached. */
static void settle(struct ptcpu *p)
{
	if (p->transition == TRANSITION_EXIT)
		engine_exit(p);
}

static void before_execution(unsigned int id, const uint8_t *instruction)
{
	struct ptcpu *p = ptcpu_get(id);

	current = p;
	settle(p);
	p->ip = bochs_u64(p->cpu, BOCHS_RIP);
	p->executing = true;
	p->logged = false;
	p->note = NOTE_NONE;
	p->mov_cr3 = p->vmptrld = false;
	if (!ptcpu_trigger_en(p))
		return;
	engine_boundary(p, p->ip);
	if (p->held_count && ptcpu_in_guest(p) && !topa_retry(p))
		vmx_exit_for_output(p);
	p->note_next = p->ip + instruction[BOCHS_INSTRUCTION_LEN];
	truth_begin(p, p->ip, instruction[BOCHS_INSTRUCTION_LEN]);
}

static void after_execution(unsigned int id, const uint8_t *instruction)
{
	struct ptcpu *p = ptcpu_get(id);
	const uint64_t to = bochs_u64(p->cpu, BOCHS_RIP);

	(void)instruction;
	if (!p->executing)
		return;
	p->executing = false;
	if (to == p->ip && p->note == NOTE_NONE)
		return; /* an iteration of a REP string instruction, not its last */
	if (p->vmptrld)
		truth_vmptrld(p);
	if (!ptcpu_trigger_en(p))
		return;
	truth_retire(p);
	engine_retire(p, to);
}

static void note(unsigned int id, enum ptcpu_note what)
{
	ptcpu_get(id)->note = what;
}

static void branch_taken(unsigned int id, uint64_t from, uint64_t to)
{
	(void)from;
	(void)to;
	note(id, NOTE_TAKEN);
}

static void branch_not_taken(unsigned int id, uint64_t from)
{
	(void)from;
	note(id, NOTE_NOT_TAKEN);
}

static void near_branch(unsigned int id, unsigned int kind, uint64_t from, uint64_t to)
{
	static const enum ptcpu_note kinds[] = { NOTE_DIRECT, NOTE_INDIRECT, NOTE_CALL,
						 NOTE_CALL_INDIRECT, NOTE_RET };

	(void)from;
	(void)to;
	if (kind >= NEAR_JMP && kind <= NEAR_RET)
		note(id, kinds[kind - NEAR_JMP]);
}

static void far_branch(unsigned int id, unsigned int kind, uint16_t old_cs, uint64_t from,
		       uint16_t cs, uint64_t to)
{
	(void)old_cs;
	(void)from;
	(void)cs;
	(void)to;
	note(id, kind == FAR_IRET ? NOTE_IRET : NOTE_FAR);
}

static void exception(unsigned int id, unsigned int vector, unsigned int error)
{
	(void)vector;
	(void)error;
	ptcpu_get(id)->executing = false; /* a fault: what was in execution does not retire */
}

static void tlb_control(unsigned int id, unsigned int kind, uint64_t cr3)
{
	(void)cr3;
	if (kind == TLB_MOV_CR3)
		ptcpu_get(id)->mov_cr3 = true;
}

static void halted(unsigned int id)
{
	ptcpu_get(id)->slept = true;
}

static void waiting(unsigned int id, uint64_t address, unsigned int length, unsigned int flags)
{
	(void)address;
	(void)length;
	(void)flags;
	ptcpu_get(id)->slept = true;
}

static void decoded(unsigned int id, const void *instruction, const uint8_t *bytes,
		    unsigned int length, bool is32, bool is64)
{
	(void)instruction;
	(void)bytes;
	(void)length;
	(void)is32;
	(void)is64;
	truth_decoded(ptcpu_get(id));
}

static void port_out(uint16_t port, unsigned int length, unsigned int value)
{
	if (port == PTCPU_CALL_PORT && length == 4 && current)
		call_out(current, value);
}

enum {
	VMCS_GUEST_RTIT_CTL = 0x2814,
	VMCS_EXIT_INTERRUPTION = 0x4404,
	VMCS_GUEST_CR3 = 0x6802,
	VMCS_GUEST_RIP = 0x681e,
};

/* Exits after an instruction rather than instead of it: TPR, virtualized EOI, APIC write. */
static bool is_trap_like(uint32_t reason)
{
	return reason == 43 || reason == 45 || reason == 56;
}

static void vm_exit(unsigned int id, uint32_t reason, uint64_t qualification)
{
	struct ptcpu *p = ptcpu_get(id);

	settle(p);
	if (p->transition == TRANSITION_ENTRY)
		p->ctl = p->old_ctl; /* a failed entry loads nothing */
	p->old_ctl = p->ctl;
	if (is_trap_like(reason) && p->executing && ptcpu_trigger_en(p)) {
		truth_retire(p);
		engine_retire(p, bochs_u64(p->cpu, BOCHS_RIP));
	}
	p->executing = false;
	p->transition = TRANSITION_EXIT;
	p->exit_reason = reason;
	p->exit_qualification = qualification;
	p->exit_interruption = /* of another exit, where this one has none */
		(reason & 0xffff) <= 1 ? bochs.vmread32(p->cpu, VMCS_EXIT_INTERRUPTION) : 0;
	p->host_tsc = bochs.get_tsc(p->cpu);
	p->guest_tsc = bochs.adjust_tsc(p->cpu, p->host_tsc);
	p->vmcs = bochs_u64(p->cpu, BOCHS_VMCS);
}

/* ---- wrapped functions ---- */
static void (*old_interrupt)(struct bochs_cpu *cpu, uint8_t vector, unsigned int type,
			     bool push_error, uint16_t error);
static void (*old_load_host)(struct bochs_cpu *cpu);
static uint32_t (*old_check_controls)(struct bochs_cpu *cpu);
static uint32_t (*old_load_guest)(struct bochs_cpu *cpu, uint64_t *qualification);
static void (*old_inject)(struct bochs_cpu *cpu);
static bool (*old_rdmsr)(struct bochs_cpu *cpu, uint32_t index, uint64_t *value);
static bool (*old_field_supported)(struct bochs_cpu *cpu, uint32_t field);
static void (*old_vmptrld)(struct bochs_cpu *cpu, void *instruction);

/* Returns only when the event has been delivered; a fault on the way never comes back here. */
static void interrupt(struct bochs_cpu *cpu, uint8_t vector, unsigned int type, bool push_error,
		      uint16_t error)
{
	struct ptcpu *p = unit_of(cpu);
	const uint64_t from = bochs_u64(cpu, BOCHS_PREV_RIP);
	uint64_t to;

	current = p;
	settle(p);
	old_interrupt(cpu, vector, type, push_error, error);
	p->executing = false; /* INT n and the like are events at their address */
	to = bochs_u64(cpu, BOCHS_RIP);
	bochs_set_u64(cpu, BOCHS_PREV_RIP, to); /* Bochs leaves it behind after an NMI */
	truth_event(p, vector, from, to);
	engine_interrupt(p, vector, from, to);
}

static void load_host(struct bochs_cpu *cpu)
{
	struct ptcpu *p = unit_of(cpu);

	p->guest_rip = bochs.vmread64(cpu, VMCS_GUEST_RIP);
	p->guest_cr3 = bochs.vmread64(cpu, VMCS_GUEST_CR3);
	p->exit_concealed = vmx_exit_controls(p) & VMEXIT_PT_CONCEAL;
	if (p->exit_reason >> 31 == 0)
		bochs.vmwrite64(cpu, VMCS_GUEST_RTIT_CTL, p->ctl);
	if (vmx_exit_controls(p) & VMEXIT_CLEAR_RTIT)
		p->ctl = 0;
	old_load_host(cpu);
}

static uint32_t check_controls(struct bochs_cpu *cpu)
{
	uint32_t error;

	vmx_apply_plan(unit_of(cpu));
	error = old_check_controls(cpu);
	return error ? error : vmx_check_controls(unit_of(cpu));
}

/* From here until inject() or vm_exit() the entry is on its way, MSR list included. */
static uint32_t load_guest(struct bochs_cpu *cpu, uint64_t *qualification)
{
	enum { ENTRY_FAILURE_GUEST_STATE = 33 };
	struct ptcpu *p = unit_of(cpu);
	uint32_t failure;

	p->transition = TRANSITION_ENTRY;
	p->transition_ip = p->ip;
	p->old_ctl = p->ctl;
	failure = old_load_guest(cpu, qualification);
	if (!failure && !vmx_guest_rtit_is_legal(p))
		failure = ENTRY_FAILURE_GUEST_STATE;
	if (!failure && (vmx_entry_controls(p) & VMENTRY_LOAD_RTIT))
		p->ctl = bochs.vmread64(cpu, VMCS_GUEST_RTIT_CTL);
	return failure;
}

/* The last step of a VM entry: the guest's state is loaded, an event may be injected. */
static void inject(struct bochs_cpu *cpu)
{
	struct ptcpu *p = unit_of(cpu);

	bochs_set_u64(cpu, BOCHS_PREV_RIP, bochs_u64(cpu, BOCHS_RIP));
	p->host_tsc = bochs.get_tsc(cpu);
	p->guest_tsc = bochs.adjust_tsc(cpu, p->host_tsc);
	p->vmcs = bochs_u64(cpu, BOCHS_VMCS);
	p->guest_rip = bochs_u64(cpu, BOCHS_RIP);
	p->guest_cr3 = bochs_u64(cpu, BOCHS_CR3);
	truth_retire(p);
	p->executing = false;
	engine_entry(p);
	old_inject(cpu);
}

static bool rdmsr(struct bochs_cpu *cpu, uint32_t index, uint64_t *value)
{
	enum { MSR_VMX_MISC = 0x485 };
	const bool done = old_rdmsr(cpu, index, value);

	if (done && index == MSR_VMX_MISC)
		*value |= 1 << 14; /* PT may be used in VMX operation */
	return done;
}

static bool field_supported(struct bochs_cpu *cpu, uint32_t field)
{
	return field == VMCS_GUEST_RTIT_CTL || field == VMCS_GUEST_RTIT_CTL + 1 ||
	       old_field_supported(cpu, field);
}

/* A successful VMPTRLD clears the arithmetic flags, which Bochs keeps as this pair of words. */
static void vmptrld(struct bochs_cpu *cpu, void *instruction)
{
	struct ptcpu *p = unit_of(cpu);

	old_vmptrld(cpu, instruction);
	p->vmptrld =
		bochs_u64(cpu, BOCHS_FLAGS_RESULT) == 1 && bochs_u64(cpu, BOCHS_FLAGS_CARRY) == 0;
}

/* ---- what is changed where ---- */
const struct callback hooks_callbacks[] = {
	{ "_Z25bx_instr_before_executionjP15bxInstruction_c", before_execution },
	{ "_Z24bx_instr_after_executionjP15bxInstruction_c", after_execution },
	{ "_Z27bx_instr_cnear_branch_takenjmm", branch_taken },
	{ "_Z31bx_instr_cnear_branch_not_takenjm", branch_not_taken },
	{ "_Z22bx_instr_ucnear_branchjjmm", near_branch },
	{ "_Z19bx_instr_far_branchjjtmtm", far_branch },
	{ "_Z18bx_instr_exceptionjjj", exception },
	{ "_Z18bx_instr_tlb_cntrljjm", tlb_control },
	{ "_Z12bx_instr_hltj", halted },
	{ "_Z14bx_instr_mwaitjmjj", waiting },
	{ "_Z15bx_instr_opcodejP15bxInstruction_cPKhjbb", decoded },
	{ "_Z13bx_instr_outptjj", port_out },
	{ "_Z15bx_instr_vmexitjjm", vm_exit },
};

const struct wrap hooks_wraps[] = {
	{ "_ZN8BX_CPU_C9interruptEhjbt",
	  interrupt,
	  &old_interrupt,
	  13,
	  { 0x41, 0x57, 0x41, 0x56, 0x45, 0x0f, 0xb7, 0xf0, 0x41, 0x55, 0x41, 0x89, 0xcd },
	  0 },
	{ "_ZN8BX_CPU_C19VMexitLoadHostStateEv",
	  load_host,
	  &old_load_host,
	  13,
	  { 0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54, 0x55, 0x53, 0x48, 0x89, 0xfb },
	  0 },
	{ "_ZN8BX_CPU_C26VMenterLoadCheckVmControlsEv",
	  check_controls,
	  &old_check_controls,
	  13,
	  { 0x41, 0x57, 0xbe, 0x00, 0x40, 0x00, 0x00, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54 },
	  0 },
	{ "_ZN8BX_CPU_C26VMenterLoadCheckGuestStateEPm",
	  load_guest,
	  &old_load_guest,
	  12,
	  { 0x41, 0x57, 0x41, 0x56, 0x49, 0x89, 0xf6, 0x41, 0x55, 0x41, 0x54, 0x55 },
	  0 },
	{ "_ZN8BX_CPU_C19VMenterInjectEventsEv",
	  inject,
	  &old_inject,
	  14,
	  { 0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54, 0x55, 0x53, 0x48, 0x83, 0xec, 0x08 },
	  0 },
	{ "_ZN8BX_CPU_C5rdmsrEjPm",
	  rdmsr,
	  &old_rdmsr,
	  13,
	  { 0x41, 0x54, 0x41, 0x89, 0xf0, 0x55, 0x48, 0x89, 0xd5, 0x53, 0x48, 0x89, 0xfb },
	  0 },
	{ "_ZN8BX_CPU_C20vmcs_field_supportedEj",
	  field_supported,
	  &old_field_supported,
	  14,
	  { 0x89, 0xf1, 0x81, 0xfe, 0x01, 0x24, 0x00, 0x00, 0x0f, 0x87, 0xb2, 0x00, 0x00, 0x00 },
	  8 },
	{ "_ZN8BX_CPU_C7VMPTRLDEP15bxInstruction_c",
	  vmptrld,
	  &old_vmptrld,
	  13,
	  { 0x41, 0x55, 0x41, 0x54, 0x55, 0x53, 0x48, 0x89, 0xfb, 0x48, 0x83, 0xec, 0x08 },
	  0 },
	{ "_ZN8BX_CPU_C5RDPMCEP15bxInstruction_c",
	  perfmon_rdpmc,
	  NULL,
	  12,
	  { 0x53, 0x48, 0x89, 0xfb, 0xf6, 0x87, 0xb1, 0x02, 0x00, 0x00, 0x01, 0x75 },
	  0 },
};

const struct slot hooks_slots[] = {
	{ 5, "_ZNK18corei7_skylake_x_t14get_cpuid_leafEjjP16cpuid_function_t", get_cpuid,
	  &old_get_cpuid },
	{ 7, "_ZN10bx_cpuid_t5rdmsrEjPm", model_rdmsr, NULL },
	{ 8, "_ZN10bx_cpuid_t5wrmsrEjm", model_wrmsr, NULL },
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
const size_t hooks_callback_count = COUNT(hooks_callbacks);
const size_t hooks_wrap_count = COUNT(hooks_wraps);
const size_t hooks_slot_count = COUNT(hooks_slots);
