// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * From an exit's reason to its sub-key. A row says how the exit's own information names the key, or
 * what behind it will. Sources: SDM vol. 3 27.2.1 and 27.2.2 (qualification, interruption
 * information), APM vol. 2 15.x (EXITINFO), arch/x86/kvm/trace.h.
 */
#include "decode/base/exit_key.h"

#include "vmx/exit.h"
#include "vmx/qualification.h"

struct exit_info {
	uint32_t code;
	uint64_t info1, info2;
	struct vmx_intr_info intr; /* VMX only */
};

typedef enum vmt_key_wait exit_key_fn(struct vmt_event *e, const struct exit_info *x);

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
static enum vmt_key_wait wait_with(struct vmt_event *e, enum vmt_key_wait wait,
				   enum vmt_access access)
{
	e->key.access = access;
	return wait;
}

static enum vmt_access rwx(bool write, bool exec)
{
	return exec ? VMT_ACCESS_EXEC : write ? VMT_ACCESS_WRITE : VMT_ACCESS_READ;
}

static enum vmt_key_wait none(struct vmt_event *e, const struct exit_info *x)
{
	(void)e;
	(void)x;
	return VMT_KEY_WAIT_NONE;
}

static enum vmt_key_wait vmx_event(struct vmt_event *e, const struct exit_info *x)
{
	if (!x->intr.valid)
		return VMT_KEY_WAIT_ANY;
	set_vector(e, x->intr.vector);
	return VMT_KEY_WAIT_NONE;
}

static enum vmt_key_wait vmx_interrupt(struct vmt_event *e, const struct exit_info *x)
{
	if (x->intr.valid)
		set_vector(e, x->intr.vector);
	return VMT_KEY_WAIT_NONE;
}

static enum vmt_key_wait vmx_cr(struct vmt_event *e, const struct exit_info *x)
{
	struct vmx_cr_access a = vmx_cr_decode(x->info1);
	bool cr0 = a.type == VMX_CR_CLTS || a.type == VMX_CR_LMSW;

	set_key(e, VMT_KEY_CR, cr0 ? 0 : a.cr, rwx(a.type != VMX_CR_MOV_FROM, false));
	return VMT_KEY_WAIT_NONE;
}

static enum vmt_key_wait vmx_dr(struct vmt_event *e, const struct exit_info *x)
{
	struct vmx_dr_access a = vmx_dr_decode(x->info1);

	set_key(e, VMT_KEY_DR, a.dr, rwx(!a.read, false));
	return VMT_KEY_WAIT_NONE;
}

static enum vmt_key_wait vmx_io(struct vmt_event *e, const struct exit_info *x)
{
	struct vmx_io_access a = vmx_io_decode(x->info1);

	set_key(e, VMT_KEY_PORT, a.port, rwx(!a.in, false));
	return VMT_KEY_WAIT_NONE;
}

static enum vmt_key_wait vmx_rdmsr(struct vmt_event *e, const struct exit_info *x)
{
	(void)x;
	return wait_with(e, VMT_KEY_WAIT_MSR, VMT_ACCESS_READ);
}

static enum vmt_key_wait vmx_wrmsr(struct vmt_event *e, const struct exit_info *x)
{
	(void)x;
	return wait_with(e, VMT_KEY_WAIT_MSR, VMT_ACCESS_WRITE);
}

static enum vmt_key_wait vmx_rdmsr_imm(struct vmt_event *e, const struct exit_info *x)
{
	set_key(e, VMT_KEY_MSR, (uint32_t)x->info1, VMT_ACCESS_READ);
	return VMT_KEY_WAIT_NONE;
}

static enum vmt_key_wait vmx_wrmsr_imm(struct vmt_event *e, const struct exit_info *x)
{
	set_key(e, VMT_KEY_MSR, (uint32_t)x->info1, VMT_ACCESS_WRITE);
	return VMT_KEY_WAIT_NONE;
}

static enum vmt_key_wait vmx_ept(struct vmt_event *e, const struct exit_info *x)
{
	struct vmx_ept_access a = vmx_ept_decode(x->info1);

	return wait_with(e, VMT_KEY_WAIT_GPA,
			 a.read || a.write || a.fetch ? rwx(a.write, a.fetch) : VMT_ACCESS_NONE);
}

/* Access types of SDM table 27-6: linear 0 read, 1 write, 2 fetch; 15 fetch by physical address. */
static enum vmt_key_wait vmx_apic_access(struct vmt_event *e, const struct exit_info *x)
{
	static const uint8_t access[16] = {
		VMT_ACCESS_READ,
		VMT_ACCESS_WRITE,
		VMT_ACCESS_EXEC,
		[15] = VMT_ACCESS_EXEC,
	};

	set_key(e, VMT_KEY_APIC, x->info1 & 0xfff, (enum vmt_access)access[x->info1 >> 12 & 15]);
	return VMT_KEY_WAIT_NONE;
}

static enum vmt_key_wait vmx_apic_write(struct vmt_event *e, const struct exit_info *x)
{
	set_key(e, VMT_KEY_APIC, x->info1 & 0xfff, VMT_ACCESS_WRITE);
	return VMT_KEY_WAIT_NONE;
}

static enum vmt_key_wait vmx_eoi(struct vmt_event *e, const struct exit_info *x)
{
	set_vector(e, x->info1 & 0xff);
	return VMT_KEY_WAIT_NONE;
}

static enum vmt_key_wait cpuid(struct vmt_event *e, const struct exit_info *x)
{
	(void)e;
	(void)x;
	return VMT_KEY_WAIT_CPUID;
}

static enum vmt_key_wait hypercall(struct vmt_event *e, const struct exit_info *x)
{
	(void)e;
	(void)x;
	return VMT_KEY_WAIT_HYPERCALL;
}

static enum vmt_key_wait misconfig(struct vmt_event *e, const struct exit_info *x)
{
	(void)e;
	(void)x;
	return VMT_KEY_WAIT_GPA;
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

static enum vmt_key_wait svm_cr(struct vmt_event *e, const struct exit_info *x)
{
	uint8_t cr;
	bool write;

	if (svm_cr_decode(x->code, &cr, &write))
		set_key(e, VMT_KEY_CR, cr, rwx(write, false));
	return VMT_KEY_WAIT_NONE;
}

static enum vmt_key_wait svm_dr(struct vmt_event *e, const struct exit_info *x)
{
	uint8_t dr;
	bool write;

	if (svm_dr_decode(x->code, &dr, &write))
		set_key(e, VMT_KEY_DR, dr, rwx(write, false));
	return VMT_KEY_WAIT_NONE;
}

static enum vmt_key_wait svm_exception(struct vmt_event *e, const struct exit_info *x)
{
	set_vector(e, x->code - 0x40);
	return VMT_KEY_WAIT_NONE;
}

static enum vmt_key_wait svm_nmi(struct vmt_event *e, const struct exit_info *x)
{
	(void)x;
	set_vector(e, 2);
	return VMT_KEY_WAIT_NONE;
}

static enum vmt_key_wait svm_io(struct vmt_event *e, const struct exit_info *x)
{
	struct vmx_io_access a = svm_io_decode(x->info1);

	set_key(e, VMT_KEY_PORT, a.port, rwx(!a.in, false));
	return VMT_KEY_WAIT_NONE;
}

static enum vmt_key_wait svm_msr(struct vmt_event *e, const struct exit_info *x)
{
	return wait_with(e, VMT_KEY_WAIT_MSR, rwx(x->info1 & 1, false));
}

/* EXITINFO1 is a page-fault error code (bit 1 write, bit 4 fetch), EXITINFO2 the address. */
static enum vmt_key_wait svm_npf(struct vmt_event *e, const struct exit_info *x)
{
	set_key(e, VMT_KEY_GPA, x->info2, rwx(x->info1 >> 1 & 1, x->info1 >> 4 & 1));
	return VMT_KEY_WAIT_NONE;
}

/* EXITINFO1: bits 11:4 the register, bit 32 write. */
static enum vmt_key_wait svm_avic_access(struct vmt_event *e, const struct exit_info *x)
{
	set_key(e, VMT_KEY_APIC, x->info1 & 0xff0, rwx(x->info1 >> 32 & 1, false));
	return VMT_KEY_WAIT_NONE;
}

static enum vmt_key_wait sev_mmio_read(struct vmt_event *e, const struct exit_info *x)
{
	set_key(e, VMT_KEY_GPA, x->info1, VMT_ACCESS_READ);
	return VMT_KEY_WAIT_NONE;
}

static enum vmt_key_wait sev_mmio_write(struct vmt_event *e, const struct exit_info *x)
{
	set_key(e, VMT_KEY_GPA, x->info1, VMT_ACCESS_WRITE);
	return VMT_KEY_WAIT_NONE;
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

enum vmt_key_wait vmt_exit_key_vmx(struct vmt_event *exit, uint32_t basic, uint64_t qualification,
				   uint32_t intr_info)
{
	const struct exit_info x = {
		.code = basic,
		.info1 = qualification,
		.intr = vmx_intr_info_decode(intr_info),
	};

	return vmx_key_of(basic)(exit, &x);
}

enum vmt_key_wait vmt_exit_key_svm(struct vmt_event *exit, uint32_t code, uint64_t info1,
				   uint64_t info2)
{
	const struct exit_info x = { .code = code, .info1 = info1, .info2 = info2 };

	return svm_key_of(code)(exit, &x);
}
