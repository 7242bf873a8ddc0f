// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Output: packet bytes to a single range or along a table of physical addresses, and the interrupt
 * when a region with INT is full. Invariant: region_* describe the region that entry `index` of
 * mask_ptrs names while TriggerEn is 1, and region_offset is below region_size unless the trace has
 * stopped there.
 */
#include "virt-fixtures/ptcpu/ptcpu.h"
#include "virt-fixtures/ptcpu/truth_log.h"

#define PHYSICAL_BITS 40
#define TOPA_END      (1ULL << 0)
#define TOPA_INT      (1ULL << 2)
#define TOPA_STOP     (1ULL << 4)
#define TOPA_RESERVED (1ULL << 1 | 1ULL << 3 | 1ULL << 5 | 3ULL << 10 | ~0ULL << PHYSICAL_BITS)
#define INDEX(m)      ((m) >> 7 & 0x1ffffff)

enum { PAGE = 4096, LVT_PC = 0x340, LVT_MODE_NMI = 4 };

static void fail(struct ptcpu *p)
{
	p->status |= RTIT_ERROR;
}

/* Output addresses are guest-physical where the VMCS says so. */
static bool output_address(struct ptcpu *p, uint64_t address, uint64_t *pa)
{
	*pa = address;
	if (!ptcpu_in_guest(p) || !(bochs_u32(p->cpu, BOCHS_SECONDARY) & VMX2_PT_GUEST_PA))
		return true;
	if (bochs.translate_guest(p->cpu, address, pa, false))
		return true;
	p->output_fault = true;
	p->output_gpa = address;
	return false;
}

/* Table entry `index` of the table at output_base; END entries lead to the next table. */
static void load_entry(struct ptcpu *p, uint64_t index)
{
	uint64_t entry, at;

	for (unsigned int links = 0; links < 2; links++) {
		if (!output_address(p, p->output_base + index * 8, &at)) {
			fail(p);
			return;
		}
		bochs.read_memory(at, sizeof(entry), (uint8_t *)&entry);
		if ((entry & TOPA_RESERVED) || ((entry & TOPA_END) && !index) ||
		    ((entry & TOPA_END) && (entry & (TOPA_INT | TOPA_STOP)))) {
			fail(p);
			return;
		}
		if (!(entry & TOPA_END))
			break;
		p->output_base = entry & ~0xfffULL;
		index = 0;
	}
	p->region_size = 4096ULL << (entry >> 6 & 15);
	p->region_base = entry & ~0xfffULL;
	p->region_stop = entry & TOPA_STOP;
	p->region_int = entry & TOPA_INT;
	p->mask_ptrs = index << 7 | 0x7f;
	if (p->region_base & (p->region_size - 1))
		fail(p);
}

void topa_start(struct ptcpu *p)
{
	const uint64_t mask = p->mask_ptrs & 0xffffffff, offset = p->mask_ptrs >> 32;

	p->region_offset = offset;
	if (p->ctl & RTIT_TOPA) {
		if (p->output_base & 0xfff) {
			fail(p);
			return;
		}
		load_entry(p, INDEX(p->mask_ptrs));
		if (!(p->status & RTIT_STOPPED) && offset >= p->region_size)
			fail(p);
		return;
	}
	p->region_base = p->output_base;
	p->region_size = mask + 1;
	p->region_stop = p->region_int = false;
	if ((mask & (mask + 1)) || (p->output_base & mask) || offset > mask)
		fail(p);
}

uint64_t topa_mask_ptrs(const struct ptcpu *p)
{
	if (!(p->ctl & RTIT_TRACE_EN))
		return p->mask_ptrs;
	return (p->mask_ptrs & 0xffffffff) | p->region_offset << 32;
}

/* STOP comes before INT: the trace ends here, the interrupt is still raised. */
static void region_full(struct ptcpu *p)
{
	if (!(p->ctl & RTIT_TOPA)) {
		p->region_offset = 0;
		return;
	}
	p->pmi |= p->region_int;
	if (p->region_stop) {
		p->status |= RTIT_STOPPED;
		truth_lost(p, TRUTH_LOST_STOP);
		return;
	}
	p->region_offset = 0;
	load_entry(p, INDEX(p->mask_ptrs) + 1);
}

void topa_write(struct ptcpu *p, const uint8_t *bytes, size_t count)
{
	while (count && !(p->status & (RTIT_ERROR | RTIT_STOPPED))) {
		const uint64_t at = p->region_base + p->region_offset;
		uint64_t left = p->region_size - p->region_offset, pa;
		uint8_t copy[PAGE];
		uint32_t n;

		if (left > PAGE - (at & (PAGE - 1)))
			left = PAGE - (at & (PAGE - 1));
		n = count < left ? (uint32_t)count : (uint32_t)left;
		if (!output_address(p, at, &pa))
			return;
		memcpy(copy, bytes, n);
		bochs.write_memory(pa, n, copy);
		truth_stream(p, bytes, n);
		p->stream_offset += n;
		p->region_offset += n;
		bytes += n;
		count -= n;
		if (p->region_offset == p->region_size)
			region_full(p);
	}
}

void topa_deliver_pmi(struct ptcpu *p)
{
	char *lapic = (char *)p->cpu + BOCHS_LAPIC;
	const uint32_t lvt = bochs.lapic_read(lapic, 0xfee00000 + LVT_PC);

	p->pmi = false;
	perfmon_pmi(p);
	if (lvt & 1U << 16)
		return;
	if ((lvt >> 8 & 7) == LVT_MODE_NMI)
		bochs.deliver_nmi(p->cpu);
	else
		bochs.lapic_trigger(lapic, (uint8_t)lvt, 0, false);
	bochs.lapic_set_lvt(lapic, LVT_PC, lvt | 1U << 16);
}
