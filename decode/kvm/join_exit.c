/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An exit from its kvm_exit record, and its sub-key from the records behind it. */
#include "decode/kvm/join_private.h"

#include "vmx/exit.h"

#define SVM_VMGEXIT 0x403u
#define SVM_ERR	    0xffffffffu
#define VMX_TDCALL  77u

static void fill_vmx(struct vmt_event *e, enum vmt_key_wait *wait, const struct vmt_rec *rec)
{
	uint32_t basic = rec->u.exit.reason & VMX_REASON_BASIC_MASK;

	e->reason = basic;
	e->reason_flags = rec->u.exit.reason & ~VMX_REASON_BASIC_MASK;
	e->failed_entry = e->reason_flags & VMX_REASON_ENTRY_FAILURE;
	e->concealed_rip = basic == VMX_TDCALL;
	if (!e->failed_entry)
		*wait = vmt_exit_key_vmx(e, basic, rec->u.exit.info1, rec->u.exit.intr_info);
}

static void fill_svm(struct vmt_event *e, enum vmt_key_wait *wait, const struct vmt_rec *rec)
{
	e->reason = rec->u.exit.reason;
	e->failed_entry = e->reason == SVM_ERR;
	e->concealed_rip = e->reason == SVM_VMGEXIT;
	*wait = vmt_exit_key_svm(e, e->reason, rec->u.exit.info1, rec->u.exit.info2);
}

void join_exit_fill(struct vmt_event *e, enum vmt_key_wait *wait, const struct vmt_rec *rec)
{
	*wait = VMT_KEY_WAIT_NONE;
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
		*wait = VMT_KEY_WAIT_ANY;
	}
}

/* Which wait a record satisfies. */
static enum vmt_key_wait answers(uint8_t kind)
{
	switch (kind) {
	case VMT_REC_KVM_MSR:
		return VMT_KEY_WAIT_MSR;
	case VMT_REC_KVM_MMIO:
	case VMT_REC_KVM_FAST_MMIO:
	case VMT_REC_KVM_PAGE_FAULT:
		return VMT_KEY_WAIT_GPA;
	case VMT_REC_KVM_CPUID:
		return VMT_KEY_WAIT_CPUID;
	case VMT_REC_KVM_HYPERCALL:
	case VMT_REC_KVM_HV_HYPERCALL:
		return VMT_KEY_WAIT_HYPERCALL;
	case VMT_REC_KVM_PIO:
	case VMT_REC_KVM_CR:
		return VMT_KEY_WAIT_ANY;
	default:
		return VMT_KEY_WAIT_NONE;
	}
}

void join_exit_refine(struct join_thread *t, const struct vmt_rec *rec, const struct vmt_key *key)
{
	enum vmt_key_wait answer = answers(rec->kind);
	enum vmt_access known = t->exit.key.access;

	if (answer == VMT_KEY_WAIT_NONE || key->kind == VMT_KEY_NONE)
		return;
	if (t->wait != VMT_KEY_WAIT_ANY && t->wait != answer)
		return;
	t->exit.key = *key;
	if (known != VMT_ACCESS_NONE)
		t->exit.key.access = known;
	t->wait = VMT_KEY_WAIT_NONE;
}
