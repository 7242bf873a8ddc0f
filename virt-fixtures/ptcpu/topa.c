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

/* Output addresses are guest-physical where the VMCS says so, up to the last packet of an exit. */
static bool output_address(struct ptcpu *p, uint64_t address, uint64_t *pa)
{
	*pa = address;
	p->output_fault = p->guest_pa && !bochs.translate_guest(p->cpu, address, pa, false);
	p->output_gpa = address;
	return !p->output_fault;
}

/* Table entry `index` of the table at output_base; END entries lead to the next table. False when
 * a table has no EPT mapping (yet). */
static bool load_entry(struct ptcpu *p, uint64_t index)
{
	uint64_t entry = 0, at;

	for (unsigned int links = 0; links < 2; links++) {
		if (!output_address(p, p->output_base + index * 8, &at))
			return false;
		bochs.read_memory(at, sizeof(entry), (uint8_t *)&entry);
		if ((entry & TOPA_RESERVED) || ((entry & TOPA_END) && !index) ||
		    ((entry & TOPA_END) && (entry & (TOPA_INT | TOPA_STOP)))) {
			fail(p);
			return true;
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
	if ((p->region_base & (p->region_size - 1)) ||
	    (!(p->status & RTIT_STOPPED) && p->region_offset >= p->region_size))
		fail(p);
	return true;
}

static void load_region(struct ptcpu *p, uint64_t index)
{
	p->region_index = index;
	p->region_known = load_entry(p, index);
}

void topa_start(struct ptcpu *p)
{
	const uint64_t mask = p->mask_ptrs & 0xffffffff, offset = p->mask_ptrs >> 32;

	p->region_offset = offset;
	if (!p->guest_pa)
		p->held_count = 0; /* else they are this guest's, from before an exit */
	if (p->ctl & RTIT_TOPA) {
		if (p->output_base & 0xfff) {
			fail(p);
			return;
		}
		load_region(p, INDEX(p->mask_ptrs));
		return;
	}
	p->region_known = true;
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
	load_region(p, INDEX(p->mask_ptrs) + 1);
}

/* Bytes that are written or need not be; fewer than count where a page has no EPT mapping. */
static size_t write_now(struct ptcpu *p, const uint8_t *bytes, size_t count)
{
	size_t done = 0;

	while (done < count && !(p->status & (RTIT_ERROR | RTIT_STOPPED))) {
		uint64_t at, left, pa;
		uint8_t copy[PAGE];
		uint32_t n;

		if (!p->region_known)
			load_region(p, p->region_index);
		at = p->region_base + p->region_offset;
		if (!p->region_known || !output_address(p, at, &pa))
			return done;
		left = p->region_size - p->region_offset;
		if (left > PAGE - (at & (PAGE - 1)))
			left = PAGE - (at & (PAGE - 1));
		n = count - done < left ? (uint32_t)(count - done) : (uint32_t)left;
		memcpy(copy, bytes + done, n);
		bochs.write_memory(pa, n, copy);
		truth_stream(p, copy, n);
		p->region_offset += n;
		done += n;
		if (p->region_offset == p->region_size)
			region_full(p);
	}
	return count;
}

static void hold(struct ptcpu *p, const uint8_t *bytes, size_t count)
{
	if (count > sizeof(p->held) - p->held_count) {
		count = sizeof(p->held) - p->held_count;
		truth_lost(p, TRUTH_LOST_FAULT);
	}
	memcpy(p->held + p->held_count, bytes, count);
	p->held_count += count;
}

bool topa_retry(struct ptcpu *p)
{
	const size_t done = write_now(p, p->held, p->held_count);

	memmove(p->held, p->held + done, p->held_count - done);
	p->held_count -= done;
	return !p->held_count;
}

void topa_write(struct ptcpu *p, const uint8_t *bytes, size_t count)
{
	size_t done = 0;

	if (topa_retry(p))
		done = write_now(p, bytes, count);
	hold(p, bytes + done, count - done);
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
