/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From an exit's reason to its sub-key. A row says how the exit's own record names the key, or
 * which record behind it will. Sources: SDM vol. 3 27.2.1 and 27.2.2 (qualification, interruption
 * information), APM vol. 2 15.x (EXITINFO), arch/x86/kvm/trace.h.
 */
#include "decode/kvm/join_private.h"

#include "vmx/exit.h"
#include "vmx/qualification.h"

#define SVM_VMGEXIT 0x403u
#define SVM_ERR	    0xffffffffu
#define VMX_TDCALL  77u

struct exit_info {
	uint32_t code;
	uint64_t info1, info2;
	struct vmx_intr_info intr; /* VMX only */
};

typedef enum join_wait exit_key_fn(struct vmt_event *e, const struct exit_info *x);

static void set_key(struct vmt_event *e, enum vmt_key_kind kind, uint64_t number,
		    enum vmt_access access)
{
	e->key = (struct vmt_key){ .kind = kind, .access = access, .number = number };
}

static void set_vector(struct vmt_event *e, uint32_t vector)
{
	e->vector = vector;
	e->has |= VMT_HAS_VECTOR;
	set_key(e, VMT_KEY_VECTOR, vector, VMT_ACCESS_NONE);
}

/* The key's number comes later; its access is known now. */
static enum join_wait wait_with(struct vmt_event *e, enum join_wait wait, enum vmt_access access)
{
	e->key.access = access;
	return wait;
}

static enum vmt_access rwx(bool write, bool exec)
{
	return exec ? VMT_ACCESS_EXEC : write ? VMT_ACCESS_WRITE : VMT_ACCESS_READ;
}

static enum join_wait none(struct vmt_event *e, const struct exit_info *x)
{
	(void)e;
	(void)x;
	return JOIN_WAIT_NONE;
}

static enum join_wait vmx_event(struct vmt_event *e, const struct exit_info *x)
{
	if (!x->intr.valid)
		return JOIN_WAIT_ANY;
	set_vector(e, x->intr.vector);
	return JOIN_WAIT_NONE;
}

static enum join_wait vmx_interrupt(struct vmt_event *e, const struct exit_info *x)
{
	if (x->intr.valid)
		set_vector(e, x->intr.vector);
	return JOIN_WAIT_NONE;
}

static enum join_wait vmx_cr(struct vmt_event *e, const struct exit_info *x)
{
	struct vmx_cr_access a = vmx_cr_decode(x->info1);
	bool cr0 = a.type == VMX_CR_CLTS || a.type == VMX_CR_LMSW;

	set_key(e, VMT_KEY_CR, cr0 ? 0 : a.cr, rwx(a.type != VMX_CR_MOV_FROM, false));
	return JOIN_WAIT_NONE;
}

static enum join_wait vmx_dr(struct vmt_event *e, const struct exit_info *x)
{
	struct vmx_dr_access a = vmx_dr_decode(x->info1);

	set_key(e, VMT_KEY_DR, a.dr, rwx(!a.read, false));
	return JOIN_WAIT_NONE;
}

static enum join_wait vmx_io(struct vmt_event *e, const struct exit_info *x)
{
	struct vmx_io_access a = vmx_io_decode(x->info1);

	set_key(e, VMT_KEY_PORT, a.port, rwx(!a.in, false));
	return JOIN_WAIT_NONE;
}

static enum join_wait vmx_rdmsr(struct vmt_event *e, const struct exit_info *x)
{
	(void)x;
	return wait_with(e, JOIN_WAIT_MSR, VMT_ACCESS_READ);
}

static enum join_wait vmx_wrmsr(struct vmt_event *e, const struct exit_info *x)
{
	(void)x;
	return wait_with(e, JOIN_WAIT_MSR, VMT_ACCESS_WRITE);
}

static enum join_wait vmx_rdmsr_imm(struct vmt_event *e, const struct exit_info *x)
{
	set_key(e, VMT_KEY_MSR, (uint32_t)x->info1, VMT_ACCESS_READ);
	return JOIN_WAIT_NONE;
}

static enum join_wait vmx_wrmsr_imm(struct vmt_event *e, const struct exit_info *x)
{
	set_key(e, VMT_KEY_MSR, (uint32_t)x->info1, VMT_ACCESS_WRITE);
	return JOIN_WAIT_NONE;
}

static enum join_wait vmx_ept(struct vmt_event *e, const struct exit_info *x)
{
	struct vmx_ept_access a = vmx_ept_decode(x->info1);

	return wait_with(e, JOIN_WAIT_GPA,
			 a.read || a.write || a.fetch ? rwx(a.write, a.fetch) : VMT_ACCESS_NONE);
}

/* Access types of SDM table 27-6: linear 0 read, 1 write, 2 fetch; 15 fetch by physical address. */
static enum join_wait vmx_apic_access(struct vmt_event *e, const struct exit_info *x)
{
	static const uint8_t access[16] = {
		VMT_ACCESS_READ,
		VMT_ACCESS_WRITE,
		VMT_ACCESS_EXEC,
		[15] = VMT_ACCESS_EXEC,
	};

	set_key(e, VMT_KEY_APIC, x->info1 & 0xfff, (enum vmt_access)access[x->info1 >> 12 & 15]);
	return JOIN_WAIT_NONE;
}

static enum join_wait vmx_apic_write(struct vmt_event *e, const struct exit_info *x)
{
	set_key(e, VMT_KEY_APIC, x->info1 & 0xfff, VMT_ACCESS_WRITE);
	return JOIN_WAIT_NONE;
}

static enum join_wait vmx_eoi(struct vmt_event *e, const struct exit_info *x)
{
	set_vector(e, x->info1 & 0xff);
	return JOIN_WAIT_NONE;
}

static enum join_wait cpuid(struct vmt_event *e, const struct exit_info *x)
{
	(void)e;
	(void)x;
	return JOIN_WAIT_CPUID;
}

static enum join_wait hypercall(struct vmt_event *e, const struct exit_info *x)
{
	(void)e;
	(void)x;
	return JOIN_WAIT_HYPERCALL;
}

static enum join_wait misconfig(struct vmt_event *e, const struct exit_info *x)
{
	(void)e;
	(void)x;
	return JOIN_WAIT_GPA;
}

static exit_key_fn *const vmx_keys[] = {
	[0] = vmx_event,	/* exception or NMI */
	[1] = vmx_interrupt,	/* external interrupt */
	[10] = cpuid,		/* CPUID */
	[18] = hypercall,	/* VMCALL */
	[28] = vmx_cr,		/* control-register access */
	[29] = vmx_dr,		/* MOV DR */
	[30] = vmx_io,		/* I/O instruction */
	[31] = vmx_rdmsr,	/* RDMSR */
	[32] = vmx_wrmsr,	/* WRMSR */
	[44] = vmx_apic_access, /* APIC access */
	[45] = vmx_eoi,		/* virtualized EOI */
	[48] = vmx_ept,		/* EPT violation */
	[49] = misconfig,	/* EPT misconfiguration */
	[56] = vmx_apic_write,	/* APIC write */
	[84] = vmx_rdmsr_imm,	/* RDMSR immediate */
	[85] = vmx_wrmsr_imm,	/* WRMSR immediate */
};

static enum join_wait svm_cr(struct vmt_event *e, const struct exit_info *x)
{
	uint8_t cr;
	bool write;

	if (svm_cr_decode(x->code, &cr, &write))
		set_key(e, VMT_KEY_CR, cr, rwx(write, false));
	return JOIN_WAIT_NONE;
}

static enum join_wait svm_dr(struct vmt_event *e, const struct exit_info *x)
{
	uint8_t dr;
	bool write;

	if (svm_dr_decode(x->code, &dr, &write))
		set_key(e, VMT_KEY_DR, dr, rwx(write, false));
	return JOIN_WAIT_NONE;
}

static enum join_wait svm_exception(struct vmt_event *e, const struct exit_info *x)
{
	set_vector(e, x->code - 0x40);
	return JOIN_WAIT_NONE;
}

static enum join_wait svm_nmi(struct vmt_event *e, const struct exit_info *x)
{
	(void)x;
	set_vector(e, 2);
	return JOIN_WAIT_NONE;
}

static enum join_wait svm_io(struct vmt_event *e, const struct exit_info *x)
{
	struct vmx_io_access a = svm_io_decode(x->info1);

	set_key(e, VMT_KEY_PORT, a.port, rwx(!a.in, false));
	return JOIN_WAIT_NONE;
}

static enum join_wait svm_msr(struct vmt_event *e, const struct exit_info *x)
{
	return wait_with(e, JOIN_WAIT_MSR, rwx(x->info1 & 1, false));
}

/* EXITINFO1 is a page-fault error code (bit 1 write, bit 4 fetch), EXITINFO2 the address. */
static enum join_wait svm_npf(struct vmt_event *e, const struct exit_info *x)
{
	set_key(e, VMT_KEY_GPA, x->info2, rwx(x->info1 >> 1 & 1, x->info1 >> 4 & 1));
	return JOIN_WAIT_NONE;
}

/* EXITINFO1: bits 11:4 the register, bit 32 write. */
static enum join_wait svm_avic_access(struct vmt_event *e, const struct exit_info *x)
{
	set_key(e, VMT_KEY_APIC, x->info1 & 0xff0, rwx(x->info1 >> 32 & 1, false));
	return JOIN_WAIT_NONE;
}

static enum join_wait sev_mmio_read(struct vmt_event *e, const struct exit_info *x)
{
	set_key(e, VMT_KEY_GPA, x->info1, VMT_ACCESS_READ);
	return JOIN_WAIT_NONE;
}

static enum join_wait sev_mmio_write(struct vmt_event *e, const struct exit_info *x)
{
	set_key(e, VMT_KEY_GPA, x->info1, VMT_ACCESS_WRITE);
	return JOIN_WAIT_NONE;
}

static const struct svm_key_row {
	uint32_t first, last;
	exit_key_fn *fill;
} svm_keys[] = {
	{ 0x000, 0x01f, svm_cr },
	{ 0x020, 0x03f, svm_dr },
	{ 0x040, 0x05f, svm_exception },
	{ 0x061, 0x061, svm_nmi },
	{ 0x065, 0x065, svm_cr },
	{ 0x072, 0x072, cpuid },
	{ 0x07b, 0x07b, svm_io },
	{ 0x07c, 0x07c, svm_msr },
	{ 0x081, 0x081, hypercall },
	{ 0x090, 0x09f, svm_cr },
	{ 0x400, 0x400, svm_npf },
	{ 0x402, 0x402, svm_avic_access },
	{ 0x80000001, 0x80000001, sev_mmio_read },
	{ 0x80000002, 0x80000002, sev_mmio_write },
};

static exit_key_fn *svm_key_of(uint32_t code)
{
	for (size_t i = 0; i < sizeof(svm_keys) / sizeof(svm_keys[0]); i++)
		if (code >= svm_keys[i].first && code <= svm_keys[i].last)
			return svm_keys[i].fill;
	return none;
}

static exit_key_fn *vmx_key_of(uint32_t basic)
{
	if (basic < sizeof(vmx_keys) / sizeof(vmx_keys[0]) && vmx_keys[basic])
		return vmx_keys[basic];
	return none;
}

void join_exit_svm_key(struct vmt_event *exit, enum join_wait *wait, uint32_t code, uint64_t info1,
		       uint64_t info2)
{
	const struct exit_info x = { .code = code, .info1 = info1, .info2 = info2 };

	*wait = svm_key_of(code)(exit, &x);
}

static void fill_vmx(struct vmt_event *e, enum join_wait *wait, const struct vmt_rec *rec)
{
	const struct exit_info x = {
		.code = rec->u.exit.reason & VMX_REASON_BASIC_MASK,
		.info1 = rec->u.exit.info1,
		.info2 = rec->u.exit.info2,
		.intr = vmx_intr_info_decode(rec->u.exit.intr_info),
	};

	e->reason = x.code;
	e->reason_flags = rec->u.exit.reason & ~VMX_REASON_BASIC_MASK;
	e->failed_entry = e->reason_flags & VMX_REASON_ENTRY_FAILURE;
	e->concealed_rip = x.code == VMX_TDCALL;
	if (!e->failed_entry)
		*wait = vmx_key_of(x.code)(e, &x);
}

static void fill_svm(struct vmt_event *e, enum join_wait *wait, const struct vmt_rec *rec)
{
	e->reason = rec->u.exit.reason;
	e->failed_entry = e->reason == SVM_ERR;
	e->concealed_rip = e->reason == SVM_VMGEXIT;
	join_exit_svm_key(e, wait, e->reason, rec->u.exit.info1, rec->u.exit.info2);
}

void join_exit_fill(struct vmt_event *e, enum join_wait *wait, const struct vmt_rec *rec)
{
	*wait = JOIN_WAIT_NONE;
	e->isa = rec->u.exit.isa <= VMT_ISA_SVM ? (enum vmt_isa)rec->u.exit.isa : VMT_ISA_UNKNOWN;
	e->qualification = rec->u.exit.info1;
	e->info2 = rec->u.exit.info2;
	e->has |= VMT_HAS_REASON | VMT_HAS_QUALIFICATION | VMT_HAS_INFO2;
	if (rec->flags & VMT_REC_HAS_INTR) {
		e->intr_info = rec->u.exit.intr_info;
		e->error_code = rec->u.exit.error_code;
		e->has |= VMT_HAS_INTR_INFO;
	}
	if (e->isa == VMT_ISA_VMX) {
		fill_vmx(e, wait, rec);
	} else if (e->isa == VMT_ISA_SVM) {
		fill_svm(e, wait, rec);
	} else {
		e->reason = rec->u.exit.reason;
		*wait = JOIN_WAIT_ANY;
	}
}

/* Which wait a record satisfies. */
static enum join_wait answers(uint8_t kind)
{
	switch (kind) {
	case VMT_REC_KVM_MSR:
		return JOIN_WAIT_MSR;
	case VMT_REC_KVM_MMIO:
	case VMT_REC_KVM_FAST_MMIO:
	case VMT_REC_KVM_PAGE_FAULT:
		return JOIN_WAIT_GPA;
	case VMT_REC_KVM_CPUID:
		return JOIN_WAIT_CPUID;
	case VMT_REC_KVM_HYPERCALL:
	case VMT_REC_KVM_HV_HYPERCALL:
		return JOIN_WAIT_HYPERCALL;
	case VMT_REC_KVM_PIO:
	case VMT_REC_KVM_CR:
		return JOIN_WAIT_ANY;
	default:
		return JOIN_WAIT_NONE;
	}
}

void join_exit_refine(struct join_thread *t, const struct vmt_rec *rec, const struct vmt_key *key)
{
	enum join_wait answer = answers(rec->kind);
	enum vmt_access known = t->exit.key.access;

	if (answer == JOIN_WAIT_NONE || key->kind == VMT_KEY_NONE)
		return;
	if (t->wait != JOIN_WAIT_ANY && t->wait != answer)
		return;
	t->exit.key = *key;
	if (known != VMT_ACCESS_NONE)
		t->exit.key.access = known;
	t->wait = JOIN_WAIT_NONE;
}
