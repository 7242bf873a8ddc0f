// SPDX-License-Identifier: GPL-2.0-only
/*
 * Invariant: outside of the stretch from kvm_entry to kvm_exit every VMCS has the bits that KVM
 * gave it. Only bits are put back, not words: KVM may have changed others meanwhile, and keeps a
 * copy of what it believes to stand there.
 */
#include "controls.h"

#include <asm/msr-index.h>
#include <asm/msr.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/percpu.h>

#ifdef rdmsrq /* Linux 6.16 */
#define rdmsrl	    rdmsrq
#define rdmsrl_safe rdmsrq_safe
#define wrmsrl	    wrmsrq
#endif

#define FIELD_GUEST_RTIT_CTL 0x2814
#define FIELD_PRIMARY	     0x4002

#define PRIMARY_SECONDARY BIT(31) /* activate secondary controls */
#define SECONDARY_CONCEAL BIT(19)
#define SECONDARY_GPA	  BIT(24) /* Intel PT uses guest physical addresses */
#define EXIT_CONCEAL	  BIT(24)
#define EXIT_CLEAR	  BIT(25)
#define ENTRY_CONCEAL	  BIT(17)
#define ENTRY_LOAD	  BIT(18)

#define MISC_PT_IN_VMX BIT(14)

/* SDM vol. 3 table 33-52, A.3 to A.5 */
static const struct word {
	u16 field;
	u32 may_set, may_clear;
	u32 msr, true_msr;
} words[VMTRACE_VMX_WORDS] = {
	[VMTRACE_VMX_SECONDARY] = { 0x401e, SECONDARY_CONCEAL, SECONDARY_CONCEAL | SECONDARY_GPA,
				    MSR_IA32_VMX_PROCBASED_CTLS2, MSR_IA32_VMX_PROCBASED_CTLS2 },
	[VMTRACE_VMX_EXIT] = { 0x400c, EXIT_CONCEAL | EXIT_CLEAR, EXIT_CONCEAL | EXIT_CLEAR,
			       MSR_IA32_VMX_EXIT_CTLS, MSR_IA32_VMX_TRUE_EXIT_CTLS },
	[VMTRACE_VMX_ENTRY] = { 0x4012, ENTRY_CONCEAL | ENTRY_LOAD, ENTRY_CONCEAL | ENTRY_LOAD,
				MSR_IA32_VMX_ENTRY_CTLS, MSR_IA32_VMX_TRUE_ENTRY_CTLS },
};

/*
 * What the event of this CPU wrote into IA32_RTIT_CTL, from the VM entry that took it over until
 * the driver writes the MSR again. A VM exit leaves 0 there, which the driver never writes.
 */
struct taken {
	u64 ctl; /* 0: none */
	u64 base;
};
static DEFINE_PER_CPU(struct taken, taken);

/* ---- instructions; false: VMfail ---- */

static bool vmread(unsigned long field, unsigned long *value)
{
	bool good;

	asm volatile("vmread %[field], %[value]"
		     : [value] "=r"(*value), "=@cca"(good)
		     : [field] "r"(field)
		     : "memory");
	return good;
}

static bool vmwrite(unsigned long field, unsigned long value)
{
	bool good;

	asm volatile("vmwrite %[value], %[field]"
		     : "=@cca"(good)
		     : [field] "r"(field), [value] "r"(value)
		     : "memory");
	return good;
}

static u64 current_vmcs(void)
{
	u64 address = ~0ULL;

	asm volatile("vmptrst %0" : "=m"(address) : : "cc");
	return address;
}

/* ---- what may be asked for ---- */

static bool is_empty(const struct vmtrace_vmx_setup *setup)
{
	for (int i = 0; i < VMTRACE_VMX_WORDS; i++)
		if (setup->set[i] || setup->clear[i])
			return false;
	return true;
}

static bool is_guest_only(const struct vmtrace_vmx_setup *setup)
{
	return setup->set[VMTRACE_VMX_ENTRY] & ENTRY_LOAD;
}

static bool is_legal(const struct vmtrace_vmx_setup *setup)
{
	const bool load = setup->set[VMTRACE_VMX_ENTRY] & ENTRY_LOAD;
	const bool clear = setup->set[VMTRACE_VMX_EXIT] & EXIT_CLEAR;

	if (setup->abi != VMTRACE_VMX_ABI || setup->reserved || load != clear)
		return false;
	if (setup->guest_ctl & ~(u64)(load ? RTIT_CTL_OS | RTIT_CTL_USR : 0))
		return false;
	for (int i = 0; i < VMTRACE_VMX_WORDS; i++)
		if ((setup->set[i] & ~words[i].may_set) ||
		    (setup->clear[i] & ~words[i].may_clear) || (setup->set[i] & setup->clear[i]))
			return false;
	return true;
}

int vmtrace_controls_check(const struct vmtrace_vmx_setup *setup)
{
	u64 basic, misc, allowed;

	if (!is_legal(setup))
		return -EINVAL;
	if (is_empty(setup))
		return 0;
	if (rdmsrl_safe(MSR_IA32_VMX_BASIC, &basic) || rdmsrl_safe(MSR_IA32_VMX_MISC, &misc) ||
	    !(misc & MISC_PT_IN_VMX))
		return -EOPNOTSUPP;
	for (int i = 0; i < VMTRACE_VMX_WORDS; i++) {
		if (rdmsrl_safe(basic & BIT_ULL(55) ? words[i].true_msr : words[i].msr, &allowed) ||
		    (setup->set[i] & ~(u32)(allowed >> 32)) || (setup->clear[i] & (u32)allowed))
			return -EOPNOTSUPP;
	}
	return 0;
}

/* ---- IA32_RTIT_CTL ---- */

/*
 * Takes the trace of this CPU over and leaves TraceEn at 0, without which the entry would fail.
 * Returns the event's IA32_RTIT_CTL, 0 when there is no event, or one of another kind. No PMI of
 * Intel PT can set TraceEn again before the entry: packets, which cause it, are written in the
 * guest alone.
 */
static u64 take_trace(void)
{
	struct taken *t = this_cpu_ptr(&taken);
	u64 ctl, base;

	rdmsrl(MSR_IA32_RTIT_CTL, ctl);
	rdmsrl(MSR_IA32_RTIT_OUTPUT_BASE, base);
	if (!ctl && t->ctl && base == t->base)
		return t->ctl;
	if (!(ctl & RTIT_CTL_TRACEEN) || (ctl & (RTIT_CTL_OS | RTIT_CTL_USR))) {
		t->ctl = 0;
		return 0;
	}
	wrmsrl(MSR_IA32_RTIT_CTL, ctl & ~(u64)RTIT_CTL_TRACEEN);
	*t = (struct taken){ .ctl = ctl, .base = base };
	return ctl;
}

void vmtrace_controls_release_cpu(void *unused)
{
	struct taken *t = this_cpu_ptr(&taken);
	u64 ctl, base;

	if (!t->ctl)
		return;
	rdmsrl(MSR_IA32_RTIT_CTL, ctl);
	rdmsrl(MSR_IA32_RTIT_OUTPUT_BASE, base);
	if (!ctl && base == t->base)
		wrmsrl(MSR_IA32_RTIT_CTL, t->ctl);
	t->ctl = 0;
}

/* ---- words ---- */

static bool read_words(u32 out[VMTRACE_VMX_WORDS])
{
	unsigned long value;

	for (int i = 0; i < VMTRACE_VMX_WORDS; i++) {
		if (!vmread(words[i].field, &value))
			return false;
		WRITE_ONCE(out[i], (u32)value);
	}
	return true;
}

static void write_words(const u32 now[VMTRACE_VMX_WORDS], const u32 want[VMTRACE_VMX_WORDS],
			const struct vmtrace_vmx_setup *setup)
{
	for (int i = 0; i < VMTRACE_VMX_WORDS; i++) {
		const u32 mask = setup->set[i] | setup->clear[i];
		const u32 value = (now[i] & ~mask) | (want[i] & mask);

		if (value != now[i])
			vmwrite(words[i].field, value);
	}
}

static void write_guest_ctl(const struct vmtrace_vmx_setup *setup, struct vmtrace_vcpu *vcpu,
			    u64 event_ctl)
{
	unsigned long old = 0;

	vmread(FIELD_GUEST_RTIT_CTL, &old);
	if (!vcpu->applied)
		vcpu->old_guest_ctl = old;
	WRITE_ONCE(vcpu->state.guest_ctl, event_ctl | setup->guest_ctl);
	if (old != vcpu->state.guest_ctl)
		vmwrite(FIELD_GUEST_RTIT_CTL, vcpu->state.guest_ctl);
}

static bool has_secondary(void)
{
	unsigned long primary;

	return vmread(FIELD_PRIMARY, &primary) && (primary & PRIMARY_SECONDARY);
}

/*
 * `applied` is still set at an entry when the one before did not come to a kvm_exit (VMfail): KVM's
 * words are then those of that time.
 */
static void keep_before(struct vmtrace_vcpu *vcpu, const u32 now[VMTRACE_VMX_WORDS])
{
	const u64 vmcs = current_vmcs();

	if (vcpu->applied && vcpu->vmcs == vmcs)
		return;
	vcpu->applied = false;
	vcpu->vmcs = vmcs;
	for (int i = 0; i < VMTRACE_VMX_WORDS; i++)
		WRITE_ONCE(vcpu->state.before[i], now[i]);
}

void vmtrace_controls_apply(const struct vmtrace_vmx_setup *setup, struct vmtrace_vcpu *vcpu)
{
	struct vmtrace_vmx_state *state = &vcpu->state;
	u32 now[VMTRACE_VMX_WORDS];
	u64 event_ctl;

	if (!has_secondary() || !read_words(now))
		return;
	if ((now[VMTRACE_VMX_SECONDARY] & SECONDARY_GPA) && !is_empty(setup)) {
		WRITE_ONCE(state->left, state->left + 1);
		return;
	}
	keep_before(vcpu, now);
	if (is_guest_only(setup)) {
		event_ctl = take_trace();
		if (!event_ctl) {
			write_words(now, state->before, setup);
			vcpu->applied = false;
			WRITE_ONCE(state->untraced, state->untraced + 1);
			return;
		}
		write_guest_ctl(setup, vcpu, event_ctl);
	}
	write_words(now, setup->set, setup);
	read_words(state->in_force);
	WRITE_ONCE(state->entries, state->entries + 1);
	vcpu->applied = true;
}

/* KVM has written the exit controls anew before the entry: TraceEn has stayed as in the guest. */
static void stop_trace(void)
{
	u64 ctl;

	rdmsrl(MSR_IA32_RTIT_CTL, ctl);
	if (ctl & RTIT_CTL_TRACEEN)
		wrmsrl(MSR_IA32_RTIT_CTL, 0);
}

void vmtrace_controls_undo(const struct vmtrace_vmx_setup *setup, struct vmtrace_vcpu *vcpu)
{
	struct vmtrace_vmx_state *state = &vcpu->state;
	u32 now[VMTRACE_VMX_WORDS];
	bool rewritten = false;

	if (!vcpu->applied || current_vmcs() != vcpu->vmcs || !read_words(now))
		return;
	for (int i = 0; i < VMTRACE_VMX_WORDS; i++)
		rewritten |= (now[i] & (setup->set[i] | setup->clear[i])) != setup->set[i];
	if (rewritten)
		WRITE_ONCE(state->rewritten, state->rewritten + 1);
	if (is_guest_only(setup)) {
		if (!(now[VMTRACE_VMX_EXIT] & EXIT_CLEAR))
			stop_trace();
		vmwrite(FIELD_GUEST_RTIT_CTL, vcpu->old_guest_ctl);
	}
	write_words(now, state->before, setup);
	read_words(state->after);
	vcpu->applied = false;
}
