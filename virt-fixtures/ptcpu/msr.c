// SPDX-License-Identifier: LGPL-2.1-or-later
/* The IA32_RTIT_* MSRs: which values are legal, and what a write of IA32_RTIT_CTL does. */
#include "virt-fixtures/ptcpu/ptcpu.h"

enum {
	MSR_PLATFORM_INFO = 0xce,
	MSR_OUTPUT_BASE = 0x560,
	MSR_OUTPUT_MASK_PTRS = 0x561,
	MSR_CTL = 0x570,
	MSR_STATUS = 0x571,
	MSR_CR3_MATCH = 0x572,
	MSR_ADDR = 0x580,
	MSR_ADDR_LAST = MSR_ADDR + 2 * PTCPU_RANGES - 1,
};

#define CTL_FLAGS                                                                                  \
	(RTIT_TRACE_EN | RTIT_CYC_EN | RTIT_OS | RTIT_USER | RTIT_CR3_FILTER | RTIT_TOPA |         \
	 RTIT_MTC_EN | RTIT_TSC_EN | RTIT_DIS_RETC | RTIT_BRANCH_EN | RTIT_EVENT_EN |              \
	 RTIT_DIS_TNT)
#define CTL_FIELDS	(15ULL << 14 | 15ULL << 19 | 15ULL << 24 | 0xffULL << 32)
#define STATUS_WRITABLE (RTIT_ERROR | RTIT_STOPPED)
#define STATUS_BYTES	(0x1ffffULL << 32)

/* Values of the fields that CPUID leaf 14H offers, as bit maps. */
enum { MTC_PERIODS = 0x249, CYC_THRESHOLDS = 0x3fff, PSB_PERIODS = 0x3f, ADDR_KINDS = 7 };

bool msr_ctl_is_legal(uint64_t ctl)
{
	if (ctl & ~(CTL_FLAGS | CTL_FIELDS))
		return false;
	for (unsigned int n = 0; n < PTCPU_RANGES; n++)
		if (!(ADDR_KINDS >> RTIT_ADDR_CFG(ctl, n) & 1))
			return false;
	return MTC_PERIODS >> RTIT_MTC_FREQ(ctl) & 1 &&
	       CYC_THRESHOLDS >> RTIT_CYC_THRESH(ctl) & 1 && PSB_PERIODS >> RTIT_PSB_FREQ(ctl) & 1;
}

static uint64_t status(const struct ptcpu *p)
{
	uint64_t value = p->status | (p->bytes_since_psb << 32 & STATUS_BYTES);

	if (p->ctl & RTIT_TRACE_EN)
		value |=
			(p->filter_en ? RTIT_FILTER_EN : 0) | (p->context_en ? RTIT_CONTEXT_EN : 0);
	return ptcpu_trigger_en(p) ? value | RTIT_TRIGGER_EN : value;
}

enum ptcpu_answer msr_read(struct ptcpu *p, uint32_t index, uint64_t *value)
{
	switch (index) {
	case MSR_PLATFORM_INFO:
		*value = PTCPU_BUS_RATIO << 8;
		return ANSWER_DONE;
	case MSR_OUTPUT_BASE:
		*value = p->output_base;
		return ANSWER_DONE;
	case MSR_OUTPUT_MASK_PTRS:
		*value = topa_mask_ptrs(p);
		return ANSWER_DONE;
	case MSR_CTL:
		*value = p->ctl;
		return ANSWER_DONE;
	case MSR_STATUS:
		*value = status(p);
		return ANSWER_DONE;
	case MSR_CR3_MATCH:
		*value = p->cr3_match;
		return ANSWER_DONE;
	default:
		if (index < MSR_ADDR || index > MSR_ADDR_LAST)
			return perfmon_read(p, index, value);
		*value = p->addr[index - MSR_ADDR];
		return ANSWER_DONE;
	}
}

static enum ptcpu_answer write_ctl(struct ptcpu *p, uint64_t ctl)
{
	const bool on = p->ctl & RTIT_TRACE_EN;

	if (ctl == p->ctl)
		return ANSWER_DONE;
	if (!msr_ctl_is_legal(ctl) || (on && (ctl & RTIT_TRACE_EN)))
		return ANSWER_FAULT;
	if (p->transition != TRANSITION_NONE) {
		p->ctl = ctl; /* an MSR list; packets follow when the transition is complete */
		return ANSWER_DONE;
	}
	if (on)
		engine_disable(p, ctl, p->ip);
	else if (ctl & RTIT_TRACE_EN)
		engine_enable(p, ctl, bochs_u64(p->cpu, BOCHS_RIP));
	else
		p->ctl = ctl;
	p->executing = false; /* WRMSR itself lies outside the trace */
	return ANSWER_DONE;
}

static bool canonical(uint64_t address)
{
	return (uint64_t)((int64_t)(address << 16) >> 16) == address;
}

static enum ptcpu_answer set(uint64_t *where, uint64_t value, bool legal)
{
	if (!legal)
		return ANSWER_FAULT;
	*where = value;
	return ANSWER_DONE;
}

static enum ptcpu_answer write_status(struct ptcpu *p, uint64_t value)
{
	const uint64_t ignored = RTIT_FILTER_EN | RTIT_CONTEXT_EN | RTIT_TRIGGER_EN;

	if (value & ~(STATUS_WRITABLE | STATUS_BYTES | ignored))
		return ANSWER_FAULT;
	p->status = value & STATUS_WRITABLE;
	p->bytes_since_psb = (value & STATUS_BYTES) >> 32;
	return ANSWER_DONE;
}

enum ptcpu_answer msr_write(struct ptcpu *p, uint32_t index, uint64_t value)
{
	const bool mine = (index >= MSR_OUTPUT_BASE && index <= MSR_OUTPUT_MASK_PTRS) ||
			  (index >= MSR_CTL && index <= MSR_CR3_MATCH) ||
			  (index >= MSR_ADDR && index <= MSR_ADDR_LAST);

	if (!mine)
		return perfmon_write(p, index, value);
	if (index == MSR_CTL)
		return write_ctl(p, value);
	if (p->ctl & RTIT_TRACE_EN)
		return ANSWER_FAULT;
	switch (index) {
	case MSR_OUTPUT_BASE:
		return set(&p->output_base, value, !(value & 0x7f) && !(value >> 40));
	case MSR_OUTPUT_MASK_PTRS:
		return set(&p->mask_ptrs, value | 0x7f, true);
	case MSR_STATUS:
		return write_status(p, value);
	case MSR_CR3_MATCH:
		return set(&p->cr3_match, value, !(value & 0x1f));
	default:
		return set(&p->addr[index - MSR_ADDR], value, canonical(value));
	}
}
