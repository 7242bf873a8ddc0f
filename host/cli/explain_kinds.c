// SPDX-License-Identifier: LGPL-2.1-or-later
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "host/cli/explain.h"
#include "vmx/qualification.h"
#include "vmx/text.h"

#define APIC_BASE 0xfee00000u

struct meaning {
	uint32_t first, last;
	const char *text;
};

static const struct meaning cr_meanings[] = {
	{ 0, 0, "CR0: protection, paging, caching, x87 task switch (TS)" },
	{ 2, 2, "CR2: address of the last page fault" },
	{ 3, 3, "CR3: root of the page tables; written on each change of address space" },
	{ 4, 4, "CR4: extensions (PAE, PGE, PCE, OSXSAVE, SMEP and others)" },
	{ 8, 8, "CR8: task priority of the local APIC" },
};

static const struct meaning dr_meanings[] = {
	{ 0, 3, "address of a hardware breakpoint" },
	{ 4, 4, "alias of DR6" },
	{ 5, 5, "alias of DR7" },
	{ 6, 6, "DR6: what raised the debug exception" },
	{ 7, 7, "DR7: which breakpoints are on" },
};

/* Linux asm/irq_vectors.h. */
static const struct meaning linux_vectors[] = {
	{ 0xec, 0xec, "local APIC timer" },
	{ 0xed, 0xed, "Hyper-V synthetic timer" },
	{ 0xee, 0xee, "Hyper-V re-enlightenment" },
	{ 0xef, 0xef, "shutdown of a managed interrupt" },
	{ 0xf0, 0xf0, "posted interrupt of a nested guest" },
	{ 0xf1, 0xf1, "posted interrupt: wake a halted vCPU" },
	{ 0xf2, 0xf2, "posted interrupt" },
	{ 0xf3, 0xf3, "hypervisor callback" },
	{ 0xf4, 0xf4, "deferred machine-check error (AMD)" },
	{ 0xf6, 0xf6, "IRQ work" },
	{ 0xf7, 0xf7, "platform IPI" },
	{ 0xf8, 0xf8, "IPI: stop this CPU" },
	{ 0xf9, 0xf9, "machine-check threshold" },
	{ 0xfa, 0xfa, "thermal event" },
	{ 0xfb, 0xfb, "IPI: call a function on one CPU" },
	{ 0xfc, 0xfc, "IPI: call a function on many CPUs (TLB shoot-down)" },
	{ 0xfd, 0xfd, "IPI: reschedule" },
	{ 0xfe, 0xfe, "local APIC error" },
	{ 0xff, 0xff, "spurious interrupt" },
};

static const struct meaning user_advice[] = {
	{ 2, 2,
	  "QEMU emulates the device behind an I/O port: expensive. Paravirtual devices, "
	  "or in-kernel ones (kernel-irqchip), avoid it." },
	{ 5, 5, "HLT reached QEMU: the interrupt controller is not in the kernel." },
	{ 6, 6,
	  "QEMU emulates the device behind an address: expensive. Virtio with ioeventfd "
	  "avoids it." },
	{ 8, 8, "The guest shut down or faulted three times." },
	{ 9, 9, "The CPU refused to enter the guest: see the host's kernel log." },
	{ 10, 10,
	  "A signal took the vCPU thread out of the guest: QEMU wanted it, for a timer, a "
	  "pause, a migration or its main lock." },
	{ 17, 17, "KVM could not emulate an instruction." },
	{ 24, 24, "The guest asked for shutdown, reset or crash." },
	{ 26, 26, "End of a level-triggered interrupt, split interrupt controller." },
	{ 27, 27, "Hyper-V's SynIC, hypercalls or debugger reached QEMU." },
	{ 31, 31, "The dirty ring is full: a migration runs." },
};

static const char *meaning_of(const struct meaning *rows, size_t count, uint64_t number)
{
	for (size_t i = 0; i < count; i++) {
		if (number >= rows[i].first && number <= rows[i].last)
			return rows[i].text;
	}
	return NULL;
}

#define MEANING(rows, number) meaning_of(rows, sizeof(rows) / sizeof((rows)[0]), number)

static void set_name(struct vmt_answer *a, const char *name)
{
	a->known = name != NULL;
	snprintf(a->name, sizeof(a->name), "%s", name ? name : "");
}

static void set_unknown(struct vmt_answer *a, const char *thing)
{
	snprintf(a->title, sizeof(a->title), "%.120s: not in the tables of this version", thing);
}

/* ---- exits ---- */

static bool has_qualification(bool is_svm, uint32_t code)
{
	char text[VMX_QUALIFICATION_TEXT_MAX];

	if (is_svm)
		return svm_exit_info_text(text, sizeof(text), code, UINT64_MAX, UINT64_MAX)[0];
	return vmx_qualification_text(text, sizeof(text), code, UINT64_MAX, 0)[0];
}

static void exit_row(struct vmt_answer *a, bool is_svm, uint32_t code,
		     const struct vmx_reason_row *row)
{
	char text[100];

	snprintf(a->title, sizeof(a->title),
		 is_svm ? "%s (SVM exit code 0x%x)" : "%s (VMX exit reason %u)", row->title, code);
	vmt_answer_text(a, "class", vmx_class_name((enum vmx_exit_class)row->class));
	vmt_answer_fixed(a, "source", row->source);
	if (has_qualification(is_svm, code)) {
		snprintf(text, sizeof(text),
			 is_svm ? "vmtrace explain qual:svm:0x%x:INFO1[:INFO2]"
				: "vmtrace explain qual:%u:QUALIFICATION",
			 code);
		vmt_answer_text(a, "decode", text);
	}
	vmt_answer_fixed(a, "advice", row->advice);
}

static void exit_unknown(struct vmt_answer *a, bool is_svm, uint32_t number)
{
	const struct vmx_reason_row *svm = is_svm ? NULL : svm_exit_find(number);
	char text[120];

	snprintf(text, sizeof(text), "%s 0x%x", is_svm ? "SVM exit code" : "VMX exit reason",
		 is_svm ? number : number & VMX_REASON_BASIC_MASK);
	set_unknown(a, text);
	if (svm) {
		snprintf(text, sizeof(text), "on AMD it is %s: exit:svm:0x%x", svm->name, number);
		vmt_answer_text(a, "note", text);
	}
}

void vmt_explain_exit(struct vmt_answer *a, bool is_svm, uint32_t number)
{
	uint32_t code = is_svm ? number : number & VMX_REASON_BASIC_MASK;
	uint32_t flags = number & ~code;
	const struct vmx_reason_row *row = is_svm ? svm_exit_find(code) : vmx_reason_find(code);
	char text[96];

	memset(a, 0, sizeof(*a));
	a->kind = "exit";
	if (is_svm)
		snprintf(a->what, sizeof(a->what), "exit:svm:0x%x", number);
	else
		snprintf(a->what, sizeof(a->what), row && !flags ? "exit:%u" : "exit:0x%x", number);
	set_name(a, row ? row->name : NULL);
	vmt_answer_fixed(a, "isa", is_svm ? "svm" : "vmx");
	a->fields[0].json_only = true;
	vmt_answer_number(a, "reason", code);
	vmt_answer_hex(a, "reason_flags", flags);
	vmt_answer_text(a, "reason_name", vmx_reason_text(text, sizeof(text), is_svm, code));
	a->fields[a->nr_fields - 1].json_only = true;
	if (flags)
		vmt_answer_text(a, "flags", vmx_reason_flags_text(text, sizeof(text), flags));
	if (row)
		exit_row(a, is_svm, code, row);
	else
		exit_unknown(a, is_svm, number);
}

/* ---- sub-keys ---- */

static void explain_msr(struct vmt_answer *a, const struct vmt_key *key)
{
	const struct vmx_msr_row *row = vmx_msr_find((uint32_t)key->number);
	char text[80];

	snprintf(a->title, sizeof(a->title), "MSR 0x%" PRIx64, key->number);
	if (!row)
		return;
	if (row->first != row->last) {
		snprintf(text, sizeof(text), "0x%x..0x%x", row->first, row->last);
		vmt_answer_text(a, "range", text);
	}
	vmt_answer_fixed(a, "source", row->source);
	if (!vmt_verdict_key_remedy(key))
		vmt_answer_fixed(a, "advice", row->advice);
}

static void explain_gpa(struct vmt_answer *a, const struct vmt_key *key)
{
	const char *reg;

	snprintf(a->title, sizeof(a->title), "guest-physical address 0x%" PRIx64, key->number);
	vmt_answer_fixed(a, "source", "QEMU's i440FX and Q35 machines");
	if ((key->number & ~UINT64_C(0xfff)) == APIC_BASE) {
		reg = vmx_apic_register_name((uint32_t)key->number & 0xfff);
		vmt_answer_fixed(a, "register", reg);
	}
}

static void explain_vector(struct vmt_answer *a, const struct vmt_key *key)
{
	a->known = key->number >= 32 || a->name[0];
	snprintf(a->title, sizeof(a->title), "%s (vector %" PRIu64 ", 0x%" PRIx64 ")",
		 key->number < 32 ? "exception or NMI" : "external interrupt or IPI", key->number,
		 key->number);
	vmt_answer_fixed(a, "linux", MEANING(linux_vectors, key->number));
	if (key->number >= 32)
		vmt_answer_fixed(a, "advice",
				 "At EXTERNAL_INTERRUPT exits it is a vector of the host; "
				 "/proc/interrupts of the host counts it. At injections it is one "
				 "of the guest.");
}

static void explain_cpuid(struct vmt_answer *a, const struct vmt_key *key)
{
	snprintf(a->title, sizeof(a->title), "CPUID leaf 0x%" PRIx64 ", sub-leaf 0x%x", key->number,
		 key->sub);
}

static void explain_register(struct vmt_answer *a, const struct vmt_key *key)
{
	bool cr = key->kind == VMT_KEY_CR;
	const char *meaning =
		cr ? MEANING(cr_meanings, key->number) : MEANING(dr_meanings, key->number);

	a->known = meaning != NULL;
	snprintf(a->name, sizeof(a->name), "%s%" PRIu64, cr ? "CR" : "DR", key->number);
	snprintf(a->title, sizeof(a->title), "%s", meaning ? meaning : "");
}

static void explain_hypercall(struct vmt_answer *a, const struct vmt_key *key)
{
	snprintf(a->title, sizeof(a->title), "%s 0x%" PRIx64,
		 key->sub ? "Hyper-V hypercall code" : "KVM hypercall", key->number);
	if (key->sub)
		a->kind = "hv";
	vmt_answer_fixed(a, "source", key->sub ? "Hyper-V TLFS" : "Linux uapi/linux/kvm_para.h");
}

static void explain_user(struct vmt_answer *a, const struct vmt_key *key)
{
	snprintf(a->title, sizeof(a->title),
		 "KVM_RUN returned to the VMM with exit reason %" PRIu64, key->number);
	vmt_answer_fixed(a, "source", "Linux uapi/linux/kvm.h");
	vmt_answer_fixed(a, "advice", MEANING(user_advice, key->number));
}

static void explain_port(struct vmt_answer *a, const struct vmt_key *key)
{
	snprintf(a->title, sizeof(a->title), "I/O port 0x%" PRIx64, key->number);
	vmt_answer_fixed(a, "source", "IBM PC; QEMU's i440FX and Q35 machines");
}

static void explain_apic(struct vmt_answer *a, const struct vmt_key *key)
{
	snprintf(a->title, sizeof(a->title), "local APIC register 0x%" PRIx64, key->number);
	vmt_answer_fixed(a, "source", "SDM vol. 3 table 11-1");
}

static void access_field(struct vmt_answer *a, enum vmt_access access)
{
	static const char *const words[] = { NULL, "read", "write", "fetch" };

	if (access > VMT_ACCESS_NONE && access <= VMT_ACCESS_EXEC)
		vmt_answer_fixed(a, "access", words[access]);
}

static const struct {
	enum vmt_key_kind kind;
	const char *name;
	void (*explain)(struct vmt_answer *a, const struct vmt_key *key);
} key_kinds[] = {
	{ VMT_KEY_MSR, "msr", explain_msr },
	{ VMT_KEY_PORT, "port", explain_port },
	{ VMT_KEY_GPA, "gpa", explain_gpa },
	{ VMT_KEY_CPUID, "cpuid", explain_cpuid },
	{ VMT_KEY_VECTOR, "vec", explain_vector },
	{ VMT_KEY_CR, "cr", explain_register },
	{ VMT_KEY_DR, "dr", explain_register },
	{ VMT_KEY_HYPERCALL, "hypercall", explain_hypercall },
	{ VMT_KEY_APIC, "apic", explain_apic },
	{ VMT_KEY_USERSPACE, "user", explain_user },
};

void vmt_explain_key(struct vmt_answer *a, const struct vmt_key *key)
{
	char text[200];

	memset(a, 0, sizeof(*a));
	vmt_key_format(a->what, sizeof(a->what), key);
	set_name(a, vmt_key_name(key));
	vmt_answer_hex(a, "number", key->number);
	for (size_t i = 0; i < sizeof(key_kinds) / sizeof(key_kinds[0]); i++) {
		if (key_kinds[i].kind != key->kind)
			continue;
		a->kind = key_kinds[i].name;
		access_field(a, key->access);
		key_kinds[i].explain(a, key);
		vmt_answer_fixed(a, "advice", vmt_verdict_key_remedy(key));
	}
	if (!a->known) {
		snprintf(text, sizeof(text), "%s", a->title[0] ? a->title : a->name);
		set_unknown(a, text);
		a->name[0] = '\0';
		a->nr_fields = 1;
	}
}

/* ---- findings ---- */

void vmt_explain_finding(struct vmt_answer *a, const struct vmt_verdict_words *words)
{
	memset(a, 0, sizeof(*a));
	a->kind = "finding";
	snprintf(a->what, sizeof(a->what), "finding:%s", words->id);
	set_name(a, words->brief);
	snprintf(a->title, sizeof(a->title), "%s", words->meaning);
	vmt_answer_fixed(a, "advice", words->remedy);
}

/* ---- qualifications ---- */

/* The qualification in words, with the error code behind it where that is given. */
static void details_text(char *text, size_t size, const struct vmt_exit_details *exit)
{
	char words[VMX_QUALIFICATION_TEXT_MAX];
	struct vmx_text t = { .buf = text, .size = size };

	if (exit->is_svm) {
		svm_exit_info_text(text, size, exit->reason, exit->first, exit->second);
		return;
	}
	vmx_qualification_text(text, size, exit->reason, exit->first, (uint32_t)exit->second);
	if (!exit->has_error)
		return;
	t.len = strlen(text);
	vmx_error_code_text(words, sizeof(words), (uint8_t)exit->second, exit->error);
	if (words[0])
		vmx_text_item(&t, ", ", words);
}

void vmt_explain_qualification(struct vmt_answer *a, const struct vmt_exit_details *exit)
{
	const struct vmx_reason_row *row =
		exit->is_svm ? svm_exit_find(exit->reason) : vmx_reason_find(exit->reason);
	char text[VMX_QUALIFICATION_TEXT_MAX], name[32];

	memset(a, 0, sizeof(*a));
	a->kind = "qual";
	snprintf(a->what, sizeof(a->what),
		 exit->is_svm ? "qual:svm:0x%x:0x%" PRIx64 : "qual:%u:0x%" PRIx64, exit->reason,
		 exit->first);
	set_name(a, row ? row->name : NULL);
	vmx_reason_text(name, sizeof(name), exit->is_svm, exit->reason);
	details_text(text, sizeof(text), exit);
	if (!row)
		set_unknown(a, name);
	else
		snprintf(a->title, sizeof(a->title), "%s",
			 text[0] ? text : "this reason and value carry nothing to decode");
	vmt_answer_fixed(a, "isa", exit->is_svm ? "svm" : "vmx");
	a->fields[0].json_only = true;
	vmt_answer_number(a, "reason", exit->reason);
	vmt_answer_text(a, "reason_name", name);
	a->fields[a->nr_fields - 1].json_only = true;
	vmt_answer_hex(a, "qualification", exit->first);
	vmt_answer_hex(a, exit->is_svm ? "info2" : "intr_info", exit->second);
	if (exit->has_error)
		vmt_answer_hex(a, "error_code", exit->error);
	vmt_answer_text(a, "text", text);
	a->fields[a->nr_fields - 1].json_only = true;
}
