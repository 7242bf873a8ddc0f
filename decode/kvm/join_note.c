/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Records that are no entry, exit, switch or loss, as events: a row a kind says which member of the
 * rec is the sub-key and which the value.
 */
#include "decode/kvm/join_private.h"

#include <stddef.h>
#include <string.h>

#define VECTOR_MAX 255

enum value_of {
	NO_VALUE,
	VALUE_U64, /* 8 bytes at `value` of struct vmt_rec */
};

static const struct note_row {
	uint8_t key;	/* enum vmt_key_kind */
	uint8_t number; /* offset in struct vmt_rec of its 8-byte number */
	uint8_t value_kind;
	uint8_t value;
	bool has_access; /* u.io.access */
} rows[VMT_REC_KIND_COUNT] = {
#define AT(m) offsetof(struct vmt_rec, u.m)
#define IO(key)                                                                                    \
	{                                                                                          \
		key, AT(io.address), VALUE_U64, AT(io.value), true                                 \
	}
#define ANY(key)                                                                                   \
	{                                                                                          \
		key, AT(any.first), VALUE_U64, AT(any.second), false                               \
	}
#define VALUE(m)                                                                                   \
	{                                                                                          \
		VMT_KEY_NONE, 0, VALUE_U64, AT(m), false                                           \
	}
	[VMT_REC_KVM_PIO] = IO(VMT_KEY_PORT),
	[VMT_REC_KVM_MMIO] = IO(VMT_KEY_GPA),
	[VMT_REC_KVM_FAST_MMIO] = { VMT_KEY_GPA, AT(io.address), NO_VALUE, 0, true },
	[VMT_REC_KVM_MSR] = IO(VMT_KEY_MSR),
	[VMT_REC_KVM_CR] = IO(VMT_KEY_CR),
	[VMT_REC_KVM_APIC] = IO(VMT_KEY_APIC),
	[VMT_REC_KVM_APIC_IPI] = ANY(VMT_KEY_VECTOR),
	[VMT_REC_KVM_APIC_ACCEPT_IRQ] = ANY(VMT_KEY_VECTOR),
	[VMT_REC_KVM_EOI] = ANY(VMT_KEY_VECTOR),
	[VMT_REC_KVM_PV_EOI] = ANY(VMT_KEY_VECTOR),
	[VMT_REC_KVM_HYPERCALL] = { VMT_KEY_HYPERCALL, AT(hypercall.nr), VALUE_U64,
				    AT(hypercall.a0), false },
	[VMT_REC_KVM_HV_HYPERCALL] = { VMT_KEY_HYPERCALL, AT(hypercall.nr), VALUE_U64,
				       AT(hypercall.ingpa), false },
	[VMT_REC_KVM_PAGE_FAULT] = { VMT_KEY_GPA, AT(fault.gpa), VALUE_U64, AT(fault.error_code),
				     false },
	[VMT_REC_KVM_HALT_POLL_NS] = VALUE(any.first),
	[VMT_REC_KVM_PLE_WINDOW] = VALUE(any.first),
	[VMT_REC_KVM_WRITE_TSC_OFFSET] = VALUE(tsc.next),
	[VMT_REC_KVM_PVCLOCK_UPDATE] = VALUE(tsc.previous),
	[VMT_REC_KVM_ASYNC_PF] = VALUE(any.first),
	[VMT_REC_KVM_UNMAP_HVA] = VALUE(any.first),
	[VMT_REC_KVM_SET_IRQ] = VALUE(any.first),
	[VMT_REC_KVM_MSI_SET_IRQ] = ANY(VMT_KEY_NONE),
};

static uint64_t word_at(const struct vmt_rec *rec, size_t offset)
{
	uint64_t v;

	memcpy(&v, (const uint8_t *)rec + offset, sizeof(v));
	return v;
}

static void fill_inject(struct vmt_event *e, const struct vmt_rec *rec)
{
	e->vector = rec->u.inject.vector;
	e->has |= VMT_HAS_VECTOR;
	e->key.kind = VMT_KEY_VECTOR;
	e->key.number = e->vector;
	if (rec->kind == VMT_REC_KVM_INJ_EXCEPTION && rec->u.inject.has_error) {
		e->value = rec->u.inject.error_code;
		e->has |= VMT_HAS_VALUE;
	}
}

static void fill_cpuid(struct vmt_event *e, const struct vmt_rec *rec)
{
	e->key.kind = rec->flags & VMT_REC_HAS_SUBLEAF ? VMT_KEY_CPUID : VMT_KEY_CPUID_LEAF;
	e->key.number = rec->u.cpuid.leaf;
	e->key.sub = rec->u.cpuid.subleaf;
}

static void fill_rip(struct vmt_event *e, uint64_t rip)
{
	e->guest_rip = rip;
	e->has |= VMT_HAS_RIP;
}

/* What the rows do not say. */
static void fill_special(struct vmt_event *e, const struct vmt_rec *rec)
{
	switch (rec->kind) {
	case VMT_REC_KVM_CPUID:
		fill_cpuid(e, rec);
		break;
	case VMT_REC_KVM_INJ_VIRQ:
	case VMT_REC_KVM_INJ_EXCEPTION:
		fill_inject(e, rec);
		break;
	case VMT_REC_KVM_HV_HYPERCALL:
		e->key.sub = 1;
		break;
	case VMT_REC_KVM_FAST_MMIO:
		e->key.access = VMT_ACCESS_WRITE;
		break;
	case VMT_REC_KVM_APIC_IPI:
		e->key.number &= VECTOR_MAX;
		break;
	case VMT_REC_KVM_PAGE_FAULT:
		e->key.access = rec->u.fault.error_code >> 4 & 1   ? VMT_ACCESS_EXEC
				: rec->u.fault.error_code >> 1 & 1 ? VMT_ACCESS_WRITE
								   : VMT_ACCESS_READ;
		if (rec->flags & VMT_REC_HAS_VCPU)
			fill_rip(e, rec->u.fault.rip);
		break;
	case VMT_REC_KVM_EMULATE_INSN:
		fill_rip(e, rec->u.any.first);
		break;
	default:
		break;
	}
}

void join_note_fill(struct vmt_event *e, const struct vmt_rec *rec)
{
	const struct note_row *row = &rows[rec->kind];

	if (row->key != VMT_KEY_NONE) {
		e->key.kind = (enum vmt_key_kind)row->key;
		e->key.number = word_at(rec, row->number);
		if (row->has_access)
			e->key.access = (enum vmt_access)rec->u.io.access;
	}
	if (row->value_kind == VALUE_U64) {
		e->value = (int64_t)word_at(rec, row->value);
		e->has |= VMT_HAS_VALUE;
	}
	fill_special(e, rec);
	if (e->key.kind == VMT_KEY_VECTOR) {
		if (e->key.number > VECTOR_MAX) { /* kvm_eoi: -1 when no vector was in service */
			e->key = (struct vmt_key){ .kind = VMT_KEY_NONE };
			return;
		}
		e->vector = (uint32_t)e->key.number;
		e->has |= VMT_HAS_VECTOR;
	}
}
