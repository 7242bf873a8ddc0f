// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Words for exit qualifications (SDM vol. 3 27.2.1; bits 9..13 of EPT violations: Intel TDX module,
 * vmcs_defs.h) and for SVM's EXITINFO1 and EXITINFO2 (APM vol. 2 15.7..15.14).
 */
#include "vmx/names.h"
#include "vmx/qualification.h"
#include "vmx/text.h"

static void add_flag(struct vmx_text *t, bool set, const char *words)
{
	if (set)
		vmx_text_item(t, ", ", words);
}

static void add_hex(struct vmx_text *t, const char *words, uint64_t value)
{
	vmx_text_item(t, ", ", words);
	vmx_text_hex(t, value);
}

static void add_dec(struct vmx_text *t, const char *words, uint64_t value)
{
	vmx_text_item(t, ", ", words);
	vmx_text_dec(t, value);
}

/* " (name)" where there is one */
static void add_name(struct vmx_text *t, const char *name)
{
	if (!name)
		return;
	vmx_text_str(t, " (");
	vmx_text_str(t, name);
	vmx_text_char(t, ')');
}

static void io_text(struct vmx_text *t, const struct vmx_io_access *io)
{
	vmx_text_str(t, io->rep ? "REP " : "");
	vmx_text_str(t, io->in ? "IN" : "OUT");
	vmx_text_str(t, io->string ? "S " : " ");
	vmx_text_hex(t, io->port);
	add_dec(t, "", io->size_bytes);
	vmx_text_str(t, io->size_bytes == 1 ? " byte" : " bytes");
}

static void mov_text(struct vmx_text *t, bool to, const char *file, uint8_t number, const char *gpr)
{
	vmx_text_str(t, to ? "MOV to " : "MOV from ");
	vmx_text_str(t, file);
	vmx_text_dec(t, number);
	if (gpr) {
		vmx_text_str(t, to ? " from " : " to ");
		vmx_text_str(t, gpr);
	}
}

/* ---- VMX, one function a kind of qualification ---- */

static void debug_text(struct vmx_text *t, uint64_t q)
{
	add_flag(t, q & 1, "B0");
	add_flag(t, q & 2, "B1");
	add_flag(t, q & 4, "B2");
	add_flag(t, q & 8, "B3");
	add_flag(t, q >> 11 & 1, "bus lock");
	add_flag(t, q >> 13 & 1, "BD (debug register access)");
	add_flag(t, q >> 14 & 1, "BS (single step)");
	add_flag(t, q >> 16 & 1, "RTM");
}

static void exception_text(struct vmx_text *t, uint64_t q, uint32_t intr_info)
{
	struct vmx_intr_info info = vmx_intr_info_decode(intr_info);
	const char *name = vmx_exception_name(info.vector);

	if (!info.valid) {
		if (q)
			add_hex(t, "fault address or debug bits ", q);
		return;
	}
	if (name)
		vmx_text_str(t, name);
	else
		add_dec(t, "vector ", info.vector);
	if (info.vector == 1)
		debug_text(t, q);
	if (info.vector == 14) {
		vmx_text_str(t, " at ");
		vmx_text_hex(t, q);
	}
	add_flag(t, info.type > 3, vmx_intr_type_name(info.type));
	add_flag(t, info.nmi_unblocking, "NMI unblocking by IRET");
}

static void sipi_text(struct vmx_text *t, uint64_t q, uint32_t intr_info)
{
	(void)intr_info;
	add_hex(t, "vector ", q & 0xff);
}

static void smi_text(struct vmx_text *t, uint64_t q, uint32_t intr_info)
{
	(void)intr_info;
	add_flag(t, q & 1, "MSMI");
}

static void task_switch_text(struct vmx_text *t, uint64_t q, uint32_t intr_info)
{
	static const char *const sources[] = { "CALL", "IRET", "JMP", "task gate" };

	(void)intr_info;
	vmx_text_str(t, sources[q >> 30 & 3]);
	vmx_text_str(t, " to TSS ");
	vmx_text_hex(t, q & 0xffff);
}

static void linear_text(struct vmx_text *t, uint64_t q, uint32_t intr_info)
{
	(void)intr_info;
	add_hex(t, "linear address ", q);
}

static void displacement_text(struct vmx_text *t, uint64_t q, uint32_t intr_info)
{
	bool negative = q >> 63;

	(void)intr_info;
	if (q)
		add_hex(t, negative ? "displacement -" : "displacement ", negative ? -q : q);
}

static void cr_text(struct vmx_text *t, uint64_t q, uint32_t intr_info)
{
	struct vmx_cr_access cr = vmx_cr_decode(q);

	(void)intr_info;
	switch (cr.type) {
	case VMX_CR_MOV_TO:
	case VMX_CR_MOV_FROM:
		mov_text(t, cr.type == VMX_CR_MOV_TO, "CR", cr.cr, vmx_gpr_name(cr.gpr));
		break;
	case VMX_CR_CLTS:
		vmx_text_str(t, "CLTS");
		break;
	case VMX_CR_LMSW:
		vmx_text_str(t, "LMSW ");
		vmx_text_hex(t, cr.lmsw_source);
		vmx_text_str(t, cr.lmsw_memory ? " from memory" : " from a register");
		break;
	}
}

static void dr_text(struct vmx_text *t, uint64_t q, uint32_t intr_info)
{
	struct vmx_dr_access dr = vmx_dr_decode(q);

	(void)intr_info;
	mov_text(t, !dr.read, "DR", dr.dr, vmx_gpr_name(dr.gpr));
}

static void vmx_io_text(struct vmx_text *t, uint64_t q, uint32_t intr_info)
{
	struct vmx_io_access io = vmx_io_decode(q);

	(void)intr_info;
	io_text(t, &io);
	vmx_text_str(t, io.immediate ? ", immediate" : ", DX");
}

static void guest_state_text(struct vmx_text *t, uint64_t q, uint32_t intr_info)
{
	static const char *const causes[] = { "", NULL, "PDPTEs", "NMI injection with STI blocking",
					      "VMCS link pointer" };

	(void)intr_info;
	if (q < sizeof(causes) / sizeof(causes[0]) && causes[q])
		vmx_text_str(t, causes[q]);
	else
		add_hex(t, "cause ", q);
}

static void msr_load_text(struct vmx_text *t, uint64_t q, uint32_t intr_info)
{
	(void)intr_info;
	add_dec(t, "entry ", q);
	vmx_text_str(t, " of the MSR-load list");
}

static void mwait_text(struct vmx_text *t, uint64_t q, uint32_t intr_info)
{
	(void)intr_info;
	vmx_text_str(t, q & 1 ? "monitor armed" : "monitor not armed");
}

static void apic_offset_text(struct vmx_text *t, uint64_t offset)
{
	vmx_text_hex(t, offset);
	add_name(t, vmx_apic_register_name((uint32_t)offset));
}

static void apic_access_text(struct vmx_text *t, uint64_t q, uint32_t intr_info)
{
	static const char *const linear[] = { "read of ", "write of ", "fetch from ",
					      "event delivery through " };
	unsigned int type = q >> 12 & 15;

	(void)intr_info;
	if (type < 4) {
		vmx_text_str(t, linear[type]);
		apic_offset_text(t, q & 0xfff);
	} else if (type == 10) {
		vmx_text_str(t, "event delivery, guest-physical");
	} else if (type == 15) {
		vmx_text_str(t, "fetch or execution, guest-physical");
	} else {
		add_dec(t, "access type ", type);
	}
	add_flag(t, q >> 16 & 1, "asynchronous");
}

static void eoi_text(struct vmx_text *t, uint64_t q, uint32_t intr_info)
{
	(void)intr_info;
	add_dec(t, "vector ", q & 0xff);
}

static void ept_text(struct vmx_text *t, uint64_t q, uint32_t intr_info)
{
	struct vmx_ept_access a = vmx_ept_decode(q);

	(void)intr_info;
	add_flag(t, a.read, "read");
	add_flag(t, a.write, "write");
	add_flag(t, a.fetch, "fetch");
	if (a.readable || a.writable || a.executable) {
		vmx_text_item(t, ", ", "page ");
		vmx_text_char(t, a.readable ? 'r' : '-');
		vmx_text_char(t, a.writable ? 'w' : '-');
		vmx_text_char(t, a.executable ? 'x' : '-');
	} else {
		vmx_text_item(t, ", ", "page not present");
	}
	add_flag(t, a.executable_user, "user-executable");
	add_flag(t, a.linear_valid && a.linear_translated, "linear address");
	add_flag(t, a.linear_valid && !a.linear_translated, "page-table access");
	add_flag(t, a.linear_user, "user page");
	add_flag(t, a.linear_writable, "writable linear");
	add_flag(t, a.linear_no_execute, "no-execute linear");
	add_flag(t, a.nmi_unblocking, "NMI unblocking by IRET");
	add_flag(t, a.shadow_stack, "shadow stack");
	add_flag(t, a.pt_output, "output of Processor Trace");
}

static void apic_write_text(struct vmx_text *t, uint64_t q, uint32_t intr_info)
{
	(void)intr_info;
	vmx_text_str(t, "write of ");
	apic_offset_text(t, q & 0xfff);
}

static void pml_text(struct vmx_text *t, uint64_t q, uint32_t intr_info)
{
	(void)intr_info;
	add_flag(t, q >> 12 & 1, "NMI unblocking by IRET");
}

static void notify_text(struct vmx_text *t, uint64_t q, uint32_t intr_info)
{
	(void)intr_info;
	add_flag(t, q & 1, "VM context invalid");
	add_flag(t, q >> 12 & 1, "NMI unblocking by IRET");
}

static void msr_text(struct vmx_text *t, uint64_t q, uint32_t intr_info)
{
	(void)intr_info;
	add_hex(t, "MSR ", q & UINT32_MAX);
	add_name(t, vmx_msr_name((uint32_t)q));
}

typedef void text_fn(struct vmx_text *t, uint64_t q, uint32_t intr_info);

/* By basic exit reason; the reasons that are not here have no qualification. */
static const struct {
	uint8_t reason;
	text_fn *text;
} kinds[] = {
	{ 0, exception_text },	   { 4, sipi_text },	      { 5, vmx_io_text },
	{ 6, smi_text },	   { 9, task_switch_text },   { 14, linear_text },
	{ 19, displacement_text }, { 21, displacement_text }, { 22, displacement_text },
	{ 23, displacement_text }, { 25, displacement_text }, { 27, displacement_text },
	{ 28, cr_text },	   { 29, dr_text },	      { 30, vmx_io_text },
	{ 33, guest_state_text },  { 34, msr_load_text },     { 36, mwait_text },
	{ 44, apic_access_text },  { 45, eoi_text },	      { 46, displacement_text },
	{ 47, displacement_text }, { 48, ept_text },	      { 50, displacement_text },
	{ 53, displacement_text }, { 56, apic_write_text },   { 58, displacement_text },
	{ 62, pml_text },	   { 63, displacement_text }, { 64, displacement_text },
	{ 75, notify_text },	   { 84, msr_text },	      { 85, msr_text },
};

char *vmx_qualification_text(char *buf, size_t size, uint32_t basic_reason, uint64_t qualification,
			     uint32_t intr_info)
{
	struct vmx_text t = vmx_text_of(buf, size);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kinds[i].reason == basic_reason)
			kinds[i].text(&t, qualification, intr_info);
	}
	return buf;
}

/* ---- error codes ---- */

static void page_fault_text(struct vmx_text *t, uint32_t e)
{
	vmx_text_str(t, e & 1u << 4 ? "fetch" : e & 2 ? "write" : "read");
	vmx_text_str(t, e & 4 ? ", user" : ", supervisor");
	vmx_text_str(t, e & 1 ? ", protection" : ", page not present");
	add_flag(t, e & 1u << 3, "reserved bits");
	add_flag(t, e & 1u << 5, "protection key");
	add_flag(t, e & 1u << 6, "shadow stack");
	add_flag(t, e & 1u << 7, "HLAT");
	add_flag(t, e & 1u << 15, "SGX");
	add_flag(t, e & 1u << 31, "RMP");
}

static void selector_text(struct vmx_text *t, uint32_t e)
{
	if (!(e & 0xffff)) {
		vmx_text_str(t, "no selector");
		return;
	}
	if (e & 2) {
		add_dec(t, "IDT entry ", e >> 3 & 0x1fff);
	} else {
		add_hex(t, "selector ", e & 0xfff8);
		vmx_text_str(t, e & 4 ? " in the LDT" : " in the GDT");
	}
	add_flag(t, e & 1, "external event");
}

static void control_protection_text(struct vmx_text *t, uint32_t e)
{
	static const char *const causes[] = {
		NULL, "near RET", "far RET or IRET", "missing ENDBRANCH", "RSTORSSP", "SETSSBSY"
	};
	uint32_t cause = e & 0x7fff;

	if (cause < sizeof(causes) / sizeof(causes[0]) && causes[cause])
		vmx_text_str(t, causes[cause]);
	else
		add_hex(t, "cause ", cause);
	add_flag(t, e & 1u << 15, "enclave");
}

char *vmx_error_code_text(char *buf, size_t size, uint8_t vector, uint32_t error_code)
{
	struct vmx_text t = vmx_text_of(buf, size);

	switch (vector) {
	case 10: /* #TS */
	case 11: /* #NP */
	case 12: /* #SS */
	case 13: /* #GP */
		selector_text(&t, error_code);
		break;
	case 14: /* #PF */
		page_fault_text(&t, error_code);
		break;
	case 21: /* #CP */
		control_protection_text(&t, error_code);
		break;
	case 8:	 /* #DF */
	case 17: /* #AC */
	case 29: /* #VC: the exit code */
	case 30: /* #SX */
		add_hex(&t, "error code ", error_code);
		break;
	default:
		break;
	}
	return buf;
}

/* ---- SVM ---- */

static void npf_text(struct vmx_text *t, uint64_t error, uint64_t gpa)
{
	vmx_text_str(t, error >> 4 & 1 ? "fetch" : error & 2 ? "write" : "read");
	vmx_text_str(t, " at ");
	vmx_text_hex(t, gpa);
	add_name(t, vmx_gpa_name(gpa));
	add_flag(t, error & 1, "page present");
	add_flag(t, !(error & 1), "page not present");
	add_flag(t, error >> 3 & 1, "reserved bits");
	add_flag(t, error >> 6 & 1, "shadow stack");
	add_flag(t, error >> 31 & 1, "RMP");
	add_flag(t, error >> 32 & 1, "final translation");
	add_flag(t, error >> 33 & 1, "page-table access");
	add_flag(t, error >> 34 & 1, "encrypted");
	add_flag(t, error >> 35 & 1, "size mismatch");
	add_flag(t, error >> 36 & 1, "VMPL");
}

static void svm_exception_text(struct vmx_text *t, uint32_t vector, uint64_t info1, uint64_t info2)
{
	char words[VMX_QUALIFICATION_TEXT_MAX];

	if (vector == 14)
		add_hex(t, "at ", info2);
	vmx_error_code_text(words, sizeof(words), (uint8_t)vector, (uint32_t)info1);
	add_flag(t, words[0], words);
}

static void svm_task_switch_text(struct vmx_text *t, uint64_t info1, uint64_t info2)
{
	vmx_text_str(t, info2 >> 36 & 1 ? "IRET" : info2 >> 38 & 1 ? "JMP" : "CALL or task gate");
	vmx_text_str(t, " to TSS ");
	vmx_text_hex(t, info1 & 0xffff);
	if (info2 >> 44 & 1)
		add_hex(t, "error code ", info2 & UINT32_MAX);
}

static void avic_ipi_text(struct vmx_text *t, uint64_t info1, uint64_t info2)
{
	static const char *const causes[] = { "invalid interrupt type", "target not running",
					      "invalid target", "invalid backing page",
					      "invalid vector" };
	uint64_t cause = info2 >> 32;

	add_hex(t, "ICR ", info1);
	if (cause < sizeof(causes) / sizeof(causes[0]))
		add_flag(t, true, causes[cause]);
	else
		add_dec(t, "cause ", cause);
	add_dec(t, "index ", info2 & 0x1ff);
}

static void avic_access_text(struct vmx_text *t, uint64_t info1, uint64_t info2)
{
	vmx_text_str(t, info1 >> 32 & 1 ? "write of " : "read of ");
	apic_offset_text(t, info1 & 0xff0);
	if ((info1 & 0xff0) == 0xb0)
		add_dec(t, "vector ", info2 & 0xff);
}

static void svm_register_text(struct vmx_text *t, uint32_t code, uint64_t info1)
{
	uint8_t number;
	bool write;

	/* Decode assists: bit 63 says that a MOV did it and bits 3:0 which register (CR only). */
	if (svm_cr_decode(code, &number, &write)) {
		if (info1 >> 63)
			mov_text(t, write, "CR", number, vmx_gpr_name((uint8_t)info1));
	} else if (svm_dr_decode(code, &number, &write)) {
		mov_text(t, write, "DR", number, info1 ? vmx_gpr_name((uint8_t)info1) : NULL);
	}
}

char *svm_exit_info_text(char *buf, size_t size, uint32_t code, uint64_t info1, uint64_t info2)
{
	struct vmx_text t = vmx_text_of(buf, size);
	struct vmx_io_access io = svm_io_decode(info1);

	if (code >= 0x40 && code <= 0x5f)
		svm_exception_text(&t, code - 0x40, info1, info2);
	switch (code) {
	case 0x75: /* SWINT */
		add_dec(&t, "vector ", info1 & 0xff);
		break;
	case 0x79: /* INVLPG */
		if (info1)
			add_hex(&t, "linear address ", info1);
		break;
	case 0x7b: /* IOIO */
		io_text(&t, &io);
		break;
	case 0x7c: /* MSR */
		vmx_text_str(&t, info1 & 1 ? "WRMSR" : "RDMSR");
		break;
	case 0x7d: /* TASK_SWITCH */
		svm_task_switch_text(&t, info1, info2);
		break;
	case 0x400: /* NPF */
		npf_text(&t, info1, info2);
		break;
	case 0x401: /* AVIC_INCOMPLETE_IPI */
		avic_ipi_text(&t, info1, info2);
		break;
	case 0x402: /* AVIC_UNACCELERATED_ACCESS */
		avic_access_text(&t, info1, info2);
		break;
	default:
		svm_register_text(&t, code, info1);
		break;
	}
	return buf;
}
