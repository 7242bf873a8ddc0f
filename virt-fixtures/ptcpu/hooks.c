// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A preload library that makes Debian's bochs-bin 2.7+dfsg-4+deb12u1, CPU model corei7_skylake_x, a
 * processor with Intel PT. In any other program it does nothing; in another build of bochs-bin it
 * ends the program with a reason on standard error and status 77.
 *
 * Bochs is told apart by the vtable of that model, the build by its build ID; every place that is
 * changed is compared with what is expected there before anything is changed. Three ways in:
 * - the model's virtual functions for CPUID and unknown MSRs: the vtable slots;
 * - the empty instrumentation callbacks of the build, one RET each: a jump in their place;
 * - functions that are wrapped: a jump over their first instructions, which are kept elsewhere.
 */
#include "virt-fixtures/ptcpu/call.h"
#include "virt-fixtures/ptcpu/truth_log.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { REFUSED = 77, JUMP_BYTES = 12, PAGE = 4096 };
#define MODEL_VTABLE "_ZTV18corei7_skylake_x_t"
static const char package[] = "bochs 2.7+dfsg-4+deb12u1";
static const uint8_t build_id[20] = { 0x6e, 0x89, 0xe0, 0xc0, 0x7c, 0x09, 0x6a, 0xb3, 0x05, 0xb6,
				      0x8e, 0xb0, 0xbf, 0x69, 0xc4, 0xae, 0xb7, 0x88, 0xd1, 0x0d };

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
	p->note = NOTE_NONE;
	p->mov_cr3 = p->vmptrld = false;
	if (!ptcpu_trigger_en(p))
		return;
	engine_boundary(p, p->ip);
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
	p->exit_interruption = bochs.vmread32(p->cpu, VMCS_EXIT_INTERRUPTION);
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
static const struct {
	const char *symbol;
	void *function;
} callbacks[] = {
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

static const struct {
	const char *symbol;
	void *function, *old; /* old: where the pointer to the original goes, NULL: replaced */
	uint8_t count, bytes[14];
	uint8_t ja_at; /* of a JA rel32 among them, 0: none */
} wraps[] = {
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

static const struct {
	unsigned int slot;
	const char *symbol; /* that is expected in it */
	void *function, *old;
} slots[] = {
	{ 5, "_ZNK18corei7_skylake_x_t14get_cpuid_leafEjjP16cpuid_function_t", get_cpuid,
	  &old_get_cpuid },
	{ 7, "_ZN10bx_cpuid_t5rdmsrEjPm", model_rdmsr, NULL },
	{ 8, "_ZN10bx_cpuid_t5wrmsrEjm", model_wrmsr, NULL },
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static _Noreturn void refuse(const char *reason, const char *what)
{
	fprintf(stderr, "ptcpu: this bochs-bin is not that of %s: %s%s\n", package, reason, what);
	_exit(REFUSED);
}

static int find_build_id(struct dl_phdr_info *info, size_t size, void *found)
{
	(void)size;
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		const uint8_t *at = (const uint8_t *)info->dlpi_addr + h->p_vaddr;

		if (h->p_type != PT_NOTE)
			continue;
		for (const uint8_t *end = at + h->p_memsz; at + sizeof(ElfW(Nhdr)) <= end;) {
			ElfW(Nhdr) n;
			const uint8_t *name = at + sizeof(n), *desc;

			memcpy(&n, at, sizeof(n));
			desc = name + (n.n_namesz + 3) / 4 * 4;
			at = desc + (n.n_descsz + 3) / 4 * 4;
			if (n.n_type == NT_GNU_BUILD_ID && n.n_descsz == sizeof(build_id) &&
			    !memcmp(name, "GNU", 4))
				*(bool *)found = !memcmp(desc, build_id, sizeof(build_id));
		}
	}
	return 1; /* the program itself comes first */
}

static void check_places(void *const *vtable)
{
	bool known = false;
	const char *name;

	dl_iterate_phdr(find_build_id, &known);
	if (!known)
		refuse("another build ID", "");
	if (!bochs_bind(&name))
		refuse("it has no ", name);
	for (size_t i = 0; i < COUNT(slots); i++)
		if (vtable[slots[i].slot] != dlsym(RTLD_DEFAULT, slots[i].symbol))
			refuse("another function in the slot of ", slots[i].symbol);
	for (size_t i = 0; i < COUNT(callbacks); i++) {
		const uint8_t *code = dlsym(RTLD_DEFAULT, callbacks[i].symbol);

		if (!code || *code != 0xc3)
			refuse("no empty callback ", callbacks[i].symbol);
	}
	for (size_t i = 0; i < COUNT(wraps); i++) {
		const uint8_t *code = dlsym(RTLD_DEFAULT, wraps[i].symbol);

		if (!code || memcmp(code, wraps[i].bytes, wraps[i].count) != 0)
			refuse("other code in ", wraps[i].symbol);
	}
}

static void make_writable(void *at, size_t count, int protection)
{
	uintptr_t first = (uintptr_t)at & ~(uintptr_t)(PAGE - 1);
	uintptr_t end = ((uintptr_t)at + count + PAGE - 1) & ~(uintptr_t)(PAGE - 1);

	if (mprotect((void *)first, end - first, protection))
		refuse("its memory cannot be changed", "");
}

/* mov rax, to; jmp rax: neither callbacks nor wrapped functions take an argument in RAX. */
static void write_jump(uint8_t *at, const void *to)
{
	make_writable(at, JUMP_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC);
	memcpy(at, "\x48\xb8", 2);
	memcpy(at + 2, &to, 8);
	memcpy(at + 10, "\xff\xe0", 2);
	make_writable(at, JUMP_BYTES, PROT_READ | PROT_EXEC);
}

/* jmp [rip]; address */
static uint8_t *append_jump(uint8_t *at, const uint8_t *to)
{
	memcpy(at, "\xff\x25\0\0\0\0", 6);
	memcpy(at + 6, &to, 8);
	return at + 14;
}

/* A copy of the first instructions that goes on behind them. */
static uint8_t *write_trampoline(uint8_t *at, const uint8_t *code, size_t i)
{
	const size_t ja = wraps[i].ja_at;
	int32_t distance;

	if (!ja) {
		memcpy(at, code, wraps[i].count);
		return append_jump(at + wraps[i].count, code + wraps[i].count);
	}
	memcpy(at, code, ja);
	memcpy(&distance, code + ja + 2, 4);
	memcpy(at + ja, "\x76\x0e", 2); /* jbe over the jump that replaces ja */
	at = append_jump(at + ja + 2, code + ja + 6 + distance);
	return append_jump(at, code + wraps[i].count);
}

static void wrap_functions(void)
{
	uint8_t *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *pool = at;

	if (at == MAP_FAILED)
		refuse("no memory", "");
	for (size_t i = 0; i < COUNT(wraps); i++) {
		uint8_t *code = dlsym(RTLD_DEFAULT, wraps[i].symbol);

		if (wraps[i].old) {
			memcpy(wraps[i].old, &at, sizeof(at));
			at = write_trampoline(at, code, i);
		}
		write_jump(code, wraps[i].function);
	}
	mprotect(pool, PAGE, PROT_READ | PROT_EXEC);
}

static void replace_slots(void **vtable)
{
	for (size_t i = 0; i < COUNT(slots); i++) {
		void **slot = &vtable[slots[i].slot];

		if (slots[i].old)
			memcpy(slots[i].old, slot, sizeof(*slot));
		make_writable(slot, sizeof(*slot), PROT_READ | PROT_WRITE);
		*slot = slots[i].function;
	}
}

__attribute__((constructor)) static void ptcpu_start(void)
{
	void **vtable = dlsym(RTLD_DEFAULT, MODEL_VTABLE);

	if (!vtable)
		return; /* not Bochs */
	vtable += 2;	/* offset to top, type information */
	check_places(vtable);
	replace_slots(vtable);
	for (size_t i = 0; i < COUNT(callbacks); i++)
		write_jump(dlsym(RTLD_DEFAULT, callbacks[i].symbol), callbacks[i].function);
	wrap_functions();
}
